"""Partitions as services: what stops one leaves the others running."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from runtime.clock import SystemClock
from runtime.host import PartitionService
from runtime.log import Fenced
from runtime.logs.embedded import EmbeddedLog
from runtime.partition import Partition
from runtime.processor import Processor, World
from runtime.record import Outgoing, TopicPartition
from runtime.stores.memory import MemoryStore
from runtime.telemetry import Telemetry
from schemas import codec, topics
from tests.runtime.shell import PARTITION
from tests.runtime.toy import Add, ToyCore

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SOON = 20.0
LAYOUT = topics.Layout(schedule=2, shard=2)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedLog]:
    log = EmbeddedLog(tmp_path, SystemClock())
    log.create({spec: LAYOUT.partitions(spec.family) for spec in topics.topic_table(topics.Retention())})
    yield log
    log.close()


def service(log: EmbeddedLog, number: int) -> PartitionService:
    telemetry = Telemetry()
    partition = Partition(role="scheduler", number=number, inputs=PARTITION.inputs, layout=LAYOUT)

    def make() -> Processor:
        world = World(clock=SystemClock(), entropy=lambda: bytes(16), telemetry=telemetry)
        return Processor(ToyCore(), partition, log, MemoryStore(), world)

    return PartitionService("scheduler", number, make, telemetry)


def publish(log: EmbeddedLog, partition: int, value: bytes) -> None:
    log.append([Outgoing(topics.SCHEDULE_CHANGES, partition, b"k", value)])


def wait_for_facts(log: EmbeddedLog, count: int) -> None:
    """Until `count` facts are published in all."""
    where = [TopicPartition(topics.RUN_EVENTS, number) for number in range(2)]
    reader = log.open_reader({item: log.begin_offset(item) for item in where})
    found = 0
    while found < count:
        records = reader.poll(records_max=100, bytes_max=1 << 20, timeout=SOON)
        assert records, f"{found} of {count} facts within {SOON} s"
        found += len(records)
    reader.close()


def test_an_impossible_state_stops_its_partition_and_leaves_the_others(log: EmbeddedLog) -> None:
    """The failure is kept and told; the neighbour goes on deciding."""
    broken, neighbour = service(log, 0), service(log, 1)
    for partition in (broken, neighbour):
        partition.start()
        assert partition.ready(SOON)
    publish(log, 0, b"impossible")
    assert broken.stopped(SOON)
    publish(log, 1, codec.dump(Add(name="a")))
    wait_for_facts(log, 1)
    assert isinstance(broken.failure, AssertionError)
    assert not broken.ready(0)
    assert neighbour.failure is None
    assert neighbour.stop(SOON)


def test_a_service_that_is_taken_over_stops(log: EmbeddedLog) -> None:
    """Two processes that believe to own a partition: the later one does; the earlier one ends as fenced."""
    earlier, later = service(log, 0), service(log, 0)
    earlier.start()
    assert earlier.ready(SOON)
    later.start()
    assert later.ready(SOON)
    publish(log, 0, codec.dump(Add(name="a")))
    wait_for_facts(log, 1)
    assert earlier.stopped(SOON)
    assert isinstance(earlier.failure, Fenced)
    assert later.failure is None
    assert later.stop(SOON)


def test_a_stop_wakes_an_idle_partition(log: EmbeddedLog) -> None:
    idle = service(log, 0)
    idle.start()
    assert idle.ready(SOON)
    assert idle.stop(SOON)
    assert idle.failure is None
