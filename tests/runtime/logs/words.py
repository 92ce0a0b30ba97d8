"""What the tests of logs speak of: two small topics, a clock that is set by hand, and short ways to write and read."""

import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta

from runtime.log import Log, Producer, Reader
from runtime.record import Outgoing, Record, TopicPartition
from schemas.topics import Cleanup, Family, TopicSpec

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)

EVENTS = TopicSpec(
    name="events", key="name", family=Family.SCHEDULE, cleanup=Cleanup.DELETE, retention=timedelta(hours=1)
)
OTHERS = TopicSpec(
    name="others", key="name", family=Family.SCHEDULE, cleanup=Cleanup.DELETE, retention=timedelta(days=1)
)
STATE = TopicSpec(name="state", key="name", family=Family.SCHEDULE, cleanup=Cleanup.COMPACT, retention=None)
SPECS = {EVENTS: 3, OTHERS: 3, STATE: 2}

E0, E1, E2 = (TopicPartition("events", partition) for partition in range(3))
O0, O1, O2 = (TopicPartition("others", partition) for partition in range(3))
S0, S1 = (TopicPartition("state", partition) for partition in range(2))

IN_PROCESS = ["embedded", "lent", "simulated 1", "simulated 2"]  # logs that have the clock of the test

PLENTY = 1 << 30  # a bound that binds nothing
DEADLINE = 20.0  # seconds after which a test gives up waiting for what must happen


class HandClock:
    """A clock that shows what it is set to."""

    def __init__(self) -> None:
        self.instant = START

    def now(self) -> datetime:
        return self.instant

    def since_boot(self) -> float:
        return (self.instant - START).total_seconds()

    def advance(self, step: timedelta) -> None:
        self.instant += step


def to(partition: TopicPartition, *values: str, key: str | None = "k") -> list[Outgoing]:
    """Records for one partition."""
    encoded = None if key is None else key.encode()
    return [Outgoing(partition.topic, partition.partition, encoded, value.encode()) for value in values]


def tombstone(partition: TopicPartition, key: str) -> list[Outgoing]:
    """The record that deletes a key."""
    return [Outgoing(partition.topic, partition.partition, key.encode(), None)]


def write(producer: Producer, *records: Outgoing, positions: dict[TopicPartition, int] | None = None) -> list[int]:
    """One whole transaction; the offsets of its records."""
    producer.begin()
    producer.send(records)
    return list(producer.commit(positions or {}).offsets)


def read(log: Log, *partitions: TopicPartition, start: int = 0) -> list[str]:
    """All committed values, in order within each partition, the partitions one after another."""
    return [text(record) for partition in partitions for record in records_of(log, partition, start=start)]


def records_of(log: Log, partition: TopicPartition, *, start: int = 0) -> list[Record]:
    """All committed records from `start`."""
    reader = log.open_reader({partition: start})
    records = drain(reader, {partition: log.end_offset(partition)})
    reader.close()
    return records


def drain(reader: Reader, ends: dict[TopicPartition, int]) -> list[Record]:
    """Everything up to the given ends, in the order of delivery."""
    return [record for batch in batches(reader, ends) for record in batch]


def batches(
    reader: Reader, ends: dict[TopicPartition, int], *, records_max: int = 100, bytes_max: int = PLENTY
) -> Iterator[list[Record]]:
    """What each poll delivers, up to the given ends."""
    deadline = time.monotonic() + DEADLINE
    while any(reader.position(partition) < end for partition, end in ends.items()):
        assert time.monotonic() < deadline, f"{ends} were not reached"
        batch = reader.poll(records_max=records_max, bytes_max=bytes_max, timeout=0.05)
        if batch:
            yield batch


def text(record: Record) -> str:
    """A record's value."""
    return "-" if record.value is None else record.value.decode()


def texts(records: Iterable[Record]) -> list[str]:
    """The values of records."""
    return [text(record) for record in records]


def keep_house(log: Log) -> None:
    """Retention and compaction until nothing is left to do."""
    while log.maintain():
        pass
