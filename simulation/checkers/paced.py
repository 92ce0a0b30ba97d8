"""A backlog comes by its rate, and what is due now goes first: a part of I20.

Each occurrence that is caught up has an instant of release, a step of its schedule's rate behind the one before; its
run is not created before that, and not while one that is due now waits for its turn.

A freeze moves the turns of a backlog: those that were given behind what it holds are none any more, and whoever comes
to stand there meanwhile has one only when it is first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from simulation.checkers.reading import SCHEDULER, Fact, facts, instant
from simulation.evidence import Evidence, Violation

ID = "I20"
NAME = tuple[str, str]  # tenant, schedule
RATE = "10/s"  # contract: where a definition says nothing
SECONDS = {"s": 1, "m": 60, "h": 3600}
MILLISECOND = timedelta(milliseconds=1)  # to which instants are cut


@dataclass(slots=True)
class _Schedule:
    """`turn`: the newest instant of release, `taken` by an occurrence or not yet. `before` is the one before it.

    `line`: the nominal instants of the backlog; `moving` from when a freeze has held one of them until it is empty.
    """

    apart: dict[int, timedelta] = field(default_factory=dict)  # by version
    before: datetime | None = None
    turn: datetime | None = None
    taken: bool = True
    backlog: dict[str, datetime] = field(default_factory=dict)  # instants of release by nominal ones
    line: set[str] = field(default_factory=set)
    moving: bool = False
    live: set[str] = field(default_factory=set)  # nominal instants that wait and were not missed
    placed: set[str] = field(default_factory=set)  # keep their place in a freeze, or wait for other schedules


def check(evidence: Evidence) -> Iterator[Violation]:
    """Every run that came before its turn."""
    schedules: dict[NAME, _Schedule] = {}
    for fact in facts(evidence, SCHEDULER):
        if "schedule" in fact.data:
            schedule = schedules.setdefault((fact.data["tenant"], fact.data["schedule"]), _Schedule())
            yield from _follow(schedule, fact)


def _follow(schedule: _Schedule, fact: Fact) -> Iterator[Violation]:
    data = fact.data
    match fact.type:
        case "schedule.accepted":
            rate = (data["definition"].get("catch_up") or {}).get("rate", RATE)
            schedule.apart[data["version"]] = _apart(rate)
        case "occurrence.paced":
            schedule.before = schedule.turn if schedule.taken else schedule.before
            schedule.turn, schedule.taken = instant(data["release_at"]), False
        case "occurrence.deferred":
            yield from _deferred(schedule, fact)
        case "occurrence.skipped" if data.get("nominal_time"):
            _left(schedule, data["nominal_time"])
        case "run.created" if data.get("nominal_time"):
            if data["cause"] == "catch_up" and data["nominal_time"] not in schedule.placed:
                yield from _created(schedule, fact)
            _left(schedule, data["nominal_time"])


def _deferred(schedule: _Schedule, fact: Fact) -> Iterator[Violation]:
    nominal, reason = fact.data["nominal_time"], fact.data["reason"]
    if reason == "waiting" or (reason == "frozen" and nominal in schedule.live):
        schedule.placed.add(nominal)
        schedule.live.discard(nominal)
    elif reason == "frozen":
        if nominal not in schedule.placed:
            _move(schedule, nominal)
    elif fact.data.get("release_at"):
        schedule.line.add(nominal)
        if not schedule.moving or not schedule.taken:
            yield from _turn_taken(schedule, fact)
            schedule.backlog[nominal] = instant(fact.data["release_at"])
    elif reason == "buffered":
        schedule.live.add(nominal)


def _created(schedule: _Schedule, fact: Fact) -> Iterator[Violation]:
    data = fact.data
    release_at = schedule.backlog.get(data["nominal_time"])
    if release_at is None or (schedule.moving and not schedule.taken):
        yield from _turn_taken(schedule, fact)
    elif instant(data["created_at"]) < release_at:
        yield _violation(fact, f"is caught up at {data['created_at']}, and has its turn at {release_at:%H:%M:%S.%f}")
    elif schedule.live:
        yield _violation(fact, f"is caught up, and {min(schedule.live)} of its schedule is due now and waits")


def _turn_taken(schedule: _Schedule, fact: Fact) -> Iterator[Violation]:
    if schedule.taken or schedule.turn is None:
        yield _violation(fact, "is caught up without a turn of its own")
        return
    schedule.taken = True
    apart = schedule.apart.get(fact.data["version"])
    if apart is not None and schedule.before is not None and schedule.turn < schedule.before + apart - MILLISECOND:
        what = (
            f"has its turn at {schedule.turn:%H:%M:%S.%f}, {apart} behind {schedule.before:%H:%M:%S.%f} at the earliest"
        )
        yield _violation(fact, what)


def _move(schedule: _Schedule, nominal: str) -> None:
    """A freeze holds it: it has its turn when that is over, and so have those behind it."""
    if schedule.backlog.pop(nominal, None) is not None:
        schedule.before, schedule.turn, schedule.taken = None, None, True
    schedule.line.add(nominal)
    schedule.moving = True


def _left(schedule: _Schedule, nominal: str) -> None:
    schedule.backlog.pop(nominal, None)
    schedule.live.discard(nominal)
    schedule.line.discard(nominal)
    schedule.moving = schedule.moving and bool(schedule.line)


def _apart(rate: str) -> timedelta:
    count, _, per = rate.partition("/")
    return timedelta(seconds=SECONDS[per]) / int(count)


def _violation(fact: Fact, what: str) -> Violation:
    name = f"{fact.data['tenant']}/{fact.data['schedule']} of {fact.data['nominal_time']}"
    return Violation(invariant=ID, what=f"{name} {what}", where=fact.place)
