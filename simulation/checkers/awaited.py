"""A command that names a position of the catalog is judged by what stands there: a part of I20.

`after_catalog` is the position of the transaction that wrote the catalog's record. The owner takes such a command only
once it has adopted a record of that transaction or of a later one of its writer; else it refuses it.
"""

from __future__ import annotations

from collections.abc import Iterator

from schemas import topics
from simulation.checkers.reading import SCHEDULER, Changelog, changelogs, documents
from simulation.evidence import Evidence, Violation

ID = "I20"
COMMAND = tuple[str, str]  # its source and id
TAKEN = {"schedule.accepted", "schedule.paused", "schedule.resumed", "schedule.deleted"}


def check(evidence: Evidence) -> Iterator[Violation]:
    """Every command that was taken too early."""
    wanted = _wanted(evidence)
    for log in changelogs(evidence, SCHEDULER):
        yield from _partition(log, wanted)


def _partition(log: Changelog, wanted: dict[COMMAND, str]) -> Iterator[Violation]:
    adopted: dict[str, int] = {}  # by writer, the sequence of its newest record that is used
    for written in log.whole:
        for fact in written.facts():
            if fact.type == "catalog.adopted":
                writer, sequence = _position(fact.data.get("position", ""))
                adopted[writer] = max(sequence, adopted.get(writer, 0))
            elif fact.type in TAKEN:
                position = wanted.get((fact.data.get("source", ""), fact.data.get("command_id", "")), "")
                writer, sequence = _position(position)
                if adopted.get(writer, 0) < sequence:
                    what = f"{fact.type} of {fact.data['command_id']}, which waits for {position}, before that is used"
                    yield Violation(invariant=ID, what=what, where=fact.place)


def _position(text: str) -> tuple[str, int]:
    """Who wrote, and in which of its transactions; the zeroth where none is named."""
    writer, _, sequence = text.rpartition("-")
    return writer, int(sequence) if sequence.isdigit() else 0


def _wanted(evidence: Evidence) -> dict[COMMAND, str]:
    """Which position each command waits for."""
    found: dict[COMMAND, str] = {}
    for place in evidence.partitions(topics.SCHEDULE_CHANGES):
        for document in documents(evidence, place):
            data = document.get("data") if isinstance(document, dict) else None
            if isinstance(data, dict) and isinstance(data.get("after_catalog"), str):
                found[str(document.get("source", "")), str(document.get("id", ""))] = data["after_catalog"]
    return found
