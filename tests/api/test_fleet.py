"""The list of workers, as API and page show it."""

from datetime import UTC, datetime
from typing import Any

import pytest

from schemas import topics
from tests.api.house import House
from tests.api.test_page import text_of
from tests.projections.histories import at, created, listed, started, tombstone

pytestmark = pytest.mark.anyio

BEGAN = "2026-03-01T00:00:02Z"


@pytest.fixture
async def house(tmp_path):
    """It is a minute into the history."""
    async with House(tmp_path, now=lambda: datetime(2026, 3, 1, 0, 1, tzinfo=UTC)) as house:
        yield house


async def workers(house: House, query: str = "") -> list[dict[str, Any]]:
    response = await house.http.get(f"/v1/workers{query}")
    assert response.status_code == 200, response.text
    found: list[dict[str, Any]] = response.json()["workers"]
    return found


async def test_a_worker_is_shown_with_its_slots_its_tasks_and_what_it_has_in_hand(house):
    run = created("report", 0)
    house.happened(run, started(run, 2, worker="w1"), listed("w1", 3, stuck=1))
    assert await workers(house) == [
        {
            "worker": "w1", "incarnation": "w1-a", "queue": "default", "shard": 0, "state": "present",
            "draining": False, "tasks": ["mail", "reports.nightly"], "slots_total": 8, "slots_used": 1,
            "slots_free": 6, "stuck": 1, "transport": "http", "client": "tidewheel/0.1.0",
            "heard_at": "2026-03-01T00:00:03Z",
            "attempts": [
                {"tenant": "acme", "run_id": "report.20260301T000000Z", "attempt": 1, "started_at": BEGAN}
            ],
        }
    ]  # fmt: skip


async def test_one_that_drains_has_no_free_slots_and_one_that_does_not_say_has_no_number(house):
    house.happened(listed("w1", draining=True), listed("w2", slots_total=None, transport="", client=""))
    drains, terse = await workers(house)
    assert (drains["state"], drains["slots_free"]) == ("draining", 0)
    assert {"slots_total", "slots_free", "transport", "client"}.isdisjoint(terse)


async def test_the_list_is_narrowed_by_queue_state_and_name(house):
    house.happened(
        listed("w1"), listed("w2", queue="bulk"), listed("w3"),
        tombstone(topics.WORKERS, "default/0/w3-a", sequence=2),
    )  # fmt: skip
    assert [each["worker"] for each in await workers(house)] == ["w2", "w1"]
    assert [each["worker"] for each in await workers(house, "?queue=bulk")] == ["w2"]
    assert [each["worker"] for each in await workers(house, "?worker=w1-a")] == ["w1"]
    (gone,) = await workers(house, "?state=gone")
    assert (gone["worker"], gone["slots_free"], "gone_at" in gone) == ("w3", 0, True)


async def test_one_that_nobody_heard_of_for_three_minutes_is_silent(house):
    house.happened(listed("w1", -121), listed("w2", -119))
    assert [(each["worker"], each["state"]) for each in await workers(house)] == [("w1", "silent"), ("w2", "present")]


async def test_pages_lead_to_one_another(house):
    house.happened(*(listed(f"w{number}") for number in range(3)))
    first = (await house.http.get("/v1/workers?limit=2")).json()
    rest = (await house.http.get("/v1/workers", params={"cursor": first["cursor"]})).json()
    assert [each["worker"] for each in (*first["workers"], *rest["workers"])] == ["w0", "w1", "w2"]
    assert "cursor" not in rest


async def test_a_state_that_is_none_is_named_with_the_nearest_one(house):
    response = await house.http.get("/v1/workers?state=drained")
    assert response.status_code == 422
    (fault,) = response.json()["faults"]
    assert (fault["pointer"], fault["remedy"]) == ("/state", "did you mean 'draining'?")


async def test_the_page_shows_who_works_on_what(house):
    run = created("report", 0)
    house.happened(
        run, started(run, 2, worker="w1"), listed("w1", 3, stuck=2), listed("w2", tasks=("<b>", *"abcdefghi"))
    )
    response = await house.http.get("/workers")
    said = text_of(response.text)
    assert "w1 tidewheel/0.1.0 over http default present 2 stuck 1 8 mail, reports.nightly" in said
    assert "report.20260301T000000Z" in said
    assert "&lt;b&gt;, a, b, c, d, e, f, g and 2 more" in said
    assert "There is none that is gone." in text_of((await house.http.get("/workers?state=gone")).text)
    assert at(3).isoformat() in response.text
