"""What the read model shows is what happened: a part of I13.

Two read models that are made by the same folds are alike, whatever these folds are. So the rows of schedules and runs
are held against the facts: which version there is and whether it is paused or deleted, which outcome a run has, and how
many attempts it took.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from schemas import topics
from simulation.checkers.reading import SCHEDULER, Fact, events, facts
from simulation.evidence import Evidence, Violation

ID = "I13"
NAME = tuple[str, str]  # tenant, schedule or run id
SHOWN_MAX = 3  # wrong rows of a table that are named


@dataclass(slots=True)
class _Schedule:
    """A schedule as the facts leave it. `paused`: None where a pause of its own may lie before other changes."""

    version: int = 0
    paused: bool | None = False
    deleted: bool = False


def check(evidence: Evidence) -> Iterator[Violation]:
    """Every row that says otherwise, and every one that is missing."""
    if evidence.read_model:
        yield from _wrong("schedules", _schedules(evidence))
        yield from _wrong("runs", _runs(evidence))


def _wrong(table: str, found: Iterator[str]) -> Iterator[Violation]:
    for what, _ in zip(found, range(SHOWN_MAX), strict=False):
        yield Violation(invariant=ID, what=what, where=f"read model, {table}")


def _schedules(evidence: Evidence) -> Iterator[str]:
    rows = {(row["tenant"], row["name"]): row for row in evidence.read_model.get("schedules", ())}
    for name, schedule in sorted(_as_decided(evidence).items()):
        row = rows.get(name)
        if row is None:
            yield f"{'/'.join(name)} is not there"
            continue
        said = "deleted" if schedule.deleted else "paused" if schedule.paused else "active"
        if row["version"] != schedule.version and not schedule.deleted:
            yield f"{'/'.join(name)} has version {row['version']}, and {schedule.version} is its last"
        if row["state"] != said and (schedule.deleted or schedule.paused is not None):
            yield f"{'/'.join(name)} is {row['state']}, and should be {said}"


def _as_decided(evidence: Evidence) -> dict[NAME, _Schedule]:
    found: dict[NAME, _Schedule] = {}
    for fact in facts(evidence, SCHEDULER):
        if fact.type.startswith("schedule.") and "schedule" in fact.data:
            _follow(found.setdefault((fact.data["tenant"], fact.data["schedule"]), _Schedule()), fact)
    return {name: schedule for name, schedule in found.items() if schedule.version}


def _follow(schedule: _Schedule, fact: Fact) -> None:
    match fact.type:
        case "schedule.accepted":
            schedule.version = fact.data["version"]
            if fact.data.get("created"):
                schedule.paused, schedule.deleted = False, False
        case "schedule.paused":
            schedule.paused = None if fact.data.get("reason") == "failures" else True
        case "schedule.resumed":
            schedule.paused = False
        case "schedule.deleted":
            schedule.deleted = True


def _runs(evidence: Evidence) -> Iterator[str]:
    rows = {(row["tenant"], row["run_id"]): row for row in evidence.read_model.get("runs", ())}
    ended: dict[NAME, Any] = {}
    for event in events(evidence, topics.RUN_EVENTS):
        if event.type == "run.finished":
            ended.setdefault((event.data["tenant"], event.data["run_id"]), event.data)
    for name, data in sorted(ended.items()):
        row = rows.get(name)
        if row is None:
            yield f"{name[0]}: run {name[1]} is not there"
        elif row["outcome"] != data["outcome"]:
            yield f"{name[0]}: run {name[1]} has the outcome {row['outcome']}, and was {data['outcome']}"
        elif row["attempts"] != data["attempts"]:
            yield f"{name[0]}: run {name[1]} has {row['attempts']} attempts, and took {data['attempts']}"
