"""Runs a second of processor time through the dispatcher's core: created, handed out, started, finished, rows included.

The floor is what `orjson` alone needs to write the same facts, as dicts that stand ready. The core is measured without
the envelope (the shell encodes each fact once); with 1,000, 10,000 and 100,000 runs waiting, because the price of a run
must not depend on how many others there are. First all of one tenant in one lane, then of a thousand tenants in three
lanes, every tenth with one of ten concurrency keys of its tenant.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from dispatcher.core import DispatcherCore
from dispatcher.inputs import partition_of, shard_key
from runtime.machine import Moment, Woken
from schemas import codec
from schemas.facts import Cause, Concurrency, Fact, JobSnapshot, RetryPolicy, RunCreated
from schemas.internal import FinishedLease, HandOut, WorkerReport
from schemas.topics import Layout

LAYOUT = Layout()
QUEUE, TASK = "default", "reports.nightly"
T0 = datetime(2026, 3, 2, 10, 0, tzinfo=UTC)
BATCH = 500  # records of one batch of the shell
WORKERS = 8
RUNS = 10_000
LANES = ("critical", "normal", "bulk")
Make = Callable[[int, datetime], RunCreated]


class Rows:
    """Rows of one key in a dict; a scan sorts, which only `load` does."""

    def __init__(self) -> None:
        self.rows: dict[bytes, bytes] = {}

    def get(self, row: bytes) -> bytes | None:
        """One row."""
        return self.rows.get(row)

    def put(self, row: bytes, value: bytes) -> None:
        """Write one row."""
        self.rows[row] = value

    def delete(self, row: bytes) -> None:
        """Remove one row."""
        self.rows.pop(row, None)

    def scan(
        self, start: bytes = b"", end: bytes | None = None, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """Rows in order."""
        for row in sorted(self.rows, reverse=reverse):
            if start <= row and (end is None or row < end):
                yield row, self.rows[row]


class Shell:
    """Drives the core as the runtime does, without a log."""

    def __init__(self) -> None:
        self.core = DispatcherCore(LAYOUT, partition_of(QUEUE, 0, LAYOUT))
        self.key = shard_key(QUEUE, 0)
        self.rows = Rows()
        self.state = self.core.load(self.key, self.rows)
        self.now = T0
        self.numbers = dict.fromkeys(range(WORKERS), 0)
        self.read_up_to = -1
        self.seconds = 0.0
        self.facts: list[Fact] = []

    def batch(self, inputs: list[Fact]) -> list[Fact]:
        """One batch of the shell: inputs, then what is due, then the rows."""
        self.now += timedelta(milliseconds=50)
        began = time.process_time()
        moment = Moment(now=self.now, read_until=self.now, entropy=bytes(16))
        facts: list[Fact] = []
        for input_ in inputs:
            facts += self._decide(input_, moment)
        while self._is_due():
            facts += self._decide(Woken(), moment)
        self.core.save(self.key, self.state, self.rows)
        self.seconds += time.process_time() - began
        return facts

    def load(self) -> object:
        """The shard as its next owner loads it."""
        return self.core.load(self.key, self.rows)

    def report(self, worker: int, done: list[HandOut], slots: int) -> WorkerReport:
        """What a worker says that has begun and finished all it was given."""
        self.numbers[worker] += 1
        leases = tuple(hand_out.lease for hand_out in done)
        return WorkerReport(
            queue=QUEUE, shard=0, worker=f"w{worker}", incarnation=f"w{worker}-a", number=self.numbers[worker],
            inbox=worker, read_up_to=self.read_up_to, slots=slots, tasks=(TASK,), started=leases,
            finished=tuple(FinishedLease(lease=lease, outcome="succeeded", result={"rows": 3}) for lease in leases),
        )  # fmt: skip

    def _decide(self, input_: Any, moment: Moment) -> list[Fact]:
        facts = list(self.core.decide(self.state, input_, moment, None))
        for fact in facts:
            if self.core.key_of(fact) == self.key:
                self.core.evolve(self.state, fact)
            self.core.route(self.state, fact)
        return facts

    def _is_due(self) -> bool:
        wakeup = self.core.wakeup(self.state)
        return any(at is not None and at <= self.now for at in (wakeup.at, wakeup.on_evidence_at))


def main() -> None:
    """Print the figures."""
    for name, make in (("one tenant", created), ("many tenants", of_many)):
        print(name)
        measure(make)


def measure(make: Make) -> None:
    """One line for each number of runs that wait."""
    for waiting in (1_000, 10_000, 100_000):
        shell = Shell()
        queued = [make(number, shell.now) for number in range(waiting)]
        for start in range(0, waiting, BATCH):
            shell.batch(list(queued[start : start + BATCH]))
        filled = shell.seconds
        facts = pass_through(shell, waiting, make)
        floor = floor_of(facts)
        each = shell.seconds / RUNS
        print(f"{waiting:>7,} waiting: {1 / each:>8,.0f} runs/s   {each * 1e6:5.1f} µs a run", end="")
        print(f"   orjson alone {floor / RUNS * 1e6:4.1f} µs   filling {filled / waiting * 1e6:4.1f} µs a run", end="")
        print(f"   loading {timed(shell.load):.2f} s")


def pass_through(shell: Shell, first: int, make: Make) -> list[Fact]:
    """Let RUNS runs come in, be handed out and finish, so many always waiting."""
    shell.seconds = 0.0
    facts: list[Fact] = []
    given: dict[int, list[HandOut]] = {worker: [] for worker in range(WORKERS)}
    for start in range(0, RUNS, BATCH):
        arrivals: list[Fact] = [make(first + start + number, shell.now) for number in range(BATCH)]
        reports = [shell.report(worker, given[worker], BATCH // WORKERS) for worker in range(WORKERS)]
        added = shell.batch([*arrivals, *reports])
        facts += added
        hand_outs = [fact for fact in added if isinstance(fact, HandOut)]
        given = {worker: [fact for fact in hand_outs if fact.inbox == worker] for worker in range(WORKERS)}
        shell.read_up_to = max((fact.offset for fact in hand_outs), default=shell.read_up_to)
    return facts


def created(number: int, at: datetime) -> RunCreated:
    """A run as the scheduler makes it."""
    return RunCreated(
        tenant="acme", schedule=f"nightly-{number % 100}", run_id=f"nightly-{number % 100}.{number}", version=1,
        cause=Cause.SCHEDULE, created_at=at, due_at=at, deadline_at=at + timedelta(days=7), shard=0, job=JOB,
        rule="cron", tz_version="2026f", nominal_time=at,
    )  # fmt: skip


def of_many(number: int, at: datetime) -> RunCreated:
    """A run of one of a thousand tenants, in one of three lanes."""
    limit = Concurrency(key=f"key-{number // 10 % 10}", limit=20) if number % 10 == 0 else None
    job = replace(JOB, priority=LANES[number % 3], concurrency=limit)
    return replace(created(number, at), tenant=f"tenant-{number * 7919 % 1000}", job=job)


def floor_of(facts: list[Fact]) -> float:
    """Seconds that `orjson` needs for the same facts."""
    documents = [codec.plain(fact) for fact in facts]
    return timed(lambda: [orjson.dumps(document) for document in documents])


def timed(work: Callable[[], object]) -> float:
    """Seconds that it takes."""
    began = time.process_time()
    work()
    return time.process_time() - began


JOB = JobSnapshot(
    queue=QUEUE, target={"type": "task", "name": TASK}, payload={"day": "2026-03-02", "n": 3}, priority="normal",
    timeout=timedelta(hours=1), deadline=timedelta(days=7), lease=timedelta(seconds=30),
    retry=RetryPolicy(
        max_attempts=3, initial=timedelta(seconds=1), factor=2.0, max=timedelta(minutes=5), jitter="full"
    ),
)  # fmt: skip
