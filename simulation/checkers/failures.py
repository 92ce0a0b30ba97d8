"""`pause_on_failure`: a schedule pauses itself after so many failed runs in a row, and never otherwise. A part of I20.

Counted anew are runs of occurrences of the version in force. What changes meanwhile decides whether an outcome counts:
where that leaves a doubt here, the count begins anew, so that a pause that is missing is one beyond doubt. A pause
that is there is held against its version and against the outcomes of the runs that it names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from schemas import topics
from simulation.checkers.reading import SCHEDULER, Fact, events, facts, instant
from simulation.evidence import Evidence, Violation

ID = "I20"
NAME = tuple[str, str]  # tenant, schedule or run id
FAILED = frozenset({"failed", "timed_out", "dead_lettered", "expired"})
COUNTED = frozenset({"schedule", "catch_up", "dependency"})
NAMED_MAX = 10
CHANGES = frozenset({"schedule.accepted", "schedule.paused", "schedule.resumed", "schedule.deleted"})


@dataclass(slots=True)
class _Schedule:
    """`streak`: runs that failed in a row beyond doubt. `failed`: that failed since the last success beyond doubt."""

    version: int = 0
    stands_still: bool = False  # paused or deleted, for all that is known
    changed_at: datetime | None = None
    most: dict[int, int | None] = field(default_factory=dict)  # failures in a row, by version
    runs: dict[str, int] = field(default_factory=dict)  # versions of runs that count
    streak: list[str] = field(default_factory=list)
    failed: set[str] = field(default_factory=set)
    old: set[str] = field(default_factory=set)  # that failed before it
    pauses: set[str] = field(default_factory=set)  # the last runs of its own pauses, that are settled next
    named: set[str] = field(default_factory=set)  # by its own pauses


def check(evidence: Evidence) -> Iterator[Violation]:
    """Every pause too many, too early or too late."""
    outcomes = _outcomes(evidence)
    schedules: dict[NAME, _Schedule] = {}
    for fact in facts(evidence, SCHEDULER):
        if "schedule" in fact.data:
            schedule = schedules.setdefault((fact.data["tenant"], fact.data["schedule"]), _Schedule())
            yield from _follow(schedule, fact, outcomes)


def _follow(schedule: _Schedule, fact: Fact, outcomes: Mapping[NAME, str]) -> Iterator[Violation]:
    data = fact.data
    if fact.type == "schedule.paused" and data.get("reason") == "failures":
        yield from _paused_itself(schedule, fact, outcomes)
    if fact.type in CHANGES:
        _change(schedule, fact)
    elif fact.type == "run.created" and data["cause"] in COUNTED:
        schedule.runs[data["run_id"]] = data["version"]
    elif fact.type == "run.settled" and data["run_id"] not in schedule.pauses:
        yield from _settled(schedule, fact)


def _change(schedule: _Schedule, fact: Fact) -> None:
    at = instant(fact.data["effective_at"])
    schedule.streak = []
    match fact.type:
        case "schedule.accepted":
            schedule.version = fact.data["version"]
            schedule.most[schedule.version] = fact.data["definition"].get("pause_on_failure")
            schedule.stands_still &= not fact.data.get("created")
        case "schedule.resumed":
            schedule.stands_still = False
        case _:  # also where a resumption is known that takes effect later: in doubt it does not count
            schedule.stands_still = True
    schedule.changed_at = at if schedule.changed_at is None else max(at, schedule.changed_at)


def _settled(schedule: _Schedule, fact: Fact) -> Iterator[Violation]:
    data, run = fact.data, fact.data["run_id"]
    if run not in schedule.runs:
        return
    has_failed, is_sure = data.get("outcome") in FAILED, _is_sure(schedule, fact)
    if has_failed:
        schedule.failed.add(run)
    elif is_sure and data.get("outcome") == "succeeded":
        schedule.old |= schedule.failed
        schedule.failed = set()
    if not is_sure or data.get("outcome") == "succeeded":
        schedule.streak = []
    elif has_failed:
        schedule.streak.append(run)
    most = schedule.most.get(schedule.version)
    if most is not None and len(schedule.streak) >= most:
        schedule.streak = []
        what = f"{data['tenant']}/{data['schedule']} goes on after {most} failed runs in a row, the last one {run}"
        yield Violation(invariant=ID, what=what, where=fact.place)


def _is_sure(schedule: _Schedule, fact: Fact) -> bool:
    """Whether the outcome counts beyond doubt."""
    if schedule.stands_still or schedule.changed_at is None or "appended_at" not in fact.data:
        return False
    is_of_it = schedule.runs.get(fact.data["run_id"]) == schedule.version
    return is_of_it and instant(fact.data["appended_at"]) > schedule.changed_at


def _paused_itself(schedule: _Schedule, fact: Fact, outcomes: Mapping[NAME, str]) -> Iterator[Violation]:
    data, most = fact.data, schedule.most.get(fact.data["version"])
    named = list(data.get("failed_runs", ()))
    wrong = ""
    if most is None or data.get("failures") != most:
        wrong = f"after {data.get('failures')} failures, of {most}"
    elif len(named) != min(most, NAMED_MAX) or len({*named}) != len(named):
        wrong = f"and names {len(named)} runs for {most}"
    elif schedule.named & {*named}:
        wrong = f"for {min(schedule.named & {*named})}, as it did before"
    elif schedule.old & {*named}:
        wrong = f"for {min(schedule.old & {*named})}, and one has succeeded since"
    elif missing := sorted({*schedule.streak} - {*named}):
        wrong = f"and does not count {missing[0]}"
    else:
        others = (run for run in named if not _has_failed(schedule, fact, run, outcomes))
        wrong = next((f"for {run}, which is none of version {data['version']} that failed" for run in others), "")
    schedule.pauses.add(named[-1] if named else "")
    schedule.named |= {*named}
    if wrong:
        what = f"{data['tenant']}/{data['schedule']} pauses itself {wrong}"
        yield Violation(invariant=ID, what=what, where=fact.place)


def _has_failed(schedule: _Schedule, fact: Fact, run: str, outcomes: Mapping[NAME, str]) -> bool:
    is_its = schedule.runs.get(run) == fact.data["version"]
    return is_its and outcomes.get((fact.data["tenant"], run)) in FAILED


def _outcomes(evidence: Evidence) -> dict[NAME, str]:
    return {
        (event.data["tenant"], event.data["run_id"]): event.data["outcome"]
        for event in events(evidence, topics.RUN_OUTCOMES)
        if event.type == "run.finished"
    }
