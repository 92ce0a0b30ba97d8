"""After a takeover every lease has one fresh period: a part of I22.

A new owner has not listened while nobody did. A lease that an owner before it gave, and whose holder it has not heard
of, does not end by itself before the new one has been there for the lease's whole length. Somebody is a new owner who
has restored the partition since it was last written to: an epoch rises, too, when an owner doubts its own producer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from simulation.checkers.marks import duration
from simulation.checkers.reading import (
    DISPATCHER,
    Changelog,
    Data,
    Fact,
    Written,
    appended_at,
    changelogs,
    instant,
)
from simulation.evidence import Evidence, Violation

ID = "I22"


@dataclass(slots=True)
class _Owner:
    """Who has a partition, since when by its own clock, and what it inherited and heard."""

    since: datetime
    inherited: dict[tuple[str, int], Data]  # hand-outs of its predecessors that are live, by holder and offset
    heard: set[str] = field(default_factory=set)


def check(evidence: Evidence) -> Iterator[Violation]:
    """Every lease that ended within its first period under a new owner."""
    for log in changelogs(evidence, DISPATCHER):
        yield from _partition(evidence, log)


def _partition(evidence: Evidence, log: Changelog) -> Iterator[Violation]:
    restored = evidence.restored.get((log.role, log.partition), ())
    written_at: datetime | None = None
    owner: _Owner | None = None
    live: dict[tuple[str, int], Data] = {}
    begun = set(log.copied)  # transactions that were decided and maybe not completed by who decided them
    for written in log.written:
        if written.footer is None:
            begun |= {part["sequence"] for part in written.parts}
            continue
        # What completes the decision of a predecessor is not the word of its successor.
        if written.footer["sequence"] not in begun:
            before, written_at = written_at, appended_at(evidence, written)
            if any((before is None or before <= at) and at <= written_at for at in restored):
                owner = _Owner(_now(written), dict(live))
        for fact in written.facts():
            if owner is not None:
                yield from _follow(owner, fact)
            _keep(live, fact)


def _now(written: Written) -> datetime:
    assert written.footer is not None, "asked of whole ones"
    return instant(written.footer["clock_mark"])


def _keep(live: dict[tuple[str, int], Data], fact: Fact) -> None:
    if fact.type == "run.handed_out":
        live[fact.data["incarnation"], fact.data["offset"]] = fact.data
    elif fact.type == "attempt.finished":
        live.pop((fact.data.get("incarnation", ""), fact.data["handout"]), None)


def _follow(owner: _Owner, fact: Fact) -> Iterator[Violation]:
    data = fact.data
    match fact.type:
        case "worker.reported":
            owner.heard.add(data["incarnation"])
        case "attempt.finished" if data["outcome"] == "lease_expired" and data.get("incarnation") not in owner.heard:
            handout = owner.inherited.get((data.get("incarnation", ""), data["handout"]))
            if handout is not None and "lease_duration" in handout:
                yield from _ended(owner, fact, handout)


def _ended(owner: _Owner, fact: Fact, handout: Data) -> Iterator[Violation]:
    good_until = owner.since + duration(handout["lease_duration"])
    if instant(fact.data["finished_at"]) < good_until:
        what = (
            f"the lease {handout['lease']} ended at {fact.data['finished_at']}, and its owner, there since "
            f"{owner.since:%H:%M:%S.%f}, had to wait until {good_until:%H:%M:%S.%f}"
        )
        yield Violation(invariant=ID, what=what, where=fact.place)
