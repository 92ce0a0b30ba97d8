"""What a reader has fetched and not delivered yet: partitions take turns, whatever order things came in."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

from runtime.logs.reading import size_of
from runtime.record import Record, TopicPartition

Waiting = deque[tuple[Record, int] | int]  # a record with its size, or the position at which a partition's end was met


class Arrivals:
    """Records by partition, with each partition's next position. Pure; called from one thread."""

    def __init__(self) -> None:
        self.count = 0
        self.size = 0
        self._waiting: dict[TopicPartition, Waiting] = {}
        self._positions: dict[TopicPartition, int] = {}

    def positions(self) -> Mapping[TopicPartition, int]:
        """The next position to deliver from, of each partition that is read."""
        return self._positions

    def follow(self, positions: Mapping[TopicPartition, int]) -> None:
        """Read these from there; what was fetched of them before is dropped."""
        self.drop(positions)
        for partition, position in positions.items():
            self._waiting[partition] = deque()
            self._positions[partition] = position

    def drop(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these no more."""
        for partition in partitions:
            for item in self._waiting.pop(partition, ()):
                if not isinstance(item, int):
                    self.count -= 1
                    self.size -= item[1]
            self._positions.pop(partition, None)

    def put(self, record: Record) -> None:
        """A record has come; one that is behind the position or of a partition that is not read is dropped."""
        place: Any = record[:2]  # a tuple is as good a key
        waiting = self._waiting.get(place)
        if waiting is not None and record.offset >= self._positions[place]:
            size = size_of(record)
            waiting.append((record, size))
            self.count += 1
            self.size += size

    def ended(self, partition: TopicPartition, position: int) -> None:
        """Nothing committed stood before `position` that has not come: gaps in front of it hold nothing."""
        if partition in self._waiting:
            self._waiting[partition].append(position)
            self._pass_over(partition)

    def take(self, records_max: int, bytes_max: int) -> list[Record]:
        """The next records: a fair share of each partition, and what some leave for those that have more.

        Who was served last comes last.
        """
        ready = [partition for partition, waiting in self._waiting.items() if waiting]
        if not ready:
            return []
        taken: list[Record] = []
        left = bytes_max
        for share in (len(ready), 1):
            for partition in ready:
                room = min(max(1, records_max // share), records_max - len(taken))
                left -= self._take(partition, taken, room, min(bytes_max // share, left))
        for served in dict.fromkeys(record[:2] for record in taken):
            partition = TopicPartition(*served)
            self._waiting[partition] = self._waiting.pop(partition)
        return taken

    def _take(self, partition: TopicPartition, taken: list[Record], room: int, bytes_left: int) -> int:
        """Move at most `room` records of a partition to `taken`; their size. One is taken however large it is."""
        waiting = self._waiting[partition]
        size = 0
        while room and waiting:
            item = waiting[0]
            assert not isinstance(item, int), "ends in front are passed over at once"
            record, record_size = item
            if size + record_size > bytes_left and taken:
                break
            waiting.popleft()
            taken.append(record)
            room -= 1
            size += record_size
            self.count -= 1
            self._positions[partition] = record.offset + 1
            if waiting and isinstance(waiting[0], int):
                self._pass_over(partition)
        self.size -= size
        return size

    def _pass_over(self, partition: TopicPartition) -> None:
        waiting = self._waiting[partition]
        while waiting and isinstance(waiting[0], int):
            end = waiting.popleft()
            assert isinstance(end, int), "looked at just now"
            self._positions[partition] = max(self._positions[partition], end)
