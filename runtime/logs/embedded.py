"""The log port in one RocksDB, for one process with any number of threads.

What a commit has returned for is in RocksDB's own log: it survives kill -9, and with `durability="disk"` a loss of
power. With `process` a loss of power may take the newest commits, whole ones, from the end.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from threading import Event, Lock
from typing import Literal

from rocksdict import DBRecoveryMode, Options

from runtime.clock import Clock, SystemClock
from runtime.log import LogError, OffsetOutOfRange, Owner
from runtime.logs import layout
from runtime.logs.alone import OnlyMember
from runtime.logs.commits import Commits, Targets, stored_positions
from runtime.logs.keeping import COMPACTION_LAG
from runtime.logs.partition import Partition
from runtime.logs.producing import BufferingProducer, Commit, Writer
from runtime.logs.reading import Bounds, Taken, TurnReader, take
from runtime.logs.topics import Topics, encode_topic, stored_topics
from runtime.logs.upkeep import Upkeep
from runtime.record import Outgoing, Record, TopicPartition
from runtime.store import StoreError
from runtime.stores.database import MIB, Database, new_batch, sized
from schemas.topics import TopicSpec

Durability = Literal["process", "disk"]

# The log is written by everyone and mostly read from memory: larger buffers than a store's, a small cache.
WRITE_BUFFER = 16 * MIB
CACHE = 8 * MIB
OPEN_FILES_MAX = 256

# Every new table holds some of all partitions, so merging it into the level below rewrites that whole level. Merging
# eight at a time instead of four halves the work behind each record; who reads far behind looks into four more tables.
TABLES_MERGED = 8

# A log of `process` may have lost power: it goes on with all that stands before the damage. With `disk` only the last,
# never acknowledged write may be torn; anything else is damage, and is said.
RECOVERY = {
    "process": DBRecoveryMode.point_in_time(),
    "disk": DBRecoveryMode.tolerate_corrupted_tail_records(),
}


class EmbeddedLog:
    """`Log` in a folder. One process may have it open for writing; LogError names the folder when another has."""

    cluster_id: str
    compaction_lag = COMPACTION_LAG

    def __init__(
        self, path: Path, clock: Clock, *, durability: Durability = "process", read_only: bool = False
    ) -> None:
        self._read_only = read_only
        self._closed = False
        self._lock = Lock()
        with _translated():
            database = Database(path, _options(durability), read_only=read_only, sync=durability == "disk")
            self.cluster_id = _cluster_id(database)
            self._database = database
            self._topics = Topics(stored_topics(database))
            positions = stored_positions(database, self._topics.partitions())
            self._commits = Commits(database, clock, self._lock, positions)
            self._upkeep = Upkeep(database, self._topics, clock, self._lock)

    @classmethod
    def open_read_only(cls, path: Path) -> EmbeddedLog:
        """A stopped log, for looking at: no record can be written to it, and nobody else is kept out of it."""
        return cls(path, SystemClock(), read_only=True)

    # ------------------------------------------------------------------------------------------- what there is

    def create(self, specs: Mapping[TopicSpec, int]) -> None:
        """See `Log.create`. A changed retention holds from now on: nothing else here could change it."""
        self._check_writable()
        with self._lock, _translated():
            topics = self._topics.wanted(specs)
            batch = new_batch()
            for topic in topics:
                batch.put(layout.TOPIC + topic.spec.name.encode(), encode_topic(topic))
            self._database.write(batch)
            for topic in topics:
                self._topics.add(topic)

    def partitions(self, topic: str) -> int:
        """See `Log.partitions`."""
        return len(self._topics.topic(topic).partitions)

    def topics(self) -> Mapping[str, TopicSpec]:
        """See `Log.topics`."""
        return {name: topic.spec for name, topic in self._topics.all().items()}

    def topic_id(self, topic: str) -> str:
        """See `Log.topic_id`."""
        return self._topics.topic(topic).id

    def begin_offset(self, partition: TopicPartition) -> int:
        """See `Log.begin_offset`."""
        return self._topics.partition(partition).begin

    def end_offset(self, partition: TopicPartition) -> int:
        """See `Log.end_offset`."""
        return self._topics.partition(partition).end

    def end_offsets(self, partitions: Iterable[TopicPartition]) -> Mapping[TopicPartition, int]:
        """See `Log.end_offsets`."""
        return {partition: self.end_offset(partition) for partition in partitions}

    def stable_offset(self, partition: TopicPartition) -> int:
        """See `Log.stable_offset`: what is open stands in no partition yet."""
        return self.end_offset(partition)

    def committed(self, group: str, partitions: Iterable[TopicPartition]) -> Mapping[TopicPartition, int]:
        """See `Log.committed`."""
        return self._commits.positions(group, partitions)

    def newest(self) -> datetime:
        """The latest append time of any record; 1970 for an empty log."""
        return max((partition.clock.appended_at for partition in self._topics.partitions()), default=layout.from_ms(0))

    # ------------------------------------------------------------------------------------------------- writing

    def open_producer(self, transactional_id: str, *, group: str) -> BufferingProducer:
        """See `Log.open_producer`."""
        self._check_writable()
        with _translated():
            epoch = self._commits.take_over(transactional_id)
        return BufferingProducer(self, Writer(transactional_id, epoch, group))

    def join(self, group: str, topic: str, *, name: str, owner: Owner) -> OnlyMember:  # noqa: ARG002 -- nobody else is in it
        """See `Log.join`."""
        return OnlyMember(self, topic, owner)

    def append(self, records: Iterable[Outgoing]) -> Commit:
        """See `Log.append`."""
        return self.commit(None, list(records), {})

    def commit(
        self, writer: Writer | None, records: Sequence[Outgoing], positions: Mapping[TopicPartition, int]
    ) -> Commit:
        """See `Ledger.commit`; without a writer it is an append."""
        self._check_writable()
        moved = {self._topics.partition(name): position for name, position in positions.items()}
        with _translated():
            return self._commits.run(writer, records, self._targets(records), moved)

    def check_writer(self, writer: Writer) -> None:
        """See `Ledger.check_writer`."""
        self._commits.check(writer)

    def check_exists(self, records: Iterable[Outgoing]) -> None:
        """See `Ledger.check_exists`."""
        for name in dict.fromkeys(record[:2] for record in records):
            self._topics.partition(name)

    def _targets(self, records: Sequence[Outgoing]) -> Targets:
        indexes: dict[tuple[str, int], list[int]] = defaultdict(list)
        for index, record in enumerate(records):
            indexes[record[:2]].append(index)
        return {self._topics.partition(name): there for name, there in indexes.items()}

    # ------------------------------------------------------------------------------------------------- reading

    def open_reader(self, positions: Mapping[TopicPartition, int]) -> TurnReader:
        """See `Log.open_reader`."""
        return TurnReader(self, positions)

    def open_undecided(self, positions: Mapping[TopicPartition, int]) -> TurnReader:
        """See `Log.open_undecided`: what is open stands in no partition yet."""
        return self.open_reader(positions)

    def ends(self, partitions: Sequence[TopicPartition]) -> list[int]:
        """See `Source.ends`."""
        with self._lock:
            if self._closed:
                raise LogError("the log is closed")
            return [self._topics.partition(partition).end for partition in partitions]

    def fetch(self, partition: TopicPartition, position: int, end: int, bounds: Bounds) -> Taken:
        """See `Source.fetch`."""
        found = self._topics.partition(partition)
        _check_kept(found, position, end)
        recent = found.recent_from(position, end, bounds)
        if recent is not None:
            return recent
        with _translated():
            taken = take(self._stored(found, position, end), end, bounds)
        _check_kept(found, position, end)  # Retention may have passed by while we read.
        return taken

    def turns(self, count: int, turn: int) -> Sequence[int]:
        """See `Source.turns`: each is first in its turn."""
        first = turn % count
        return [*range(first, count), *range(first)]

    def watch(self, partitions: Iterable[TopicPartition], signal: Event) -> None:
        """See `Source.watch`."""
        found = [self._topics.partition(partition) for partition in partitions]
        with self._lock:
            for partition in found:
                partition.watchers.add(signal)

    def unwatch(self, partitions: Iterable[TopicPartition], signal: Event) -> None:
        """See `Source.unwatch`."""
        with self._lock:
            for partition in partitions:
                self._topics.partition(partition).watchers.discard(signal)

    def _stored(self, partition: Partition, position: int, end: int) -> Iterator[Record]:
        appended_ms, appended_at = partition.clock.appended_ms, partition.clock.appended_at
        for key, data in self._database.scan(partition.record_key(position), partition.record_key(end)):
            if layout.appended_ms_of(data) != appended_ms:  # Neighbours often share their instant.
                appended_ms = layout.appended_ms_of(data)
                appended_at = layout.from_ms(appended_ms)
            yield layout.decode(partition.name, layout.offset_in(key), data, appended_at)

    # ---------------------------------------------------------------------------------------------- upkeep, end

    def maintain(self) -> bool:
        """See `Log.maintain`."""
        self._check_writable()
        with _translated():
            return self._upkeep.step()

    def close(self) -> None:
        """See `Log.close`. Readers that wait return with an error."""
        with self._lock:
            self._closed = True
            for partition in self._topics.partitions():
                partition.signal()
        self._database.close()

    def _check_writable(self) -> None:
        if self._read_only:
            raise LogError("the log was opened for reading only")
        if self._closed:
            raise LogError("the log is closed")


def _options(durability: Durability) -> Options:
    recovery = RECOVERY[durability]
    options = sized(write_buffer=WRITE_BUFFER, cache=CACHE, open_files_max=OPEN_FILES_MAX, recovery=recovery)
    options.set_level_zero_file_num_compaction_trigger(TABLES_MERGED)
    return options


def _cluster_id(database: Database) -> str:
    """The id that was drawn when the log was created; draws it for a new one."""
    layout_version = database.get(layout.FORMAT_KEY)
    if layout_version is None:
        cluster_id = os.urandom(8).hex()
        batch = new_batch()
        batch.put(layout.FORMAT_KEY, layout.FORMAT)
        batch.put(layout.CLUSTER_ID_KEY, cluster_id.encode())
        database.write(batch)
        return cluster_id
    if layout_version != layout.FORMAT:
        raise LogError(f"the log has layout {layout_version!r}; this version reads {layout.FORMAT!r}")
    stored = database.get(layout.CLUSTER_ID_KEY)
    assert stored, "the id is written together with the version of the layout"
    return stored.decode()


def _check_kept(partition: Partition, position: int, end: int) -> None:
    name = f"{partition.name.topic}-{partition.name.partition}"
    if position < partition.begin:
        raise OffsetOutOfRange(f"{name} begins at {partition.begin}: what stood at {position} is gone")
    if position > end:
        raise OffsetOutOfRange(f"{name} ends at {end}: position {position} belongs to another or a longer log")


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except StoreError as error:
        raise LogError(str(error)) from error
