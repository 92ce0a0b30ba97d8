"""What waits and runs in a queue, shard by shard, as API and page show it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from schemas.facts import CatalogEntry, Outcome
from tests.api.test_page import text_of
from tests.projections.histories import at, created, finished, retried, started

pytestmark = pytest.mark.anyio


def declared(shards: int) -> CatalogEntry:
    return CatalogEntry(
        kind="queue", tenant="_", name="default", version=1, changed_at=at(0), definition={"shards": shards}
    )


def in_shard(shard: int, schedule: str, second: int) -> Any:
    return replace(created(schedule, second), shard=shard)


async def backlog(house: Any, queue: str = "default") -> Any:
    response = await house.http.get(f"/v1/queues/{queue}/backlog")
    assert response.status_code == 200, response.text
    return response.json()


async def test_each_shard_says_what_waits_and_runs_in_it_and_all_of_them_together(house):
    runs = [in_shard(0, "a", 1), in_shard(0, "b", 2), in_shard(2, "c", 3), in_shard(2, "d", 4), in_shard(2, "e", 5)]
    house.happened(
        declared(3), *runs, started(runs[0], 6), retried(runs[3], 6, 1), finished(runs[4], 7, Outcome.SUCCEEDED),
        replace(in_shard(0, "f", 1), job=replace(runs[0].job, queue="other")),
    )  # fmt: skip
    assert await backlog(house) == {
        "queue": "default", "waiting": 3, "running": 1, "oldest_at": "2026-03-01T00:00:02Z",
        "shards": [
            {"shard": 0, "waiting": 1, "running": 1, "oldest_at": "2026-03-01T00:00:02Z"},
            {"shard": 1, "waiting": 0, "running": 0},
            {"shard": 2, "waiting": 2, "running": 0, "oldest_at": "2026-03-01T00:00:03Z"},
        ],
    }  # fmt: skip
    shown = (await house.http.get("/v1/runs?schedule=c")).json()["runs"][0]
    assert shown["shard"] == 2


async def test_a_shard_that_the_queue_has_no_more_is_leaving_until_it_is_empty(house):
    run = in_shard(2, "a", 1)
    house.happened(declared(1), run)
    assert (await backlog(house))["shards"] == [
        {"shard": 0, "waiting": 0, "running": 0},
        {"shard": 2, "waiting": 1, "running": 0, "oldest_at": "2026-03-01T00:00:01Z", "leaving": True},
    ]
    house.happened(finished(run, 7, Outcome.SUCCEEDED))
    assert [each["shard"] for each in (await backlog(house))["shards"]] == [0]


async def test_a_queue_that_nobody_declared_has_one_shard(house):
    assert await backlog(house, "mail") == {
        "queue": "mail", "waiting": 0, "running": 0, "shards": [{"shard": 0, "waiting": 0, "running": 0}]
    }  # fmt: skip
    assert (await house.http.get("/v1/queues/a b/backlog")).status_code == 404


async def test_the_page_of_a_queues_workers_shows_its_shards(house):
    house.happened(declared(2), in_shard(1, "a", 1), in_shard(1, "b", 2), in_shard(3, "c", 2))
    shown = text_of((await house.http.get("/workers?queue=default")).text)
    assert "Runs of the queue" in shown
    assert "3 leaving 1 0" in shown
    assert "All 3 0" in shown
    assert "Runs of the queue" not in text_of((await house.http.get("/workers")).text)
    assert (await house.http.get("/workers?queue=a%20b")).status_code == 200
