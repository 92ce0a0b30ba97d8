"""One partition of the toy core on a log, driven step by step."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from runtime.limits import Limits
from runtime.partition import Inputs, Partition
from runtime.processor import Processor, World
from runtime.read_ahead import Allowance
from runtime.record import Outgoing, TopicPartition
from runtime.stores.memory import MemoryStore
from runtime.telemetry import Telemetry
from schemas import codec, topics
from simulation.clock import ManualClock
from tests.runtime.toy import Add, ToyCore

if TYPE_CHECKING:
    from runtime.log import Log
    from runtime.record import Record
    from runtime.store import Store
    from schemas.facts import Fact

LAYOUT = topics.Layout(schedule=1, shard=1)
NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
CHANGES = TopicPartition(topics.SCHEDULE_CHANGES, 0)
CHANGELOG = TopicPartition(topics.changelog_topic("scheduler"), 0)
PARTITION = Partition(
    role="scheduler",
    number=0,
    inputs=Inputs(lead=topics.SCHEDULE_CHANGES, companions=(topics.RUN_OUTCOMES,), references=(topics.CATALOG,)),
    layout=LAYOUT,
)


class Shell:
    """A log, a store and a processor over them; `restart` replaces the processor as a new process would."""

    def __init__(self, log: Log, clock: ManualClock, *, limits: Limits | None = None) -> None:
        self.log, self.clock = log, clock
        self.limits, self.ahead = limits or Limits(), Allowance()
        log.create({spec: LAYOUT.partitions(spec.family) for spec in topics.topic_table(topics.Retention())})
        self.store: Store = MemoryStore()
        self.core = ToyCore()
        self.processor = self.start()

    def start(self) -> Processor:
        """Take the partition over with a new processor."""
        self.telemetry = Telemetry()
        world = World(clock=self.clock, entropy=lambda: bytes(16), telemetry=self.telemetry, ahead=self.ahead)
        processor = Processor(self.core, PARTITION, self.log, self.store, world, limits=self.limits)
        processor.open()
        return processor

    def restart(self, *, lose_store: bool = False, core: ToyCore | None = None) -> None:
        """A new process takes over; the old one is not asked."""
        self.core = core or ToyCore()
        if lose_store:
            self.store = MemoryStore()
        self.processor = self.start()

    def publish(self, *adds: Add | bytes) -> None:
        """Append inputs."""
        values = [add if isinstance(add, bytes) else codec.dump(add) for add in adds]
        self.log.append([Outgoing(*CHANGES, b"k", value) for value in values])

    def settle(self) -> None:
        """Step until there is nothing to do."""
        while self.processor.step(0.0):
            pass

    def advance(self, **by: float) -> None:
        """Let time pass and settle."""
        self.clock.advance(timedelta(**by))
        self.settle()

    def records(self, topic: str, partition: int = 0) -> list[Record]:
        """All committed records of a partition."""
        where = TopicPartition(topic, partition)
        reader = self.log.open_reader({where: self.log.begin_offset(where)})
        found: list[Record] = []
        while reader.position(where) < self.log.stable_offset(where):
            found += reader.poll(records_max=1000, bytes_max=1 << 24, timeout=0.0)
        reader.close()
        return found

    def facts(self, topic: str = topics.RUN_EVENTS) -> list[Fact]:
        """All committed facts of a topic's only partition."""
        return [codec.read_fact(record.value or b"") for record in self.records(topic)]
