"""What an outage left of a schedule, and where an interval counts from the end of a run, as the API tells it."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from api.backlog import backlog, held
from api.chain import Standing, standing

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)


def house(runs: list[dict[str, Any]], others: list[dict[str, Any]]) -> Any:
    """Services whose rows are these, the newest first."""
    reader = SimpleNamespace(created=lambda *_: runs, undone=lambda *_: others)
    return SimpleNamespace(now=lambda: NOW, settings=SimpleNamespace(history=timedelta(days=30)), reader=reader)


def row(**definition: Any) -> dict[str, Any]:
    return {"tenant": "acme", "name": "s", "definition": definition}


def paced(minute: int, turn: int) -> dict[str, Any]:
    nominal = NOW - timedelta(minutes=minute)
    until = NOW + timedelta(seconds=turn)
    return {"decision": "deferred", "reason": "paced", "nominal_from": nominal, "nominal_to": None, "until": until}


def test_a_backlog_is_what_has_not_had_its_turn_at_which_rate_and_until_when():
    dropped = {
        "decision": "skipped",
        "reason": "paused",
        "nominal_from": NOW - timedelta(minutes=2),
        "nominal_to": None,
    }
    found = backlog(house([], [paced(1, 3), paced(2, 2), paced(3, 1), paced(4, -1), dropped]), row())
    assert found == {
        "pending": 2,
        "rate": "10/s",
        "next_at": NOW + timedelta(seconds=1),
        "until": NOW + timedelta(seconds=3),
    }
    assert backlog(house([], [paced(4, -1)]), row(catch_up={"rate": "1/s"})) is None


def test_what_a_freeze_holds_is_told_with_its_end_and_by_whom():
    """Of four that were held one has its run and one was skipped."""

    def frozen(minute: int) -> dict[str, Any]:
        return {**paced(minute, 60), "reason": "frozen", "decided_at": NOW, "detail": "by freeze of tenant acme"}

    skipped = {**frozen(1), "decision": "skipped"}
    run = {"nominal_time": NOW - timedelta(minutes=2)}
    found = held(house([run], [skipped, *map(frozen, (1, 2, 3, 4))]), row())
    assert found == {
        "pending": 2,
        "since": NOW - timedelta(minutes=4),
        "until": NOW + timedelta(seconds=60),
        "detail": "by freeze of tenant acme",
    }
    assert held(house([], [paced(1, 3)]), row()) is None


@pytest.mark.parametrize(
    ("finished", "expected"),
    [
        (None, Standing(is_open=True)),
        (NOW + timedelta(milliseconds=1500), Standing(since=NOW + timedelta(seconds=1))),
    ],
)
def test_the_next_one_counts_from_the_second_in_which_the_run_of_the_last_one_ended(finished, expected):
    run = {"rule": "every PT15M from finish", "nominal_time": NOW, "finished_at": finished}
    assert standing(house([run], []), row(trigger={"every": "PT15M", "from": "finish"})) == expected


def test_behind_a_skipped_one_it_counts_from_that():
    rule, until = "every PT15M from finish", NOW + timedelta(hours=1)
    skipped = {"decision": "skipped", "rule": rule, "nominal_from": NOW, "nominal_to": until}
    found = standing(house([], [skipped]), row(trigger={"every": "PT15M", "from": "finish"}))
    assert found == Standing(since=NOW + timedelta(hours=1, seconds=-1))


def test_a_schedule_that_follows_the_clock_stands_nowhere():
    assert standing(house([], []), row(trigger={"cron": "@daily"})) == Standing()
