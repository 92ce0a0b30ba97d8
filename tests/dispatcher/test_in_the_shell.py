"""The core in the runtime's own shell, over a simulated log: restarts, lost stores, workers that die."""

from __future__ import annotations

from datetime import timedelta
from random import Random

import pytest

from dispatcher.core import DispatcherCore
from runtime.limits import Limits
from runtime.logs.simulated import SimulatedLog
from runtime.partition import Inputs, Partition
from runtime.processor import Processor, World
from runtime.record import Outgoing, Record, TopicPartition
from runtime.store import Store
from runtime.stores.memory import MemoryStore
from runtime.telemetry import Telemetry
from schemas import codec, topics
from schemas.facts import AttemptFinished, ClockHeld, ClockReleased, Fact, Outcome, RunFinished
from schemas.internal import FinishedLease, HandOut, LeaseNotice, WorkerReport
from simulation.clock import ManualClock
from tests.dispatcher.harness import QUEUE, T0, TASK, of, run

LAYOUT = topics.Layout(schedule=1, shard=1)
INBOX = topics.dispatch_topic(QUEUE)
PARTITION = Partition(
    role="dispatcher", number=0, inputs=Inputs(lead=topics.RUNS, companions=(topics.ATTEMPTS,)), layout=LAYOUT
)


class Line:
    """A log, one dispatcher partition over it, and workers that read their inbox and report."""

    def __init__(self, seed: int, *, limits: Limits | None = None) -> None:
        self.chance = Random(seed)
        self.clock = ManualClock(T0)
        self.limits = limits or Limits()
        self.log = SimulatedLog(seed, self.clock)
        self.log.create({spec: LAYOUT.partitions(spec.family) for spec in topics.topic_table(topics.Retention())})
        self.log.create({topics.dispatch_spec(QUEUE, topics.Retention()): topics.INBOXES})
        self.store: Store = MemoryStore()
        self.processor = self.start()
        self.workers = [LineWorker(self, number) for number in range(3)]

    def start(self) -> Processor:
        world = World(clock=self.clock, entropy=lambda: self.chance.randbytes(16), telemetry=Telemetry())
        processor = Processor(DispatcherCore(LAYOUT, 0), PARTITION, self.log, self.store, world, limits=self.limits)
        processor.open()
        return processor

    def restart(self, *, lose_store: bool) -> None:
        """Another process takes the partition over; the old one is not asked."""
        if lose_store:
            self.store = MemoryStore()
        self.processor = self.start()

    def publish(self, topic: str, fact: Fact) -> None:
        _, value = codec.encode(fact, source="tidewheel/test", time=self.clock.now())
        self.log.append([Outgoing(topic, 0, b"", value)])

    def settle(self) -> None:
        for _ in range(1000):
            if not self.processor.step(0.0):
                return
        raise AssertionError("the partition is never done")

    def records(self, topic: str, partition: int = 0) -> list[Record]:
        where = TopicPartition(topic, partition)
        reader = self.log.open_reader({where: 0})
        found: list[Record] = []
        while reader.position(where) < self.log.end_offset(where):
            found += reader.poll(records_max=1000, bytes_max=1 << 24, timeout=0.0)
        reader.close()
        return found

    def facts(self, topic: str, partition: int = 0) -> list[Fact]:
        return [codec.read_fact(record.value or b"") for record in self.records(topic, partition)]


class LineWorker:
    """Two slots; works for a while on each run; may be killed, and then comes back under another incarnation."""

    def __init__(self, line: Line, number: int) -> None:
        self.line, self.name, self.lives = line, f"w{number}", 0
        self.begin()

    def begin(self) -> None:
        self.lives += 1
        self.incarnation = f"{self.name}-{self.lives}"
        self.inbox = self.line.chance.randrange(topics.INBOXES)
        self.where = TopicPartition(INBOX, self.inbox)
        self.reader = self.line.log.open_reader({self.where: self.line.log.end_offset(self.where)})
        self.number, self.read_up_to = 0, -1
        self.held: dict[str, int] = {}  # lease → turns of work left

    def turn(self) -> None:
        """Read, work, report."""
        began = self.read()
        done = [lease for lease, left in self.held.items() if left <= 0]
        self.held = {lease: left - 1 for lease, left in self.held.items() if left > 0}
        self.number += 1
        report = WorkerReport(
            queue=QUEUE, shard=0, worker=self.name, incarnation=self.incarnation, number=self.number, inbox=self.inbox,
            read_up_to=self.read_up_to, slots=2 - len(self.held), tasks=(TASK,), held=tuple(self.held),
            started=tuple(began),
            finished=tuple(FinishedLease(lease=lease, outcome=self.word()) for lease in done),
        )  # fmt: skip
        self.line.publish(topics.ATTEMPTS, report)

    def word(self) -> str:
        return self.line.chance.choice(("succeeded", "succeeded", "succeeded", "failed"))

    def read(self) -> list[str]:
        began = []
        while self.reader.position(self.where) < self.line.log.end_offset(self.where):
            for record in self.reader.poll(records_max=100, bytes_max=1 << 20, timeout=0.0):
                fact = codec.read_fact(record.value or b"")
                if isinstance(fact, HandOut):
                    self.read_up_to = max(self.read_up_to, fact.offset)
                    if fact.incarnation == self.incarnation:
                        began.append(fact.lease)
                        self.held[fact.lease] = self.line.chance.randrange(3)
                elif isinstance(fact, LeaseNotice) and fact.incarnation == self.incarnation:
                    self.held = {lease: left for lease, left in self.held.items() if lease not in fact.ended}
        return began


@pytest.mark.parametrize("seed", range(4))
def test_every_run_has_one_outcome_whatever_dies_on_the_way(seed):
    line = Line(seed, limits=Limits(records=7, facts=40))
    for number in range(60):
        line.publish(topics.RUNS, run(number, at=line.clock.now()))
        if line.chance.random() < 0.1:
            line.publish(topics.RUNS, run(number, at=line.clock.now()))  # a second time
        if line.chance.random() < 0.15:
            line.restart(lose_store=line.chance.random() < 0.5)
        if line.chance.random() < 0.1:
            line.chance.choice(line.workers).begin()
        for worker in line.workers:
            if line.chance.random() < 0.8:
                worker.turn()
        line.processor.step(0.0)
        line.clock.advance(timedelta(seconds=line.chance.choice((0.1, 1, 4))))
    for _ in range(800):  # fifty minutes: retries wait for their budget
        line.settle()
        if len(outcomes(line)) == 60:
            break
        for worker in line.workers:
            worker.turn()
        line.clock.advance(timedelta(seconds=4))
    finished = outcomes(line)
    assert sorted(fact.run_id for fact in finished) == sorted(f"nightly.{number}" for number in range(60))
    assert {fact.outcome for fact in finished} <= {Outcome.SUCCEEDED, Outcome.DEAD_LETTERED}
    offsets = [fact.offset for inbox in range(topics.INBOXES) for fact in of(line.facts(INBOX, inbox), HandOut)]
    assert len(offsets) == len(set(offsets))
    assert of(line.facts(topics.RUN_EVENTS), RunFinished) == finished


def outcomes(line: Line) -> list[RunFinished]:
    return of(line.facts(topics.RUN_OUTCOMES), RunFinished)


def test_a_partition_that_has_nothing_to_do_does_nothing_also_after_a_restart():
    line = Line(7)
    for number in range(5):
        line.publish(topics.RUNS, run(number))
    line.settle()
    line.workers[0].turn()
    line.settle()
    line.clock.advance(timedelta(seconds=1))
    line.settle()
    for lose_store in (False, True):
        line.restart(lose_store=lose_store)
        line.settle()
        assert line.processor.step(0.0) is False


def test_a_shard_is_the_same_from_its_store_and_from_its_changelog():
    line = Line(11)
    for number in range(80):
        line.publish(topics.RUNS, run(number))
        line.workers[number % 3].turn()
        line.settle()
        line.clock.advance(timedelta(seconds=2))
    kept = dict(line.store.scan(b"r", b"s"))
    line.restart(lose_store=True)
    assert dict(line.store.scan(b"r", b"s")) == kept


def test_a_worker_that_reports_while_the_clock_is_held_keeps_its_run():
    """Its reports are read while no time passes: measured by them, its lease would end when time goes on."""
    line = Line(7)
    worker = line.workers[0]
    worker.turn()
    line.publish(topics.RUNS, run(1))
    line.settle()
    worker.read()
    worker.held = dict.fromkeys(worker.held, 100)  # turns
    worker.turn()
    line.settle()
    line.clock.set_wall(line.clock.now() + timedelta(hours=1))
    for _ in range(8):
        line.clock.advance(timedelta(seconds=5))
        worker.turn()
        line.settle()
    line.clock.set_wall(line.clock.now() - timedelta(hours=1))
    for _ in range(4):
        line.settle()
        line.clock.advance(timedelta(seconds=5))
        worker.turn()
    said = line.facts(topics.RUN_EVENTS)
    assert [len(of(said, kind)) for kind in (ClockHeld, ClockReleased)] == [1, 1]
    assert of(said, AttemptFinished) == []


def handed_out(line: Line) -> list[str]:
    """Whose runs are with workers."""
    return [fact.run.tenant for box in range(topics.INBOXES) for fact in of(line.facts(INBOX, box), HandOut)]


def test_a_run_behind_a_flood_of_another_tenants_is_handed_out_in_the_batch_that_reads_it():
    """It would be its tenant's turn long since, and nobody would know that it is there."""
    line = Line(1, limits=Limits(records=100))
    worker = line.workers[0]
    worker.turn()
    line.settle()
    for number in range(350):
        line.publish(topics.RUNS, run(number, tenant="flood"))
    line.publish(topics.RUNS, run(1, tenant="acme"))
    line.processor.step(0.0)
    assert handed_out(line) == ["flood", "flood"]
    worker.turn()
    for lease in worker.held:
        worker.held[lease] = 0
    worker.turn()
    line.processor.step(0.0)
    assert "acme" in handed_out(line)
    line.restart(lose_store=True)
    line.settle()
    assert handed_out(line).count("acme") == 1
