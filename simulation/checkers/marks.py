"""I21: a partition has decided what it says it has decided.

Each footer names an instant up to which everything is decided (`decided_until`). So, in the order of a partition's
transactions:

- No occurrence has its first decision behind a footer that already spoke for it, unless its schedule was changed since.
  A footer speaks for what is due; with a jitter that is later than the nominal instant, by no more than it is long.
- No run whose outcome the scheduler has not settled is there for ten minutes without being asked after, or for a while
  longer where a schedule has many open runs: a quarter of a second for each, from sixteen on, ten minutes at most.
- No attempt is live behind a footer that spoke for its timeout, and no run is open behind one that spoke for its
  deadline. An attempt that nobody heard to have begun has `start_by` more.
- No run has yet to begin behind a footer that spoke for its `start_by_at`, and none that has begun ends for that.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from simulation.checkers.reading import DISPATCHER, SCHEDULER, Changelog, Data, Fact, changelogs, instant
from simulation.evidence import Evidence, Place, Violation

ID = "I21"
NAME = tuple[str, str]  # tenant, schedule or run id
CHANGES = ("schedule.accepted", "schedule.paused", "schedule.resumed", "schedule.deleted")
ASKED_AFTER = timedelta(minutes=10)  # design §6: the first time,
WORTH_A_WALK, RESTS = 16, timedelta(seconds=4)  # later by this for each so many open runs (docs/decisions.md, 70),
RESTS_MAX = timedelta(minutes=10)  # but not by more than this
SECOND = timedelta(seconds=1)  # nominal instants are whole ones
MILLISECOND = timedelta(milliseconds=1)  # to which marks are said
NONE: Mapping[NAME, int] = {}
NEVER = datetime.min.replace(tzinfo=UTC)  # before any mark

_DURATION = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?")


def observed(evidence: Evidence) -> int:
    """How many occurrences and attempts were held against the marks."""
    kinds = {"run.created", "occurrence.skipped", "occurrence.deferred", "run.handed_out"}
    return sum(fact.type in kinds for log in changelogs(evidence) for fact in log.facts())


def check(evidence: Evidence) -> Iterator[Violation]:
    """Everything that was decided later than some footer said, or never."""
    for log in changelogs(evidence, SCHEDULER):
        yield from _occurrences(log)
    for log in changelogs(evidence, DISPATCHER):
        yield from _attempts(log)


def duration(text: str) -> timedelta:
    """A duration as it stands in records."""
    found = _DURATION.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no duration")
    days, hours, minutes, seconds = (float(part or 0) for part in found.groups())
    return timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)


def longest_jitter(definition: Data) -> timedelta:
    """By how much an occurrence may be due after its nominal instant."""
    text = definition.get("trigger", {}).get("jitter")
    return duration(text) if text else timedelta(0)


# --- occurrences --------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Schedule:
    """What is known of a schedule. `since`: the mark before its last change; what that spoke for is excused."""

    since: datetime = NEVER
    decided: set[str] = field(default_factory=set)  # nominal instants that wait
    jitter: dict[int, timedelta] = field(default_factory=dict)  # the longest, by version


def _occurrences(log: Changelog) -> Iterator[Violation]:
    schedules: dict[NAME, _Schedule] = {}
    silent: dict[NAME, _Open] = {}
    open_: Counter[NAME] = Counter()  # runs, by schedule
    mark = NEVER
    for written in log.whole:
        for fact in written.facts():
            _ask(silent, open_, fact)
            if "schedule" in fact.data:
                schedule = schedules.setdefault((fact.data["tenant"], fact.data["schedule"]), _Schedule())
                if fact.type in CHANGES:
                    schedule.since = mark
                    if fact.type == "schedule.accepted":
                        schedule.jitter[fact.data["version"]] = longest_jitter(fact.data["definition"])
                else:
                    yield from _occurrence(schedule, fact, mark)
        mark = _mark(written.footer, mark)
        assert written.footer_at is not None
        yield from _overdue(silent, mark, written.footer_at, open_)


def _ask(silent: dict[NAME, _Open], open_: Counter[NAME], fact: Fact) -> None:
    data: Data = fact.data.get("run", fact.data)
    match fact.type:
        case "run.created":
            at, what = instant(data["created_at"]) + ASKED_AFTER, f"nobody asks after run {data['run_id']}"
            silent[data["tenant"], data["run_id"]] = _Open(at, what, schedule=data["schedule"])
            open_[data["tenant"], data["schedule"]] += 1
        case "run.settled":
            silent.pop((data["tenant"], data["run_id"]), None)
            open_[data["tenant"], data["schedule"]] -= 1
        case "run.inquired":
            silent.pop((data["tenant"], data["run_id"]), None)


def _occurrence(schedule: _Schedule, fact: Fact, mark: datetime) -> Iterator[Violation]:
    nominal = nominal_of(fact)
    if nominal is None or nominal in schedule.decided:
        return
    if fact.type == "occurrence.deferred":
        schedule.decided.add(nominal)
    if schedule.since < _due(schedule, fact, nominal) <= mark:
        name = f"{fact.data['tenant']}/{fact.data['schedule']}"
        what = f"{name} of {nominal} has no decision yet, and all was decided until {mark:%H:%M:%S.%f}"
        yield Violation(invariant=ID, what=what, where=fact.place)


def _due(schedule: _Schedule, fact: Fact, nominal: str) -> datetime:
    """When a decision was due at the latest: a run says it, the others are as late as their jitter may be long."""
    if fact.type == "run.created":
        return instant(fact.data["due_at"])
    longest = schedule.jitter.get(fact.data.get("version", 0), timedelta(0))
    if fact.data.get("reason") == "excluded":  # Neighbours are decided together, when the last of them is due.
        span = fact.data.get("range")
        return (instant(span["to"]) - SECOND if span else instant(nominal)) + longest
    return instant(nominal) + longest


def nominal_of(fact: Fact) -> str | None:
    """The first nominal instant that a decision is about."""
    data = fact.data
    if fact.type == "run.created":
        return data.get("nominal_time") if data["cause"] in {"schedule", "catch_up"} else None
    if fact.type in {"occurrence.skipped", "occurrence.deferred"}:
        span = data.get("range")
        return span["from"] if span else data.get("nominal_time")
    return None


# --- attempts and runs --------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Open:
    """When what is open must be over, and what it is. `lasts`: an attempt's timeout, from its start.

    `schedule`: the one whose open runs make it wait longer.
    """

    at: datetime
    what: str
    lasts: timedelta = timedelta(0)
    schedule: str = ""


def _attempts(log: Changelog) -> Iterator[Violation]:
    live: dict[NAME, _Open] = {}
    runs: dict[NAME, _Open] = {}
    unbegun: dict[NAME, _Open] = {}
    mark = NEVER
    for written in log.whole:
        for fact in written.facts():
            yield from _given_up(unbegun, fact, mark)
            _follow(live, runs, fact, mark)
        mark = _mark(written.footer, mark)
        assert written.footer_at is not None
        yield from _overdue(live, mark, written.footer_at)
        yield from _overdue(runs, mark, written.footer_at)
        yield from _overdue(unbegun, mark, written.footer_at)


def _given_up(unbegun: dict[NAME, _Open], fact: Fact, mark: datetime) -> Iterator[Violation]:
    """Follow which runs have yet to begin by an instant; such a run ends for that alone, and not before.

    One that is heard of when all up to that instant was decided already has its end with the next word about time.
    """
    data: Data = fact.data
    if fact.type == "run.created" and "start_by_at" in data:
        what = f"run {data['run_id']} has not begun"
        unbegun[data["tenant"], data["run_id"]] = _Open(_at_the_earliest(data["start_by_at"], mark), what)
    elif fact.type in {"attempt.started", "run.finished"}:
        waited = unbegun.pop((data["tenant"], data["run_id"]), None)
        for_that = fact.type == "run.finished" and data.get("reason") == "start_within" and not data.get("repeat")
        if for_that and (waited is None or instant(data["finished_at"]) < waited.at):
            said = "was given up as not begun in time, and had begun or had time"
            what = f"{data['tenant']}: run {data['run_id']} {said}"
            yield Violation(invariant=ID, what=what, where=fact.place)


def _at_the_earliest(text: str, mark: datetime) -> datetime:
    """An instant, or the first behind the mark, which did not speak for what nobody had heard of."""
    return max(instant(text), mark + MILLISECOND)


def _follow(live: dict[NAME, _Open], runs: dict[NAME, _Open], fact: Fact, mark: datetime) -> None:
    data: Data = fact.data.get("run", fact.data)
    if "run_id" not in data:
        return
    run = data["tenant"], data["run_id"]
    match fact.type:
        case "run.created" if "deadline_at" in data:
            runs[run] = _Open(_at_the_earliest(data["deadline_at"], mark), f"run {run[1]} has no outcome")
        case "run.handed_out" if "timeout" in fact.data:
            lasts, what = duration(fact.data["timeout"]), f"attempt {fact.data['attempt']} of {run[1]} goes on"
            begins = instant(fact.data["handed_out_at"]) + duration(fact.data["start_by"])
            live[run] = _Open(begins + lasts, what, lasts)
        case "attempt.started" if run in live:
            live[run].at = instant(data["started_at"]) + live[run].lasts
        case "attempt.finished":
            live.pop(run, None)
        case "run.finished":
            runs.pop(run, None)
            live.pop(run, None)


def _overdue(
    open_: dict[NAME, _Open], mark: datetime, where: Place, runs: Mapping[NAME, int] = NONE
) -> Iterator[Violation]:  # fmt: skip
    for run in [run for run, one in open_.items() if one.at <= mark]:
        if open_[run].at + _rest(runs.get((run[0], open_[run].schedule), 0)) > mark:
            continue
        one = open_.pop(run)  # said once
        what = f"{run[0]}: {one.what} beyond {one.at:%H:%M:%S.%f}, and all was decided until {mark:%H:%M:%S.%f}"
        yield Violation(invariant=ID, what=what, where=where)


def _rest(runs: int) -> timedelta:
    return min(runs // WORTH_A_WALK * RESTS, RESTS_MAX)


def _mark(footer: Data | None, before: datetime) -> datetime:
    assert footer is not None, "what is whole has a footer"
    return max(before, instant(footer["decided_until"]))
