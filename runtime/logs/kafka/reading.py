"""A reader on a consumer that no group hears of: explicit positions, fair turns, a wait that can be ended.

The end of a partition is what the broker says it is (`PARTITION_EOF` at the last stable offset), never a sum: markers
of transactions, aborted records and compaction leave gaps, also at the end. A marker that comes with the records in
front of it is passed with them: the client counts it in its position, and the broker's word would come a fetch later.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import confluent_kafka
from confluent_kafka import Consumer, KafkaError, Message

from runtime.log import LogError
from runtime.logs.kafka.arrivals import Arrivals
from runtime.logs.kafka.errors import OUT_OF_RANGE, RAISED, error_of, translated
from runtime.logs.kafka.settings import KafkaSettings, reader_config
from runtime.logs.kafka.topics import Topics
from runtime.record import Headers, Record, TopicPartition

# The client cannot be woken, so a wait is cut into slices. Twenty looks a second cost a reader some 0.03 % of a core,
# and a wake is noticed within 50 ms; records end a slice at once.
SLICE_SECONDS = 0.05
AHEAD_RECORDS = 2_000  # fetched and not delivered: a quiet partition is never further than this behind a busy one
AHEAD_BYTES = 4 * 1024 * 1024
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# A consumer looks for the coordinator of its group even when it never asks it anything.
NO_CONCERN = frozenset({KafkaError.GROUP_AUTHORIZATION_FAILED, KafkaError.COORDINATOR_NOT_AVAILABLE})


class KafkaReader:
    """`Reader`."""

    # Of which kind the client is, whose time it lives in, and how long it is left to itself; a simulation has its own.
    client: Callable[..., Consumer] = Consumer
    monotonic: Callable[[], float] = staticmethod(time.monotonic)
    slice_seconds = SLICE_SECONDS

    def __init__(
        self, settings: KafkaSettings, topics: Topics, positions: Mapping[TopicPartition, int], *,
        is_log_closed: Callable[[], bool], logger: Any, undecided: bool = False,
    ) -> None:  # fmt: skip
        self._begin = settings.namespace
        self._topics = topics
        self._is_log_closed = is_log_closed
        self._arrivals = Arrivals()
        self._out_of_range: dict[TopicPartition, LogError] = {}
        self._problem: LogError | None = None
        self._woken = False
        self._closed = False
        self._behind: dict[tuple[str, int], int] = {}  # where what has just come ends
        self._names: dict[str, str] = {}
        self._appended_ms, self._appended_at = 0, EPOCH
        config = reader_config(settings, undecided=undecided) | {"error_cb": lambda _error: None}
        self._consumer = self.client(config, logger=logger)
        try:
            self.assign(positions)
        except LogError:
            self.close()
            raise

    def poll(self, *, records_max: int, bytes_max: int, timeout: float) -> list[Record]:
        """See `Reader.poll`."""
        deadline = self.monotonic() + timeout
        wait = 0.0
        while True:
            self._check_open()
            self._fetch(wait)
            self._raise_problems()
            records = self._arrivals.take(records_max, bytes_max)
            if records:
                return records
            if self._woken:
                self._woken = False
                return []
            left = deadline - self.monotonic()
            if left <= 0:
                return []
            wait = min(left, self.slice_seconds)

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        """See `Reader.assign`."""
        self._check_open()
        for partition in positions:
            self._topics.check(*partition)
        self.unassign(positions)
        wanted = [self._wire(partition, offset) for partition, offset in positions.items()]
        if wanted:
            self._call(self._consumer.incremental_assign, wanted)
        self._arrivals.follow(positions)

    def unassign(self, partitions: Iterable[TopicPartition]) -> None:
        """See `Reader.unassign`."""
        self._check_open()
        gone = [partition for partition in partitions if partition in self._arrivals.positions()]
        if gone:
            self._call(self._consumer.incremental_unassign, [self._wire(partition) for partition in gone])
        self._arrivals.drop(gone)
        for partition in gone:
            self._out_of_range.pop(partition, None)

    def position(self, partition: TopicPartition) -> int:
        """See `Reader.position`."""
        try:
            return self._arrivals.positions()[partition]
        except KeyError:
            raise LogError(f"{partition.topic}-{partition.partition} is not assigned to this reader") from None

    def wake(self) -> None:
        """See `Reader.wake`; noticed within a slice, and remembered for the next `poll` when none is waiting."""
        self._woken = True

    def close(self) -> None:
        """See `Reader.close`."""
        if not self._closed:
            self._closed = True
            self._consumer.close()

    # --- fetching -------------------------------------------------------------------------------------------------

    def _fetch(self, timeout: float) -> None:
        """Take over what has come, waiting for the first; not when enough is waiting to be delivered."""
        room = AHEAD_RECORDS - self._arrivals.count
        if room <= 0 or self._arrivals.size >= AHEAD_BYTES:
            return
        first = self._call(self._consumer.poll, timeout)
        if first is not None:
            self._accept(first)
            for message in self._call(self._consumer.consume, room, 0):
                self._accept(message)
            self._pass_markers()

    def _accept(self, message: Message) -> None:
        error = message.error()
        if error is None:
            record = self._record(message)
            self._arrivals.put(record)
            self._behind[record[:2]] = record.offset + 1
            return
        topic, code = message.topic(), error.code()
        partition = TopicPartition(self._local(topic) if topic else "", message.partition() or 0)
        if code == KafkaError._PARTITION_EOF:  # noqa: SLF001 -- its public name
            offset = message.offset()
            assert offset is not None, "an end is a place"
            self._arrivals.ended(partition, offset)
        elif code in OUT_OF_RANGE and partition in self._arrivals.positions():
            at = self._arrivals.positions()[partition]
            self._out_of_range[partition] = translated(
                error, f"reading {partition.topic}-{partition.partition} at {at}"
            )
        elif code not in NO_CONCERN:
            self._problem = translated(error, f"reading {partition.topic}-{partition.partition}")

    def _pass_markers(self) -> None:
        """Behind what has just come the client may have met markers, which it keeps to itself."""
        behind, self._behind = self._behind, {}
        if behind:
            wires = [self._wire(TopicPartition(*place)) for place in behind]
            for place in self._call(self._consumer.position, wires):
                partition = TopicPartition(self._local(place.topic), place.partition)
                if place.offset > behind[partition]:
                    self._arrivals.ended(partition, place.offset)

    def _record(self, message: Message) -> Record:
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        assert topic is not None and partition is not None and offset is not None, "a record stands somewhere"  # noqa: PT018
        milliseconds = message.timestamp()[1]
        if milliseconds != self._appended_ms:  # Neighbours often share their instant.
            self._appended_ms, self._appended_at = milliseconds, instant(milliseconds)
        return Record(
            self._local(topic), partition, offset, message.key(), message.value(), headers_of(message),
            self._appended_at,
        )  # fmt: skip

    def _raise_problems(self) -> None:
        for error in self._out_of_range.values():
            raise error
        if self._problem is not None:
            problem, self._problem = self._problem, None
            raise problem

    def _check_open(self) -> None:
        if self._closed:
            raise LogError("the reader is closed")
        if self._is_log_closed():
            raise LogError("the log is closed")

    def _call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except RAISED as exception:
            raise translated(error_of(exception), "reading") from exception

    def _local(self, wire: str) -> str:
        try:
            return self._names[wire]
        except KeyError:
            return self._names.setdefault(wire, wire.removeprefix(self._begin))

    def _wire(self, partition: TopicPartition, offset: int = 0) -> confluent_kafka.TopicPartition:
        return confluent_kafka.TopicPartition(self._begin + partition.topic, partition.partition, offset)


def headers_of(message: Message) -> Headers:
    """One without a value is none. Where a name is no UTF-8, the client can say none of them, and there are none.

    Whoever may write to a topic may write such a record: it must cost no more than itself.
    """
    try:
        found: Any = message.headers()  # a list of pairs, or None
    except (SystemError, UnicodeDecodeError):
        return ()
    return tuple((name, value) for name, value in found if value is not None) if found else ()


def instant(milliseconds: int) -> datetime:
    """A timestamp of Kafka as we know it."""
    return EPOCH + timedelta(milliseconds=milliseconds)
