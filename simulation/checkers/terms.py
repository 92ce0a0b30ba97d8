"""I20: what a schedule, a worker's report and a job's retry rule say is kept to the letter.

- Nothing is created for an instant at which its schedule was paused, nor may more of its runs be active than it allows;
  nothing is skipped for a run in the way when there is none.
- Each occurrence is decided by what was in force at its instant (see `in_force`).
- What is only late is not missed (see `grace`), and a command that waits for the catalog waits (see `awaited`).
- A run has the version of its job that its partition had adopted (see `adopted`), none is where a calendar or a freeze
  stands in its way (see `closed`), and what is asked of occurrences and of whole sets of runs is done (see `asked`).
- What is to wait for other schedules waits (see `windows`).
- A change takes effect when it was published, not when it was read: never later, unless something before it forbids it.
- Words of one source are taken in the order of their versions.
- A worker is handed no more than it has free slots for, and nothing once it drains, lapsed or ended.
- No more is with workers, or waits, than a concurrency key and a tenant's quota allow (see `limits`), and no more is
  handed out than rates allow (see `paces`). Runs are in the shard that definitions give them (see `placed`).
- A schedule pauses itself after so many failures (see `failures`), rests between two runs (see `finishes`), and is
  caught up by its rate (see `paced`). What is to be done once more is done once (see `again`).
- Who asks to be tried later is, and who refuses is not tried again (see `later`).
- A retry waits until its instant, which is later than the decision; what the machinery broke burns no attempt, and is
  not tried for ever; a run given up leaves a dead letter, and each outcome is told to its scheduler.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from schemas import topics
from simulation.checkers import (
    adopted,
    again,
    asked,
    awaited,
    closed,
    failures,
    finishes,
    grace,
    in_force,
    later,
    limits,
    paced,
    paces,
    placed,
    windows,
)
from simulation.checkers.reading import DISPATCHER, SCHEDULER, Data, Fact, documents, events, facts, instant
from simulation.evidence import Evidence, Violation

ID = "I20"
NAME = tuple[str, str]  # tenant, schedule or run id
SPARED = frozenset({"interrupted", "lost"})
LOSSES_MAX = 3  # in a row, of a run that had begun
BLAME_MAX = 2.0  # what such a run may have to do with the losses of its workers
CHANGES = ("schedule.accepted", "schedule.paused", "schedule.resumed", "schedule.deleted")


def observed(evidence: Evidence) -> int:
    """How many changes, runs, hand-outs and ends of attempts were held against their terms."""
    kinds = {*CHANGES, "run.created", "run.handed_out", "attempt.finished", "run.retry_scheduled"}
    return sum(fact.type in kinds for role in (SCHEDULER, DISPATCHER) for fact in facts(evidence, role))


def check(evidence: Evidence) -> Iterator[Violation]:
    """Every word that was not kept."""
    published = _published(evidence)
    schedules: dict[NAME, _Schedule] = {}
    for fact in facts(evidence, SCHEDULER):
        if "schedule" in fact.data:
            schedule = schedules.setdefault((fact.data["tenant"], fact.data["schedule"]), _Schedule())
            yield from _in_the_way(schedule, fact)
            yield from _scheduled(schedule, fact, published)
    workers: dict[_Place, _Worker] = {}
    runs: dict[NAME, _Run] = {}
    for fact in facts(evidence, DISPATCHER):
        yield from _worked(workers, fact)
        yield from _tried(runs, fact)
    yield from _told(evidence)
    yield from grace.check(evidence)
    yield from awaited.check(evidence)
    yield from adopted.check(evidence)
    yield from closed.check(evidence)
    yield from asked.check(evidence)
    yield from limits.check(evidence)
    for part in (again, failures, finishes, in_force, later, paced, paces, placed, windows):
        yield from part.check(evidence)


# --- schedules ----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Schedule:
    """A schedule as its facts tell it. `active` are runs of occurrences that are not settled."""

    paused_at: datetime | None = None
    pauses: list[tuple[datetime, datetime]] = field(default_factory=list)
    ends: list[datetime] = field(default_factory=list)  # of pauses, whether there was one or not
    effective_at: datetime | None = None
    decided: datetime | None = None
    moved: datetime | None = None  # where the mark was moved to by the fact just before
    source_version: int = -1
    limits: dict[int, int | None] = field(default_factory=dict)  # by version
    skips: set[int] = field(default_factory=set)  # versions by which what overlaps is skipped
    active: set[str] = field(default_factory=set)


def _scheduled(schedule: _Schedule, fact: Fact, published: dict[tuple[str, str], datetime]) -> Iterator[Violation]:
    data, moved = fact.data, schedule.moved
    schedule.moved = None
    if fact.type in CHANGES:
        yield from _in_time(schedule, fact, published)
    if moved is not None:
        _decided(schedule, moved)
    match fact.type:
        case "schedule.mark_moved":
            schedule.moved = instant(data["until"])
        case "schedule.accepted":
            yield from _in_order(schedule, fact)
            overlap = data["definition"].get("overlap", {"policy": "allow_all"})  # a stored definition says it
            schedule.skips |= {data["version"]} if overlap["policy"] == "skip" else set()
            schedule.limits[data["version"]] = None if overlap["policy"] == "allow_all" else overlap.get("limit", 1)
            if data.get("created"):
                _resume(schedule, instant(data["effective_at"]))
        case "schedule.paused":
            _pause(schedule, instant(data["effective_at"]))
        case "schedule.resumed" | "schedule.deleted":
            _resume(schedule, instant(data["effective_at"]))
        case "run.created":
            yield from _created(schedule, fact)
        case "run.settled":
            schedule.active.discard(data["run_id"])
        case "occurrence.deferred":
            _decided(schedule, instant(data["nominal_time"]))
        case "occurrence.skipped" if data.get("range") or data.get("nominal_time"):
            _decided(schedule, instant((data.get("range") or {}).get("to") or data["nominal_time"]))


def _in_the_way(schedule: _Schedule, fact: Fact) -> Iterator[Violation]:
    data = fact.data
    is_blocked = fact.type == "occurrence.skipped" and data["reason"] == "overlap"
    if is_blocked and data.get("version") in schedule.skips and not schedule.active:
        what = f"{_name(data)} skips {data.get('nominal_time')} for a run in the way, and none is active"
        yield Violation(invariant=ID, what=what, where=fact.place)


def _decided(schedule: _Schedule, until: datetime) -> None:
    schedule.decided = until if schedule.decided is None else max(schedule.decided, until)


def _pause(schedule: _Schedule, at: datetime) -> None:
    """A schedule's own pause may stand behind a resumption, or its end, that takes effect later."""
    ended_at = next((end for end in schedule.ends if end >= at), None)
    if ended_at is None:
        schedule.paused_at = at if schedule.paused_at is None else min(at, schedule.paused_at)
    else:
        schedule.pauses.append((at, ended_at))


def _resume(schedule: _Schedule, at: datetime) -> None:
    schedule.ends.append(at)
    if schedule.paused_at is not None:
        schedule.pauses.append((schedule.paused_at, at))
    schedule.paused_at = None


def _in_time(
    schedule: _Schedule, fact: Fact, published: dict[tuple[str, str], datetime]
) -> Iterator[Violation]:  # fmt: skip
    effective_at = instant(fact.data["effective_at"])
    first = published.get((fact.data.get("source", ""), fact.data.get("command_id", "")))
    floors = [at for at in (first, schedule.effective_at, schedule.decided) if at is not None]
    if first is not None and effective_at > max(floors):
        when = f"takes effect at {effective_at:%H:%M:%S.%f}, published {first:%H:%M:%S.%f}"
        what = f"{fact.type} of {_name(fact.data)} {when}"
        yield Violation(invariant=ID, what=what, where=fact.place)
    schedule.effective_at = max(filter(None, (schedule.effective_at, effective_at)))


def _in_order(schedule: _Schedule, fact: Fact) -> Iterator[Violation]:
    version = fact.data.get("source_version")
    if version is None:
        return
    if version <= schedule.source_version:
        what = f"version {version} of the source of {_name(fact.data)} is accepted after {schedule.source_version}"
        yield Violation(invariant=ID, what=what, where=fact.place)
    schedule.source_version = max(version, schedule.source_version)


def _created(schedule: _Schedule, fact: Fact) -> Iterator[Violation]:
    data = fact.data
    follows = data["cause"] == "dependency"  # it has no instant of its own, and stands in others' way
    if not follows and (data.get("nominal_time") is None or data["cause"] in {"manual", "backfill", "rerun"}):
        return
    nominal = None if follows else instant(data["nominal_time"])
    if nominal is not None and _was_paused(schedule, nominal):
        what = f"{_name(data)} was paused at {nominal:%H:%M:%S}, and has a run"
        yield Violation(invariant=ID, what=what, where=fact.place)
    limit = schedule.limits.get(data["version"])
    if limit is not None and len(schedule.active) >= limit:
        what = f"{_name(data)} has {len(schedule.active)} active runs, of at most {limit}, and another is created"
        yield Violation(invariant=ID, what=what, where=fact.place)
    schedule.active.add(data["run_id"])
    if nominal is not None:
        _decided(schedule, nominal)


def _was_paused(schedule: _Schedule, nominal: datetime) -> bool:
    if schedule.paused_at is not None and schedule.paused_at < nominal:
        return True
    return any(begin < nominal <= end for begin, end in schedule.pauses)


def _published(evidence: Evidence) -> dict[tuple[str, str], datetime]:
    """When each command first stood in the log, by source and id."""
    first: dict[tuple[str, str], datetime] = {}
    for place in evidence.partitions(topics.SCHEDULE_CHANGES):
        for record, document in zip(evidence.records[place], documents(evidence, place), strict=True):
            if isinstance(document, dict):
                key = (str(document.get("source", "")), str(document.get("id", "")))
                first[key] = min(first.get(key, record.appended_at), record.appended_at)
    return first


# --- workers and runs ---------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Worker:
    """A worker as a shard knows it. `unread`: live hand-outs that it had not read of when it reported."""

    slots: int = 0
    read_up_to: int = -1
    takes: bool = False
    unread: set[int] = field(default_factory=set)


_Place = tuple[str, int, str]  # a queue, a shard, and an incarnation: a shard that lost one knows it no longer


def _worked(workers: dict[_Place, _Worker], fact: Fact) -> Iterator[Violation]:
    data: Any = fact.data
    if fact.type == "attempt.finished":
        for place, found in workers.items():
            if place[2] == data.get("incarnation"):
                found.unread.discard(data["handout"])
    if "incarnation" not in data or "shard" not in data:
        return
    queue = data["run"]["job"]["queue"] if fact.type == "run.handed_out" else data.get("queue", "")
    at = (queue, data["shard"], data["incarnation"])
    if "slots" in data:
        workers.setdefault(at, _Worker())
    worker = workers.get(at)
    if worker is None:
        return
    match fact.type:
        case "worker.reported":
            worker.slots, worker.read_up_to, worker.takes = data["slots"], data["read_up_to"], not data.get("draining")
            worker.unread = {offset for offset in worker.unread if offset > worker.read_up_to}
        case "worker.lapsed" | "worker.ended":
            worker.takes = False
        case "run.handed_out":
            if not worker.takes or len(worker.unread) >= worker.slots:
                state = f"{len(worker.unread)} of {worker.slots} slots spoken for" if worker.takes else "not to be had"
                what = f"run {data['run']['run_id']} is handed to a worker that is {state}"
                yield Violation(invariant=ID, what=what, where=fact.place)
            worker.unread.add(data["offset"])


@dataclass(slots=True)
class _Run:
    """A run's retries as its dispatcher decided them."""

    not_before: datetime | None = None
    losses: int = 0
    blame: float = 0.0


def _tried(runs: dict[NAME, _Run], fact: Fact) -> Iterator[Violation]:
    data: Data = fact.data.get("run", fact.data)
    if "run_id" not in data:
        return
    run = runs.setdefault((data["tenant"], data["run_id"]), _Run())
    what = ""
    match fact.type:
        case "run.retry_scheduled":
            run.not_before = instant(data["retry_at"])
            if run.not_before <= instant(data["decided_at"]):
                what = "is tried again without a pause"
        case "run.handed_out":
            if run.not_before is not None and instant(fact.data["handed_out_at"]) < run.not_before:
                what = f"is handed out before {run.not_before:%H:%M:%S.%f}"
            if run.losses >= LOSSES_MAX or run.blame >= BLAME_MAX:
                what = f"took {run.losses} workers down in a row, and is handed out"
        case "attempt.finished":
            lost, blame = data["outcome"] == "lost", data.get("blame", 0.0)
            began = data.get("started_at") is not None and (blame > 0 or not data.get("held"))
            run.losses = run.losses + began if lost else 0
            run.blame = round(run.blame + blame, 6) if lost else 0.0
            if data.get("counted", True) == (data["outcome"] in SPARED):
                what = f"has an attempt that ended {data['outcome']}, counted: {data.get('counted', True)}"
    if what:
        yield Violation(invariant=ID, what=f"{data['tenant']}: run {data['run_id']} {what}", where=fact.place)


def _told(evidence: Evidence) -> Iterator[Violation]:
    """Every outcome that its scheduler or whoever looks after the dead letters was not told."""
    outcomes = {_run(event.data) for event in events(evidence, topics.RUN_OUTCOMES) if event.type == "run.finished"}
    letters = {_run(event.data) for event in events(evidence, topics.DEAD_LETTERS)}
    for event in events(evidence, topics.RUN_EVENTS):
        if event.type != "run.finished":
            continue
        if _run(event.data) not in outcomes:
            yield Violation(
                invariant=ID, what=f"the outcome of {_run(event.data)} is told to nobody", where=event.place
            )
        if event.data["outcome"] == "dead_lettered" and _run(event.data) not in letters:
            yield Violation(invariant=ID, what=f"{_run(event.data)} was given up without a letter", where=event.place)


def _run(data: Data) -> NAME:
    return data["tenant"], data["run_id"]


def _name(data: Data) -> str:
    return f"{data['tenant']}/{data['schedule']}"
