"""A log that is away for a while: what the API reads in the background goes on where it stood."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from threading import Event
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from api.appender import Appender
from api.commander import Answer, Commander
from api.inboxes import InboxFeed
from runtime.clock import SystemClock
from runtime.log import LogError
from runtime.logs.simulated import SimulatedLog
from runtime.record import Outgoing, TopicPartition
from schemas import identity, topics

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runtime.logs.reading import TurnReader
    from runtime.record import Record

NODE = "n"
SECONDS = 20.0
REPLIES = TopicPartition(topics.REPLIES, identity.partition_of(NODE, topics.REPLY_PARTITIONS))
LAYOUT = topics.Layout(schedule=1, shard=1)


class Interrupted(SimulatedLog):
    """A log whose first reader breaks when it has delivered something, and before it is asked for more."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.broken = Event()

    def open_reader(self, positions: Mapping[TopicPartition, int]) -> TurnReader:
        reader = super().open_reader(positions)
        poll = reader.poll

        def breaking(**bounds: Any) -> list[Record]:
            records = poll(**bounds)
            if not records and not self.broken.is_set():
                self.broken.set()
                raise LogError("no broker answers")
            return records

        reader.poll = breaking  # type: ignore[method-assign]
        return reader


@pytest.fixture
def log() -> Interrupted:
    log = Interrupted(1, SystemClock())
    log.create({spec: LAYOUT.partitions(spec.family) for spec in topics.topic_table(topics.Retention())})
    log.create({topics.dispatch_spec("default", topics.Retention()): topics.INBOXES})
    return log


def reply(command_id: str) -> Outgoing:
    body = {"tenant": "a", "name": "s", "version": 1}
    return Outgoing(*REPLIES, command_id.encode(), orjson.dumps({"data": {"status": 200, "body": body}}))


def test_an_answer_that_comes_while_the_log_is_away_is_handed_out_when_it_is_back(log: Interrupted) -> None:
    appender = Appender(log)
    commander = Commander(log=log, appender=appender, node_id=NODE, now=SystemClock().now)
    for service in (appender, commander):
        service.start()
        assert service.ready(SECONDS)

    async def ask() -> Answer | None:
        asked = asyncio.create_task(commander.ask("tidewheel.schedule.pause.v1", {"tenant": "a", "name": "s"}, "c1"))
        await asyncio.sleep(0)  # the task runs up to where it waits
        assert commander.waits_for("c1")
        commander._wake()
        assert await asyncio.to_thread(log.broken.wait, SECONDS)
        log.append([reply("c1")])
        return await asked

    answer = asyncio.run(ask())
    assert answer is not None
    assert answer.status == 200
    assert commander.stop(SECONDS)
    assert appender.stop(SECONDS)


def test_hand_outs_that_come_while_the_log_is_away_are_delivered_when_it_is_back(log: Interrupted) -> None:
    feed = InboxFeed(log=log, node_id=NODE, ensure_queue=lambda _queue: None)
    inbox = TopicPartition(topics.dispatch_topic("default"), feed.inbox)
    feed.start()
    assert feed.ready(SECONDS)
    delivered: list[bytes | None] = []

    async def follow() -> None:
        come = asyncio.Event()

        def deliver(records: Sequence[Record]) -> None:
            delivered.extend(record.value for record in records)
            come.set()

        await feed.follow("default", deliver)
        for value in (b"before", b"after"):
            come.clear()
            log.append([Outgoing(*inbox, b"w", value)])
            await asyncio.wait_for(come.wait(), SECONDS)
            feed._wake()
            assert await asyncio.to_thread(log.broken.wait, SECONDS)

    asyncio.run(follow())
    assert delivered == [b"before", b"after"]
    assert feed.stop(SECONDS)
