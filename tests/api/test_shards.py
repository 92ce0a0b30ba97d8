"""Workers over HTTP of a queue with several shards: what shards say reaches them, and what they say the right shard."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from runtime.record import Outgoing
from schemas import codec, topics
from schemas.internal import HandOut, QueueLayout
from tests.api.test_workers import CLAIM, INBOX, REPORT, SECONDS, body, inboxed, reported
from tests.projections import histories
from tests.support.waiting import eventually

pytestmark = pytest.mark.anyio

PARTITION_OF = [1, 0, 1]  # of the shards of the queue `default`, on `attempts` of two partitions


def layout(shard: int, queued: int = 0, **more: Any) -> Outgoing:
    said = {"shards": 3, "running": 2, "free": 1, "workers": 4, **more}
    fact = QueueLayout(queue="default", shard=shard, queued=queued, told_at=histories.START, **said)
    _, value = codec.encode(fact, source="tidewheel/dispatcher/0", time=histories.START)
    return Outgoing(topics.dispatch_topic("default"), INBOX, fact.subject.encode(), value)


def lease(shard: int, offset: int = 7) -> str:
    return f"default.{shard}.{offset}.key{offset}"


def hand_out(shard: int, offset: int, incarnation: str) -> Outgoing:
    fact = HandOut(
        incarnation=incarnation, inbox=INBOX, shard=shard, offset=offset, lease=lease(shard, offset), lease_key="k",
        lease_duration=30 * SECONDS, timeout=60 * SECONDS, start_by=10 * SECONDS, attempt=1, may_have_run=False,
        handed_out_at=histories.START, run=histories.created("report", 60 * offset),
    )  # fmt: skip
    return inboxed(fact)


async def until(house: Any, condition: Any) -> Any:
    """The first report that is as wanted."""

    def found() -> list[Any]:
        return [report for report in house.reports() if condition(report)]

    await asyncio.to_thread(eventually, lambda: bool(found()), within=20, what="the report")
    return found()[0]


def places(house: Any) -> list[tuple[int, int]]:
    """Partition and shard of each report."""
    records = histories.everything(house.log, [topics.ATTEMPTS])
    return [(record.partition, orjson.loads(record.value)["data"]["shard"]) for record in records]


async def until_told(house: Any, shards: int) -> list[dict[str, Any]]:
    """What a new worker is told, once so many shards were heard at this node."""
    told: list[dict[str, Any]] = []
    async with asyncio.timeout(20):
        while len(told) < shards:
            new = body(worker="w-new", incarnation=f"new-{len(house.reports())}", wait=1)
            told = (await house.http.post(REPORT, json=new)).json().get("layouts", [])
    return told


async def test_a_report_stands_in_the_partition_of_its_shard_and_leases_of_others_are_unknown_there(house):
    for shard in range(3):
        said = body(incarnation=f"inc-{shard}", shard=shard, held=[lease(0), lease(1), lease(2)])
        answer = (await house.http.post(REPORT, json=said)).json()
        assert answer["unknown"] == [lease(other) for other in range(3) if other != shard]
    assert sorted(places(house)) == sorted(zip(PARTITION_OF, range(3), strict=True))


@pytest.mark.parametrize("shard", [-1, 64, "1"])
async def test_a_shard_that_no_queue_can_have_is_refused(house, shard):
    response = await house.http.post(REPORT, json=body(shard=shard))
    assert (response.status_code, response.json()["faults"][0]["pointer"]) == (422, "/shard")


async def test_a_waiting_worker_hears_at_once_what_a_shard_says_and_each_word_once(house):
    waiting = asyncio.create_task(house.http.post(REPORT, json=body(wait=20)))
    await reported(house, 1)
    house.log.append([layout(2, 5)])
    told = {"shard": 2, "shards": 3, "queued": 5, "running": 2, "free": 1, "workers": 4}
    assert (await waiting).json() == {"leases": [], "cancelled": [], "lost": [], "unknown": [], "layouts": [told]}
    assert "layouts" not in (await house.http.post(REPORT, json=body())).json()
    other = (await house.http.post(REPORT, json=body(worker="w-2", incarnation="inc-2", wait=20))).json()
    assert other["layouts"] == [told]


async def test_another_count_of_what_waits_is_no_reason_to_be_answered(house):
    waiting = asyncio.create_task(house.http.post(REPORT, json=body(wait=20)))
    await reported(house, 1)
    house.log.append([layout(2, 5)])
    await waiting
    waiting = asyncio.create_task(house.http.post(REPORT, json=body(wait=20)))
    await reported(house, 2)
    house.log.append([layout(2, 9), layout(2, 0)])
    assert [each["queued"] for each in (await waiting).json()["layouts"]] == [0]


async def test_a_claim_asks_in_the_shard_that_wants_slots_and_its_lease_lives_there(house):
    await house.http.post(REPORT, json=body())
    house.log.append([layout(2, 1)])
    claim = asyncio.create_task(house.http.post(CLAIM, json={"worker": "perl-1", "tasks": ["mail"], "wait": 20}))
    asked = await until(house, lambda report: report.worker == "perl-1" and report.slots == 1)
    if asked.shard != 2:  # It asked before the word was heard here.
        asked = await until(house, lambda report: report.worker == "perl-1" and report.slots == 1 and report.shard == 2)
    house.log.append([hand_out(2, 7, asked.incarnation)])
    (given,) = (await claim).json()["leases"]
    assert given["lease"] == lease(2)
    await house.http.post("/v1/leases:heartbeat", json={"worker": "perl-1", "leases": [lease(2)]})
    last = house.reports()
    assert [report.shard for report in last if lease(2) in report.held] == [2] * sum(lease(2) in r.held for r in last)
    done = await house.http.post(f"/v1/leases/{lease(2)}:complete", json={"outcome": "succeeded"})
    assert done.status_code == 200
    finished = await until(house, lambda report: report.finished)
    assert (finished.shard, finished.finished[0].lease) == (2, lease(2))


async def test_a_claim_of_a_queue_with_shards_asks_in_all_of_them_one_after_another(house, monkeypatch):
    monkeypatch.setattr("api.leases.TURN_SECONDS", 0.05)
    await house.http.post(REPORT, json=body())
    house.log.append([layout(0)])
    await until_told(house, 1)
    claim = {"worker": "perl-1", "tasks": ["mail"], "wait": 1}
    assert (await house.http.post(CLAIM, json=claim)).json() == {"leases": []}
    asked = [report for report in house.reports() if report.worker == "perl-1"]
    assert {report.shard for report in asked if report.slots} == {0, 1, 2}
    assert len({report.incarnation for report in asked}) == 3
    for shard in range(3):
        newest = max((report for report in asked if report.shard == shard), key=lambda report: report.number)
        assert newest.slots == 0


async def test_the_newest_word_comes_last_for_it_says_how_many_shards_there_are(house):
    await house.http.post(REPORT, json=body())
    house.log.append([layout(0), layout(2), layout(0, shards=1)])
    told = await until_told(house, 2)
    assert [(each["shard"], each["shards"]) for each in told] == [(2, 3), (0, 1)]


async def test_claims_with_one_slot_take_turns_in_the_shards_that_want_some(house):
    """Also when each of them comes to one turn only."""
    await house.http.post(REPORT, json=body())
    house.log.append([layout(1, 9), layout(2, 9)])
    await until_told(house, 2)
    for _ in range(4):
        await house.http.post(CLAIM, json={"worker": "perl-1", "tasks": ["mail"], "wait": 0})
    asked = [report.shard for report in house.reports() if report.worker == "perl-1" and report.slots]
    assert sorted(asked) == [1, 1, 2, 2]


async def test_what_came_while_a_claim_closed_its_slots_is_given_to_the_next_wherever_that_asks(house):
    await house.http.post(REPORT, json=body())
    house.log.append([layout(0, 1)])
    await until_told(house, 1)
    empty = {"worker": "perl-1", "tasks": ["mail"], "wait": 0}
    assert (await house.http.post(CLAIM, json=empty)).json() == {"leases": []}
    (asked, _) = [report for report in house.reports() if report.worker == "perl-1"]
    assert asked.shard == 0
    house.log.append([hand_out(0, 7, asked.incarnation), layout(0), layout(1, 1)])
    await until_told(house, 2)
    assert [given["lease"] for given in (await house.http.post(CLAIM, json=empty)).json()["leases"]] == [lease(0)]


async def test_an_endpoint_that_was_told_a_lease_ends_it_in_its_shard(house):
    for shard in range(3):
        response = await house.http.post(f"/v1/leases/{lease(shard)}:complete", json={"outcome": "succeeded"})
        assert response.status_code == 200
    assert sorted(places(house)) == sorted(zip(PARTITION_OF, range(3), strict=True))
