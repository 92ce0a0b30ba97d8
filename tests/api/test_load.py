"""What the days to come bring, and what a definition would do to it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from scheduler.occurrences import tz_version
from schemas.facts import CatalogEntry
from tests.api.house import House
from tests.projections import histories
from tests.projections.histories import current

pytestmark = pytest.mark.anyio

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    """It is noon on the first of March 2026; three are at 02:00, one of them paused, and one comes every six hours."""
    async with House(tmp_path, now=lambda: NOON) as house:
        job = CatalogEntry(
            kind="job", tenant="zoo", name="etl", version=1, definition={"queue": "etl"}, changed_at=histories.at(0)
        )
        house.happened(
            job,
            current("a", **daily()),
            current("b", **daily()),
            current("c", tenant="zoo", job="etl", trigger={"cron": "0 */6 * * *", "timezone": "UTC"}),
            current("d", state="paused", **daily()),
        )
        yield house


def daily(queue: str = "reports") -> dict[str, Any]:
    return {
        "trigger": {"cron": "0 2 * * *", "timezone": "UTC"},
        "job": {"queue": queue, "target": {"type": "task", "name": "x"}},
    }


async def get(house: House, path: str) -> Any:
    response = await house.http.get(path)
    assert response.status_code == 200, response.text
    return response.json()


async def test_the_load_of_the_days_to_come_names_crowded_minutes_queues_and_hours(house: House) -> None:
    """Two days: two runs at each 02:00, and one every six hours. What is paused is counted apart."""
    told = await get(house, "/v1/forecast?days=2")
    assert (told["from"], told["to"]) == ("2026-03-01T12:00:00Z", "2026-03-03T12:00:00Z")
    assert (told["schedules"], told["paused"], told["occurrences"]) == (3, 1, 12)
    assert told["crowded"][0] == {
        "at": "2026-03-02T02:00:00Z",
        "count": 2,
        "of": [{"queue": "reports", "tenant": "acme", "count": 2}],
    }
    busiest = {"at": "2026-03-02T02:00:00Z", "count": 2}
    assert told["queues"] == [
        {
            "queue": "etl", "tenant": "zoo", "schedules": 1, "occurrences": 8,
            "busiest": {"at": "2026-03-01T12:00:00Z", "count": 1},
        },
        {"queue": "reports", "tenant": "acme", "schedules": 2, "occurrences": 4, "busiest": busiest},
    ]  # fmt: skip
    assert told["hours"][:3] == [
        {"at": "2026-03-01T12:00:00Z", "count": 1, "busiest": 1},
        {"at": "2026-03-01T18:00:00Z", "count": 1, "busiest": 1},
        {"at": "2026-03-02T00:00:00Z", "count": 1, "busiest": 1},
    ]
    assert told["not_counted_whole"] == {"schedules": 0, "first": []}


@pytest.mark.parametrize(
    ("wanted", "count"), [("queue=reports", 14), ("tenant=zoo", 28), ("queue=reports&tenant=zoo", 0)]
)
async def test_it_is_told_for_one_queue_or_tenant(house: House, wanted: str, count: int) -> None:
    assert (await get(house, f"/v1/forecast?{wanted}"))["occurrences"] == count


async def test_more_than_a_month_is_refused(house: House) -> None:
    response = await house.http.get("/v1/forecast?days=32")
    assert response.status_code == 422
    assert response.json()["faults"][0]["pointer"] == "/days"


async def test_a_plan_says_what_a_definition_does_to_its_queue(house: House) -> None:
    """A third one at 02:00 meets two others. One that takes the place of its older version adds none."""
    answer = await house.http.post("/v1/tenants/acme/preview?load=true", json={"name": "e", **daily()})
    load = answer.json()["load"]
    assert (load["queue"], load["occurrences"]) == ("reports", 7)
    assert load["busiest_before"] == {"at": "2026-03-02T02:00:00Z", "count": 2}
    assert load["busiest_after"] == {"at": "2026-03-02T02:00:00Z", "count": 3}
    assert load["crowded"][0] == {"at": "2026-03-02T02:00:00Z", "before": 2, "after": 3}
    again = await house.http.post("/v1/tenants/acme/preview?load=true", json={"name": "a", **daily()})
    assert again.json()["load"]["busiest_after"] == {"at": "2026-03-02T02:00:00Z", "count": 2}


async def test_nobody_is_told_of_a_load_that_was_not_asked_for(house: House) -> None:
    answer = await house.http.post("/v1/tenants/acme/preview", json={"name": "e", **daily()})
    assert "load" not in answer.json()


async def test_the_time_zone_data_that_decide_are_told(house: House) -> None:
    told = await get(house, "/v1/time-zones")
    assert told["version"] == tz_version()
    assert told["zones"]["America/Chihuahua"] == "-21600;;CST6"
