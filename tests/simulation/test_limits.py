"""Limits through the whole line: definitions put as commands, runs from schedules, workers on their inbox."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from runtime.logs.simulated import SimulatedLog
from schemas import topics
from schemas.facts import CatalogAdopted, Outcome, RunCreated, RunDeferReason, RunDeferred, RunFinished
from schemas.internal import FinishedLease, HandOut
from simulation.clock import ManualClock
from simulation.line import Line

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@pytest.fixture
def line() -> Line:
    clock = ManualClock(NOON)
    return Line(SimulatedLog(1, clock), clock)


def go_on(_handout: HandOut) -> FinishedLease | None:
    """A task that is never done."""
    return None


def every_second(line: Line, **job: object) -> None:
    definition = {
        "trigger": {"cron": "* * * * * *"},
        "overlap": {"policy": "allow_all", "limit": 100},
        "job": {"target": {"type": "task", "name": "work"}, "lease": "1h"} | job,
    }
    line.command("schedule.put", {"tenant": "acme", "name": "quick", "definition": definition})
    line.settle()


def handed(line: Line) -> list[str]:
    facts = line.facts(topics.dispatch_topic("default"))
    return [fact.run.run_id for fact in facts if isinstance(fact, HandOut)]


def test_a_key_holds_what_a_schedule_makes_and_the_story_says_so(line: Line) -> None:
    line.worker(go_on)
    every_second(line, concurrency={"key": "db-1", "limit": 2})
    line.advance(timedelta(seconds=8))
    assert handed(line) == ["quick.20260301T120001Z", "quick.20260301T120002Z"]
    told = [fact for fact in line.facts(topics.RUN_EVENTS) if isinstance(fact, RunDeferred)]
    assert [(fact.run_id, fact.reason, fact.since) for fact in told] == [
        ("quick.20260301T120003Z", RunDeferReason.CONCURRENCY, NOON + timedelta(seconds=3))
    ]


def test_a_tenants_quota_reaches_the_dispatcher_through_the_catalog(line: Line) -> None:
    quota = {"queues": {"default": {"running": 1, "queued": 3}}}
    line.command("tenant.put", {"tenant": "acme", "name": "_", "definition": {"quota": quota}})
    line.settle()
    line.worker(go_on)
    every_second(line)
    line.advance(timedelta(seconds=7))
    events = line.facts(topics.RUN_EVENTS)
    adopted = [fact for fact in events if isinstance(fact, CatalogAdopted) and fact.role == "dispatcher"]
    assert sorted(fact.partition for fact in adopted) == [0, 1]
    assert handed(line) == ["quick.20260301T120001Z"]
    ended = [fact for fact in line.facts(topics.RUN_OUTCOMES) if isinstance(fact, RunFinished)]
    assert [(fact.run_id, fact.outcome, fact.reason) for fact in ended] == [
        (f"quick.20260301T12000{second}Z", Outcome.EXPIRED, "quota") for second in (5, 6, 7)
    ]
    created = [fact for fact in events if isinstance(fact, RunCreated)]
    assert len(created) == 7


def test_limits_are_the_same_after_all_owners_were_replaced(line: Line) -> None:
    line.command("queue.put", {"tenant": "_", "name": "default", "definition": {"rate": "30/m"}})
    line.settle()
    line.worker(go_on)
    every_second(line)
    for lose_stores in (False, True):
        line.advance(timedelta(seconds=4))
        if lose_stores:
            line.stores.clear()
        line.start()
    line.advance(timedelta(seconds=4))
    assert len(handed(line)) == 6
