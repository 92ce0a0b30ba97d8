"""A partition on a broker: records and markers in order, and how far readers of committed records may go."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from operator import attrgetter
from typing import NamedTuple, Protocol

from runtime.logs.kafka.reading import instant
from runtime.logs.keeping import TOMBSTONES_KEPT, trim_after
from runtime.logs.reading import size_of
from runtime.record import Record, TopicPartition
from simulation.kafka.protocol import NONE, Batch, Code, Identity

REMEMBERED = 5  # batches of a producer that may come again, as a broker keeps them
OF_NOBODY = Identity(-1, -1)  # that it hung is known of no transaction that has ended
PLACES_MAX = 1_000_000  # of a partition: a run that writes more has lost its way

_offset_of = attrgetter("offset")


class Written(NamedTuple):
    """Where a batch stands."""

    code: Code
    offset: int = -1
    milliseconds: int = -1


class Waiting(Protocol):
    """A fetch that has found nothing yet."""

    def look(self) -> None:
        """Look again."""


@dataclass(slots=True)
class Writer:
    """What a partition knows of one producer."""

    epoch: int
    next: int = 0  # the sequence number that must come
    recent: deque[tuple[int, Written]] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    first: int | None = None  # where its open transaction begins here
    open: list[int] = field(default_factory=list)  # offsets of its open transaction
    hung: list[int] = field(default_factory=list)  # of one before it, in an earlier epoch, that nobody has ended (C7)

    def move_on(self, epoch: int) -> None:
        """Whatever comes is of another epoch."""
        self.epoch, self.next = epoch, 0
        self.recent.clear()


class Ended(NamedTuple):
    """A transaction that a marker ended, as evidence keeps it."""

    producer: Identity
    committed: bool
    offsets: Sequence[int]
    marker: int


@dataclass(slots=True, eq=False)
class Partition:
    """One ordered sequence. What is aborted is taken out when its marker comes: only whoever does
    not ask for committed records reads it before.
    """

    name: TopicPartition
    begin: int = 0
    end: int = 0
    appended_ms: int = 0
    records: list[Record] = field(default_factory=list)
    writers: dict[int, Writer] = field(default_factory=dict)
    ended: list[Ended] = field(default_factory=list)
    waiting: dict[str, Waiting] = field(default_factory=dict)  # fetches, by client
    open: int = 0  # transactions
    gone: list[Record] = field(default_factory=list)  # what was committed and is kept no longer, for evidence
    aborted: list[Record] = field(default_factory=list)  # what nobody ever got to read, for evidence

    @property
    def stable(self) -> int:
        """Everything before it is decided."""
        if not self.open:
            return self.end
        return min(writer.first for writer in self.writers.values() if writer.first is not None)

    def since(self, position: int) -> int:
        """The index of the first record at or behind a position."""
        return bisect_left(self.records, position, key=_offset_of)

    def append(
        self, producer: Identity, batch: Batch, now_ms: int, *, transactional: bool, append_time: bool
    ) -> Written:
        """Write a batch, unless it has come before or one before it has not."""
        writer = self.writers.get(producer.number)
        if writer is None:
            writer = self.writers[producer.number] = Writer(producer.epoch, batch.sequence)
        if producer.epoch < writer.epoch:
            return Written(Code.INVALID_PRODUCER_EPOCH)
        if producer.epoch > writer.epoch:
            if batch.sequence:
                return Written(Code.OUT_OF_ORDER_SEQUENCE_NUMBER)
            writer.move_on(producer.epoch)
            writer.hung, writer.open = writer.hung + writer.open, []
        for sequence, written in writer.recent:
            if sequence == batch.sequence:
                return written
        if batch.sequence != writer.next:
            return Written(Code.OUT_OF_ORDER_SEQUENCE_NUMBER)
        written = self._write(batch, now_ms if append_time else batch.created_ms)
        writer.next += len(batch.records)
        writer.recent.append((batch.sequence, written))
        if transactional:
            if writer.first is None:
                writer.first = written.offset
                self.open += 1
            writer.open += range(written.offset, self.end)
        else:
            self.wake()
        return written

    def _write(self, batch: Batch, milliseconds: int) -> Written:
        offset = self.end
        assert offset < PLACES_MAX, f"{self.name} grows without end"
        self.appended_ms = max(self.appended_ms, milliseconds)
        at, (topic, number) = instant(self.appended_ms), self.name
        self.records += [
            Record(topic, number, place, sent.key, sent.value, sent.headers, at)
            for place, sent in enumerate(batch.records, offset)
        ]
        self.end += len(batch.records)
        return Written(NONE, offset, self.appended_ms)

    def mark(self, producer: Identity, *, commit: bool) -> None:
        """The marker that ends what a producer has open here; it takes a place of its own."""
        writer = self.writers.setdefault(producer.number, Writer(producer.epoch))
        if producer.epoch > writer.epoch:
            writer.move_on(producer.epoch)
        if writer.hung:
            self.ended.append(Ended(OF_NOBODY, commit, tuple(writer.hung), self.end))
        self.ended.append(Ended(producer, commit, tuple(writer.open), self.end))
        self.end += 1
        if writer.first is not None:
            if not commit:
                self._take_out(writer)
            writer.first, writer.open, writer.hung = None, [], []
            self.open -= 1
        self.wake()

    def _take_out(self, writer: Writer) -> None:
        assert writer.first is not None, "only what was begun"
        index, gone = self.since(writer.first), {*writer.open, *writer.hung}
        self.aborted += (record for record in self.records[index:] if record.offset in gone)
        self.records[index:] = [record for record in self.records[index:] if record.offset not in gone]

    def wake(self) -> None:
        """More may be readable: those who wait look again."""
        if self.waiting:
            waiting, self.waiting = self.waiting, {}
            for fetch in waiting.values():
                fetch.look()

    def read(
        self, position: int, bytes_max: int, records_max: int, until: int | None = None
    ) -> tuple[list[Record], int, int]:  # fmt: skip
        """Readable records from a position, the position behind them, and their size; one however large it is."""
        stable = self.stable if until is None else until
        first, last = self.since(position), self.since(stable)
        size, index = 0, first
        while index < last and index - first < records_max and (size < bytes_max or index == first):
            size += size_of(self.records[index])
            index += 1
        behind = stable if index == last else self.records[index].offset
        return self.records[first:index], behind, size

    def truncate(self, end: int) -> None:
        """Lose what stands at `end` and behind it, with what was known of those who wrote it."""
        self.records = self.records[: self.since(end)]
        self.end = end
        self.begin = min(self.begin, end)
        for writer in self.writers.values():
            gone = [sequence for sequence, written in writer.recent if written.offset >= end]
            if gone:  # Its next batch comes with a number too high.
                writer.next = min(gone)
                writer.recent.clear()
            writer.open = [offset for offset in writer.open if offset < end]
            writer.hung = [offset for offset in writer.hung if offset < end]
            if writer.first is not None and writer.first >= end:
                writer.first = None
                self.open -= 1
        self.ended = [ended for ended in self.ended if ended.marker < end]
        self.wake()

    def trim(self, now: datetime, retention: timedelta) -> None:
        """Let go of what is older, a little late; nothing undecided goes."""
        if not self.records or self.records[0].appended_at > now - trim_after(retention):
            return
        since, stable = now - retention, self.stable
        kept = [record for record in self.records if record.appended_at >= since or record.offset >= stable]
        self.gone += self.records[: len(self.records) - len(kept)]
        self.records, self.begin = kept, kept[0].offset if kept else stable

    def compact(self, now: datetime, lag: timedelta) -> None:
        """Of what is decided and old enough, keep the last of each key; a tombstone goes when its day is over."""
        stable = self.stable
        old = [record for record in self.records if record.appended_at <= now - lag and record.offset < stable]
        latest = {record.key: record.offset for record in old}
        last = self.records[-1] if self.records else None

        def goes(record: Record) -> bool:
            if record.key is None or record.offset >= stable or record is last:
                return False
            superseded = record.offset < latest.get(record.key, 0)
            return superseded or (record.value is None and record.appended_at <= now - max(lag, TOMBSTONES_KEPT))

        self.gone += filter(goes, self.records)
        self.records = [record for record in self.records if not goes(record)]
