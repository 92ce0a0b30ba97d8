"""The log port in memory, under a seed.

Where the port leaves freedom, chance takes it, the same way for the same seed: how many records a poll returns, which
partition is served first, and how wide the gap is that a transaction leaves behind its records (a broker writes a
marker there). Called from one thread it is deterministic; it is safe from many.

A crash of the process is a new producer of the same id: what was not committed is gone, all else is still there.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import chain
from operator import attrgetter
from random import Random
from threading import Event, RLock

from runtime.clock import Clock
from runtime.log import Fenced, LogError, OffsetOutOfRange, Owner, UnknownTopic
from runtime.logs.alone import OnlyMember
from runtime.logs.keeping import COMPACTION_LAG, TOMBSTONES_KEPT, lag_of, trim_after
from runtime.logs.producing import BufferingProducer, Commit, Writer
from runtime.logs.reading import Bounds, Taken, TurnReader, take
from runtime.record import Outgoing, Record, TopicPartition
from schemas.topics import Cleanup, TopicSpec

GAP_MAX = 2  # offsets left free behind what a transaction wrote to a partition

_offset_of = attrgetter("offset")


@dataclass(slots=True, eq=False)
class Partition:
    """The records of a partition, and who waits for more."""

    begin: int = 0
    end: int = 0
    appended_at: datetime = datetime(1970, 1, 1, tzinfo=UTC)
    records: list[Record] = field(default_factory=list)
    watchers: set[Event] = field(default_factory=set)
    hangs: dict[str, int] = field(default_factory=dict)  # where a transaction hangs, by the id of its writer
    hung: dict[str, set[int]] = field(default_factory=dict)  # the offsets of its records

    @property
    def stable(self) -> int:
        """How far readers get."""
        return min(self.hangs.values(), default=self.end)

    def since(self, position: int) -> int:
        """The index of the first record at or behind a position."""
        return bisect_left(self.records, position, key=_offset_of)


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A topic that exists."""

    spec: TopicSpec
    id: str
    partitions: Sequence[Partition]


class SimulatedLog:
    """`Log`."""

    compaction_lag = COMPACTION_LAG

    def __init__(self, seed: int, clock: Clock) -> None:
        self._chance = Random(seed)
        self._clock = clock
        self._lock = RLock()
        self._topics: dict[str, Topic] = {}
        self._epochs: dict[str, int] = {}
        self._positions: dict[str, dict[TopicPartition, int]] = {}
        self._closed = False
        self.cluster_id = self._draw_id()

    # ------------------------------------------------------------------------------------------- what there is

    def create(self, specs: Mapping[TopicSpec, int]) -> None:
        """See `Log.create`."""
        with self._lock:
            for spec, count in specs.items():
                known = self._topics.get(spec.name)
                if known and (len(known.partitions) != count or known.spec.cleanup is not spec.cleanup):
                    there = f"{len(known.partitions)} partitions, {known.spec.cleanup}"
                    raise LogError(f"topic {spec.name} exists with {there}; wanted are {count}, {spec.cleanup}")
            for spec, count in specs.items():
                if spec.name not in self._topics:
                    partitions = tuple(Partition() for _ in range(count))
                    self._topics[spec.name] = Topic(spec=spec, id=self._draw_id(), partitions=partitions)

    def delete(self, topic: str) -> None:
        """Delete a topic, as an administrator may; the groups forget their positions in it."""
        with self._lock:
            del self._topics[topic]
            for positions in self._positions.values():
                for partition in [partition for partition in positions if partition.topic == topic]:
                    del positions[partition]

    def add_partition(self, topic: str) -> None:
        """Give a topic one partition more, as an administrator may."""
        with self._lock:
            known = self._topics[topic]
            self._topics[topic] = replace(known, partitions=(*known.partitions, Partition()))

    def truncate(self, partition: TopicPartition, end: int) -> None:
        """Lose what stands at `end` and behind it, as brokers do when one that was behind becomes the leader."""
        with self._lock:
            found = self._partition(partition)
            found.records = found.records[: found.since(end)]
            found.end = end

    def hang(self, transactional_id: str, records: Sequence[Outgoing]) -> None:
        """Leave a transaction that nobody has ended, as Kafka 4.4.0 does where a partition has no leader (KAFKA-20734).

        Readers get no further in these partitions until the same id commits something there: then they see both.
        """
        with self._lock:
            for record in records:
                found = self._partition(TopicPartition(record.topic, record.partition))
                found.hangs.setdefault(transactional_id, found.end)
                found.hung.setdefault(transactional_id, set()).add(found.end)
                self._add(record, self._clock.now())

    def give_up(self, transactional_id: str, partition: TopicPartition) -> None:
        """Take out what an id has hanging there, as the abort of its next transaction does: its owner died in it."""
        with self._lock:
            found = self._partition(partition)
            found.hangs.pop(transactional_id, None)
            gone = found.hung.pop(transactional_id, set())
            found.records = [record for record in found.records if record.offset not in gone]

    def forget_positions(self, group: str) -> None:
        """Forget where a group stands, as brokers do with one that was away for long, and administrators can."""
        with self._lock:
            self._positions.pop(group, None)

    def partitions(self, topic: str) -> int:
        """See `Log.partitions`."""
        return len(self._topic(topic).partitions)

    def topics(self) -> Mapping[str, TopicSpec]:
        """See `Log.topics`."""
        with self._lock:
            return {name: topic.spec for name, topic in self._topics.items()}

    def topic_id(self, topic: str) -> str:
        """See `Log.topic_id`."""
        return self._topic(topic).id

    def begin_offset(self, partition: TopicPartition) -> int:
        """See `Log.begin_offset`."""
        return self._partition(partition).begin

    def end_offset(self, partition: TopicPartition) -> int:
        """See `Log.end_offset`."""
        return self._partition(partition).end

    def end_offsets(self, partitions: Iterable[TopicPartition]) -> Mapping[TopicPartition, int]:
        """See `Log.end_offsets`."""
        return {partition: self.end_offset(partition) for partition in partitions}

    def stable_offset(self, partition: TopicPartition) -> int:
        """See `Log.stable_offset`."""
        with self._lock:
            return self._partition(partition).stable

    def committed(self, group: str, partitions: Iterable[TopicPartition]) -> Mapping[TopicPartition, int]:
        """See `Log.committed`."""
        with self._lock:
            known = self._positions.get(group, {})
            return {partition: known[partition] for partition in partitions if partition in known}

    # ------------------------------------------------------------------------------------------------- writing

    def open_producer(self, transactional_id: str, *, group: str) -> BufferingProducer:
        """See `Log.open_producer`."""
        with self._lock:
            self._check_open()
            epoch = self._epochs[transactional_id] = self._epochs.get(transactional_id, 0) + 1
        return BufferingProducer(self, Writer(transactional_id, epoch, group))

    def join(self, group: str, topic: str, *, name: str, owner: Owner) -> OnlyMember:  # noqa: ARG002 -- nobody else is in it
        """See `Log.join`."""
        return OnlyMember(self, topic, owner)

    def append(self, records: Iterable[Outgoing]) -> Commit:
        """See `Log.append`."""
        with self._lock:
            return self._write(list(records), gap_max=0)

    def commit(self, writer: Writer, records: Sequence[Outgoing], positions: Mapping[TopicPartition, int]) -> Commit:
        """See `Ledger.commit`."""
        with self._lock:
            self.check_writer(writer)
            for partition in positions:
                self._partition(partition)
            for record in records:
                found = self._partition(TopicPartition(record.topic, record.partition))
                found.hangs.pop(writer.transactional_id, None)
                found.hung.pop(writer.transactional_id, None)
            commit = self._write(records, gap_max=GAP_MAX)
            self._positions.setdefault(writer.group, {}).update(positions)
            return commit

    def check_writer(self, writer: Writer) -> None:
        """See `Ledger.check_writer`."""
        self._check_open()
        if self._epochs[writer.transactional_id] != writer.epoch:
            raise Fenced(f"a later producer of {writer.transactional_id} has taken over from epoch {writer.epoch}")

    def check_exists(self, records: Iterable[Outgoing]) -> None:
        """See `Ledger.check_exists`."""
        for record in records:
            self._partition(TopicPartition(record.topic, record.partition))

    def _write(self, records: Sequence[Outgoing], gap_max: int) -> Commit:
        self._check_open()
        self.check_exists(records)
        now = self._clock.now()
        written = [self._add(record, now) for record in records]
        touched = sorted({(record.topic, record.partition) for record in written})
        for name in touched:
            partition = self._partition(TopicPartition(*name))
            partition.end += self._chance.randint(0, gap_max)
            for watcher in partition.watchers:
                watcher.set()
        latest = max((record.appended_at for record in written), default=now)
        return Commit(offsets=[record.offset for record in written], appended_at=latest)

    def _add(self, sent: Outgoing, now: datetime) -> Record:
        partition = self._partition(TopicPartition(sent.topic, sent.partition))
        at = partition.appended_at = max(partition.appended_at, now)
        record = Record(sent.topic, sent.partition, partition.end, sent.key, sent.value, sent.headers, at)
        partition.records.append(record)
        partition.end += 1
        return record

    # ------------------------------------------------------------------------------------------------- reading

    def open_reader(self, positions: Mapping[TopicPartition, int]) -> TurnReader:
        """See `Log.open_reader`."""
        return TurnReader(self, positions)

    def open_undecided(self, positions: Mapping[TopicPartition, int]) -> TurnReader:
        """See `Log.open_undecided`: of what is open, only what hangs stands here."""
        return TurnReader(Undecided(self), positions)

    def ends(self, partitions: Sequence[TopicPartition]) -> list[int]:
        """See `Source.ends`."""
        with self._lock:
            self._check_open()
            return [self._partition(partition).stable for partition in partitions]

    def fetch(self, partition: TopicPartition, position: int, end: int, bounds: Bounds) -> Taken:
        """See `Source.fetch`."""
        with self._lock:
            found = self._partition(partition)
            if not found.begin <= position <= end:
                name = f"{partition.topic}-{partition.partition}"
                raise OffsetOutOfRange(f"{name} reaches from {found.begin} to {end}; {position} is outside")
            drawn = self._chance.randint(1, bounds.records_max)
            first = found.since(position)
            records = found.records[first : min(first + drawn + 1, found.since(end))]
        return take(records, end, bounds._replace(records_max=drawn))

    def turns(self, count: int, turn: int) -> Sequence[int]:  # noqa: ARG002  chance is fair without counting
        """See `Source.turns`."""
        with self._lock:
            order = list(range(count))
            self._chance.shuffle(order)
            return order

    def watch(self, partitions: Iterable[TopicPartition], signal: Event) -> None:
        """See `Source.watch`."""
        with self._lock:
            for partition in [self._partition(name) for name in partitions]:
                partition.watchers.add(signal)

    def unwatch(self, partitions: Iterable[TopicPartition], signal: Event) -> None:
        """See `Source.unwatch`."""
        with self._lock:
            for partition in [self._partition(name) for name in partitions]:
                partition.watchers.discard(signal)

    # ---------------------------------------------------------------------------------------------- upkeep, end

    def maintain(self) -> bool:
        """See `Log.maintain`; here a step is all there is to do."""
        with self._lock:
            self._check_open()
            now = self._clock.now()
            for topic in self._topics.values():
                for partition in topic.partitions:
                    if topic.spec.cleanup is Cleanup.COMPACT:
                        _compact(partition, now, lag_of(topic.spec))
                    elif topic.spec.retention is not None:
                        _trim(partition, now - topic.spec.retention, now - trim_after(topic.spec.retention))
            return False

    def close(self) -> None:
        """See `Log.close`. Readers that wait return with an error."""
        with self._lock:
            self._closed = True
            for partition in chain.from_iterable(topic.partitions for topic in self._topics.values()):
                for watcher in partition.watchers:
                    watcher.set()

    def _draw_id(self) -> str:
        return f"{self._chance.getrandbits(64):016x}"

    def _topic(self, name: str) -> Topic:
        if name not in self._topics:
            raise UnknownTopic(f"there is no topic {name}")
        return self._topics[name]

    def _partition(self, name: TopicPartition) -> Partition:
        partitions = self._topic(name.topic).partitions
        if not 0 <= name.partition < len(partitions):
            raise UnknownTopic(f"there is no partition {name.partition} of topic {name.topic}")
        return partitions[name.partition]

    def _check_open(self) -> None:
        if self._closed:
            raise LogError("the log is closed")


class Undecided:
    """`Source`: a log of which all is seen."""

    def __init__(self, log: SimulatedLog) -> None:
        self._log = log
        self.fetch, self.turns, self.watch, self.unwatch = log.fetch, log.turns, log.watch, log.unwatch

    def ends(self, partitions: Sequence[TopicPartition]) -> list[int]:
        """See `Source.ends`."""
        return [self._log.end_offset(partition) for partition in partitions]


def _trim(partition: Partition, since: datetime, unless_older_than: datetime) -> None:
    if partition.records and partition.records[0].appended_at <= unless_older_than:
        partition.records = [record for record in partition.records if record.appended_at >= since]
        partition.begin = partition.records[0].offset if partition.records else partition.end


def _compact(partition: Partition, now: datetime, lag: timedelta) -> None:
    old_enough = [record for record in partition.records if record.appended_at <= now - lag]
    latest = {record.key: record.offset for record in old_enough}

    def is_superseded(record: Record) -> bool:
        return record.key is not None and record.offset < latest.get(record.key, 0)

    def is_buried(record: Record) -> bool:
        return (
            record.key is not None
            and record.value is None
            and record.appended_at <= now - max(lag, TOMBSTONES_KEPT)
            and record is not partition.records[-1]
        )

    partition.records = [record for record in partition.records if not (is_superseded(record) or is_buried(record))]
