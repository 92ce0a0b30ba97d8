"""`from: finish` counts from the end of the run before, and there is one at a time: a part of I20.

No run of such a schedule is created while the one before is open, or sooner behind its end than the interval. While
nobody changes the schedule and nothing of it is skipped, it is due at that very second. Whether an occurrence is
missing is the audit's question (I2).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from schemas import topics
from simulation.checkers.marks import duration
from simulation.checkers.reading import SCHEDULER, Data, Fact, events, facts, instant
from simulation.evidence import Evidence, Violation

ID = "I20"
NAME = tuple[str, str]  # tenant, schedule or run id
OF_OCCURRENCES = frozenset({"schedule", "catch_up"})
DISTURBING = frozenset(
    {
        "schedule.accepted", "schedule.paused", "schedule.resumed", "schedule.deleted", "occurrence.skipped",
        "occurrence.deferred",
    }
)  # fmt: skip


@dataclass(slots=True)
class _Schedule:
    """`last`: its newest run of an occurrence. `is_calm`: nothing else was decided since that was created."""

    apart: dict[int, timedelta] = field(default_factory=dict)  # by version, where the end of a run counts
    last: Data | None = None
    is_open: bool = False
    is_calm: bool = True


def check(evidence: Evidence) -> Iterator[Violation]:
    """Every run that came too early, or not when it was due."""
    ended = _ended(evidence)
    schedules: dict[NAME, _Schedule] = {}
    for fact in facts(evidence, SCHEDULER):
        if "schedule" in fact.data:
            schedule = schedules.setdefault((fact.data["tenant"], fact.data["schedule"]), _Schedule())
            yield from _follow(schedule, fact, ended)


def _follow(schedule: _Schedule, fact: Fact, ended: Mapping[NAME, datetime]) -> Iterator[Violation]:
    data = fact.data
    schedule.is_calm &= fact.type not in DISTURBING
    match fact.type:
        case "schedule.accepted":
            trigger = data["definition"].get("trigger", {})
            if trigger.get("from") == "finish":
                schedule.apart[data["version"]] = duration(trigger["every"])
        case "run.settled" if schedule.last is not None and schedule.last["run_id"] == data["run_id"]:
            schedule.is_open = False
        case "run.created" if data["cause"] in OF_OCCURRENCES and data["version"] in schedule.apart:
            yield from _created(schedule, fact, ended)
            schedule.last, schedule.is_open, schedule.is_calm = data, True, True


def _created(schedule: _Schedule, fact: Fact, ended: Mapping[NAME, datetime]) -> Iterator[Violation]:
    last, data = schedule.last, fact.data
    if last is None:
        return
    name, nominal = f"{data['tenant']}/{data['schedule']} of {data['nominal_time']}", instant(data["nominal_time"])
    if schedule.is_open:
        yield Violation(invariant=ID, what=f"{name} has a run while {last['run_id']} is open", where=fact.place)
        return
    ended_at = ended.get((last["tenant"], last["run_id"]))
    if ended_at is None:
        return  # Its end is not told: I9's affair.
    due = ended_at.replace(microsecond=0) + schedule.apart[data["version"]]
    if nominal < due or (nominal != due and schedule.is_calm):
        what = f"{name} is due at {due:%H:%M:%S}, counted from the end of {last['run_id']}"
        yield Violation(invariant=ID, what=what, where=fact.place)


def _ended(evidence: Evidence) -> dict[NAME, datetime]:
    return {
        (event.data["tenant"], event.data["run_id"]): instant(event.data["finished_at"])
        for event in events(evidence, topics.RUN_OUTCOMES)
        if event.type == "run.finished"
    }
