"""What schedules refer to, through the whole line on the embedded log: published, adopted, decided with, audited."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from node.audit import audit
from node.audit.source import LogSource
from runtime.logs.embedded import EmbeddedLog
from schemas import topics
from schemas.facts import (
    AttemptStarted,
    OccurrenceSkipped,
    RunCreated,
    RunDeferReason,
    RunDeferred,
    RunFinished,
    SkipReason,
)
from simulation.clock import ManualClock
from simulation.line import Line

CHRISTMAS_EVE = datetime(2026, 12, 24, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
CALENDAR = {"tenant": "acme", "name": "uk"}
SCHEDULE: dict[str, Any] = {
    "tenant": "acme",
    "name": "often",
    "definition": {
        "trigger": {"cron": "0 */8 * * *", "exclude": {"calendars": ["uk"]}},
        "overlap": {"policy": "allow_all"},
        "job": {"target": {"type": "task", "name": "work"}},
    },
}


MAINTENANCE = {"from": "2026-12-24T20:00:00Z", "to": "2026-12-25T08:00:00Z", "action": "skip", "note": "move"}


@pytest.fixture
def line(tmp_path: Path) -> Iterator[Line]:
    clock = ManualClock(CHRISTMAS_EVE)
    log = EmbeddedLog(tmp_path / "log", clock)
    yield Line(log, clock)
    log.close()


def test_days_of_a_calendar_have_no_runs_and_the_audit_agrees(line: Line) -> None:
    """Adopted by every partition, changed in between, and named with its version by each decision."""
    line.worker()
    line.command("calendar.put", {**CALENDAR, "definition": {"dates": ["2026-12-25"]}})
    line.command("schedule.put", SCHEDULE)
    line.settle()
    line.advance(25 * HOUR, step=HOUR)
    line.command("calendar.put", {**CALENDAR, "definition": {"dates": ["2026-12-26"]}})
    line.settle()
    line.start()  # other processes take over
    line.advance(24 * HOUR, step=HOUR)

    events = line.facts(topics.RUN_EVENTS)
    runs = {fact.nominal_time: fact.used for fact in events if isinstance(fact, RunCreated)}
    skips = {fact.nominal_time: fact.used for fact in events if isinstance(fact, OccurrenceSkipped)}
    first, second = {"calendar/acme/uk": 1}, {"calendar/acme/uk": 2}
    day, eight = datetime(2026, 12, 25, tzinfo=UTC), 8 * HOUR
    assert runs == {day - eight: first, day + 2 * eight: second}
    assert skips == {day: first, day + eight: first, day + 3 * eight: second, day + 4 * eight: second}
    assert len([fact for fact in line.facts(topics.RUN_OUTCOMES) if isinstance(fact, RunFinished)]) == 2
    report = audit(LogSource(line.log))
    assert (report.clean, report.due, report.created, report.skipped) == (True, 6, 2, {"excluded": 4})


def test_a_freeze_has_no_runs_and_the_audit_agrees(line: Line) -> None:
    """Put by its tenant before the schedule, and lifted while it holds."""
    line.worker()
    line.command("tenant.put", {"tenant": "acme", "name": "_", "definition": {"freezes": [MAINTENANCE]}})
    line.command("schedule.put", SCHEDULE)
    line.settle()
    line.advance(16 * HOUR, step=HOUR)
    line.command("tenant.put", {"tenant": "acme", "name": "_", "definition": {}})
    line.settle()
    line.start()  # other processes take over
    line.advance(8 * HOUR, step=HOUR)
    skips = [fact for fact in line.facts(topics.RUN_EVENTS) if isinstance(fact, OccurrenceSkipped)]
    assert [(fact.nominal_time, fact.reason, fact.used["tenant/acme/_"]) for fact in skips] == [
        (datetime(2026, 12, 25, 0, tzinfo=UTC), SkipReason.FROZEN, 1)
    ]
    report = audit(LogSource(line.log))
    assert (report.clean, report.due, report.created, report.skipped) == (True, 3, 2, {"frozen": 1})


def test_a_paused_queue_keeps_what_is_due_and_hands_all_of_it_out_afterwards(line: Line) -> None:
    """Paused before the first occurrence, taken over by other processes, and resumed."""
    line.worker()
    line.command("queue.put", {"tenant": "_", "name": "default", "definition": {"paused": {"note": "move"}}})
    line.command("schedule.put", SCHEDULE)
    line.settle()
    line.advance(12 * HOUR, step=HOUR)
    line.start()
    line.advance(HOUR, step=HOUR)
    events = line.facts(topics.RUN_EVENTS)
    assert [fact for fact in events if isinstance(fact, AttemptStarted)] == []
    waits = {(fact.run_id[6:], fact.reason) for fact in events if isinstance(fact, RunDeferred)}
    assert waits >= {("20261224T160000Z", RunDeferReason.PAUSED), ("20261225T000000Z", RunDeferReason.PAUSED)}
    line.command("queue.put", {"tenant": "_", "name": "default", "definition": {}})
    line.settle()
    line.advance(HOUR, step=HOUR / 60)
    outcomes = [fact for fact in line.facts(topics.RUN_OUTCOMES) if isinstance(fact, RunFinished)]
    assert [fact.outcome.value for fact in outcomes] == ["succeeded", "succeeded"]
    assert audit(LogSource(line.log)).clean
