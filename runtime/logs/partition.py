"""What the embedded log knows of a partition while it is open, and the recent records that it keeps in memory.

Nearly everyone reads at the end. A record that was just committed is handed to them as it is: without RocksDB, and
without decoding.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from datetime import datetime
from operator import attrgetter
from threading import Event
from typing import NamedTuple

from runtime.logs import layout
from runtime.logs.reading import Bounds, Taken, take
from runtime.record import Record, TopicPartition

# Both bounds are for the whole log: seconds of a busy one; a reader that is further behind reads from RocksDB. An
# object with its headers weighs some 400 bytes beside its content: 32 MiB of content, and about 13 MiB of objects.
RECENT_RECORDS_MAX = 32_768
RECENT_BYTES_MAX = 32 * 1024 * 1024

_offset_of = attrgetter("offset")


class Appended(NamedTuple):
    """One instant, as it is stored and as it is read."""

    appended_ms: int
    appended_at: datetime


class Kept(NamedTuple):
    """Recent records, and how many bytes each is on the disk: a little more than it counts for in a batch."""

    records: list[Record]
    sizes: list[int]


class Partition:
    """Where a partition begins and ends, its clock, and who waits for it. Changed only under the log's lock."""

    __slots__ = ("begin", "clock", "end", "key", "name", "next_offset", "recent", "watchers")

    def __init__(self, name: TopicPartition, topic_number: int, *, begin: int, end: int, appended_ms: int) -> None:
        self.name = name
        self.key = layout.place(topic_number, name.partition)
        self.begin = begin
        self.end = end  # what readers may see
        self.next_offset = end  # what the next writer gets: ahead of `end` while a commit is being written
        self.clock = Appended(appended_ms, layout.from_ms(appended_ms))
        self.recent = Kept([], [])
        self.watchers: set[Event] = set()

    def record_key(self, offset: int) -> bytes:
        """The key of a record in RocksDB."""
        return layout.RECORD + self.key + layout.pack_offset(offset)

    def reserve(self, count: int, now: Appended) -> tuple[int, Appended]:
        """The first of `count` offsets for one commit, and its append time, which never goes back."""
        first = self.next_offset
        self.next_offset += count
        self.clock = max(self.clock, now)
        return first, self.clock

    def recent_from(self, position: int, end: int, bounds: Bounds) -> Taken | None:
        """The records in [position, end) that the bounds allow, if memory reaches back that far.

        Safe beside a commit: records are only ever added to the lists; forgetting replaces both together.
        """
        records, sizes = self.recent
        if not records or position < records[0].offset:
            return None
        first = bisect_left(records, position, key=_offset_of)
        behind = bisect_left(records, end, lo=first, key=_offset_of)
        last = min(first + bounds.records_max, behind)
        size = sum(sizes[first:last])
        if size > bounds.bytes_max:
            return take(records[first : min(last + 1, behind)], end, bounds)
        return Taken(records[first:last], records[last].offset if last < behind else end, size)

    def trim(self, begin: int) -> None:
        """Begin later."""
        self.begin = begin
        self.forget(begin)

    def forget(self, before: int) -> None:
        """Let go of the recent records that stand before an offset."""
        records, sizes = self.recent
        gone = bisect_left(records, before, key=_offset_of)
        self.recent = Kept(records[gone:], sizes[gone:])

    def signal(self) -> None:
        """Wake every reader that waits for this partition."""
        for watcher in self.watchers:
            if not watcher.is_set():  # Far cheaper than setting it again, and a reader clears before it looks.
                watcher.set()


class Recent:
    """Keeps the memory of all partitions within its bounds. Used only under the log's lock."""

    def __init__(self) -> None:
        self._partitions: set[Partition] = set()
        self._records = 0
        self._bytes = 0

    def add(self, partition: Partition, records: Sequence[Record], sizes: Sequence[int]) -> None:
        """Remember what was written to a partition, and forget what no longer finds room.

        Where nothing is kept of a commit, nothing is of those before it: what is remembered has no holes.
        """
        if not records:
            partition.recent = Kept([], [])
            return
        partition.recent.records.extend(records)
        partition.recent.sizes.extend(sizes)
        self._partitions.add(partition)
        self._records += len(records)
        self._bytes += sum(sizes)
        if self._records > RECENT_RECORDS_MAX or self._bytes > RECENT_BYTES_MAX:
            self._forget()

    def _forget(self) -> None:
        """Every partition forgets its older half: rare, so that the cost is spread over many commits."""
        self._records = self._bytes = 0
        for partition in self._partitions:
            records, sizes = partition.recent
            half = (len(records) + 1) // 2
            partition.recent = Kept(records[half:], sizes[half:])
            self._records += len(partition.recent.records)
            self._bytes += sum(partition.recent.sizes)
