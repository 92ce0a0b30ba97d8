"""Topics of others, each bound to one tenant: what stands there goes on into `schedule-changes`, or is rejected.

A group for each topic shares its partitions among the schedulers' processes. What a partition's batch becomes and the
positions of the batch are one transaction, so a record goes on once, whatever is killed meanwhile:

    before the commit      nothing was seen; the successor reads the same records again
    after it               the successor reads behind them

Nothing is kept here but the group's positions. Should those be lost, the topic is read again from its oldest record,
and the owners of the schedules know what they have seen: by id for a week, by `source_version` for ever. A topic that
is not there, or that we may not read, waits for its people and holds up nobody else.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from runtime.host import PartitionService, RoleService, pause_when_fenced
from runtime.lifecycle import persevere
from runtime.log import Fenced, LogError, OffsetOutOfRange
from runtime.logs.kafka.settings import KafkaSettings
from runtime.record import Outgoing, TopicPartition
from runtime.telemetry import Event, Metric
from scheduler import forwarding, ingress
from schemas import codec, identity, topics
from schemas.facts import CommandRejected, Position
from schemas.scheduling import CommandForwarded

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from runtime.clock import Clock
    from runtime.lifecycle import Running
    from runtime.log import Log, Producer, Reader
    from runtime.record import Record
    from runtime.telemetry import Telemetry

RECORDS_MAX = 500  # of one transaction, so that it stays short
BYTES_MAX = 1024 * 1024

Decision = CommandForwarded | CommandRejected


@dataclass(frozen=True, slots=True, kw_only=True)
class OfOthers(KafkaSettings):
    """Settings of a log whose topics go by their full names, as others call them. Groups and ids stay ours."""

    ours: str  # the namespace of this Tidewheel

    def named(self, name: str) -> str:
        """See `KafkaSettings.named`."""
        return self.ours + topics.PREFIX + name


def of_others(settings: KafkaSettings) -> OfOthers:
    """The same brokers, seen without our namespace."""
    return OfOthers(
        bootstrap=settings.bootstrap, replication_factor=settings.replication_factor,
        min_insync_replicas=settings.min_insync_replicas, session_timeout=settings.session_timeout,
        plaintext=settings.plaintext, properties=settings.properties, ours=settings.namespace,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """A topic, whom it speaks for, and where the line is: our topics stand behind `namespace`, in `partitions` each."""

    topic: str
    tenant: str
    namespace: str
    partitions: int

    @property
    def role(self) -> str:
        """What its group and its producers are called, and its partitions in log events and metrics."""
        return f"ingress.{self.topic}"

    def outgoing(self, decision: Decision, *, source: str) -> Outgoing:
        """The record of a decision, in the partition where its owner looks for it."""
        if isinstance(decision, CommandForwarded):
            value, headers = forwarding.record_of(decision), forwarding.headers_of(decision)
            return self._record(topics.SCHEDULE_CHANGES, decision.subject, value, headers)
        _, value = codec.encode(decision, source=source, time=decision.rejected_at)
        return self._record(topics.REJECTIONS, decision.subject, value, ())

    def _record(self, topic: str, key: str, value: bytes, headers: tuple[tuple[str, bytes], ...]) -> Outgoing:
        partition = identity.partition_of(key, self.partitions)
        return Outgoing(self.namespace + topic, partition, key.encode(), value, headers)


class IngressPartition:
    """`Work` on one partition of a bound topic."""

    def __init__(
        self, binding: Binding, number: int, log: Log, *, now: Callable[[], datetime], telemetry: Telemetry
    ) -> None:
        self._binding, self._log, self._now, self._telemetry = binding, log, now, telemetry
        self._place = TopicPartition(binding.topic, number)
        self._source = f"tidewheel/{binding.role}-{number}"
        self._where = {"role": binding.role, "partition": str(number)}
        self._producer: Producer | None = None
        self._reader: Reader | None = None

    def open(self) -> None:
        """Fence the predecessor first: what it had open is decided before its positions are asked for."""
        role = self._binding.role
        self._producer = self._log.open_producer(f"{role}.{self._place.partition}", group=role)
        known = self._log.committed(role, [self._place])
        position = known[self._place] if self._place in known else self._log.begin_offset(self._place)
        self._reader = self._log.open_reader({self._place: position})

    def step(self, timeout: float) -> bool:
        """See `Work.step`."""
        assert self._reader is not None, "open comes first"
        try:
            records = self._reader.poll(records_max=RECORDS_MAX, bytes_max=BYTES_MAX, timeout=timeout)
        except OffsetOutOfRange as error:
            self._go_on_from_the_oldest(self._reader, error)
            return True
        if records:
            self._commit([self._decide(record) for record in records], self._reader.position(self._place))
            self._telemetry.count(Metric.RECORDS_READ, self._where, len(records))
        return bool(records)

    def settle(self) -> None:
        """See `Work.settle`: every batch says all there is to say."""

    def wake(self) -> None:
        """See `Work.wake`."""
        if self._reader is not None:
            self._reader.wake()

    def close(self) -> None:
        """See `Work.close`."""
        if self._reader is not None:
            self._reader.close()
        if self._producer is not None:
            self._producer.close()

    def _decide(self, record: Record) -> Decision:
        decision = ingress.decide(record, self._binding.tenant, self._now())
        if isinstance(decision, CommandRejected):
            self._telemetry.count(Metric.RECORDS_REJECTED, self._where)
            self._telemetry.warning(
                Event.RECORD_REJECTED, offset=record.offset, reason=decision.reason, topic=record.topic, **self._where
            )
        return decision

    def _go_on_from_the_oldest(self, reader: Reader, error: OffsetOutOfRange) -> None:
        """Its retention is not ours: what it has deleted is lost, which is said, and the line goes on."""
        stood, oldest = reader.position(self._place), self._log.begin_offset(self._place)
        if oldest <= stood <= self._log.end_offset(self._place):
            raise error  # It can be read from there: the broker that said otherwise is behind the others.
        position = Position(topic=self._place.topic, partition=self._place.partition, offset=stood)
        self._telemetry.error(Event.RECORDS_LOST, offset=stood, oldest=oldest, topic=self._place.topic, **self._where)
        self._commit([ingress.lost(position, oldest, self._binding.tenant, self._now())], oldest)
        reader.assign({self._place: oldest})

    def _commit(self, decisions: Sequence[Decision], position: int) -> None:
        assert self._producer is not None, "open comes first"
        self._producer.begin()
        self._producer.send([self._binding.outgoing(decision, source=self._source) for decision in decisions])
        self._producer.commit({self._place: position})


class IngressService(RoleService):
    """Our share of a bound topic. Ready at once: whether it can be read is in others' hands, and holds up nobody."""

    def __init__(self, binding: Binding, log: Log, *, member: str, clock: Clock, telemetry: Telemetry) -> None:
        role = binding.role

        def make(number: int, log: Log) -> PartitionService:
            return PartitionService(
                role, number, lambda: IngressPartition(binding, number, log, now=clock.now, telemetry=telemetry),
                telemetry, pause_when_fenced=lambda times: pause_when_fenced(times, random.random()),
            )  # fmt: skip

        super().__init__(role, binding.topic, log, member=f"{role}-{member}", make=make, telemetry=telemetry)

    def _run(self, running: Running) -> None:
        running.ready()
        persevere(running, lambda: super(IngressService, self)._run(running), against=LogError, told=self._wait)

    def _wait(self, error: Exception) -> None:
        if isinstance(error, Fenced):
            raise error  # Another process has our name: that is ours to end.
        self._telemetry.warning(Event.INGRESS_WAITS, role=self.name, topic=self._topic, reason=str(error))
