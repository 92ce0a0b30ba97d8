"""Each occurrence is decided by what was in force at its instant: a part of I20.

- The version that decides is the last one that had taken effect before the nominal instant, for the first occurrence
  of a range as for its last.
- What is skipped for a pause is due in one, or was missed by the end of a recovery that lies in one. With a jitter a
  pause may come between the nominal instant and the one at which an occurrence is due.
- No change takes effect before an occurrence that was decided when the change was not known.

What waits was decided when it began to wait; what becomes of it then is a matter of others.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from simulation.checkers.marks import longest_jitter
from simulation.checkers.reading import SCHEDULER, Data, Fact, changelogs, instant
from simulation.evidence import Evidence, Violation

ID = "I20"
SECOND = timedelta(seconds=1)  # nominal instants are whole ones
CHANGES = frozenset({"schedule.accepted", "schedule.paused", "schedule.resumed", "schedule.deleted"})
OF_ITS_OWN = "failures"  # the reason of a pause that may lie before changes that are known already
DECISIONS = frozenset({"run.created", "occurrence.skipped", "occurrence.deferred"})
OF_OCCURRENCES = frozenset({"schedule", "catch_up"})
NOTHING = timedelta(0)


@dataclass(slots=True)
class _Schedule:
    """`since`, `versions`: which version decides behind which instant. `pauses` are from an instant to one, or on."""

    since: list[datetime] = field(default_factory=list)
    versions: list[int] = field(default_factory=list)
    pauses: list[tuple[datetime, datetime | None]] = field(default_factory=list)
    ends: list[datetime] = field(default_factory=list)  # of pauses, whether there was one or not
    jitter: dict[int, timedelta] = field(default_factory=dict)  # the longest, by version
    waits: set[datetime] = field(default_factory=set)
    decided: datetime | None = None  # the last nominal instant

    def version_at(self, nominal: datetime) -> int | None:
        """Which version decides an occurrence, as far as is known."""
        index = bisect_left(self.since, nominal)
        return self.versions[index - 1] if index else None

    def paused_at(self, at: datetime) -> bool:
        """Whether an occurrence of that instant is in a pause."""
        return any(begin < at and (end is None or at <= end) for begin, end in self.pauses)

    def pauses_within(self, first: datetime, until: datetime) -> bool:
        """Whether a pause begins between two instants."""
        return any(first <= begin <= until for begin, _ in self.pauses)


def check(evidence: Evidence) -> Iterator[Violation]:
    """Every decision of what was not in force, and every change that reaches back behind one."""
    for log in changelogs(evidence, SCHEDULER):
        schedules: dict[tuple[str, str], _Schedule] = {}
        recovery: datetime | None = None
        for fact in log.facts():
            if fact.type == "recovery.started":
                recovery = instant(fact.data["to"])
            elif fact.type == "recovery.finished":
                recovery = None
            elif "schedule" in fact.data:
                schedule = schedules.setdefault((fact.data["tenant"], fact.data["schedule"]), _Schedule())
                if fact.type in CHANGES:
                    yield from _change(schedule, fact)
                elif fact.type in DECISIONS:
                    yield from _decision(schedule, fact, recovery)


# --- changes ------------------------------------------------------------------------------------------------------


def _change(schedule: _Schedule, fact: Fact) -> Iterator[Violation]:
    data, at = fact.data, instant(fact.data["effective_at"])
    if data.get("reason") != OF_ITS_OWN and schedule.decided is not None and at < schedule.decided:
        what = f"{fact.type} takes effect at {at:%H:%M:%S.%f}, and {schedule.decided:%H:%M:%S} was decided before it"
        yield _violation(fact, what)
    match fact.type:
        case "schedule.accepted":
            schedule.since.append(at)
            schedule.versions.append(data["version"])
            schedule.jitter[data["version"]] = longest_jitter(data["definition"])
            if data.get("created"):
                _end(schedule, at)
        case "schedule.paused":
            later = [end for end in schedule.ends if end >= at] if data.get("reason") == OF_ITS_OWN else []
            schedule.pauses.append((at, later[0] if later else None))
        case _:
            _end(schedule, at)


def _end(schedule: _Schedule, at: datetime) -> None:
    schedule.ends.append(at)
    schedule.pauses = [(begin, at if end is None else end) for begin, end in schedule.pauses]


# --- decisions ----------------------------------------------------------------------------------------------------


def _decision(schedule: _Schedule, fact: Fact, recovery: datetime | None) -> Iterator[Violation]:
    span = _span(fact)
    if span is None or span[0] in schedule.waits:
        return
    if fact.type == "occurrence.deferred":
        schedule.waits.add(span[0])
    schedule.decided = span[1] if schedule.decided is None else max(schedule.decided, span[1])
    for nominal in dict.fromkeys(span):
        known = schedule.version_at(nominal)
        if known is not None and known != fact.data["version"]:
            said = fact.data["version"]
            yield _violation(fact, f"of {nominal:%H:%M:%S} is decided by version {said}, not by {known}")
        if fact.data.get("reason") == "paused" and not _may_be_paused(schedule, fact.data, nominal, recovery):
            yield _violation(fact, f"of {nominal:%H:%M:%S} is skipped for a pause, and there was none")


def _may_be_paused(schedule: _Schedule, data: Data, nominal: datetime, recovery: datetime | None) -> bool:
    jitter = schedule.jitter.get(data["version"], NOTHING)
    if jitter and schedule.pauses_within(nominal, nominal + jitter):
        return True
    return schedule.paused_at(nominal) or (recovery is not None and schedule.paused_at(recovery))


def _span(fact: Fact) -> tuple[datetime, datetime] | None:
    """The first and the last nominal instant that a decision on occurrences is about."""
    data = fact.data
    if fact.type == "run.created" and data["cause"] not in OF_OCCURRENCES:
        return None
    if span := data.get("range"):
        return instant(span["from"]), instant(span["to"]) - SECOND
    nominal = data.get("nominal_time")
    return None if nominal is None else (instant(nominal), instant(nominal))


def _violation(fact: Fact, what: str) -> Violation:
    return Violation(invariant=ID, what=f"{fact.data['tenant']}/{fact.data['schedule']} {what}", where=fact.place)
