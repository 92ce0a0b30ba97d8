"""Clocks that jump, stand still, or disagree: nothing early, nothing twice, and what is not believed is said.

A schedule of every minute on the whole line. What is written of an hour holds for any span above five seconds.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from runtime.logs.embedded import EmbeddedLog
from runtime.logs.simulated import SimulatedLog
from runtime.record import Outgoing
from schemas import codec, topics
from schemas.facts import ClockHeld, ClockReleased, OccurrenceSkipped, RunCreated
from schemas.operations import ClockAccept
from simulation.clock import ManualClock
from simulation.line import LAYOUT, Line

if TYPE_CHECKING:
    from pathlib import Path

    from runtime.log import Log

BEGIN = datetime(2026, 3, 1, 15, 0, 30, tzinfo=UTC)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
TEN_SECONDS = timedelta(seconds=10)
OWNERS = LAYOUT.schedule + LAYOUT.shard
MINUTELY = {
    "trigger": {"cron": "* * * * *"},
    "overlap": {"policy": "allow_all"},
    "job": {"target": {"type": "task", "name": "work"}},
}


def every_minute(*, log: Log | None = None, clock: ManualClock | None = None, on_kafka: bool = False) -> Line:
    """It is 15:00:30. On Kafka a clock that is not believed is never accepted by itself."""
    clock = clock or ManualClock(BEGIN)
    after = None if on_kafka else MINUTE
    line = Line(log or SimulatedLog(5, clock), clock, accept_clock_after=after)
    line.worker()
    line.command("schedule.put", {"tenant": "acme", "name": "minutely", "definition": MINUTELY})
    line.settle()
    return line


def created(line: Line) -> list[RunCreated]:
    return [fact for fact in line.facts(topics.RUN_EVENTS) if isinstance(fact, RunCreated)]


def nominals(line: Line) -> list[str]:
    """Of every run; none of them came before its time by the clock of its owner, and none twice."""
    runs = created(line)
    assert all(run.created_at >= run.due_at for run in runs)
    assert max(Counter(run.run_id for run in runs).values(), default=1) == 1
    return [f"{run.nominal_time:%H:%M}" for run in runs]


def said(line: Line) -> tuple[int, int]:
    """How often owners said that they hold their clock, and that they believe it again."""
    events = line.facts(topics.RUN_EVENTS)
    return sum(isinstance(fact, ClockHeld) for fact in events), sum(isinstance(fact, ClockReleased) for fact in events)


def reasons(line: Line) -> set[str]:
    return {fact.reason for fact in line.facts(topics.RUN_EVENTS) if isinstance(fact, ClockHeld)}


def accept(line: Line) -> None:
    """An operator says that the clock of the schedulers and dispatchers is right."""
    for role, count in (("scheduler", LAYOUT.schedule), ("dispatcher", LAYOUT.shard)):
        for number in range(count):
            word = ClockAccept(role=role, partition=number, wall=line.clock.now(), by="ada", note="looked at it")
            _, value = codec.encode(word, source="tidewheel/admin", time=line.clock.now())
            line.log.append([Outgoing(topics.OPERATIONS, 0, word.subject.encode(), value)])
    line.settle()


# --- jumps --------------------------------------------------------------------------------------------------------


def test_a_jump_forward_is_held_for_a_minute_and_then_believed() -> None:
    """An hour at 15:00:30: until 60 s later nothing; then the latest of the 61 that the jump passed over, and go on."""
    line = every_minute()
    line.clock.set_wall(BEGIN + HOUR)
    line.advance(timedelta(seconds=50), step=TEN_SECONDS)
    assert nominals(line) == []
    assert said(line) == (OWNERS, 0)
    assert reasons(line) == {"the wall clock jumped forward by 3600 s against the time since boot"}
    line.advance(timedelta(seconds=130), step=TEN_SECONDS)
    assert said(line) == (OWNERS, OWNERS)
    assert nominals(line) == ["16:01", "16:02", "16:03"]


def test_a_jump_back_is_held_and_when_it_is_believed_nothing_that_was_decided_comes_again() -> None:
    """An hour back at 15:02:30: 15:01 and 15:02 have run. The mark stands still until the clock has passed it again."""
    line = every_minute()
    line.advance(2 * MINUTE, step=TEN_SECONDS)
    line.clock.set_wall(line.clock.now() - HOUR)
    line.advance(58 * MINUTE, step=MINUTE)
    assert said(line) == (OWNERS, OWNERS)
    assert nominals(line) == ["15:01", "15:02"]
    line.advance(4 * MINUTE, step=TEN_SECONDS)
    assert nominals(line) == ["15:01", "15:02", "15:03", "15:04"]


@pytest.mark.parametrize("by", [HOUR, -HOUR], ids=["forward", "back"])
def test_a_jump_that_is_put_right_leaves_no_trace(by: timedelta) -> None:
    """Back where it belongs within the minute: nothing is missing, nothing came at the wrong time."""
    line = every_minute()
    line.advance(MINUTE, step=TEN_SECONDS)
    line.clock.set_wall(line.clock.now() + by)
    line.advance(timedelta(seconds=40), step=TEN_SECONDS)
    line.clock.set_wall(line.clock.now() - by)
    line.advance(timedelta(seconds=80), step=TEN_SECONDS)
    assert said(line) == (OWNERS, OWNERS)
    assert nominals(line) == ["15:01", "15:02", "15:03"]


def test_on_kafka_a_jump_is_never_believed_until_an_operator_says_so() -> None:
    """Ten hours of an hour too much: nothing. Then the word of one, whose name stands with the release."""
    line = every_minute(on_kafka=True)
    line.clock.set_wall(BEGIN + HOUR)
    line.advance(10 * HOUR, step=HOUR)
    assert nominals(line) == []
    assert said(line) == (OWNERS, 0)
    accept(line)
    assert nominals(line) == ["02:00"]  # the latest, by catch_up
    releases = [fact for fact in line.facts(topics.RUN_EVENTS) if isinstance(fact, ClockReleased)]
    assert {(fact.accepted_by, fact.note) for fact in releases} == {("ada", "looked at it")}


# --- a pause ------------------------------------------------------------------------------------------------------


def test_a_machine_that_slept_for_eight_hours_is_believed_and_catches_up_as_its_schedules_say() -> None:
    """Suspended at 15:01:30, awake at 23:01:30: both clocks say so. Of 480 missed minutes the latest runs."""
    line = every_minute()
    line.advance(MINUTE, step=TEN_SECONDS)
    line.clock.advance(8 * HOUR)
    line.settle()
    line.advance(MINUTE, step=TEN_SECONDS)
    assert said(line) == (0, 0)
    assert nominals(line) == ["15:01", "23:01", "23:02"]
    skips = [fact for fact in line.facts(topics.RUN_EVENTS) if isinstance(fact, OccurrenceSkipped)]
    assert sum(1 if fact.range is None else fact.range.count for fact in skips) == 479


# --- several nodes ------------------------------------------------------------------------------------------------


def taken_over(line: Line, skew: timedelta) -> None:
    """Another machine, whose clock is off by `skew` and was booted at another time, takes all partitions over."""
    now = line.clock.now()
    line.clock = ManualClock(now + skew)
    line.start()
    line.settle()


def test_a_new_owner_whose_clock_is_thirty_seconds_behind_waits_until_it_is_not() -> None:
    """The mark travels in the log: 15:02 has run, and runs once, and 15:03 comes when the slower clock shows it."""
    line = every_minute()
    line.advance(2 * MINUTE, step=TEN_SECONDS)
    taken_over(line, timedelta(seconds=-31))
    assert reasons(line) == {"the wall clock is 31 s behind the clock mark"}
    line.advance(timedelta(seconds=40), step=TEN_SECONDS)
    assert said(line) == (OWNERS, OWNERS)
    assert nominals(line) == ["15:01", "15:02"]
    line.advance(timedelta(seconds=30), step=TEN_SECONDS)
    assert nominals(line) == ["15:01", "15:02", "15:03"]


def test_owners_whose_clocks_differ_by_less_than_five_seconds_take_turns_and_lose_and_double_nothing() -> None:
    """Four seconds behind, right, four seconds ahead, right again; a minute each."""
    line = every_minute()
    for skew in (-4, 4, 4, -4):
        taken_over(line, timedelta(seconds=skew))
        line.advance(MINUTE, step=TEN_SECONDS)
    assert said(line) == (0, 0)
    assert nominals(line) == ["15:01", "15:02", "15:03", "15:04"]


@pytest.mark.parametrize("years", [10, -10])
def test_a_scheduler_that_begins_with_a_clock_that_is_years_off_creates_nothing(years: int) -> None:
    """On Kafka until somebody looks at it: nothing after a day, and commands are answered meanwhile."""
    line = every_minute(on_kafka=True)
    line.advance(MINUTE, step=TEN_SECONDS)
    taken_over(line, timedelta(days=365 * years))
    line.command("schedule.put", {"tenant": "acme", "name": "another", "definition": MINUTELY})
    line.advance(24 * HOUR, step=HOUR)
    assert nominals(line) == ["15:01"]
    assert said(line) == (OWNERS, 0)
    assert len(line.facts(topics.SCHEDULES)) == 2


# --- the embedded line --------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "log"


def test_on_the_embedded_log_the_days_of_a_laptop_with_a_bad_clock_lose_and_double_nothing(folder: Path) -> None:
    """Works, sleeps overnight, begins again with a clock an hour ahead, is put right, and goes on; on one log."""
    clock = ManualClock(BEGIN)
    log = EmbeddedLog(folder, clock)
    line = every_minute(log=log, clock=clock)
    line.advance(2 * MINUTE, step=TEN_SECONDS)
    clock.advance(8 * HOUR)  # closed at 15:02:30, opened at 23:02:30
    line.settle()
    for processor in line.processors:
        processor.settle()
    clock.set_wall(clock.now() + HOUR)  # 00:02:30, wrongly
    line.advance(timedelta(seconds=30), step=TEN_SECONDS)
    clock.set_wall(clock.now() - HOUR)  # 23:03:00
    line.advance(timedelta(seconds=90), step=TEN_SECONDS)
    assert said(line) == (OWNERS, OWNERS)
    assert nominals(line) == ["15:01", "15:02", "23:02", "23:03", "23:04"]
    log.close()
