"""A gap in an input that an operator accepted is known to the audit: named, and no fault."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from node.audit import audit
from node.audit.report import table
from node.audit.source import LogSource
from schemas import topics
from schemas.facts import GapAccepted, GapReason
from tests.audit.world import World, at


@pytest.fixture
def world() -> World:
    world = World()
    world.version()
    world.created("12:01", "12:02")
    world.decided(at("12:02"))
    return world


def gap(**fields: Any) -> GapAccepted:
    said: dict[str, Any] = {
        "role": "scheduler", "partition": 0, "topic": topics.SCHEDULE_CHANGES, "topic_partition": 0,
        "reason": GapReason.DELETED, "read_up_to": 41, "goes_on_at": 1057, "lost_from": 41, "lost_to": 1057,
        "accepted_by": "ada", "note": "four weeks away",
    }  # fmt: skip
    return GapAccepted(**(said | fields))


def test_an_accepted_gap_is_named_and_no_fault(world):
    world.event(gap())
    report = audit(LogSource(world.log))
    assert report.clean
    assert report.as_json()["accepted_gaps"] == [
        {
            "role": "scheduler", "partition": 0, "topic": "tidewheel.schedule-changes", "topic_partition": 0,
            "reason": "deleted", "read_up_to": 41, "goes_on_at": 1057, "lost_from": 41, "lost_to": 1057,
            "accepted_by": "ada", "note": "four weeks away",
        }
    ]  # fmt: skip
    shown = StringIO()
    Console(file=shown, width=120).print(table(report))
    assert "1,016  lost of tidewheel.schedule-changes 0, accepted by ada" in shown.getvalue()


def test_a_gap_that_was_stated_twice_under_one_id_is_one(world):
    world.event(gap())
    world.event(gap())
    assert len(audit(LogSource(world.log)).gaps) == 1


def test_runs_of_a_former_topic_are_known_not_to_stand_on_the_new_one(world):
    """What was created after that was accepted has to be delivered all the same."""
    world.created("12:03", delivered=False)
    world.decided(at("12:03"))
    assert audit(LogSource(world.log)).faults == {"undelivered": 1}
    world.clock.advance(timedelta(minutes=4))
    world.event(gap(role="dispatcher", topic=topics.RUNS, reason=GapReason.RECREATED, lost_to=None, goes_on_at=0))
    assert audit(LogSource(world.log)).clean
    world.created("12:05", delivered=False)
    world.skipped("12:04")
    world.decided(at("12:05"))
    assert audit(LogSource(world.log)).faults == {"undelivered": 1}
