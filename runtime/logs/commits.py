"""How a commit gets into the embedded log: reserved in order, written without the lock, visible in order.

A commit reserves its offsets under the lock (microseconds). It is encoded and written without the lock, beside
others: RocksDB would join concurrent writers into one write, and with `durability="disk"` into one sync, but rocksdict
0.3.29 keeps the interpreter during a write, so that they follow one another. It becomes visible under the lock again,
in the order of the reservations: so readers see transactions whole and offsets in order, and a commit that has
returned is durable with all that stands before it.

A kill may leave a gap in the offsets: what was not written never was. A write that fails is different: nobody knows
how much of it will be there after the next start. So nothing is written behind it until the log is opened again:
otherwise its work would be done a second time, and both could be found.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from threading import Condition, Lock
from typing import NamedTuple

from rocksdict import WriteBatch

from runtime.clock import Clock
from runtime.log import Fenced, LogError
from runtime.logs import layout
from runtime.logs.partition import Appended, Partition, Recent
from runtime.logs.producing import Commit, Writer
from runtime.record import Outgoing, Record, TopicPartition
from runtime.stores.database import Database, new_batch

Positions = dict[str, dict[TopicPartition, int]]  # by group
Targets = Mapping[Partition, Sequence[int]]  # which of the records of a commit go where, by their index


class Written(NamedTuple):
    """What a commit wrote to one partition: up to where, and what is kept for those who read at the end."""

    end: int
    records: Sequence[Record]
    sizes: Sequence[int]


@dataclass(slots=True, eq=False, kw_only=True)
class Pending:
    """A commit between its reservation and its appearance."""

    writer: Writer | None
    positions: Mapping[TopicPartition, int]
    places: Mapping[Partition, tuple[int, Appended]]
    now: datetime
    written: Mapping[Partition, Written] = field(default_factory=dict)
    settled: bool = False
    succeeded: bool = False
    visible: bool = False


class Commits:
    """All writing of records. `lock` guards where partitions end, the epochs, and the positions of groups."""

    def __init__(self, database: Database, clock: Clock, lock: Lock, positions: Positions) -> None:
        self._database = database
        self._clock = clock
        self._lock = lock
        self._appeared = Condition(lock)
        self._pending: deque[Pending] = deque()
        self._recent = Recent()
        self._epochs = _stored_epochs(database)
        self._failure: BaseException | None = None
        self._positions = positions

    def run(
        self,
        writer: Writer | None,
        records: Sequence[Outgoing],
        targets: Targets,
        positions: Mapping[Partition, int],
    ) -> Commit:
        """Write `records`, each to its partition, together with the positions of the writer's group."""
        pending = self._reserve(writer, targets, positions)
        try:
            batch, commit = _encoded(pending, records, targets)
            if writer:
                _put_positions(batch, writer.group, positions)
            self._write(batch)
        except BaseException:
            self._settle(pending, succeeded=False)
            raise
        self._settle(pending, succeeded=True)
        return commit

    def _write(self, batch: WriteBatch) -> None:
        try:
            self._database.write(batch)
        except BaseException as error:
            self._failure = error
            raise

    def take_over(self, transactional_id: str) -> int:
        """The epoch of a new writer; its predecessor is fenced, and a commit of his that is being written is over."""
        with self._lock:
            epoch = self._epochs.get(transactional_id, 0) + 1
            self._epochs[transactional_id] = epoch
            while any(pending.writer and pending.writer[0] == transactional_id for pending in self._pending):
                self._appeared.wait()
            batch = new_batch()
            batch.put(layout.EPOCH + transactional_id.encode(), layout.pack_offset(self._epochs[transactional_id]))
            self._database.write(batch)
        return epoch

    def check(self, writer: Writer) -> None:
        """`Fenced` when a later writer of the same id has taken over."""
        if self._epochs[writer.transactional_id] != writer.epoch:
            raise Fenced(f"a later producer of {writer.transactional_id} has taken over from epoch {writer.epoch}")

    def positions(self, group: str, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """What a group has committed for some partitions."""
        with self._lock:
            known = self._positions.get(group, {})
            return {partition: known[partition] for partition in partitions if partition in known}

    def _reserve(self, writer: Writer | None, targets: Targets, positions: Mapping[Partition, int]) -> Pending:
        named = {partition.name: position for partition, position in positions.items()}
        with self._lock:
            if writer:
                self.check(writer)
            if self._failure:
                raise LogError("a write has failed: the log must be opened again") from self._failure
            now = self._clock.now()
            appended = Appended(layout.to_ms(now), now)
            places = {partition: partition.reserve(len(indexes), appended) for partition, indexes in targets.items()}
            pending = Pending(writer=writer, positions=named, places=places, now=now)
            self._pending.append(pending)
        return pending

    def _settle(self, pending: Pending, *, succeeded: bool) -> None:
        """Make visible what nothing older stands before; return when this commit is among that."""
        with self._lock:
            pending.settled, pending.succeeded = True, succeeded
            while self._pending and self._pending[0].settled:
                self._show(self._pending.popleft())
            self._appeared.notify_all()
            while not pending.visible:
                self._appeared.wait()

    def _show(self, pending: Pending) -> None:
        pending.visible = True
        if not pending.succeeded:
            return
        for partition, written in pending.written.items():
            self._recent.add(partition, written.records, written.sizes)
            partition.end = written.end
        if pending.writer:
            self._positions.setdefault(pending.writer.group, {}).update(pending.positions)
        for partition in pending.written:
            partition.signal()


def _encoded(pending: Pending, records: Sequence[Outgoing], targets: Targets) -> tuple[WriteBatch, Commit]:
    batch = new_batch()
    offsets = [0] * len(records)
    written = {}
    for partition, indexes in targets.items():
        first, appended = pending.places[partition]
        written[partition] = _put(batch, partition, [records[index] for index in indexes], first, appended)
        for offset, index in enumerate(indexes, first):
            offsets[index] = offset
    pending.written = written
    latest = max((appended.appended_at for _, appended in pending.places.values()), default=pending.now)
    return batch, Commit(offsets=offsets, appended_at=latest)


def _put(batch: WriteBatch, partition: Partition, sent: Sequence[Outgoing], first: int, appended: Appended) -> Written:
    """Write one partition's records in the order of their keys, which RocksDB sorts in fastest.

    They are kept as they are only where somebody reads: half of all records are rows of changelogs, which nobody does.
    """
    encoded = layout.encode(sent, appended.appended_ms)
    place, pack_offset = layout.RECORD + partition.key, layout.pack_offset
    for offset, data in enumerate(encoded, first):
        batch.put(place + pack_offset(offset), data)
    end = first + len(encoded)
    if not partition.watchers:
        return Written(end, (), ())
    (topic, number), at, new = partition.name, appended.appended_at, tuple.__new__  # half the time of `Record(…)`
    records = [
        new(Record, (topic, number, offset, key, value, headers, at))
        for offset, (_, _, key, value, headers) in enumerate(sent, first)
    ]
    return Written(end, records, [*map(len, encoded)])


def _put_positions(batch: WriteBatch, group: str, positions: Mapping[Partition, int]) -> None:
    for partition, position in positions.items():
        batch.put(layout.group_key(group, partition.key), layout.pack_offset(position))


def _stored_epochs(database: Database) -> dict[str, int]:
    rows = database.scan(layout.EPOCH, layout.after(layout.EPOCH))
    return {key[len(layout.EPOCH) :].decode(): layout.unpack_offset(value) for key, value in rows}


def stored_positions(database: Database, partitions: Iterable[Partition]) -> Positions:
    """What every group has committed."""
    names = {partition.key: partition.name for partition in partitions}
    positions: Positions = {}
    for key, value in database.scan(layout.GROUP, layout.after(layout.GROUP)):
        group, place = layout.unpack_group_key(key)
        positions.setdefault(group, {})[names[place]] = layout.unpack_offset(value)
    return positions
