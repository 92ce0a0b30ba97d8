"""A worker of a queue with several shards: over HTTP and on Kafka alike."""

import asyncio
from typing import Any

import pytest

from tests.sdk.fake_server import DEADLINE_SECONDS, over_http, run
from tidewheel import sessions, shards
from tidewheel.errors import WorkerReplaced

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def in_a_hurry(monkeypatch):
    """What has moved need not stay, so that tests need not wait."""
    monkeypatch.setattr(sessions, "LOOK_SECONDS", 0.02)
    monkeypatch.setattr(sessions, "LINGER_SECONDS", 0.0)
    monkeypatch.setattr(shards, "STAY_SECONDS", 0.0)


def stands(shard: int, queued: int = 0, **more: int) -> dict[str, int]:
    return {"shard": shard, "shards": 3, "queued": queued, "running": 0, "free": 0, "workers": 1, **more}


def slots_in(queue: Any, shard: int) -> int | None:
    """How many slots the worker said last that it has in a shard, all and free ones alike."""
    said = queue.in_shard(shard)
    return None if not said or said[-1]["draining"] else said[-1].get("slots_total", 0)


async def spread(queue: Any, *slots: int) -> None:
    """The queue has three shards; wait until the worker, whose name has it begin with shard 1, has so many slots."""
    await queue.until(lambda: queue.reports)
    await queue.tell(stands(0))
    await queue.until(lambda: tuple(slots_in(queue, shard) or 0 for shard in range(3)) == slots)


async def test_a_worker_begins_in_the_first_shard_and_has_slots_in_all_once_it_is_told_of_them(queue, start):
    await start(slots=6, it=lambda: None)
    assert (await queue.until(lambda: queue.reports))[0]["slots"] == 6
    await spread(queue, 2, 2, 2)
    said = [queue.in_shard(shard)[-1] for shard in range(3)]
    assert len({each["incarnation"] for each in said}) == 3
    assert {(each["worker"], tuple(each["tasks"])) for each in said} == {("w1", ("it",))}


async def test_runs_of_every_shard_are_run_and_told_to_its_owner(queue, start):
    await start(slots=3, it=lambda: "done")
    await spread(queue, 1, 1, 1)
    leases = [(await queue.hand_out(run("it", shard=shard)))[0] for shard in range(3)]
    assert [lease.split(".")[1] for lease in leases] == ["0", "1", "2"]
    for shard, lease in enumerate(leases):
        assert await queue.finished(lease) == {"lease": lease, "outcome": "succeeded", "result": "done"}
        tellers = [report.get("shard", 0) for report in queue.reports if _tells(report, lease)]
        assert set(tellers) == {shard}


async def test_an_idle_slot_goes_where_runs_wait_and_the_shard_it_leaves_is_told(queue, start):
    await start(slots=1, it=lambda: "done")
    await spread(queue, 0, 1, 0)
    await queue.tell(stands(2, queued=1))
    await queue.until(lambda: slots_in(queue, 2) == 1)
    left = await queue.until(lambda: queue.in_shard(1)[-1]["draining"] and queue.in_shard(1)[-1])
    assert (left["slots"], left["held"]) == (0, [])
    (lease,) = await queue.hand_out(run("it", shard=2))
    assert (await queue.finished(lease))["result"] == "done"


async def test_a_slot_that_works_ends_its_task_before_it_works_elsewhere(queue, start, monkeypatch):
    monkeypatch.setattr(shards, "TURN_SECONDS", 0.0)
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def it(wait=False):
        if wait:
            begun.set()
            await go_on.wait()
        return "done"

    await start(slots=1, it=it)
    await spread(queue, 0, 1, 0)
    (first,) = await queue.hand_out(run("it", {"wait": True}, shard=1))
    async with asyncio.timeout(20):
        await begun.wait()
    await queue.tell(stands(2, queued=1))
    await queue.until(lambda: slots_in(queue, 2) == 1 and slots_in(queue, 1) == 0)
    assert {report["slots"] for report in queue.in_shard(2)} == {0}
    go_on.set()
    assert (await queue.finished(first))["outcome"] == "succeeded"
    await queue.until(lambda: queue.in_shard(2)[-1]["slots"] == 1)
    (second,) = await queue.hand_out(run("it", shard=2))
    assert (await queue.finished(second))["outcome"] == "succeeded"


async def test_a_run_that_was_given_for_a_slot_that_has_moved_is_left_to_others(queue, start):
    """No more tasks run at once than the worker has slots, whatever the owners of shards believe."""
    go_on = asyncio.Event()

    async def it():
        await go_on.wait()

    await start(slots=2, it=it)
    await spread(queue, 0, 1, 1)
    held = [(await queue.hand_out(run("it", shard=shard)))[0] for shard in (1, 2)]
    for lease in held:
        await queue.reported("held", lease)
    (third,) = await queue.hand_out(run("it", shard=1))
    read = int(third.split(".")[2])
    dropped = await queue.until(lambda: next((r for r in queue.in_shard(1) if r["read_up_to"] == read), None))
    assert third not in dropped["held"]
    go_on.set()


async def test_a_drain_ends_in_every_shard(queue, start):
    worker = await start(slots=3, it=lambda: None)
    await spread(queue, 1, 1, 1)
    await worker.stop()
    await queue.until(lambda: all(queue.in_shard(shard)[-1]["draining"] for shard in range(3)))


async def test_another_process_of_the_name_ends_the_worker_in_all_shards(queue, start):
    worker = await start(slots=3, it=lambda: None)
    await spread(queue, 1, 1, 1)
    await queue.say(incarnation_ended=True, ended_by="other")
    async with asyncio.timeout(DEADLINE_SECONDS):
        with pytest.raises(WorkerReplaced, match="w1"):
            await worker.wait()
    assert not worker.running


async def test_a_queue_that_has_one_shard_again_has_all_slots_there(queue, start):
    await start(slots=3, it=lambda: None)
    await spread(queue, 1, 1, 1)
    await queue.tell({**stands(0), "shards": 1})
    await queue.until(lambda: slots_in(queue, 0) == 3)
    await queue.until(lambda: all(queue.in_shard(shard)[-1]["draining"] for shard in (1, 2)))


async def test_the_only_slot_goes_to_what_is_left_in_a_shard_that_is_no_more_and_comes_back(queue, start, monkeypatch):
    monkeypatch.setattr(sessions, "BARRED_SECONDS", 0.0)
    await start(slots=1, it=lambda: "done")
    await spread(queue, 0, 1, 0)
    await queue.tell({**stands(0), "shards": 1})
    await queue.until(lambda: slots_in(queue, 0) == 1)
    await queue.tell({**stands(2, queued=1), "shards": 1})
    await queue.until(lambda: slots_in(queue, 2) == 1)
    (lease,) = await queue.hand_out(run("it", shard=2))
    assert (await queue.finished(lease))["result"] == "done"
    await queue.tell({**stands(2), "shards": 1})
    await queue.until(lambda: slots_in(queue, 0) == 1)


@over_http
async def test_no_slot_is_lost_to_a_shard_that_is_just_being_left(queue, start):
    """The queue has one shard again while the worker takes leave of that one: it comes back when it has left."""
    may_leave = asyncio.Event()

    def before_answer(report: dict[str, Any]) -> Any:
        return may_leave.wait() if report["draining"] and not report.get("shard") else None

    queue.before_answer = before_answer
    await start(slots=1, it=lambda: None)
    await spread(queue, 0, 1, 0)
    await queue.tell({**stands(0), "shards": 1})
    await queue.until(lambda: not slots_in(queue, 1))
    may_leave.set()
    await queue.until(lambda: slots_in(queue, 0) == 1)


def _tells(report: dict[str, Any], lease: str) -> bool:
    return lease in report["held"] or any(each["lease"] == lease for each in report["finished"])
