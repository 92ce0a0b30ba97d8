"""A topic that was deleted and created again on a broker, under a partition that knows the former one."""

from __future__ import annotations

import time
from contextlib import closing

import pytest

from runtime.clock import SystemClock
from runtime.continuity import Halted
from runtime.logs.kafka.log import KafkaLog
from runtime.logs.kafka.settings import KafkaSettings
from runtime.processor import Processor, World
from runtime.stores.memory import MemoryStore
from runtime.telemetry import Telemetry
from schemas import topics
from simulation.clock import ManualClock
from tests.runtime.logs.words import DEADLINE
from tests.runtime.shell import CHANGELOG, CHANGES, LAYOUT, NOON, PARTITION, Shell
from tests.runtime.toy import Add, ToyCore
from tests.support.kafka import delete_topics

SPECS = {spec: LAYOUT.partitions(spec.family) for spec in topics.topic_table(topics.Retention())}


@pytest.fixture
def settings(broker: str, topic_prefix: str) -> KafkaSettings:
    return KafkaSettings(bootstrap=broker, namespace=topic_prefix, replication_factor=1, min_insync_replicas=1)


@pytest.fixture
def state(settings: KafkaSettings) -> dict[bytes, bytes]:
    """The store of a partition that has answered two inputs and has stopped."""
    with closing(KafkaLog(settings, SystemClock())) as log:
        shell = Shell(log, ManualClock(NOON))
        shell.publish(Add(name="a"), Add(name="a"))
        deadline = time.monotonic() + DEADLINE
        while len(shell.core.decided) < 2:
            shell.processor.step(1.0)
            assert time.monotonic() < deadline
        left = dict(shell.store.scan(b"", None))
        shell.processor.close()
    return left


def recreated(settings: KafkaSettings, topic: str) -> KafkaLog:
    """The log as a process that starts afterwards sees it."""
    delete_topics(settings.bootstrap, settings.namespace + topic)
    log = KafkaLog(settings, SystemClock())
    log.create(SPECS)
    return log


def why_it_halts(log: KafkaLog, state: dict[bytes, bytes]) -> str:
    """What a process says that takes the partition over with this store."""
    store = MemoryStore()
    store.apply(state)
    world = World(clock=ManualClock(NOON), entropy=lambda: bytes(16), telemetry=Telemetry())
    processor = Processor(ToyCore(), PARTITION, log, store, world)
    with closing(processor), pytest.raises(Halted) as halted:
        processor.open()
    return str(halted.value)


def test_a_partition_halts_over_topics_that_were_created_again(
    state: dict[bytes, bytes], settings: KafkaSettings
) -> None:
    """An input, then the changelog too; with its store and without. One test: a topic takes its time to go."""
    with closing(recreated(settings, CHANGES.topic)) as log:
        said = f"topic {CHANGES.topic} was deleted and created again: position 2 of partition 0 belongs to the former"
        assert said in why_it_halts(log, state)
        assert said in why_it_halts(log, {})
    with closing(recreated(settings, CHANGELOG.topic)) as log:
        assert f"topic {CHANGELOG.topic} was deleted and created again: the state" in why_it_halts(log, state)


def test_a_changelog_that_was_created_again_is_noticed_by_a_node_that_never_had_the_store(
    state: dict[bytes, bytes], settings: KafkaSettings
) -> None:
    """The group has positions, so there was a state."""
    assert state
    with closing(recreated(settings, CHANGELOG.topic)) as log:
        said = why_it_halts(log, {})
    assert "group scheduler has positions: " in said
    assert f"{CHANGES.topic}-0 at 2" in said
