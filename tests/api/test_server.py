"""Behind a real socket: clients that go away, and many workers at once."""

import asyncio
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from runtime.record import Outgoing
from schemas import topics
from tests.api.serving import serving
from tests.api.test_workers import body, hand_out, lease
from tests.projections.histories import current, record

REPORT = "/v1/queues/default/workers:report"


def test_a_client_that_goes_away_while_it_waits_leaves_no_slots_open(tmp_path: Path):
    with serving(tmp_path) as (house, url):
        with (
            pytest.raises(httpx.ReadTimeout),
            httpx.Client(base_url=url, timeout=httpx.Timeout(5, read=0.5)) as client,
        ):
            client.post(REPORT, json=body(slots=3, wait=30))
        assert [fact.slots for fact in house.wait_for_reports(2)] == [3, 0]


def test_a_hand_out_whose_answer_was_lost_reaches_the_worker_with_its_next_report(tmp_path: Path):
    with serving(tmp_path) as (house, url):
        with pytest.raises(httpx.ReadTimeout), httpx.Client(base_url=url, timeout=httpx.Timeout(5, read=0.5)) as client:
            client.post(REPORT, json=body(wait=30))
        house.log.append([hand_out(1)])
        with httpx.Client(base_url=url, timeout=30) as client:
            given = client.post(REPORT, json=body(wait=20)).json()["leases"]
        assert [each["lease"] for each in given] == [lease(1)]


def test_many_workers_each_get_their_own_and_nothing_twice(tmp_path: Path):
    async def work(client: httpx.AsyncClient, number: int) -> list[int]:
        asked: dict[str, Any] = body(worker=f"w-{number}", incarnation=f"inc-{number}", wait=20)
        got: list[int] = []
        while len(got) < 3:
            asked |= {"read_up_to": max(got, default=-1), "number": len(got) + 1}
            answer = (await client.post(REPORT, json=asked)).json()
            got += [each["offset"] for each in answer["leases"]]
        return got

    async def everyone(url: str) -> list[list[int]]:
        limits = httpx.Limits(max_connections=40)
        async with httpx.AsyncClient(base_url=url, timeout=60, limits=limits) as client:
            return await asyncio.gather(*(work(client, number) for number in range(30)))

    with serving(tmp_path) as (house, url):
        house.ensure_queue("default")
        house.log.append([hand_out(turn * 30 + n, f"inc-{n}") for turn in range(3) for n in range(30)])
        got = asyncio.run(everyone(url))
    assert got == [[number, number + 30, number + 60] for number in range(30)]


def test_a_read_after_a_write_of_somebody_else_sees_it(tmp_path: Path):
    with serving(tmp_path) as (house, url), httpx.Client(base_url=url) as client:
        for number in range(20):
            house.log.append([record(current(f"s{number}"))])
            response = client.get(f"/v1/tenants/acme/schedules/s{number}", headers={"Tidewheel-At-Least": "x-0-1"})
            assert response.status_code == 200


def test_a_log_of_many_records_is_read_in_bounded_answers(tmp_path: Path):
    with serving(tmp_path) as (house, url), httpx.Client(base_url=url, timeout=30) as client:
        value = orjson.dumps({"text": "x" * 4000})
        house.log.append([Outgoing(topics.RUNS, 0, b"k", value) for _ in range(3000)])
        seen, position, largest = 0, 0, 0
        while True:
            response = client.get(f"/v1/log/runs/0?from={position}&limit=5000")
            page = response.json()
            largest = max(largest, len(response.content))
            seen += len(page["records"])
            position = page["next"]
            if position >= page["end"]:
                break
        assert seen == 3000
        assert largest < 6 * 1024 * 1024
