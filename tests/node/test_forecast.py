"""What is coming, asked of the scheduler's own arithmetic."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from node.forecast import forecast
from schemas.faults import Refused

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
ONCE = {
    "trigger": {"at": ["2026-03-01T11:00:00Z", "2026-03-01T13:00:00Z"]},
    "job": {"target": {"type": "task", "name": "work"}},
}
DAY = {"from_": datetime(2026, 3, 1, tzinfo=UTC), "to": datetime(2026, 3, 2, tzinfo=UTC), "limit": 10}


def nothing(*_: Any) -> None:
    """Stands in the catalog."""


def test_a_definition_is_judged_as_an_apply_would() -> None:
    """An instant that has passed by more than its grace is refused."""
    with pytest.raises(Refused, match="/trigger/at/0"):
        forecast(lambda: NOW, nothing)("acme/once", ONCE, **DAY)  # type: ignore[arg-type]


def test_an_accepted_definition_is_not_judged_again() -> None:
    """Its instants may have passed by now: both are told."""
    outlook = forecast(lambda: NOW, nothing)("acme/once", ONCE, **DAY, accepted=True)  # type: ignore[arg-type]
    assert [occurrence.nominal_time for occurrence in outlook.occurrences] == [
        datetime(2026, 3, 1, 11, 0, tzinfo=UTC),
        datetime(2026, 3, 1, 13, 0, tzinfo=UTC),
    ]


def test_a_calendar_of_the_catalog_takes_part() -> None:
    """What it takes out is said with its version; one that is not there is warned about at its apply."""

    def entry(scope: Any, kind: str, name: str) -> Any:
        known = (scope.tenant, kind, name) == ("acme", "calendar", "closed")
        return {"version": 2, "definition": {"dates": ["2026-03-01"]}} if known else None

    daily = {"trigger": {"cron": "0 13 * * *", "exclude": {"calendars": ["closed"]}}, "job": ONCE["job"]}
    span: Any = {**DAY, "to": datetime(2026, 3, 3, tzinfo=UTC)}
    outlook = forecast(lambda: NOW, entry)("acme/daily", daily, **span)
    assert [each.nominal_time.day for each in outlook.occurrences] == [2]
    assert [(each.reason, each.said["detail"]) for each in outlook.skipped] == [
        ("excluded", "by calendar closed (version 2)")
    ]
    other = forecast(lambda: NOW, entry)("zoo/daily", daily, **span)
    assert [each.nominal_time.day for each in other.occurrences] == [1, 2]


def test_freezes_of_the_tenant_and_of_the_queue_of_its_job_take_part() -> None:
    """They are told apart from what the schedule itself excludes."""
    night = {"from": "2026-03-01T13:00:00Z", "to": "2026-03-01T14:00:00Z", "action": "skip"}
    day = {"from": "2026-03-02T00:00:00Z", "to": "2026-03-03T00:00:00Z", "action": "skip", "note": "move"}
    known = {
        ("acme", "tenant", "_"): {"version": 1, "definition": {"freezes": [night]}},
        ("_", "queue", "big"): {"version": 4, "definition": {"freezes": [day]}},
        ("acme", "job", "j"): {
            "version": 1,
            "definition": {"target": {"type": "task", "name": "work"}, "queue": "big"},
        },
    }
    daily = {"trigger": {"cron": "0 13 * * *"}, "job": "j"}
    span: Any = {**DAY, "to": datetime(2026, 3, 4, tzinfo=UTC)}
    outlook = forecast(lambda: NOW, lambda scope, *rest: known.get((scope.tenant, *rest)))("acme/daily", daily, **span)
    assert [each.nominal_time.day for each in outlook.occurrences] == [3]
    assert [(each.reason, each.said["detail"]) for each in outlook.skipped] == [
        ("frozen", "by freeze of tenant acme (version 1)"), ("frozen", "by freeze of queue big (version 4): move")
    ]  # fmt: skip


def test_what_a_freeze_will_hold_says_until_when_and_what_it_will_not_says_why() -> None:
    """Hourly, from noon to three on the next day: the last one is held."""
    night = {"from": "2026-03-02T12:00:00Z", "to": "2026-03-02T15:00:00Z", "note": "move"}
    known = {"version": 1, "definition": {"freezes": [night]}}
    ask = forecast(lambda: NOW, lambda _, kind, __: known if kind == "tenant" else None)
    span: Any = {**DAY, "from_": datetime(2026, 3, 2, 11, 30, tzinfo=UTC), "to": datetime(2026, 3, 2, 16, tzinfo=UTC)}

    def asked(policy: str, **more: Any) -> tuple[list[Any], list[Any]]:
        hourly = {"trigger": {"cron": "0 * * * *"}, "catch_up": {"policy": policy, **more}, "job": ONCE["job"]}
        outlook = ask("acme/hourly", hourly, **span)
        due = [(each.nominal_time.hour, each.held_until and each.held_until.hour) for each in outlook.occurrences]
        return due, [(each.said.get("range", {}).get("count"), each.said["detail"]) for each in outlook.skipped]

    freeze = "by freeze of tenant acme (version 1): move"
    assert asked("latest") == ([(14, 15), (15, None)], [(2, f"{freeze}; a later one is held")])
    assert asked("all") == ([(12, 15), (13, 15), (14, 15), (15, None)], [])
    assert asked("all", limit=2) == (
        [(13, 15), (14, 15), (15, None)], [(None, f"{freeze}; 2 later ones are held, which is the limit")]
    )  # fmt: skip
    assert asked("skip") == ([(15, None)], [(3, f"{freeze}; catch_up is skip")])
