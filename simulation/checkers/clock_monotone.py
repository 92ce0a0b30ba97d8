"""I19: the clock of a partition never goes back, whoever owns it.

Neither the mark in its footers, nor the instant of its decisions, nor the instant up to which everything is decided;
and nothing is said to be decided beyond the mark.
"""

from __future__ import annotations

from collections.abc import Iterator

from simulation.checkers.reading import Changelog, changelogs, instant
from simulation.evidence import Evidence, Violation

ID = "I19"


def observed(evidence: Evidence) -> int:
    """How many marks were looked at."""
    return sum(len(log.whole) for log in changelogs(evidence))


def check(evidence: Evidence) -> Iterator[Violation]:
    """Every step back."""
    for log in changelogs(evidence):
        yield from _steps_back(log)


def _steps_back(log: Changelog) -> Iterator[Violation]:
    newest: dict[str, str] = {}
    for written in log.whole:
        assert written.footer is not None
        where = written.footer_at or written.at
        said = {name: written.footer[name] for name in ("clock_mark", "decided_until")}
        if written.head is not None:
            said["now"] = written.head["now"]
        for name, text in said.items():
            before = newest.get(name)
            if before is not None and instant(text) < instant(before):
                yield Violation(invariant=ID, what=f"{name} goes from {before} back to {text}", where=where)
            newest[name] = text
        if instant(said["decided_until"]) > instant(said["clock_mark"]):
            what = f"decided until {said['decided_until']}, beyond the mark {said['clock_mark']}"
            yield Violation(invariant=ID, what=what, where=where)
