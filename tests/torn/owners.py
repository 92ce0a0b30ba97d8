"""The owner of one partition as a process of its own would be: network, log, store and service, all production code.

Two guards keep a torn transaction from doing harm, and each can be taken away here. `Guards.doubt` is the rule that
replaces a producer after a commit that leaves doubt. `Guards.decisions` is that a restore finds decision records: an
owner without it cannot roll a transaction forward, and believes that what has no footer was not committed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Self
from weakref import WeakSet

from dispatcher.core import DispatcherCore
from node.roles import DISPATCHER, SCHEDULER, Entropy
from runtime import footer as framing
from runtime.clock import Clock
from runtime.host import PartitionService
from runtime.log import LogError, Producer, Reader, Receipt
from runtime.logs.kafka.doubt import Seen, doubt
from runtime.logs.kafka.log import KafkaLog
from runtime.logs.kafka.settings import KafkaSettings
from runtime.partition import Partition
from runtime.processor import Processor, World
from runtime.record import Outgoing, Record, TopicPartition
from runtime.stores.rocksdb import RocksStore
from runtime.telemetry import Event, Telemetry
from scheduler import SchedulerCore
from scheduler.occurrences import tz_version
from schemas import topics
from tests.support.proxy import Proxy

LAYOUT = topics.Layout(schedule=2, shard=2)
SECONDS = 90.0  # A deadline for what takes a moment, on a machine that is busy with something else.
# Longer than all that a tear keeps back: nothing is to be aborted by its age.
SESSION = timedelta(seconds=20)
# A commit that gets no answer is asked for again after this: the longest wait of a tear. A busy machine answers later.
SOCKET_MS = "3000"
FENCED_SECONDS = 0.2  # before a partition is taken back from who fenced us by mistake
FENCED_MAX = 20
DISTURBED = (Event.COMMIT_RETRIED, Event.PARTITION_FENCED, Event.DECISION_ROLLED_FORWARD)


@dataclass(frozen=True, slots=True)
class Guards:
    """Which guards are up."""

    doubt: bool
    decisions: bool

    def __str__(self) -> str:
        return f"{'doubt' if self.doubt else '-'}/{'decisions' if self.decisions else '-'}"


@dataclass(slots=True)
class Standing:
    """The guards that are up now: they may change while owners live."""

    guards: Guards

    def doubts(self, seen: Seen) -> str:
        """`doubt`, or never any."""
        return doubt(seen) if self.guards.doubt else ""


def settings_of(bootstrap: str, namespace: str) -> KafkaSettings:
    """How these tests speak to a broker."""
    return KafkaSettings(
        bootstrap=bootstrap, namespace=namespace, replication_factor=1, min_insync_replicas=1, session_timeout=SESSION
    )


class Told:
    """A logger that counts events and keeps the last reasons."""

    def __init__(self) -> None:
        self.events: Counter[str] = Counter()
        self.reasons: list[str] = []

    def __getattr__(self, level: str) -> Callable[..., None]:
        return self._note

    def _note(self, event: str, **fields: Any) -> None:
        self.events[event] += 1
        if "reason" in fields:
            self.reasons.append(f"{event}: {fields['reason']}")


class Owner:
    """Owns a partition from `start` on, until it is stopped or another one takes over.

    What it writes goes through the proxy; what it asks and reads goes to `direct`, where nothing can be torn.
    """

    def __init__(
        self, settings: KafkaSettings, direct: KafkaLog, role: str, number: int, *, standing: Standing, clock: Clock,
        store: Path,
    ) -> None:  # fmt: skip
        self.role, self.number, self.store = role, number, store
        self.told = Told()
        self.replaced: list[str] = []
        self._closed = False
        self.proxy = Proxy(settings.bootstrap)
        self.proxy.open()
        through = replace(settings, bootstrap=self.proxy.bootstrap, properties={"socket.timeout.ms": SOCKET_MS})
        self._kafka = KafkaLog(
            through, clock, doubts=standing.doubts, replaced=lambda _id, why: self.replaced.append(why)
        )
        self.log = OwnersLog(direct, self._kafka, standing)
        telemetry = Telemetry(logger=self.told)
        world = World(clock=clock, entropy=Entropy(), telemetry=telemetry)
        partition = Partition(
            role=role, number=number, inputs=SCHEDULER if role == "scheduler" else DISPATCHER, layout=LAYOUT
        )

        def make() -> Processor:
            core: Any = (
                SchedulerCore(LAYOUT, number, tz_version()) if role == "scheduler" else DispatcherCore(LAYOUT, number)
            )
            rocks = RocksStore.opened(store, told=lambda why, _kept: self.told.reasons.append(f"store: {why}"))
            return Processor(core, partition, self.log, rocks, world)

        self.service = PartitionService(
            role, number, make, telemetry,
            pause_when_fenced=lambda times: FENCED_SECONDS if times <= FENCED_MAX else None,
        )  # fmt: skip

    def start(self) -> Self:
        """Take the partition over."""
        self.service.start()
        return self

    def wait_until_ready(self) -> None:
        """Return once it works; AssertionError with what it said otherwise."""
        assert self.service.ready(SECONDS), f"{self.role} {self.number}: {self.service.failure!r} {self.told.reasons}"

    def close(self, *, politely: bool) -> bool:
        """End it, whatever holds it up; whether it ended in time. A second call says the same."""
        if self._closed:
            return self.service.stop(0)
        self._closed = True
        self.proxy.clear()
        end = self.service.stop if politely else self.service.abandon
        end(0)
        self.proxy.thaw()
        self.log.wake()
        ended = end(SECONDS)
        self.proxy.release_all()
        with suppress(LogError):
            self._kafka.close()
        self.proxy.close()
        return ended

    def counts(self) -> Counter[str]:
        """What it did that an owner whom nothing disturbs does not do."""
        told = {event: self.told.events[event.value] for event in DISTURBED}
        return Counter({event.value: times for event, times in told.items()}) + Counter(replaced=len(self.replaced))


class OwnersLog:
    """A log whose waiting readers can be woken from outside, and which can fail a transaction before its end."""

    def __init__(self, log: KafkaLog, writing: KafkaLog, standing: Standing) -> None:
        self._log, self._writing, self._standing = log, writing, standing
        self._readers: WeakSet[Reader] = WeakSet()
        self.fail_next = False

    def wake(self) -> None:
        """Let all who wait look at the clock."""
        for reader in list(self._readers):
            reader.wake()

    def open_reader(self, positions: Mapping[TopicPartition, int]) -> Reader:
        """See `Log.open_reader`."""
        reader: Reader = self._log.open_reader(positions)
        if not self._standing.guards.decisions:
            reader = WithoutDecisions(reader)
        self._readers.add(reader)
        return reader

    def open_producer(self, transactional_id: str, *, group: str) -> Producer:
        """See `Log.open_producer`."""
        producer = self._writing.open_producer(transactional_id, group=group)
        producer.tells_time = False  # The owner's clock is turned by hand: the broker's says nothing of it.
        return Failing(producer, self)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)


class WithoutDecisions:
    """A reader to whom decision records are not there."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def poll(self, *, records_max: int, bytes_max: int, timeout: float) -> list[Record]:
        """See `Reader.poll`."""
        records = self._reader.poll(records_max=records_max, bytes_max=bytes_max, timeout=timeout)
        return [record for record in records if not (record.key or b"").startswith(framing.DECISION_KEY)]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reader, name)


class Failing:
    """A producer whose transaction fails at its end when told so, for a reason that is none of the broker's."""

    def __init__(self, producer: Producer, log: OwnersLog) -> None:
        self._producer, self._owners_log = producer, log

    epoch: int
    tells_time: bool

    def send(self, records: Iterable[Outgoing]) -> None:
        """See `Producer.send`."""
        self._producer.send(records)

    def commit(self, positions: Mapping[TopicPartition, int]) -> Receipt:
        """See `Producer.commit`."""
        if self._owners_log.fail_next:
            self._owners_log.fail_next = False
            self._producer.flush()
            raise LogError("failed on purpose before its end")
        return self._producer.commit(positions)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._producer, name)  # also `epoch`: a client that is replaced has another one
