"""The line in one process under a clock that only moves when told: both roles on a simulated log, and a worker.

Everything between the ports is the production code: processors, cores, codec, topics. Log, clock and worker are ours.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from dispatcher.core import DispatcherCore
from node.figures import DispatcherFigures, SchedulerFigures
from node.roles import DISPATCHER, SCHEDULER
from runtime.limits import Limits
from runtime.log import Log, Reader
from runtime.partition import Partition
from runtime.processor import Processor, World
from runtime.record import REPLY_HEADER, Outgoing, Record, TopicPartition
from runtime.store import Store
from runtime.stores.memory import MemoryStore
from runtime.telemetry import Telemetry
from scheduler import SchedulerCore
from scheduler.occurrences import tz_version
from schemas import codec, identity, topics
from schemas.facts import ErrorInfo, Fact
from schemas.internal import FinishedLease, HandOut, WorkerReport
from simulation.clock import ManualClock

LAYOUT = topics.Layout(schedule=2, shard=2)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Task = Callable[[HandOut], FinishedLease | None]  # None: it goes on


def succeed(handout: HandOut) -> FinishedLease:
    """The task that does what it should."""
    return FinishedLease(lease=handout.lease, outcome="succeeded", result={"attempt": handout.attempt})


def fail(handout: HandOut) -> FinishedLease:
    """The task that never does."""
    error = ErrorInfo(type="RuntimeError", message=f"attempt {handout.attempt}")
    return FinishedLease(lease=handout.lease, outcome="failed", error=error)


@dataclass(slots=True)
class SimulatedWorker:
    """A worker as the log sees it: reads its inbox, runs a task at once, reports."""

    log: Log
    layout: topics.Layout
    task: Task = succeed
    queue: str = "default"
    name: str = "worker-1"
    incarnation: str = "incarnation-1"
    slots: int = 100
    tasks: tuple[str, ...] = ("work",)
    number: int = 0
    read_up_to: int = -1
    held: dict[str, HandOut] = field(default_factory=dict)
    _reader: Reader = field(init=False)

    def __post_init__(self) -> None:
        self.log.create({topics.dispatch_spec(self.queue, topics.Retention()): topics.INBOXES})
        inbox = TopicPartition(topics.dispatch_topic(self.queue), 0)
        self._reader = self.log.open_reader({inbox: self.log.end_offset(inbox)})

    def announce(self) -> None:
        """Say who it is and what it can do."""
        self._report((), ())

    def work(self) -> bool:
        """Read the inbox, run what was handed out, report. Whether there was anything to do."""
        records = self._reader.poll(records_max=500, bytes_max=1 << 22, timeout=0.0)
        started = [lease for record in records for lease in self._take(record)]
        finished = [done for handout in list(self.held.values()) if (done := self.task(handout)) is not None]
        for done in finished:
            del self.held[done.lease]
        if started or finished:
            self._report(tuple(started), tuple(finished))
        return bool(records or finished)

    def _take(self, record: Record) -> Iterator[str]:
        fact = codec.read_fact(record.value or b"")
        if isinstance(fact, HandOut):
            self.read_up_to = max(self.read_up_to, fact.offset)
            if fact.incarnation == self.incarnation:
                self.held[fact.lease] = fact
                yield fact.lease

    def _report(self, started: tuple[str, ...], finished: tuple[FinishedLease, ...]) -> None:
        self.number += 1
        report = WorkerReport(
            queue=self.queue, shard=0, worker=self.name, incarnation=self.incarnation, number=self.number, inbox=0,
            read_up_to=self.read_up_to, slots=self.slots - len(self.held), tasks=self.tasks,
            held=tuple(self.held), started=started, finished=finished,
        )  # fmt: skip
        partition = identity.partition_of(self.queue, self.layout.shard)
        _, value = codec.encode(report, source="tidewheel/worker", time=EPOCH)
        self.log.append([Outgoing(topics.ATTEMPTS, partition, self.incarnation.encode(), value)])


class Line:
    """All partitions of both roles over one log. `settle` runs whatever can run without time passing."""

    def __init__(
        self, log: Log, clock: ManualClock, *, layout: topics.Layout = LAYOUT,
        limits: Limits | None = None, make_store: Callable[[], Store] = MemoryStore,
        accept_clock_after: timedelta | None = timedelta(seconds=60), telemetry: Telemetry | None = None,
    ) -> None:  # fmt: skip
        self.log, self.clock, self.layout = log, clock, layout
        self._limits = limits or Limits()
        self._accept_clock_after = accept_clock_after
        self.telemetry = telemetry or Telemetry(logger=_Silent())
        self._commands = 0
        log.create({spec: layout.partitions(spec.family) for spec in topics.topic_table(topics.Retention())})
        self._make_store = make_store
        self.stores: dict[tuple[str, int], Store] = {}
        self.workers: list[SimulatedWorker] = []
        self.processors: list[Processor] = []
        self.start()

    def start(self) -> None:
        """Take all partitions over: the first time, or as new processes after a crash of all."""
        numbers = [("scheduler", n) for n in range(self.layout.schedule)]
        numbers += [("dispatcher", n) for n in range(self.layout.shard)]
        self.processors = [self._open(role, number) for role, number in numbers]

    def _open(self, role: str, number: int) -> Processor:
        inputs = SCHEDULER if role == "scheduler" else DISPATCHER
        core: Any = (
            SchedulerCore(self.layout, number, tz_version())
            if role == "scheduler"
            else DispatcherCore(self.layout, number)
        )
        store = self.stores.setdefault((role, number), self._make_store())
        world = World(clock=self.clock, entropy=lambda: bytes(16), telemetry=self.telemetry)
        observer = SchedulerFigures if role == "scheduler" else DispatcherFigures
        partition = Partition(role=role, number=number, inputs=inputs, layout=self.layout)
        processor = Processor(
            core, partition, self.log, store, world, limits=self._limits, accept_clock_after=self._accept_clock_after,
            observer=observer(self.telemetry, number),
        )  # fmt: skip
        processor.open()
        return processor

    def worker(self, task: Task = succeed, **fields: Any) -> SimulatedWorker:
        """Add a worker and let it announce itself."""
        worker = SimulatedWorker(log=self.log, layout=self.layout, task=task, **fields)
        self.workers.append(worker)
        worker.announce()
        return worker

    def command(self, type_: str, data: Mapping[str, Any], *, id_: str = "") -> str:
        """Publish a command as an upstream system would; its id."""
        self._commands += 1
        command_id = id_ or f"command-{self._commands}"
        envelope = {
            "specversion": "1.0", "id": command_id, "source": "tests", "type": f"tidewheel.{type_}.v1",
            "subject": f"{data['tenant']}/{data['name']}", "data": data,
        }  # fmt: skip
        key = f"{data['tenant']}/{data['name']}"
        partition = identity.partition_of(key, self.layout.schedule)
        headers = ((REPLY_HEADER, b"0"),)
        value = orjson.dumps(envelope)
        self.log.append([Outgoing(topics.SCHEDULE_CHANGES, partition, key.encode(), value, headers)])
        return command_id

    def settle(self) -> None:
        """Let everyone work until nobody has anything to do."""
        busy = deque([True])
        while busy.popleft():
            steps = [processor.step(0.0) for processor in self.processors]
            works = [worker.work() for worker in self.workers]
            busy.append(any(steps) or any(works))

    def advance(self, by: timedelta, *, step: timedelta = timedelta(seconds=1)) -> None:
        """Let time pass in steps, and settle after each. Workers report often enough to be live."""
        end = self.clock.now() + by
        while self.clock.now() < end:
            self.clock.advance(min(step, end - self.clock.now()))
            for worker in self.workers:
                worker.announce()
            self.settle()

    def facts(self, topic: str) -> list[Fact]:
        """All facts on a topic, partition by partition."""
        return [codec.read_fact(record.value) for record in self.records(topic) if record.value is not None]

    def records(self, topic: str) -> list[Record]:
        """All records of a topic, partition by partition."""
        found: list[Record] = []
        for number in range(self.log.partitions(topic)):
            where = TopicPartition(topic, number)
            reader = self.log.open_reader({where: self.log.begin_offset(where)})
            while reader.position(where) < self.log.end_offset(where):
                found += reader.poll(records_max=5000, bytes_max=1 << 26, timeout=0.0)
            reader.close()
        return found


class _Silent:
    """A logger that says nothing."""

    def __getattr__(self, _name: str) -> Callable[..., None]:
        return lambda *_arguments, **_fields: None
