"""What is asked of single occurrences and of whole sets of runs is done: a part of I20.

- An occurrence that somebody wanted skipped has no run, however often its schedule is edited; deleting forgets it.
- When an edition says `on_update: cancel`, open runs of older ones are asked to go before anything later is decided.
- Who is to be ended at once, or to go because nobody has begun it, is over in the transaction that reads it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from runtime.record import TopicPartition
from schemas import topics
from simulation.checkers.reading import (
    DISPATCHER,
    SCHEDULER,
    Changelog,
    Data,
    Event,
    Fact,
    changelogs,
    events,
    instant,
    read_up_to,
)
from simulation.evidence import Evidence, Place, Violation

ID = "I20"
NAME = tuple[str, str]  # tenant, schedule or run id
OF_OCCURRENCES = frozenset({"schedule", "catch_up"})


def check(evidence: Evidence) -> Iterator[Violation]:
    """Every wish that was granted and not kept."""
    for log in changelogs(evidence, SCHEDULER):
        yield from _scheduler(log)
    requests: dict[TopicPartition, list[Event]] = {}
    for event in events(evidence, topics.RUNS):
        if event.type == "run.cancel_requested" and (event.data.get("terminate") or event.data.get("unstarted")):
            requests.setdefault(TopicPartition(topics.RUNS, event.place.partition), []).append(event)
    for log in changelogs(evidence, DISPATCHER):
        yield from _dispatcher(log, requests.get(TopicPartition(topics.RUNS, log.partition), []))


# --- wishes of schedules ------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Schedule:
    """`runs`: the open ones and their versions. `to_go`: those that an edition of `since` wants gone."""

    skips: set[str] = field(default_factory=set)  # nominal instants
    runs: dict[str, int] = field(default_factory=dict)
    to_go: set[str] = field(default_factory=set)
    since: datetime | None = None


def _scheduler(log: Changelog) -> Iterator[Violation]:
    schedules: dict[NAME, _Schedule] = {}
    for written in log.whole:
        for fact in written.facts():
            if "schedule" in fact.data:
                name = fact.data["tenant"], fact.data["schedule"]
                yield from _follow(schedules.setdefault(name, _Schedule()), fact)
        assert written.footer is not None, "what is whole has a footer"
        assert written.footer_at is not None, "and that stands somewhere"
        for who, schedule in schedules.items():
            if schedule.to_go and schedule.since and instant(written.footer["decided_until"]) > schedule.since:
                yield from _stayed("/".join(who), schedule, written.footer_at)


def _follow(schedule: _Schedule, fact: Fact) -> Iterator[Violation]:
    data = fact.data
    match fact.type:
        case "occurrence.skip_requested":
            schedule.skips.add(data["nominal_time"])
        case "schedule.deleted":
            schedule.skips.clear()
        case "schedule.accepted" if data["definition"].get("on_update") == "cancel":
            schedule.to_go = {run for run, version in schedule.runs.items() if version < data["version"]}
            schedule.since = instant(data["accepted_at"])
        case "run.created":
            if data["cause"] in OF_OCCURRENCES and data["nominal_time"] in schedule.skips:
                what = f"{data['tenant']}/{data['schedule']} of {data['nominal_time']} was to be skipped, and has a run"
                yield Violation(invariant=ID, what=what, where=fact.place)
            schedule.runs[data["run_id"]] = data["version"]
        case "run.cancel_requested":
            schedule.to_go.discard(data["run_id"])
        case "run.settled":
            schedule.runs.pop(data["run_id"], None)
            schedule.to_go.discard(data["run_id"])


def _stayed(name: str, schedule: _Schedule, where: Place) -> Iterator[Violation]:
    for run in sorted(schedule.to_go):
        what = f"{name}: run {run} of version {schedule.runs[run]} is not asked to go, as the edition since wants it"
        yield Violation(invariant=ID, what=what, where=where)
    schedule.to_go = set()


# --- requests on their way to runs --------------------------------------------------------------------------------


@dataclass(slots=True)
class _Runs:
    """Runs as their dispatcher knows them."""

    known: set[NAME] = field(default_factory=set)
    begun: set[NAME] = field(default_factory=set)
    over: set[NAME] = field(default_factory=set)


def _dispatcher(log: Changelog, requests: list[Event]) -> Iterator[Violation]:
    runs, ahead = _Runs(), iter(requests)
    unread = next(ahead, None)
    for written in log.whole:
        position = read_up_to(written, topics.RUNS)
        for fact in written.facts():
            _learn(runs, fact)
        while unread is not None and unread.place.offset < position:
            yield from _read(runs, unread)
            unread = next(ahead, None)


def _learn(runs: _Runs, fact: Fact) -> None:
    data: Data = fact.data.get("run", fact.data)
    match fact.type:
        case "run.created":
            runs.known.add(_run(data))
        case "run.handed_out":
            runs.begun.add(_run(data))
        case "run.finished":
            runs.over.add(_run(data))


def _read(runs: _Runs, request: Event) -> Iterator[Violation]:
    run = _run(request.data)
    is_meant = bool(request.data.get("terminate")) or run not in runs.begun
    if is_meant and run in runs.known and run not in runs.over:
        how = "ended at once" if request.data.get("terminate") else "gone before anybody begins it"
        what = f"{run[0]}: run {run[1]} was to be {how}, that is read, and it is open"
        yield Violation(invariant=ID, what=what, where=request.place)


def _run(data: Data) -> NAME:
    return data["tenant"], data["run_id"]
