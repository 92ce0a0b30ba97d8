"""A transaction that real brokers leave without an end (KAFKA-20734), and the owner that takes its partition over."""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from deploy.kafka.broker import Cluster
from runtime.clock import SystemClock
from runtime.footer import FOOTER_KEY, read_footer
from runtime.log import LogError, Producer
from runtime.logs.kafka.log import KafkaLog
from runtime.logs.kafka.settings import KafkaSettings
from runtime.record import Outgoing, Record, TopicPartition
from tests.runtime.shell import CHANGELOG, PARTITION
from tests.runtime.test_continuity import Watched, counts
from tests.runtime.toy import Add
from tests.support.waiting import eventually

SECONDS = 60  # A deadline for what takes some.


class Vanishing:
    """A producer whose owner dies when all is written and nothing is ended."""

    def __init__(self, producer: Producer) -> None:
        self._producer = producer
        self.epoch, self.tells_time, self.marks_ends = producer.epoch, False, True

    def begin(self) -> None:
        self._producer.begin()

    def send(self, records: Iterable[Outgoing]) -> None:
        self._producer.send(records)

    def flush(self) -> None:
        self._producer.flush()

    def commit(self, positions: Mapping[TopicPartition, int]) -> Any:
        del positions
        self._producer.flush()
        raise LogError("the owner is gone")


class VanishingLog:
    """A log on which each owner goes that way."""

    def __init__(self, log: KafkaLog) -> None:
        self._log = log

    def open_producer(self, transactional_id: str, *, group: str) -> Vanishing:
        return Vanishing(self._log.open_producer(transactional_id, group=group))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)


@pytest.fixture
def log(three_brokers: Cluster) -> Iterator[KafkaLog]:
    """Each partition stands on one of three brokers, and has no leader while that one is away."""
    settings = KafkaSettings(bootstrap=three_brokers.bootstrap, replication_factor=1, min_insync_replicas=1)
    opened = KafkaLog(settings, SystemClock())
    yield opened
    opened.close()


def test_an_owner_ends_what_its_brokers_have_left_open_and_carries_it_out(log, three_brokers):
    """Should it die before that, its successor aborts what hangs, and finds the copy that was made of it."""
    clock: Any = SystemClock()  # nobody sets it here
    shell = Watched(log, clock)
    shell.publish(Add(name="a"))
    eventually(partial(stepped, shell, [("a", 1)]), within=SECONDS, what="the first input is answered")

    leave(shell, log, three_brokers)
    shell.restart()
    assert sorted(set(counts(shell))) == [("a", 1), ("a", 11)]
    assert log.stable_offset(CHANGELOG) == log.end_offset(CHANGELOG)
    shell.publish(Add(name="a"))
    eventually(partial(stepped, shell, [("a", 1), ("a", 11), ("a", 12)]), within=SECONDS, what="it goes on")

    leave(shell, log, three_brokers)
    vanishing: Any = VanishingLog(log)
    shell.log = vanishing
    with pytest.raises(LogError, match="the owner is gone"):
        shell.restart()
    assert log.stable_offset(CHANGELOG) < log.end_offset(CHANGELOG)
    shell.log = log
    shell.restart(lose_store=True)
    assert sorted(set(counts(shell))) == [("a", 1), ("a", 11), ("a", 12), ("a", 22)]
    assert log.stable_offset(CHANGELOG) == log.end_offset(CHANGELOG)
    footers = [read_footer(record.value or b"") for record in shell.records(CHANGELOG.topic) if is_footer(record)]
    assert [footer.sequence for footer in footers] == [*range(1, len(footers) + 1)]
    assert shell.core.decided == []


def leave(shell: Watched, log: KafkaLog, cluster: Cluster) -> None:
    """Let an owner answer another input and die, and its transaction end where nobody leads the changelog."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    number = leader(admin)
    vanishing: Any = VanishingLog(log)
    shell.log = vanishing
    shell.restart()
    shell.publish(Add(name="a", times=10))
    with pytest.raises(LogError, match="the owner is gone"):
        work(shell)
    shell.log = log

    away = next(node for node in cluster.nodes if node.number == number)
    away.kill()
    eventually(lambda: leader(admin) < 0, within=SECONDS, what="nobody leads the changelog")
    eventually(partial(taken_over, log), within=SECONDS, what="the coordinator takes the transaction for ended")
    cluster.start()
    eventually(lambda: leader(admin) == number, within=SECONDS, what="the changelog is led again")
    assert log.stable_offset(CHANGELOG) < log.end_offset(CHANGELOG)


def is_footer(record: Record) -> bool:
    return record.key == FOOTER_KEY


def work(shell: Watched) -> None:
    """Until it fails."""
    while True:
        shell.processor.step(1.0)


def stepped(shell: Watched, wanted: list[tuple[str, int]]) -> bool:
    shell.processor.step(0.1)
    return sorted(set(counts(shell))) == wanted


def leader(admin: AdminClient) -> int:
    """Which broker leads the changelog; -1: none."""
    partition: int = admin.list_topics(CHANGELOG.topic, timeout=SECONDS).topics[CHANGELOG.topic].partitions[0].leader
    return partition


def taken_over(log: KafkaLog) -> bool:
    try:
        log.open_producer(PARTITION.transactional_id, group=PARTITION.role).close()
    except LogError:
        return False
    return True
