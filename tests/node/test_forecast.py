"""What is coming, asked of the scheduler's own arithmetic."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from node.forecast import forecast
from schemas.faults import Refused

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
ONCE = {
    "trigger": {"at": ["2026-03-01T11:00:00Z", "2026-03-01T13:00:00Z"]},
    "job": {"target": {"type": "task", "name": "work"}},
}
DAY = {"from_": datetime(2026, 3, 1, tzinfo=UTC), "to": datetime(2026, 3, 2, tzinfo=UTC), "limit": 10}


def test_a_definition_is_judged_as_an_apply_would() -> None:
    """An instant that has passed by more than its grace is refused."""
    with pytest.raises(Refused, match="/trigger/at/0"):
        forecast(lambda: NOW)("acme/once", ONCE, **DAY)  # type: ignore[arg-type]


def test_an_accepted_definition_is_not_judged_again() -> None:
    """Its instants may have passed by now: both are told."""
    outlook = forecast(lambda: NOW)("acme/once", ONCE, **DAY, accepted=True)  # type: ignore[arg-type]
    assert [occurrence.nominal_time for occurrence in outlook.occurrences] == [
        datetime(2026, 3, 1, 11, 0, tzinfo=UTC),
        datetime(2026, 3, 1, 13, 0, tzinfo=UTC),
    ]
