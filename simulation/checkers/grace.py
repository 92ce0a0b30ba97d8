"""What is only late is not missed: a part of I20.

An occurrence that is no older than its schedule's grace has a run as if it were on time: it is not skipped as missed,
nor caught up. Age is measured against the end of the recovery that the partition is in; outside of one nothing is
missed. And what is older than its grace in a recovery is not treated as if it were on time. With a jitter, which is no
longer than its trigger says, an occurrence is younger than its nominal instant tells.

What waits for its turn was judged when it began to wait; that it waits in vain is no miss.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from simulation.checkers.marks import duration, longest_jitter
from simulation.checkers.reading import SCHEDULER, Data, Fact, changelogs, instant
from simulation.evidence import Evidence, Violation

ID = "I20"
GRACE = "PT1M"  # contract: where a definition says nothing
SECOND = timedelta(seconds=1)  # nominal instants are whole ones


@dataclass(slots=True)
class _Partition:
    """What a partition's facts have said so far. `waits`: occurrences that were decided before, to be created later."""

    recovery: datetime | None = None  # the end of the one it is in
    grace: dict[tuple[str, str, int], timedelta] = field(default_factory=dict)  # by schedule and version
    jitter: dict[tuple[str, str, int], timedelta] = field(default_factory=dict)  # the longest
    waits: set[tuple[str, str, str]] = field(default_factory=set)


def check(evidence: Evidence) -> Iterator[Violation]:
    """Every occurrence that was taken for missed and was not, or the other way round."""
    for log in changelogs(evidence, SCHEDULER):
        partition = _Partition()
        for fact in log.facts():
            yield from _follow(partition, fact)


def _follow(partition: _Partition, fact: Fact) -> Iterator[Violation]:
    data = fact.data
    match fact.type:
        case "recovery.started":
            partition.recovery = instant(data["to"])
        case "recovery.finished":
            partition.recovery = None
        case "schedule.accepted":
            version = data["tenant"], data["schedule"], data["version"]
            partition.grace[version] = duration(data["definition"].get("grace", GRACE))
            partition.jitter[version] = longest_jitter(data["definition"])
        case "occurrence.deferred" if data.get("nominal_time"):
            partition.waits.add(_occurrence(data))
        case "occurrence.skipped" if data["reason"] == "catch_up" and not _waited(partition, data):
            yield from _missed(partition, fact, _last(data), "skipped as missed")
        case "run.created" if data.get("nominal_time") and _occurrence(data) not in partition.waits:
            if data["cause"] == "catch_up":
                yield from _missed(partition, fact, instant(data["nominal_time"]), "caught up")
            elif data["cause"] == "schedule":
                yield from _late(partition, fact, instant(data["nominal_time"]))


def _missed(partition: _Partition, fact: Fact, nominal: datetime, how: str) -> Iterator[Violation]:
    grace = _grace(partition, fact.data)
    if partition.recovery is None or nominal >= partition.recovery - grace:
        against = f"of the recovery to {partition.recovery:%H:%M:%S.%f}" if partition.recovery else "outside of any"
        what = f"{_named(fact.data)} of {nominal:%H:%M:%S} is {how} {against}, within its grace of {grace}"
        yield Violation(invariant=ID, what=what, where=fact.place)


def _late(partition: _Partition, fact: Fact, nominal: datetime) -> Iterator[Violation]:
    jitter = partition.jitter.get((fact.data["tenant"], fact.data["schedule"], fact.data["version"]), timedelta(0))
    if partition.recovery is not None and nominal + jitter < partition.recovery - _grace(partition, fact.data):
        what = f"{_named(fact.data)} of {nominal:%H:%M:%S} was missed by {partition.recovery:%H:%M:%S.%f}"
        yield Violation(invariant=ID, what=f"{what}, and is created as if it were on time", where=fact.place)


def _waited(partition: _Partition, data: Data) -> bool:
    return bool(data.get("nominal_time")) and _occurrence(data) in partition.waits


def _last(data: Data) -> datetime:
    """The last instant that a skip is about."""
    span = data.get("range")
    return instant(span["to"]) - SECOND if span else instant(data["nominal_time"])


def _grace(partition: _Partition, data: Data) -> timedelta:
    known = partition.grace.get((data["tenant"], data["schedule"], data["version"]))
    return duration(GRACE) if known is None else known


def _occurrence(data: Data) -> tuple[str, str, str]:
    return data["tenant"], data["schedule"], data["nominal_time"]


def _named(data: Data) -> str:
    return f"{data['tenant']}/{data['schedule']}"
