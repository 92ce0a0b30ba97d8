"""Processor time a run, by stage of the line: the real processors, log, stores and rows, all in one thread.

Nothing runs beside anything else, so that what is measured is work and not waiting, and a busy machine changes little:
of the seconds that are played the median counts. What the line has besides is HTTP, and its threads' turns.

    scheduler    an occurrence is due, becomes a run, its outcome is settled      four partitions
    dispatcher   a run is kept, handed out, started, finished                     one shard
    worker       reads its inbox and reports: here little more than a reader      to play the part
    projector    events become rows
"""

from __future__ import annotations

import gc
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import orjson

from dispatcher.core import DispatcherCore
from node.roles import Entropy, partitions_of
from projections import batch
from projections.store.database import open_database
from projections.store.writer import Writer
from runtime.logs.embedded import EmbeddedLog
from runtime.partition import Partition
from runtime.processor import Processor, World
from runtime.record import Outgoing, TopicPartition
from runtime.stores.rocksdb import RocksStore
from runtime.telemetry import Telemetry
from scheduler import SchedulerCore
from scheduler.occurrences import tz_version
from schemas import codec, identity, topics
from schemas.internal import FinishedLease, WorkerReport
from simulation.clock import ManualClock

SCHEDULES = int(os.environ.get("SCHEDULES", "1000"))
SECONDS = int(os.environ.get("SECONDS", "20"))
LAYOUT = topics.Layout()
START = datetime(2026, 3, 2, 10, 0, tzinfo=UTC)
SLOTS = 1000
QUEUE, TASK, TENANT = "default", "bench.note", "bench"
STAGES = ("scheduler", "dispatcher", "worker", "projector")


class Line:
    """All stages over one log."""

    def __init__(self, folder: Path) -> None:
        self.clock = ManualClock(START)
        self.log = EmbeddedLog(folder / "log", self.clock)
        self.log.create({spec: LAYOUT.partitions(spec.family) for spec in topics.topic_table(topics.Retention())})
        self.log.create({topics.dispatch_spec(QUEUE, topics.Retention()): topics.INBOXES})
        self.processors = [(each.role, self._processor(each, folder)) for each in partitions_of(LAYOUT)]
        self.worker = Worker(self.log, self.clock)
        self.projector = Rows(self.log, folder)
        self.spent = dict.fromkeys(STAGES, 0.0)
        for _, processor in self.processors:
            processor.open()

    def _processor(self, partition: Partition, folder: Path) -> Processor:
        world = World(clock=self.clock, entropy=Entropy(), telemetry=Telemetry())
        core: Any = (
            SchedulerCore(LAYOUT, partition.number, tz_version())
            if partition.role == "scheduler"
            else DispatcherCore(LAYOUT, partition.number)
        )
        store = RocksStore(folder / f"{partition.role}-{partition.number}")
        return Processor(core, partition, self.log, store, world)

    def settle(self) -> None:
        """Let every stage work in turn until none has anything to do; one step may only learn what has been read."""
        idle = 0
        while idle < 2:
            worked = [self._timed(role, partial(processor.step, 0.0)) for role, processor in self.processors]
            worked.append(self._timed("worker", self.worker.step))
            worked.append(self._timed("projector", self.projector.step))
            idle = 0 if any(worked) else idle + 1

    def _timed(self, stage: str, work: Callable[[], bool]) -> bool:
        began = time.thread_time()
        worked = work()
        self.spent[stage] += time.thread_time() - began
        return worked


class Worker:
    """One worker that has done everything at once."""

    def __init__(self, log: EmbeddedLog, clock: ManualClock) -> None:
        self._log, self._clock = log, clock
        self._reader = log.open_reader({TopicPartition(topics.dispatch_topic(QUEUE), 0): 0})
        self._number, self._read_up_to, self.done = 0, -1, 0

    def step(self) -> bool:
        """Read what came, and say that it is done."""
        records = self._reader.poll(records_max=SLOTS, bytes_max=1 << 24, timeout=0)
        heads = [orjson.loads(record.value)["data"] for record in records if record.value]
        leases = tuple(head["lease"] for head in heads if "lease" in head)
        if leases or not self._number:
            self._report(leases, max((head["offset"] for head in heads if "offset" in head), default=-1))
        return bool(leases)

    def _report(self, leases: tuple[str, ...], read_up_to: int) -> None:
        self._number += 1
        self.done += len(leases)
        self._read_up_to = max(self._read_up_to, read_up_to)
        report = WorkerReport(
            queue=QUEUE, shard=0, worker="w", incarnation="w-1", number=self._number, inbox=0,
            read_up_to=self._read_up_to, slots=SLOTS, tasks=(TASK,), started=leases,
            finished=tuple(FinishedLease(lease=lease, outcome="succeeded") for lease in leases),
        )  # fmt: skip
        _, value = codec.encode(report, source="bench", time=self._clock.now())
        partition = identity.partition_of(QUEUE, LAYOUT.shard)
        self._log.append([Outgoing(topics.ATTEMPTS, partition, b"w-1", value)])


class Rows:
    """What the projector does with what it reads."""

    def __init__(self, log: EmbeddedLog, folder: Path) -> None:
        self._writer = Writer(open_database(f"sqlite:///{folder}/rows.sqlite", alone=True))
        self._writer.belong_to({}, anew=True)
        self._inputs = [TopicPartition(name, each) for name in batch.INPUTS for each in range(log.partitions(name))]
        self._stored = dict.fromkeys(self._inputs, 0)
        self._reader = log.open_reader(self._stored)
        self._written: dict[TopicPartition, int] = {}

    def step(self) -> bool:
        """One batch."""
        records = self._reader.poll(records_max=2000, bytes_max=1 << 23, timeout=0)
        if records:
            reached = {place: self._reader.position(place) for place in self._inputs}
            self._writer.apply(batch.fold(batch.read_all(records), self._writer.load), self._written, reached)
            self._written = reached
        return bool(records)


def main() -> None:
    """Print microseconds of processor time a run."""
    with tempfile.TemporaryDirectory(prefix="tidewheel-bench-") as folder:
        line = Line(Path(folder))
        line.log.append([_put(number) for number in range(SCHEDULES)])
        line.settle()
        gc.freeze()
        gc.set_threshold(50_000, 20, 50)  # as in a server
        notes = [dict(line.spent)]
        for _ in range(SECONDS):
            line.clock.advance(timedelta(seconds=1))
            line.settle()
            notes.append(dict(line.spent))
        assert line.worker.done == SCHEDULES * SECONDS, line.worker.done
        each = {stage: _median(notes, stage) for stage in STAGES}
        for stage, micros in each.items():
            print(f"{stage:>12}  {micros:6.1f} µs a run")
        print(f"{'all':>12}  {sum(each.values()):6.1f} µs a run")
        for _, processor in line.processors:
            processor.close()
        line.log.close()


def _median(notes: list[dict[str, float]], stage: str) -> float:
    spent = [later[stage] - earlier[stage] for earlier, later in pairwise(notes)]
    return statistics.median(spent[1:]) / SCHEDULES * 1e6


def _put(number: int) -> Outgoing:
    definition = {
        "trigger": {"every": "PT1S", "anchor": START.isoformat()},
        "overlap": {"policy": "allow_all"},
        "job": {"target": {"type": "task", "name": TASK}, "payload": {"number": number}},
    }
    name = f"s{number}"
    data = {"tenant": TENANT, "name": name, "definition": definition}
    event = {"specversion": "1.0", "id": str(number), "source": "bench", "type": "tidewheel.schedule.put.v1"}
    partition = identity.partition_of(f"{TENANT}/{name}", LAYOUT.schedule)
    return Outgoing(
        topics.SCHEDULE_CHANGES, partition, f"{TENANT}/{name}".encode(), orjson.dumps(event | {"data": data})
    )


if __name__ == "__main__":
    main()
