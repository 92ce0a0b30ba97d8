"""A worker on Kafka where that differs from HTTP: inboxes that are shared, cut, or not there; and silent brokers.

What holds for both ways stands in test_worker.py, test_endings.py and test_processes.py.
"""

import asyncio
import logging
import sys
from contextlib import ExitStack
from functools import partial
from typing import Any

import pytest

from schemas import topics
from tests.sdk.fake_owner import KafkaQueue, create, delete, made, workers_topics
from tests.sdk.fake_server import DEADLINE_SECONDS, leases, run
from tests.support.waiting import eventually
from tidewheel import Kafka, KafkaUnusable, Worker, session

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


@pytest.fixture
async def queue(kafka):
    async with KafkaQueue(kafka) as queue:
        yield queue


@pytest.fixture
def said():
    """An event that is set when the worker's log says these words."""
    log = logging.getLogger("tidewheel.worker")
    with ExitStack() as listeners:

        def said(words: str) -> asyncio.Event:
            seen, loop = asyncio.Event(), asyncio.get_running_loop()

            class Listener(logging.Handler):
                def emit(self, record):
                    if words in record.getMessage():
                        loop.call_soon_threadsafe(seen.set)

            listener = Listener()
            log.addHandler(listener)
            listeners.callback(log.removeHandler, listener)
            return seen

        yield said


async def for_ever() -> None:
    await asyncio.Event().wait()


def newest(queue: KafkaQueue, worker: str) -> dict[str, Any] | None:
    return next((report for report in reversed(queue.reports) if report["worker"] == worker), None)


# --- reports and hand-outs ---


async def test_a_report_is_written_under_its_incarnation(queue, start):
    await start(it=for_ever)
    await queue.until(lambda: queue.reports)
    assert queue.records[0].key == queue.reports[0]["incarnation"].encode()


async def test_a_hand_out_that_was_read_later_than_it_may_start_is_read_and_not_held(queue, start):
    """`start_by` PT0S: whatever is read is later than that."""
    await start(it=lambda: 42)
    [late] = await queue.hand_out(run("it", handout={"start_by": "PT0S"}))
    await queue.until(lambda: queue.reports[-1]["read_up_to"] == 1)
    assert [
        key for report in queue.reports for key in ("held", "started", "finished") if late in leases(report, key)
    ] == []


async def test_a_record_that_is_not_understood_costs_itself(queue, start, caplog):
    await start(it=lambda: 42)
    about = await queue._newest()
    await queue.write(
        ("tidewheel.run.handed_out.v1", {"offset": "seven", **about}), ("tidewheel.lease.praised.v1", about)
    )
    [lease] = await queue.hand_out(run("it"))
    assert (await queue.finished(lease))["outcome"] == "succeeded"
    assert "a record of the inbox cannot be understood" in caplog.text


# --- several workers ---


async def test_workers_that_share_an_inbox_run_what_is_theirs_and_nobody_who_comes_or_goes_disturbs_them(queue):
    """Nine workers on eight inboxes: two at least share one."""
    go_on = asyncio.Event()

    async def name(who):
        await go_on.wait()
        return who

    async def begin(number: int) -> tuple[Worker, dict[str, Any]]:
        worker = Worker(**queue.options, name=f"w{number}", grace_seconds=0)
        worker.task("name")(name)
        await worker.start()
        report = await queue.until(lambda: newest(queue, worker.name))
        about = {"incarnation": report["incarnation"], "inbox": report["inbox"]}
        handout = queue.lease_of(run("name", {"who": worker.name})) | about
        await queue.write(("tidewheel.run.handed_out.v1", handout | {"lease_key": "k", "handed_out_at": ""}))
        await queue.reported("started", handout["lease"])
        return worker, handout

    async with asyncio.timeout(3 * DEADLINE_SECONDS):
        begun = [await begin(number) for number in range(9)]
        await asyncio.gather(*(worker.stop() for worker, _ in begun[:4]))
        begun[:4] = [await begin(number) for number in range(10, 14)]
        go_on.set()
        for worker, handout in begun:
            assert (await queue.finished(handout["lease"]))["result"] == worker.name
            incarnations = {report["incarnation"] for report in queue.reports if report["worker"] == worker.name}
            assert incarnations == {handout["incarnation"]}
        await asyncio.gather(*(worker.stop() for worker, _ in begun))


# --- inboxes that are not there ---


async def test_a_queue_without_topics_is_waited_for_and_the_log_says_what_makes_them(broker, start_on, said, caplog):
    with workers_topics(broker) as kafka:
        async with KafkaQueue(kafka) as queue:
            seen = said(f"there is no topic {kafka.namespace}tidewheel.dispatch.default")
            worker = await start_on(queue, it=lambda: 42)
            await asyncio.wait_for(seen.wait(), DEADLINE_SECONDS)
            assert "tidewheel admin topics create --queue default" in caplog.text
            create(kafka, {topics.dispatch_topic("default"): topics.INBOXES})
            [lease] = await queue.hand_out(run("it"))
            assert (await queue.finished(lease))["result"] == 42
            await worker.stop()
            delete(kafka, topics.dispatch_topic("default"))


async def test_an_inbox_that_was_made_anew_ends_the_incarnation_that_read_the_old_one(broker, start_on):
    """Something may have stood in it that was never read."""
    inboxes = {topics.dispatch_topic("default"): topics.INBOXES}
    with workers_topics(broker, "default") as kafka:
        async with KafkaQueue(kafka) as queue:
            worker = await start_on(queue, it=for_ever)
            [lease] = await queue.hand_out(run("it"))
            old = (await queue.reported("started", lease))["incarnation"]
            delete(kafka, *inboxes)
            create(kafka, inboxes)
            fresh = await queue.until(lambda: queue.reports[-1]["incarnation"] != old and queue.reports[-1])
            assert (fresh["held"], fresh["read_up_to"]) == ([], -1)
            [again] = await queue.hand_out(run("it"))
            await queue.reported("started", again)
            await worker.stop()


# --- brokers that are silent ---


async def test_what_ends_while_the_broker_is_silent_is_told_when_it_speaks_again(own_broker, start_on, said):
    [node] = own_broker.nodes
    async with KafkaQueue(made(own_broker.bootstrap, "default")) as queue:
        go_on = asyncio.Event()
        worker = await start_on(queue, it=go_on.wait)
        [lease] = await queue.hand_out(run("it"))
        before = (await queue.reported("started", lease))["incarnation"]
        unheard = said("trying again until it answers")
        node.freeze()
        go_on.set()
        await asyncio.wait_for(unheard.wait(), DEADLINE_SECONDS)
        node.thaw()
        assert (await queue.finished(lease))["outcome"] == "succeeded"
        assert {report["incarnation"] for report in queue.reports} == {before}
        await worker.stop()


async def test_two_thirds_of_a_lease_without_a_delivered_report_end_the_work_and_the_incarnation(own_broker, start_on):
    [node] = own_broker.nodes
    async with KafkaQueue(made(own_broker.bootstrap, "default")) as queue:
        stopped = asyncio.Event()

        async def it():
            try:
                await for_ever()
            finally:
                stopped.set()

        worker = await start_on(queue, it=it)
        [lease] = await queue.hand_out(run("it", handout={"lease_duration": "PT3S"}))
        old = (await queue.reported("started", lease))["incarnation"]
        node.freeze()
        await asyncio.wait_for(stopped.wait(), DEADLINE_SECONDS)
        node.thaw()
        fresh = await queue.until(lambda: queue.reports[-1]["incarnation"] != old and queue.reports[-1])
        assert (fresh["worker"], fresh["held"], fresh["finished"]) == ("w1", [], [])
        leave = [report for report in queue.reports if report["incarnation"] == old][-1]
        assert (leave["slots"], leave["held"]) == (0, [])
        await worker.stop()


async def test_a_drain_ends_without_a_broker(monkeypatch):
    monkeypatch.setattr(session, "LAST_WORD_SECONDS", 0.2)
    worker = Worker(kafka="127.0.0.1:1", grace_seconds=0)
    worker.task("it")(for_ever)
    await worker.start()
    await asyncio.wait_for(worker.stop(), DEADLINE_SECONDS)


async def test_a_client_that_has_failed_for_good_is_replaced(queue, start):
    worker = await start(it=lambda: 42)
    await queue.until(lambda: queue.reports)
    sender = worker._session._sessions[0]._transport._sender
    failed, sender._failed = sender._client, True
    replaced = partial(eventually, lambda: sender._client is not failed, within=DEADLINE_SECONDS, what="it is replaced")
    await asyncio.to_thread(replaced)
    [lease] = await queue.hand_out(run("it"))
    assert (await queue.finished(lease))["outcome"] == "succeeded"


async def test_a_worker_that_cannot_hear_any_more_ends_with_the_reason(queue, start):
    worker = await start(it=lambda: 42)
    await queue.until(lambda: queue.reports)
    worker._session._sessions[0]._transport.inbox._reading = "no reading"
    with pytest.raises(AttributeError, match="current_at"):
        await worker.wait()


# --- clients that cannot be used ---


async def test_without_kafkas_client_the_worker_says_how_to_install_it(monkeypatch):
    monkeypatch.delitem(sys.modules, "tidewheel.transports.kafka", raising=False)
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    worker = Worker(kafka="127.0.0.1:1")
    worker.task("it")(print)
    with pytest.raises(KafkaUnusable, match=r"pip install 'tidewheel\[kafka\]'"):
        await worker.start()


async def test_a_client_of_kafka_that_is_too_old_is_refused():
    from tidewheel.transports.kafka import check_version  # noqa: PLC0415 -- the one before removes it

    check_version("2.15.0", 0x020F00FF)
    with pytest.raises(KafkaUnusable, match=r"librdkafka 2.14.2 is too old: 2.15.0 is needed"):
        check_version("2.14.2", 0x020E02FF)


async def test_a_property_that_the_client_does_not_know_is_named():
    worker = Worker(kafka=Kafka(bootstrap="127.0.0.1:1", properties={"sasl.whatever": "x"}))
    worker.task("it")(print)
    with pytest.raises(KafkaUnusable, match=r'No such configuration property: "sasl.whatever"'):
        await worker.start()
