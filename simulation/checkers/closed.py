"""What calendars and freezes take out has no run, and nothing begins while a freeze defers it: a part of I20.

Calendars, tenants and queues come into a partition by `catalog.adopted`. A run of an occurrence names those versions
that were adopted last before it; its instant is in no calendar and no window that skips, unless it was decided earlier
that it waits; and it is not made in a window that defers. What is said to be frozen is so by what was adopted.

A partition decides by an instant up to which it has read, a little before that which it writes down. So a window counts
where the run was due in it, or where it had lasted for a minute.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta

from node.audit.catalog import DEFER, SKIP, Catalog, closed, frozen
from simulation.checkers.reading import SCHEDULER, Data, Fact, changelogs, instant
from simulation.evidence import Evidence, Violation

ID = "I20"
LASTING = timedelta(minutes=1)
OF_OCCURRENCES = frozenset({"schedule", "catch_up"})


@dataclass(slots=True)
class _Partition:
    """What a partition uses. `calendars`: those of a version of a schedule, and its zone; `waits`: decided earlier."""

    catalog: Catalog = field(default_factory=Catalog)
    versions: dict[str, int] = field(default_factory=dict)
    calendars: dict[tuple[str, str, int], tuple[list[str], str]] = field(default_factory=dict)
    waits: set[tuple[str, str, str]] = field(default_factory=set)


def check(evidence: Evidence) -> Iterator[Violation]:
    """Every run that should not be, or not yet, and every one that is held by nothing."""
    for log in changelogs(evidence, SCHEDULER):
        partition = _Partition()
        for fact in log.facts():
            for what in _follow(partition, fact):
                yield Violation(
                    invariant=ID, what=f"{fact.data['tenant']}/{fact.data['schedule']}{what}", where=fact.place
                )


def _follow(partition: _Partition, fact: Fact) -> Iterator[str]:
    data = fact.data
    match fact.type:
        case "catalog.adopted":
            _adopt(partition, data)
        case "schedule.accepted":
            trigger = data["definition"].get("trigger") or {}
            names = (trigger.get("exclude") or {}).get("calendars") or []
            partition.calendars[_version(data)] = names, trigger.get("timezone", "UTC")
        case "run.created" if data["cause"] in OF_OCCURRENCES:
            yield from _created(partition, data)
        case "occurrence.deferred":
            partition.waits.add(_occurrence(data))
            if data["reason"] == "frozen":
                yield from _held(partition, data)


def _adopt(partition: _Partition, data: Data) -> None:
    for entry in data.get("entries", ()):
        key = f"{entry['kind']}/{entry['tenant']}/{entry['name']}"
        partition.catalog.take(entry)
        partition.versions[key] = entry["version"]
        if entry.get("definition") is None:
            del partition.versions[key]


def _created(partition: _Partition, data: Data) -> Iterator[str]:
    names, zone = partition.calendars.get(_version(data), ([], "UTC"))
    used = _used(partition, data["tenant"], data["job"]["queue"], names)
    nominal = data["nominal_time"]
    if data.get("used", {}) != used:
        yield f": the run of {nominal} goes by {data.get('used', {})}, where {used} is used"
    at = _seconds(nominal)
    if _occurrence(data) not in partition.waits:
        if names and closed(partition.catalog, used, zone, at):
            yield f" has a run of {nominal}, which a calendar takes out"
        if frozen(partition.catalog, used, at, SKIP):
            yield f" has a run of {nominal}, which a freeze takes out"
    made = instant(data["created_at"])
    instants = (made, instant(data["due_at"]), made - LASTING)
    now, was_due, lasting = (frozen(partition.catalog, used, int(each.timestamp()), DEFER) for each in instants)
    if now and (was_due or lasting):
        yield f" has a run of {nominal}, made at {data['created_at']}, while a freeze defers it"


def _held(partition: _Partition, data: Data) -> Iterator[str]:
    if not frozen(partition.catalog, data.get("used", {}), _seconds(data["since"]), DEFER):
        yield f": {data['nominal_time']} is held at {data['since']}, and no freeze defers it"
    stale = {key: version for key, version in data.get("used", {}).items() if partition.versions.get(key, 0) != version}
    if stale:
        yield f": {data['nominal_time']} is held by {stale}, which is not used any more"


def _used(partition: _Partition, tenant: str, queue: str, calendars: list[str]) -> dict[str, int]:
    """The versions that a decision must name: of all calendars, and of what has freezes."""
    freezing = [
        key
        for key in (f"tenant/{tenant}/_", f"queue/_/{queue}")
        if key in partition.versions and partition.catalog.entries[key, partition.versions[key]].get("freezes")
    ]
    named = [*(f"calendar/{tenant}/{name}" for name in calendars), *freezing]
    return {key: partition.versions.get(key, 0) for key in named}


def _version(data: Data) -> tuple[str, str, int]:
    return data["tenant"], data["schedule"], data["version"]


def _occurrence(data: Data) -> tuple[str, str, str]:
    return data["tenant"], data["schedule"], data["nominal_time"]


def _seconds(text: str) -> int:
    return int(instant(text).timestamp())
