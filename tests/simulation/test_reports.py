"""Complaints about other schedulers, as cases of the whole line. Every value is written out."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from runtime.log import Fenced
from runtime.logs.simulated import SimulatedLog
from schemas import topics
from schemas.facts import AttemptFinished, AttemptStarted, ClockHeld, ClockReleased, Outcome, RunCreated, RunFinished
from schemas.internal import CommandAnswered, FinishedLease, HandOut
from simulation.clock import ManualClock
from simulation.line import LAYOUT, Line, succeed
from tests.simulation.crashing import Crash, CrashingLog, CrashingStore

if TYPE_CHECKING:
    from collections.abc import Callable

ONE_STEP = 500  # more steps of the log than any of these batches takes


def line_at(instant: str) -> Line:
    clock = ManualClock(datetime.fromisoformat(instant))
    return Line(SimulatedLog(5, clock), clock)


def put(line: Line, name: str, trigger: dict[str, Any], **definition: Any) -> CommandAnswered:
    """Publish a schedule and return the answer to it."""
    job = {"target": {"type": "task", "name": "work"}, "lease": "PT6M", "timeout": "PT1H"}
    body = {"trigger": trigger, "overlap": {"policy": "allow_all"}, "job": job} | definition
    command = line.command("schedule.put", {"tenant": "acme", "name": name, "definition": body})
    line.settle()
    return answer(line, command)


def answer(line: Line, command_id: str) -> CommandAnswered:
    answers = [fact for fact in line.facts(topics.REPLIES) if isinstance(fact, CommandAnswered)]
    return next(fact for fact in answers if fact.command_id == command_id)


def created(line: Line) -> list[RunCreated]:
    return [fact for fact in line.facts(topics.RUN_EVENTS) if isinstance(fact, RunCreated)]


def nominals(line: Line) -> list[str]:
    return [f"{run.nominal_time:%H:%M:%S}" for run in created(line)]


def test_b_o01_a_zone_without_fields_is_refused_and_disturbs_nobody() -> None:
    """`TZ=0`, `TZ=UTC`, `CRON_TZ=America/New_York`: each refused by field; the neighbour runs every minute."""
    line = line_at("2026-03-01T12:00:30Z")
    line.worker()
    put(line, "neighbour", {"cron": "* * * * *"})
    line.advance(timedelta(minutes=1), step=timedelta(seconds=10))
    for number, text in enumerate(("TZ=0", "TZ=UTC", "CRON_TZ=America/New_York")):
        refusal = put(line, f"bad-{number}", {"cron": text})
        assert refusal.status == 422
        assert refusal.faults[0].pointer == "/data/definition/trigger/cron"
        line.advance(timedelta(minutes=1), step=timedelta(seconds=10))
    assert nominals(line) == ["12:01:00", "12:02:00", "12:03:00", "12:04:00"]
    assert len(line.facts(topics.SCHEDULES)) == 1


def test_b_o16_processes_that_share_a_host_create_one_run() -> None:
    """Three schedulers on one log, two of them stale: one run for 07:00, and the stale ones are refused by the log."""
    line = line_at("2026-08-26T06:59:58Z")
    line.worker()
    put(line, "weekdays", {"cron": "0 7 * * 1-5"})
    first = list(line.processors)
    line.start()
    second = list(line.processors)
    line.start()
    line.clock.advance(timedelta(seconds=2))
    for stale in (*first, *second):
        refuses(lambda stale=stale: stale.step(0.0))  # type: ignore[misc]
    line.settle()
    assert [(run.run_id, run.nominal_time) for run in created(line)] == [
        ("weekdays.20260826T070000Z", datetime(2026, 8, 26, 7, 0, tzinfo=UTC))
    ]


def refuses(step: Callable[[], object]) -> None:
    """A stale owner either has nothing to say or is told that it no longer owns anything."""
    try:
        step()
    except Fenced:
        return


def test_b_o17_a_kill_at_any_point_creates_the_run_once() -> None:
    """Killed at every step between noting 10:05 and having created its run, in turn; restarted at 10:05:20."""
    points = 0
    for point in range(ONE_STEP):
        clock = ManualClock(datetime(2024, 1, 1, 10, 4, 30, tzinfo=UTC))
        log = CrashingLog(SimulatedLog(7, clock))
        line = Line(log, clock, make_store=lambda log=log: CrashingStore(log))  # type: ignore[misc]
        put(line, "minutely", {"cron": "* * * * *"})
        log.crash_after(point)
        clock.advance_to(datetime(2024, 1, 1, 10, 5, tzinfo=UTC))
        crashed = dies(line.settle)
        log.crash_never()
        clock.advance_to(datetime(2024, 1, 1, 10, 5, 20, tzinfo=UTC))
        line.start()
        line.settle()
        clock.advance_to(datetime(2024, 1, 1, 10, 6, tzinfo=UTC))
        line.settle()
        assert Counter(nominals(line)) == {"10:05:00": 1, "10:06:00": 1}, f"killed at step {point}"
        if not crashed:
            break
        points += 1
    assert points >= 6  # begin, decision, flush, outputs, rows, footer, commit: what a transaction is made of


def dies(step: Callable[[], object]) -> bool:
    """Whether the process died in it."""
    try:
        step()
    except Crash:
        return True
    return False


def test_b_o19_a_long_job_is_one_attempt_whoever_joins() -> None:
    """One job of seven minutes beside short ones; a third worker joins at minute three and changes nothing."""
    line = line_at("2026-03-01T12:00:00Z")
    began: dict[str, datetime] = {}

    def work(handout: HandOut) -> FinishedLease | None:
        run_id = handout.run.run_id
        began.setdefault(run_id, line.clock.now())
        long = handout.run.schedule == "long"
        return None if long and line.clock.now() - began[run_id] < timedelta(minutes=7) else succeed(handout)

    for number in (1, 2):
        line.worker(work, name=f"worker-{number}", incarnation=f"incarnation-{number}", slots=5)
    put(line, "long", {"at": ["2026-03-01T12:00:05Z"]})
    put(line, "short", {"every": "PT30S"})
    line.advance(timedelta(minutes=3), step=timedelta(seconds=5))
    line.worker(work, name="worker-3", incarnation="incarnation-3", slots=5)
    line.advance(timedelta(minutes=5), step=timedelta(seconds=5))
    events = line.facts(topics.RUN_EVENTS)
    long = [fact for fact in events if isinstance(fact, AttemptFinished) and fact.schedule == "long"]
    assert [(fact.attempt, fact.outcome.value, fact.finished_at) for fact in long] == [
        (1, "succeeded", datetime(2026, 3, 1, 12, 7, 5, tzinfo=UTC))
    ]
    short = [fact for fact in events if isinstance(fact, AttemptStarted) and fact.schedule == "short"]
    assert len(short) == 16
    assert all(fact.started_at == fact.handed_out_at for fact in short)


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2026-03-08T05:15:53Z", datetime.fromtimestamp(1772946953, UTC)),
        ("2026-03-08T05:15:53+02:00", datetime(2026, 3, 8, 3, 15, 53, tzinfo=UTC)),
        ("2026-03-08T05:15:53", None),
        ("2026-03-08T02:30:00", None),
        ("2026-02-30T00:00:00Z", None),
        ("tomorrow", None),
    ],
)
def test_b_o25_a_time_without_an_offset_is_refused(text: str, instant: datetime | None) -> None:
    """An instant is what it says, never read in the server's zone; a refusal names the field."""
    line = line_at("2026-03-01T00:00:00Z")
    line.worker()
    reply = put(line, "once", {"at": [text], "timezone": "America/New_York"})
    if instant is None:
        assert reply.status == 422
        assert reply.faults[0].pointer == "/data/definition/trigger/at/0"
        return
    assert reply.status == 201
    line.clock.advance_to(instant)
    line.settle()
    assert [run.nominal_time for run in created(line)] == [instant]


LONGEST = "n" * 128
ALIKE = "x" * 63


@pytest.mark.parametrize(
    "name", [LONGEST + "n", "job-\N{ROCKET}", "caf\N{LATIN SMALL LETTER E WITH ACUTE}", "cafe\u0301"]
)
def test_b_o26_a_name_that_does_not_fit_is_refused(name: str) -> None:
    """Too long, an emoji, an accent in either form: refused, never cut off or folded together."""
    line = line_at("2026-03-01T00:00:00Z")
    reply = put(line, name, {"cron": "* * * * *"})
    assert reply.status == 422
    assert reply.faults[0].pointer == "/data/name"


def test_b_o26_names_are_kept_byte_for_byte() -> None:
    """The longest allowed one comes back whole; two that agree in 63 characters are two schedules."""
    line = line_at("2026-03-01T00:00:00Z")
    for name in (LONGEST, ALIKE + "a", ALIKE + "b"):
        assert put(line, name, {"cron": "* * * * *"}).status == 201
    names = {fact.schedule for fact in line.facts(topics.SCHEDULES)}  # type: ignore[attr-defined]
    assert names == {LONGEST, ALIKE + "a", ALIKE + "b"}


@pytest.mark.parametrize("expression", ["1_0 * * * *", "\N{ARABIC-INDIC DIGIT FIVE} * * * *"])
def test_b_o26_only_ascii_digits_are_numbers(expression: str) -> None:
    """What a lenient reader of integers would take is refused."""
    assert put(line_at("2026-03-01T00:00:00Z"), "digits", {"cron": expression}).status == 422


def test_b_o27_a_clock_that_was_ahead_for_a_while_runs_nothing_early_and_nothing_twice() -> None:
    """15:00:30, wrongly 17:00:00, then 15:01:10 again: held and said; 15:02 and 15:03 in time; 17:00 once, later."""
    line = line_at("2026-03-01T15:00:30Z")
    line.worker()
    put(line, "minutely", {"cron": "* * * * *"})
    line.clock.set_wall(datetime(2026, 3, 1, 17, 0, tzinfo=UTC))
    line.settle()
    assert nominals(line) == []
    line.clock.advance(timedelta(seconds=40))
    line.settle()
    line.clock.set_wall(datetime(2026, 3, 1, 15, 1, 10, tzinfo=UTC))
    line.settle()
    line.advance(timedelta(minutes=2), step=timedelta(seconds=10))
    assert nominals(line) == ["15:01:00", "15:02:00", "15:03:00"]
    events = line.facts(topics.RUN_EVENTS)
    owners = LAYOUT.schedule + LAYOUT.shard
    assert len([fact for fact in events if isinstance(fact, ClockHeld)]) == owners
    assert len([fact for fact in events if isinstance(fact, ClockReleased)]) == owners
    line.advance(datetime(2026, 3, 1, 17, 0, 30, tzinfo=UTC) - line.clock.now(), step=timedelta(seconds=30))
    assert nominals(line).count("17:00:00") == 1
    assert all(run.created_at >= run.due_at for run in created(line))


def test_b_o32_five_thousand_jobs_on_one_minute_all_run() -> None:
    """5,000 schedules of `0 12 * * *`: 5,000 runs, one each; what is due at 12:01 is not skipped."""
    line = line_at("2026-03-01T11:59:00Z")
    line.worker(slots=5000)
    definition = {
        "trigger": {"cron": "0 12 * * *"},
        "job": {"target": {"type": "task", "name": "work"}},
    }
    for number in range(5000):
        line.command("schedule.put", {"tenant": "acme", "name": f"noon-{number}", "definition": definition})
    put(line, "next", {"cron": "1 12 * * *"})
    line.advance(timedelta(minutes=2), step=timedelta(seconds=20))
    runs = Counter(run.run_id for run in created(line))
    assert len(runs) == 5001
    assert set(runs.values()) == {1}
    outcomes = Counter(fact.outcome for fact in line.facts(topics.RUN_OUTCOMES) if isinstance(fact, RunFinished))
    assert outcomes == {Outcome.SUCCEEDED: 5001}
    assert nominals(line).count("12:01:00") == 1
