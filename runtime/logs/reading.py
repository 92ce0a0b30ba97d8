"""A reader over any log that can fetch from one partition: fair turns, bounds, and waiting without polling."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from threading import Event
from typing import NamedTuple, Protocol

from runtime.log import LogError
from runtime.record import Record, TopicPartition


class Taken(NamedTuple):
    """Records in order, the position behind them and behind the gap that follows, and their size."""

    records: list[Record]
    position: int
    size: int


class Source(Protocol):
    """What a log offers to its readers; from any thread."""

    def ends(self, partitions: Sequence[TopicPartition]) -> list[int]:
        """The ends of all the partitions at one instant: between two transactions, never within one."""
        ...

    def fetch(self, partition: TopicPartition, position: int, end: int, bounds: Bounds) -> Taken:
        """Records with position <= offset < end."""
        ...

    def turns(self, count: int, turn: int) -> Sequence[int]:
        """In which order `count` partitions are served at a reader's given turn."""
        ...

    def watch(self, partitions: Iterable[TopicPartition], signal: Event) -> None:
        """Set the signal after every commit to one of the partitions, and when the log is closed."""
        ...

    def unwatch(self, partitions: Iterable[TopicPartition], signal: Event) -> None:
        """End a watch."""
        ...


class Bounds(NamedTuple):
    """How much may be taken. `oversize`: one record is taken even if it is larger than all of `bytes_max`."""

    records_max: int
    bytes_max: int
    oversize: bool


class TurnReader:
    """`Reader`: partitions share each batch evenly, and what some leave goes to those that have more."""

    def __init__(self, source: Source, positions: Mapping[TopicPartition, int]) -> None:
        self._source = source
        self._positions: dict[TopicPartition, int] = {}
        self._signal = Event()
        self._woken = False
        self._closed = False
        self._turn = 0
        self.assign(positions)

    def poll(self, *, records_max: int, bytes_max: int, timeout: float) -> list[Record]:
        """See `Reader.poll`."""
        deadline = time.monotonic() + timeout
        while not self._closed:
            self._signal.clear()
            records = self._collect(records_max, bytes_max)
            if records:
                return records
            if self._woken:
                self._woken = False
                return []
            left = deadline - time.monotonic()
            if left <= 0 or not self._signal.wait(left):
                return []
        raise LogError("the reader is closed")

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        """See `Reader.assign`."""
        self._source.watch(positions.keys() - self._positions.keys(), self._signal)
        self._positions.update(positions)

    def unassign(self, partitions: Iterable[TopicPartition]) -> None:
        """See `Reader.unassign`."""
        gone = [partition for partition in partitions if partition in self._positions]
        self._source.unwatch(gone, self._signal)
        for partition in gone:
            del self._positions[partition]

    def position(self, partition: TopicPartition) -> int:
        """See `Reader.position`."""
        if partition not in self._positions:
            raise LogError(f"{partition.topic}-{partition.partition} is not assigned to this reader")
        return self._positions[partition]

    def wake(self) -> None:
        """See `Reader.wake`; remembered for the next `poll` when none is waiting."""
        self._woken = True
        self._signal.set()

    def close(self) -> None:
        """See `Reader.close`."""
        self.unassign(list(self._positions))
        self._closed = True
        self._signal.set()

    def _collect(self, records_max: int, bytes_max: int) -> list[Record]:
        partitions = list(self._positions)
        ends = self._source.ends(partitions)
        ready = [index for index, partition in enumerate(partitions) if self._positions[partition] != ends[index]]
        if not ready:
            return []
        self._turn += 1
        order = [ready[index] for index in self._source.turns(len(ready), self._turn)]
        positions = dict(self._positions)
        records: list[Record] = []
        share = Bounds(max(1, records_max // len(order)), bytes_max // len(order), oversize=True)
        for bounds in (share, Bounds(records_max, bytes_max, oversize=True)):
            for index in order:
                partition = partitions[index]
                left = Bounds(
                    min(bounds.records_max, records_max - len(records)),
                    min(bounds.bytes_max, bytes_max),
                    oversize=not records,
                )
                if left.records_max and positions[partition] != ends[index]:
                    taken = self._source.fetch(partition, positions[partition], ends[index], left)
                    records += taken.records
                    bytes_max -= taken.size
                    positions[partition] = taken.position
        # Only now: had a fetch raised, nothing would have been delivered and nothing passed over.
        self._positions = positions
        return records


def take(records: Iterable[Record], end: int, bounds: Bounds) -> Taken:
    """As many as the bounds allow; `records` must come in order and below `end`."""
    taken: list[Record] = []
    size = 0
    for record in records:
        grown = size + size_of(record)
        too_large = grown > bounds.bytes_max and (taken or not bounds.oversize)
        if too_large or len(taken) == bounds.records_max:
            return Taken(taken, record.offset, size)
        taken.append(record)
        size = grown
    return Taken(taken, end, size)


def size_of(record: Record) -> int:
    """What a record counts for against a bound in bytes."""
    size = len(record.key or b"") + len(record.value or b"")
    for name, value in record.headers:
        size += len(name) + len(value)
    return size
