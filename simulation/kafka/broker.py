"""The brokers as one: topics, and every request handed to whom it concerns.

A request is answered at once, or later where the protocol has it wait (`Fetch`, `JoinGroup`, `SyncGroup`). What state
there is survives an outage, as every broker has it on several disks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from random import Random
from typing import Any

from runtime.logs.kafka.reading import EPOCH
from runtime.logs.kafka.settings import RECORD_BYTES_MAX
from runtime.logs.kafka.topics import CHANGELOG_LAG, COMPACTED_SEGMENT
from runtime.record import TopicPartition
from schemas.topics import Cleanup, TopicSpec
from simulation.kafka.groups import Groups
from simulation.kafka.partition import Partition, Written
from simulation.kafka.protocol import (
    DONE,
    NONE,
    AddOffsets,
    AddPartitions,
    Answer,
    Batch,
    Code,
    CommitOffsets,
    CreateTopics,
    Describe,
    Described,
    DescribeGroup,
    EndTransaction,
    Fetch,
    Fetched,
    FetchOffsets,
    Heartbeat,
    Identity,
    InitProducerId,
    JoinGroup,
    ListOffsets,
    ListTopics,
    Produce,
    Request,
    Respond,
    SyncGroup,
)
from simulation.kafka.transactions import Coordinator, Marks
from simulation.loop import Loop

FETCH_BYTES = 1024 * 1024  # of one partition in one answer, as a consumer asks by default
FETCH_RECORDS = 5_000  # what a reader keeps ahead of its owner is less
SHORT_SHARE = 0.05  # of fetches that are answered with little of what there is
TRANSACTIONAL = (InitProducerId, AddPartitions, AddOffsets, EndTransaction)
OF_GROUPS = (JoinGroup, SyncGroup, Heartbeat, DescribeGroup, CommitOffsets, FetchOffsets)
MILLISECOND = timedelta(milliseconds=1)


@dataclass(slots=True, eq=False)
class Topic:
    """A topic that exists."""

    spec: TopicSpec
    id: str
    partitions: list[Partition] = field(default_factory=list)


class Broker:
    """All brokers of a cluster. `now` is their clock; `chance` is theirs alone."""

    def __init__(self, loop: Loop, chance: Random, now: Callable[[], datetime]) -> None:
        self._loop, self._chance, self._now = loop, chance, now
        self.cluster_id = self._draw_id()
        self.is_up = True
        self.topics: dict[str, Topic] = {}
        self.changes = 0  # of what topics there are, and of what is said of them
        self.transactions = Coordinator(loop, chance, Marks(partition=self._mark, group=self._mark_group))
        self.groups = Groups(loop, lambda topic: len(self.topics[topic].partitions) if topic in self.topics else 0)
        # Without a leader, and marked by nobody: a transaction that ends meanwhile is over for its coordinator and open
        # for readers, as in Kafka 4.4.0 (KAFKA-20734).
        self.leaderless: set[TopicPartition] = set()
        self.moving: dict[str, float] = {}  # which coordinators are on their way elsewhere, until when
        self._waiting: dict[int, Respond] = {}
        self._at_once: dict[type[Any], Callable[[Any], Answer]] = {
            Describe: self._describe,
            ListTopics: self._list,
            CreateTopics: self._create,
            ListOffsets: self._offsets,
            InitProducerId: self.transactions.init,
            AddPartitions: self._add_partitions,
            AddOffsets: self.transactions.add_offsets,
            Produce: self._produce,
            CommitOffsets: self._commit_offsets,
            EndTransaction: self.transactions.end,
            FetchOffsets: lambda asked: self.groups.positions(asked.group, asked.partitions),
            Heartbeat: self.groups.heartbeat,
            DescribeGroup: self.groups.describe,
        }
        self._later: dict[type[Any], Callable[[Any, Respond], None]] = {
            Fetch: self._fetch,
            JoinGroup: self.groups.join,
            SyncGroup: self.groups.sync,
        }

    def handle(self, request: Request, respond: Respond) -> None:
        """Answer a request, now or later."""
        kind = type(request)
        if self.moving and self._is_moving(kind):
            respond(Answer(Code.NOT_COORDINATOR))
            return
        at_once = self._at_once.get(kind)
        if at_once is not None:
            respond(at_once(request))
        else:
            self._later[kind](request, respond)

    # --- what happens to brokers ----------------------------------------------------------------------------------

    def sleep(self) -> None:
        """All of them are away."""
        self.is_up, self.transactions.asleep, self.groups.asleep = False, True, True

    def wake(self) -> None:
        """They are back, as they were."""
        self.is_up, self.transactions.asleep, self.groups.asleep = True, False, False

    def move_coordinator(self, which: str, seconds: float) -> None:
        """The coordinator of `transactions` or `groups` is another's, who needs so long to take it over."""
        self.moving[which] = self._loop.seconds + seconds

    def delete(self, topic: str) -> None:
        """Delete a topic, as an administrator may; the groups forget their positions in it."""
        gone = self.topics.pop(topic)
        self.changes += 1
        for group in self.groups.groups.values():
            group.positions = {place: at for place, at in group.positions.items() if place.topic != topic}
        for partition in gone.partitions:
            partition.wake()

    def add_partition(self, topic: str) -> None:
        """Give a topic one partition more, as an administrator may."""
        found = self.topics[topic]
        found.partitions.append(Partition(TopicPartition(topic, len(found.partitions))))
        self.changes += 1

    def configure(self, topic: str, retention: timedelta | None) -> None:
        """Keep records for another time, as an administrator may."""
        found = self.topics[topic]
        found.spec = replace(found.spec, retention=retention)
        self.changes += 1

    def truncate(self, partition: TopicPartition, end: int) -> None:
        """Lose what stands at `end` and behind it, as brokers do when one that was behind becomes the leader."""
        self.topics[partition.topic].partitions[partition.partition].truncate(end)

    def forget_positions(self, group: str) -> None:
        """Forget where a group stands, as brokers do with one that was away for long, and administrators can."""
        self.groups.group(group).positions.clear()

    def tidy(self, lag: timedelta | None = None) -> None:
        """One round of retention and compaction; brokers do it every few minutes. `lag`: of changelogs."""
        now = self._now()
        for topic in self.topics.values():
            for partition in topic.partitions:
                if topic.spec.cleanup is Cleanup.COMPACT:
                    own = (lag or CHANGELOG_LAG) if topic.spec.internal else COMPACTED_SEGMENT
                    partition.compact(now, max(own, topic.spec.retention or own))
                elif topic.spec.retention is not None:
                    partition.trim(now, topic.spec.retention)

    def partition(self, name: TopicPartition) -> Partition | None:
        """A partition, if there is one of this name."""
        topic = self.topics.get(name.topic)
        if topic is None or not 0 <= name.partition < len(topic.partitions):
            return None
        return topic.partitions[name.partition]

    # --- topics ---------------------------------------------------------------------------------------------------

    def _describe(self, request: Describe) -> Answer:
        topic = self.topics.get(request.topic)
        if topic is None:
            return Answer(Code.UNKNOWN_TOPIC_OR_PART)
        return Answer(NONE, _described(topic))

    def _list(self, _request: ListTopics) -> Answer:
        found: Mapping[str, Described] = {name: _described(topic) for name, topic in self.topics.items()}
        return Answer(NONE, found)

    def _create(self, request: CreateTopics) -> Answer:
        for spec, count in request.topics:
            if spec.name not in self.topics:
                partitions = [Partition(TopicPartition(spec.name, number)) for number in range(count)]
                self.topics[spec.name] = Topic(spec, self._draw_id(), partitions)
                self.changes += 1
        return DONE

    def _offsets(self, request: ListOffsets) -> Answer:
        found = [self.partition(name) for name in request.partitions]
        offsets = [None if at is None else getattr(at, request.edge) for at in found]
        return Answer(Code.UNKNOWN_TOPIC_OR_PART) if None in offsets else Answer(NONE, offsets)

    # --- writing --------------------------------------------------------------------------------------------------

    def _add_partitions(self, request: AddPartitions) -> Answer:
        if any(self.partition(name) is None for name in request.partitions):
            return Answer(Code.UNKNOWN_TOPIC_OR_PART)
        return self.transactions.add_partitions(request)

    def _produce(self, request: Produce) -> Answer:
        now_ms = (self._now() - EPOCH) // MILLISECOND
        return Answer(NONE, [self._append(request, batch, now_ms) for batch in request.batches])

    def _append(self, request: Produce, batch: Batch, now_ms: int) -> Written:
        partition = self.partition(batch.partition)
        if partition is None:
            return Written(Code.UNKNOWN_TOPIC_OR_PART)
        if batch.size > RECORD_BYTES_MAX:
            return Written(Code.MSG_SIZE_TOO_LARGE)
        known = partition.writers.get(request.producer.number)
        if request.transactional_id is not None and (known is None or known.first is None):
            code = self.transactions.verify(request.transactional_id, request.producer, batch.partition)
            if code is not NONE:
                repeated = known is not None and any(batch.sequence == sequence for sequence, _ in known.recent)
                if not (repeated and code is Code.INVALID_TXN_STATE):
                    return Written(code)
        return partition.append(
            request.producer, batch, now_ms, transactional=request.transactional_id is not None,
            append_time=self.topics[batch.partition.topic].spec.log_append_time,
        )  # fmt: skip

    def _commit_offsets(self, request: CommitOffsets) -> Answer:
        code = self.transactions.may_commit(request.transactional_id, request.producer, request.membership.group)
        return self.groups.commit(request) if code is NONE else Answer(code)

    def _mark(self, name: TopicPartition, producer: Identity, commit: bool) -> None:  # noqa: FBT001 -- a callback
        partition = self.partition(name)
        if partition is not None and name not in self.leaderless:
            partition.mark(producer, commit=commit)

    def _mark_group(self, name: str, producer: Identity, commit: bool) -> None:  # noqa: FBT001 -- a callback
        self.groups.mark(name, producer.number, commit=commit)

    # --- reading --------------------------------------------------------------------------------------------------

    def _fetch(self, request: Fetch, respond: Respond) -> None:
        """Answered when there is something to say, or when the time is up."""
        found = self.read(request)
        if found:
            respond(Answer(NONE, found))
            return
        waiting = WaitingFetch(self, request, respond)
        waiting.wait()
        self._loop.later(request.wait_seconds, waiting.finish, ())

    def read(self, request: Fetch) -> list[Fetched]:
        """What there is to say of the partitions of a fetch."""
        found = []
        for name, position in request.partitions:
            topic = self.topics.get(name[0])
            partition = None if topic is None or name[1] >= len(topic.partitions) else topic.partitions[name[1]]
            if partition is None:
                found.append(Fetched(name, Code.UNKNOWN_TOPIC_OR_PART, (), position, position))
            elif position == partition.end:
                continue
            elif not partition.begin <= position <= partition.end:
                found.append(Fetched(name, Code.OFFSET_OUT_OF_RANGE, (), position, position))
            elif position < (stable := partition.stable if request.committed else partition.end):
                records, behind, _ = partition.read(position, FETCH_BYTES, self._records_max(), stable)
                found.append(Fetched(name, NONE, records, behind, stable))
        return found

    def _records_max(self) -> int:
        return self._chance.randint(1, 3) if self._chance.random() < SHORT_SHARE else FETCH_RECORDS

    def _is_moving(self, kind: type[Any]) -> bool:
        self.moving = {which: until for which, until in self.moving.items() if until > self._loop.seconds}
        return ("transactions" in self.moving and kind in TRANSACTIONAL) or (
            "groups" in self.moving and kind in OF_GROUPS
        )

    def _draw_id(self) -> str:
        return f"{self._chance.getrandbits(64):016x}"


class WaitingFetch:
    """A fetch that has found nothing: it looks again whenever there may be something, and is answered once."""

    __slots__ = ("_broker", "_partitions", "_request", "_respond")

    def __init__(self, broker: Broker, request: Fetch, respond: Respond) -> None:
        self._broker, self._request = broker, request
        self._respond: Respond | None = respond
        found = [broker.partition(name) for name, _ in request.partitions]
        self._partitions = [partition for partition in found if partition is not None]

    def wait(self) -> None:
        """Be told when there may be something."""
        for partition in self._partitions:
            partition.waiting[self._request.client] = self

    def look(self) -> None:
        """Be answered, or go on waiting."""
        if self._respond is not None:
            found = self._broker.read(self._request)
            if found:
                self.finish(found)
            else:
                self.wait()

    def finish(self, found: Sequence[Fetched]) -> None:
        """Be answered, unless that has been done."""
        respond, self._respond = self._respond, None
        if respond is None:
            return
        for partition in self._partitions:
            if partition.waiting.get(self._request.client) is self:
                del partition.waiting[self._request.client]
        respond(Answer(NONE, found))


def _described(topic: Topic) -> Described:
    return Described(len(topic.partitions), topic.id, topic.spec)
