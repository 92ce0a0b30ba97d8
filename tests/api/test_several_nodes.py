"""Several API nodes over one log: each gets the answers to its own commands, also from a partition that they share."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import orjson
import pytest

from api.appender import Appender
from api.commander import Answer, Commander
from runtime.clock import SystemClock
from runtime.logs.simulated import SimulatedLog
from runtime.record import REPLY_HEADER, Outgoing, TopicPartition
from schemas import identity, topics

if TYPE_CHECKING:
    from collections.abc import Iterator

    from runtime.record import Record

SECONDS = 20.0
LAYOUT = topics.Layout(schedule=1, shard=1)
CHANGES = TopicPartition(topics.SCHEDULE_CHANGES, 0)


@pytest.fixture
def log() -> SimulatedLog:
    log = SimulatedLog(1, SystemClock())
    log.create({spec: LAYOUT.partitions(spec.family) for spec in topics.topic_table(topics.Retention())})
    return log


@pytest.fixture
def appender(log: SimulatedLog) -> Iterator[Appender]:
    appender = Appender(log)
    appender.start()
    yield appender
    assert appender.stop(SECONDS)


def commander(log: SimulatedLog, appender: Appender, node_id: str) -> Commander:
    commander = Commander(log=log, appender=appender, node_id=node_id, now=SystemClock().now)
    commander.start()
    assert commander.ready(SECONDS)
    return commander


def answered_by_the_owner(log: SimulatedLog, commands: int) -> None:
    """Answers each command where its record says, with the name of its schedule."""
    reader = log.open_reader({CHANGES: 0})
    found: list[Record] = []
    while len(found) < commands:
        found += reader.poll(records_max=10, bytes_max=1 << 20, timeout=SECONDS)
    for record in found:
        command = orjson.loads(record.value or b"")
        answer = {"data": {"status": 200, "body": {"tenant": "a", "name": command["data"]["name"]}}}
        place = int(record.header(REPLY_HEADER) or b"")
        log.append([Outgoing(topics.REPLIES, place, command["id"].encode(), orjson.dumps(answer))])


async def asked(commander: Commander, name: str, command_id: str) -> Answer | None:
    return await commander.ask("tidewheel.schedule.pause.v1", {"tenant": "a", "name": name}, command_id)


@pytest.mark.parametrize(("one", "other", "places"), [("c", "e", {10}), ("a", "b", {12, 4})])
def test_each_node_gets_the_answers_to_its_own_commands(
    log: SimulatedLog, appender: Appender, one: str, other: str, places: set[int]
) -> None:
    """Also when both listen on one partition of `replies`, and when both chose the same id for their command."""
    assert {identity.partition_of(node, topics.REPLY_PARTITIONS) for node in (one, other)} == places
    first, second = commander(log, appender, one), commander(log, appender, other)

    async def ask_both() -> list[Answer | None]:
        asking = [
            asyncio.create_task(asked(first, "x", "same")),
            asyncio.create_task(asked(second, "y", "same")),
            asyncio.create_task(asked(second, "z", "other")),
        ]
        await asyncio.to_thread(answered_by_the_owner, log, len(asking))
        return await asyncio.gather(*asking)

    answers = asyncio.run(ask_both())
    assert [answer and answer.body["name"] for answer in answers] == ["x", "y", "z"]
    for node in (first, second):
        assert node.stop(SECONDS)
