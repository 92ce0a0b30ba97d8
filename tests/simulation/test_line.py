"""The whole line under a clock that only moves when told."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from node.audit import audit
from node.audit.source import LogSource
from runtime.logs.simulated import SimulatedLog
from schemas import topics
from schemas.facts import (
    AttemptFinished,
    CommandRejected,
    OccurrenceSkipped,
    Outcome,
    RunCreated,
    RunFinished,
    RunRetryScheduled,
    ScheduleAccepted,
    SkipReason,
)
from schemas.internal import CommandAnswered
from simulation.clock import ManualClock
from simulation.line import Line, fail

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@pytest.fixture(params=[1, 2, 3])
def line(request: pytest.FixtureRequest) -> Line:
    clock = ManualClock(NOON)
    return Line(SimulatedLog(request.param, clock), clock)


def schedule(name: str = "every-second", **definition: object) -> dict[str, object]:
    return {
        "tenant": "acme",
        "name": name,
        "definition": {
            "trigger": {"cron": "* * * * * *"},
            "overlap": {"policy": "allow_all"},
            "job": {"target": {"type": "task", "name": "work"}, "retry": {"initial": "1s", "jitter": "none"}},
        }
        | definition,
    }


def finished(line: Line) -> list[RunFinished]:
    return [fact for fact in line.facts(topics.RUN_OUTCOMES) if isinstance(fact, RunFinished)]


def test_a_published_schedule_becomes_outcomes(line: Line) -> None:
    """From a command on the topic to one outcome for each second that passed."""
    line.worker()
    line.command("schedule.put", schedule())
    line.settle()
    line.advance(timedelta(seconds=5))
    outcomes = sorted((fact.run_id, fact.outcome) for fact in finished(line))
    assert outcomes == [
        ("every-second.20260301T120001Z", Outcome.SUCCEEDED),
        ("every-second.20260301T120002Z", Outcome.SUCCEEDED),
        ("every-second.20260301T120003Z", Outcome.SUCCEEDED),
        ("every-second.20260301T120004Z", Outcome.SUCCEEDED),
        ("every-second.20260301T120005Z", Outcome.SUCCEEDED),
    ]
    accepted = [fact for fact in line.facts(topics.RUN_EVENTS) if isinstance(fact, ScheduleAccepted)]
    assert [(fact.version, fact.effective_at) for fact in accepted] == [(1, NOON)]


def test_every_command_is_answered(line: Line) -> None:
    """Accepted or refused, its answer stands on the asking node's partition of `replies`."""
    good = line.command("schedule.put", schedule())
    bad = line.command("schedule.put", schedule("bad", trigger={"cron": "61 * * * *"}))
    line.settle()
    answers = {fact.command_id: fact for fact in line.facts(topics.REPLIES) if isinstance(fact, CommandAnswered)}
    assert answers[good].status == 201
    assert answers[bad].status == 422
    assert answers[bad].faults[0].pointer == "/data/definition/trigger/cron"
    rejected = [fact for fact in line.facts(topics.REJECTIONS) if isinstance(fact, CommandRejected)]
    assert [fact.command_id for fact in rejected] == [bad]


def test_a_job_by_name_reaches_its_schedule_through_the_catalog(line: Line) -> None:
    """Occurrences before the job exists are skipped with no_job; later ones have runs with the job's version."""
    line.worker()
    line.command("schedule.put", schedule("by-name", job="nightly"))
    line.settle()
    line.advance(timedelta(seconds=2))
    job = {"tenant": "acme", "name": "nightly", "definition": {"target": {"type": "task", "name": "work"}}}
    line.command("job.put", job)
    line.settle()
    line.advance(timedelta(seconds=2))
    events = line.facts(topics.RUN_EVENTS)
    skipped = [fact.nominal_time for fact in events if isinstance(fact, OccurrenceSkipped)]
    created = [fact for fact in events if isinstance(fact, RunCreated)]
    assert skipped == [NOON + timedelta(seconds=1), NOON + timedelta(seconds=2)]
    assert [(fact.nominal_time, fact.job.name, fact.job.version) for fact in created] == [
        (NOON + timedelta(seconds=3), "nightly", 1),
        (NOON + timedelta(seconds=4), "nightly", 1),
    ]


def test_a_failing_run_is_tried_again_and_given_up(line: Line) -> None:
    """Three attempts a second or more apart, then a dead letter that keeps the whole run."""
    line.worker(fail)
    line.command("schedule.put", schedule("doomed", trigger={"at": ["2026-03-01T12:00:02Z"]}))
    line.settle()
    line.advance(timedelta(seconds=10))
    events = line.facts(topics.RUN_EVENTS)
    retries = [(fact.attempt, fact.retry_at) for fact in events if isinstance(fact, RunRetryScheduled)]
    assert retries == [(2, NOON + timedelta(seconds=3)), (3, NOON + timedelta(seconds=5))]
    assert [fact.attempt for fact in events if isinstance(fact, AttemptFinished)] == [1, 2, 3]
    assert [(fact.outcome, fact.attempts) for fact in finished(line)] == [(Outcome.DEAD_LETTERED, 3)]
    assert len(line.facts(topics.DEAD_LETTERS)) == 1


def test_an_outage_is_caught_up_by_policy(line: Line) -> None:
    """`latest`: of 600 missed seconds those within grace are late runs; a later one has run, so no older one does."""
    line.worker()
    line.command("schedule.put", schedule(catch_up={"policy": "latest"}))
    line.settle()
    line.clock.advance(timedelta(minutes=10))
    for worker in line.workers:
        worker.announce()
    line.settle()
    events = line.facts(topics.RUN_EVENTS)
    causes = Counter(fact.cause.value for fact in events if isinstance(fact, RunCreated))
    skipped = sum(
        fact.range.count if fact.range else 1
        for fact in events
        if isinstance(fact, OccurrenceSkipped) and fact.reason is SkipReason.CATCH_UP
    )
    assert causes["schedule"] + causes["catch_up"] + skipped == 600
    assert causes == {"schedule": 61}


def test_a_pause_published_during_an_outage_holds(line: Line) -> None:
    """It was appended before the occurrences, so none of them has a run, whenever the owner reads it."""
    line.worker()
    line.command("schedule.put", schedule(catch_up={"policy": "all", "limit": 10_000}))
    line.settle()
    line.command("schedule.pause", {"tenant": "acme", "name": "every-second"})
    line.clock.advance(timedelta(minutes=5))
    line.settle()
    events = line.facts(topics.RUN_EVENTS)
    assert [fact for fact in events if isinstance(fact, RunCreated)] == []
    paused = [fact for fact in events if isinstance(fact, OccurrenceSkipped)]
    assert {fact.reason for fact in paused} == {SkipReason.PAUSED}
    assert sum(fact.range.count if fact.range else 1 for fact in paused) == 300


def test_a_crash_of_everything_loses_and_doubles_nothing(line: Line) -> None:
    """All owners are replaced in the middle of the work, with their stores and without."""
    line.worker()
    line.command("schedule.put", schedule())
    line.settle()
    for lose_stores in (False, True, False):
        line.advance(timedelta(seconds=3))
        if lose_stores:
            line.stores.clear()
        line.start()
    line.advance(timedelta(seconds=1))
    runs = Counter(fact.run_id for fact in line.facts(topics.RUN_EVENTS) if isinstance(fact, RunCreated))
    assert len(runs) == 10
    assert set(runs.values()) == {1}
    assert Counter(fact.run_id for fact in finished(line)) == runs


def test_an_interval_that_counts_from_the_end_of_the_run_before_goes_through_the_whole_line_and_the_audit(
    line: Line,
) -> None:
    """The audit walks it from outcomes: nothing is missing, nothing unexpected, while runs end and while it pauses."""
    worker = line.worker()
    line.command("schedule.put", schedule(trigger={"every": "PT3S", "from": "finish"}, pause_on_failure=2))
    line.settle()
    line.advance(timedelta(seconds=20))
    runs = [fact.run_id for fact in line.facts(topics.RUNS) if isinstance(fact, RunCreated)]
    ends = [fact.finished_at for fact in finished(line)]
    assert len(runs) >= 5
    assert [fact.nominal_time for fact in line.facts(topics.RUNS) if isinstance(fact, RunCreated)] == [
        NOON + timedelta(seconds=3),
        *(end.replace(microsecond=0) + timedelta(seconds=3) for end in ends[: len(runs) - 1]),
    ]
    worker.task = fail
    line.advance(timedelta(minutes=3))
    report = audit(LogSource(line.log))
    assert (report.offenders, report.created) == ({}, len(finished(line)))
    assert report.skipped["paused"] > 10
