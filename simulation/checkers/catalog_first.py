"""No occurrence is decided while a change of the catalog is unread that was there before it was due: a part of I22.

Each partition adopts the catalog record by record. What it decides of an instant it decides with all that readers of
committed records could see at that instant: of a record that is when all transactions that wrote before it have ended.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from runtime.record import TopicPartition
from schemas import topics
from simulation.checkers.marks import nominal_of
from simulation.checkers.reading import SCHEDULER, Changelog, Fact, changelogs, instant
from simulation.evidence import Evidence, Violation

ID = "I22"
CATALOG = TopicPartition(topics.CATALOG, 0)


def check(evidence: Evidence, apart: timedelta) -> Iterator[Violation]:
    """Every record that was adopted behind a decision for which it came in time. `apart`: what clocks differ by."""
    if CATALOG in evidence.records:
        seen = _seen(evidence)
        for log in changelogs(evidence, SCHEDULER):
            yield from _partition(log, seen, apart)


def _seen(evidence: Evidence) -> dict[int, datetime]:
    """When each committed record could be read first, by offset."""
    aborted = evidence.aborted.get(CATALOG, ())
    given_up = {record.offset for record in aborted}
    seen: dict[int, datetime] = {}
    newest: datetime | None = None
    for record in sorted((*evidence.records[CATALOG], *aborted), key=lambda record: record.offset):
        transaction = None if record.transaction is None else evidence.transactions.get(record.transaction)
        ended_at = None if transaction is None else transaction.ended_at
        newest = max(filter(None, (newest, record.appended_at, ended_at)))
        if record.offset not in given_up:
            seen[record.offset] = newest
    return seen


def _partition(log: Changelog, seen: dict[int, datetime], apart: timedelta) -> Iterator[Violation]:
    decided: datetime | None = None  # the newest instant of which anything was decided
    adopted = -1
    for fact in log.facts():
        if fact.type == "catalog.adopted":
            came_at = min((seen[offset] for offset in range(adopted + 1, fact.data["offset"] + 1) if offset in seen),
                          default=None)  # fmt: skip
            adopted = max(adopted, fact.data["offset"])
            if came_at is not None and decided is not None and decided > came_at + apart:
                yield _violation(fact, came_at, decided)
        elif (nominal := nominal_of(fact)) is not None:
            decided = max(decided or instant(nominal), instant(nominal))


def _violation(fact: Fact, came_at: datetime, decided: datetime) -> Violation:
    what = f"the catalog up to {fact.data['offset']} came at {came_at:%H:%M:%S.%f}, unread when {decided:%H:%M:%S}"
    return Violation(invariant=ID, what=f"{what} was decided", where=fact.place)
