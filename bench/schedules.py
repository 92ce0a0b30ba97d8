"""Many distinct schedules on one partition: what they cost to accept, to keep, to run, and to leave alone.

    accepted     each is put by a command, through the whole shell: embedded log, RocksDB
    idle step    one in which nothing is due: it must cost the same however many schedules there are
    due          one minute's share of them, each at its own minute of the day

`SCHEDULES=20000` says how many are put; 100,000 take some five minutes. `STORED=200000` says beside how many the idle
step is taken again: they are written to the store as they would stand there, not put; a million takes minutes too.
Times are those of our own thread: others on the machine, and what RocksDB tidies up beside it, do not count.
"""

from __future__ import annotations

import gc
import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson

from node.roles import SCHEDULER, Entropy
from runtime.logs.embedded import EmbeddedLog
from runtime.partition import Partition
from runtime.processor import Processor, World
from runtime.record import Outgoing
from runtime.stores.rocksdb import RocksStore
from runtime.telemetry import Telemetry
from runtime.workspace import AT, KEYED, ROW, instant_bytes, row_key, split_row_key
from scheduler import SchedulerCore
from scheduler.occurrences import tz_version
from schemas import topics
from simulation.clock import ManualClock

FEW = 1_000
SCHEDULES = int(os.environ.get("SCHEDULES") or 20_000)
STORED = int(os.environ.get("STORED") or 200_000)
AT_ONCE = 1_000  # commands of one append
ROUNDS = 20
STEPS = 300  # idle ones; the median is told, which those that wrote a heartbeat do not move
LAYOUT = topics.Layout(schedule=1, shard=1)
BEGIN = datetime(2026, 3, 1, 0, 0, 30, tzinfo=UTC)
MINUTES = 1_440
MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class House:
    """One partition of the scheduler."""

    log: EmbeddedLog
    clock: ManualClock
    store: RocksStore
    processor: Processor
    folder: Path

    def settle(self) -> float:
        """Do all there is to do; the seconds of processor that it took."""
        began = time.thread_time()
        while self.processor.step(0.0):
            pass
        return time.thread_time() - began

    def put(self, numbers: range) -> None:
        """Publish that many schedules, each at a minute of the day and with a payload of its own."""
        for start in range(numbers.start, numbers.stop, AT_ONCE):
            self.log.append([_command(number) for number in range(start, min(start + AT_ONCE, numbers.stop))])

    def idle_micros(self) -> float:
        """The median of steps in which nothing is due, in the best of some rounds: until RocksDB has tidied up."""
        return min(self._median_of_idle_steps() for _ in range(ROUNDS)) * 1e6

    def _median_of_idle_steps(self) -> float:
        spent = []
        for _ in range(STEPS):
            began = time.thread_time()
            self.processor.step(0.0)
            spent.append(time.thread_time() - began)
        return statistics.median(spent)


def main() -> None:
    """Print all of it."""
    with house() as few:
        few.put(range(FEW))
        few.settle()
        print(f"idle step beside {FEW:>9,} schedules   {few.idle_micros():8.1f} µs")
        _stored(few, STORED)
        print(f"idle step beside {STORED:>9,} schedules   {few.idle_micros():8.1f} µs   (written to the store)")
    with house() as many:
        gc.collect()
        before = _resident()
        many.put(range(SCHEDULES))
        took = many.settle()
        print(f"accepted {SCHEDULES:,} schedules   {took / SCHEDULES * 1e6:8.1f} µs each   {took:.1f} s in all")
        print(f"memory   {_resident() - before:8.1f} MiB more   {_on_disk(many.folder / 'state'):8.1f} MiB of store")
        print(f"idle step beside {SCHEDULES:>9,} schedules   {many.idle_micros():8.1f} µs")
        many.clock.advance(timedelta(minutes=1))
        due = len(range(1, SCHEDULES, MINUTES))
        took = many.settle()
        print(f"due at one minute {due:,}   {took / due * 1e6:8.1f} µs a run, transaction and all")
    print(f"most memory of the process   {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:8.1f} MiB")


@contextmanager
def house() -> Iterator[House]:
    """A partition over a log and a store of its own, which are gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="tidewheel-bench-") as name:
        folder, clock = Path(name), ManualClock(BEGIN)
        log = EmbeddedLog(folder / "log", clock)
        log.create({spec: LAYOUT.partitions(spec.family) for spec in topics.topic_table(topics.Retention())})
        store = RocksStore(folder / "state")
        world = World(clock=clock, entropy=Entropy(), telemetry=Telemetry())
        partition = Partition(role="scheduler", number=0, inputs=SCHEDULER, layout=LAYOUT)
        processor = Processor(SchedulerCore(LAYOUT, 0, tz_version()), partition, log, store, world)
        processor.open()
        yield House(log=log, clock=clock, store=store, processor=processor, folder=folder)
        processor.close()
        log.close()


def _command(number: int) -> Outgoing:
    minute = number % MINUTES
    definition = {
        "trigger": {"cron": f"{minute % 60} {minute // 60} * * *", "timezone": "Europe/London"},
        "job": {"target": {"type": "task", "name": "bench.note"}, "payload": {"number": number}},
    }
    data = {"tenant": "bench", "name": f"s{number}", "definition": definition}
    event = {"specversion": "1.0", "id": str(number), "source": "bench", "type": "tidewheel.schedule.put.v1"}
    return Outgoing(topics.SCHEDULE_CHANGES, 0, f"bench/s{number}".encode(), orjson.dumps(event | {"data": data}))


def _stored(few: House, count: int) -> None:
    """Write what schedules have in a store, as the first one has it, under other names and all of them due tomorrow."""
    key = b"s/bench/s0"
    rows = [
        (row, value)
        for stored, value in few.store.scan(ROW, None)
        for name, row in [split_row_key(stored)]
        if name == key
    ]
    tomorrow = BEGIN + timedelta(days=1)
    for start in range(FEW, count, AT_ONCE):
        changes: dict[bytes, bytes | None] = {}
        for number in range(start, min(start + AT_ONCE, count)):
            name = f"s/bench/s{number}".encode()
            at = instant_bytes(tomorrow + timedelta(milliseconds=number))
            changes |= {row_key(name, row): value for row, value in rows}
            changes |= {AT + at + name: b"", KEYED + name: at + b"\xff" * 8}
        few.store.apply(changes)


def _resident() -> float:
    """MiB of this process, now."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) if sys.platform == "linux" else 0
    return pages * resource.getpagesize() / MIB


def _on_disk(folder: Path) -> float:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / MIB
