"""The state of one queue shard: rows, and what is worked out from them in memory.

    h             the head: counters, and instants that concern the whole shard
    r/<run>       an open run and its body, by its key (bodies; `run.key_of`)
    w/<inc.>      a worker                             (workforce)
    d/ t/ e/      what is over and still remembered    (memory)

Everything else is an index that `load_shard` builds anew: queues in the order of handing out, timers, leases by
worker, who has a free slot. After that no step looks at more than it changes. Only `evolution` changes a shard.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from dispatcher.bodies import RUN, RUN_END, Bodies, read_run, run_row
from dispatcher.deferrals import Deferrals
from dispatcher.memory import Memory
from dispatcher.run import Named, OpenRun, key_of
from dispatcher.timers import Timers
from dispatcher.waiting import Waiting
from dispatcher.workforce import WorkerRecord, Workforce
from runtime.machine import Rows, Wakeup
from schemas import codec
from schemas.frozen import frozen

_HEAD = b"h"
_WORKER, _WORKER_END = b"w/", b"w0"  # "0" follows "/"


@frozen
class Head:
    """What the shard has besides runs and workers."""

    next_offset: int = 0  # of the next hand-out; never goes back
    next_number: int = 0  # of the next run
    finished: int = 0
    forgotten: int = 0
    renewed_at: datetime | None = None
    idle_since: datetime | None = None


@dataclass(slots=True)
class Counters:
    """What only grows."""

    next_offset: int
    next_number: int


class Shard:
    """One shard of one queue."""

    def __init__(self, queue: str, number: int, rows: Rows, retention: timedelta, head: Head) -> None:
        self.queue = queue
        self.number = number
        self.name = f"{queue}/{number}"
        self.lease_prefix = f"{queue}.{number}."
        self.counters = Counters(head.next_offset, head.next_number)
        self.runs: dict[str, OpenRun] = {}  # by key
        self.leases: dict[str, OpenRun] = {}  # by lease: the last hand-out of each open run, live or ended
        self.workforce = Workforce(self._task_is_able)
        self.workforce.renewed_at, self.workforce.idle_since = head.renewed_at, head.idle_since
        self.waiting = Waiting(self._is_able)
        self.deferrals = Deferrals(self.waiting, self.workforce)
        self.deadlines: Timers[str] = Timers(self._expires_at)  # of runs that wait
        self.bodies = Bodies(rows)
        self.memory = Memory(rows, retention, finished=head.finished, forgotten=head.forgotten)
        self.loaded_at: datetime | None = None  # the first decision since `load`; no part of what is stored
        self._dirty_runs: dict[str, OpenRun] = {}
        self._dirty_workers: dict[str, None] = {}
        self._saved_head = head

    # --- questions ------------------------------------------------------------------------------------------------

    def wakeup(self) -> Wakeup:
        """When something has to be decided without an input."""
        self.workforce.settle()  # so that it is known which queues can open
        deadline, forgetting, deferral = (
            self.deadlines.first(), self.workforce.first_forgetting(), self.deferrals.due(),
        )  # fmt: skip
        at = [first[0] for first in (deadline, forgetting, deferral) if first is not None]
        at += [instant for instant in (self.waiting.opening(), self.memory.trim_at()) if instant is not None]
        attendance = self.workforce.first_attendance()
        return Wakeup(at=min(at, default=None), on_evidence_at=None if attendance is None else attendance[0])

    def knows(self, run: Named) -> bool:
        """Whether a run is open, or over and remembered."""
        key = key_of(run)
        return key in self.runs or self.memory.knows(key)

    # --- changes, for `evolution` ---------------------------------------------------------------------------------

    def wait(self, run: OpenRun) -> None:
        """A run waits for a worker, now or from `not_before` on."""
        self.waiting.add(run)
        self.deferrals.added(run)
        self.deadlines.not_before(key_of(run), run.deadline_at)

    def stop_waiting(self, run: OpenRun) -> None:
        """A run waits no longer."""
        self.waiting.remove(run)
        self.deferrals.removed(run)

    def touch(self, run: OpenRun) -> None:
        """A run's row has to be written."""
        self._dirty_runs[key_of(run)] = run

    def touch_worker(self, incarnation: str) -> None:
        """A worker's row has to be written or deleted."""
        self._dirty_workers[incarnation] = None

    def close(self, run: OpenRun) -> None:
        """A run is over; it waits no longer and nobody has a lease of it."""
        key = key_of(run)
        del self.runs[key]
        self.leases.pop(run.lease, None)
        self.deadlines.drop(key)
        self._dirty_runs.pop(key, None)
        self.bodies.remove(key)

    def save(self, rows: Rows) -> None:
        """Write what changed since the last time."""
        self.bodies.rows = self.memory.rows = rows
        for run in self._dirty_runs.values():
            self.bodies.write(run)
        for incarnation in self._dirty_workers:
            self._write_worker(incarnation, rows)
        self.memory.save()
        head = self._head()
        if head != self._saved_head:
            _write_head(head, rows)
        self._dirty_runs.clear()
        self._dirty_workers.clear()
        self._saved_head = head

    def _head(self) -> Head:
        return Head(
            next_offset=self.counters.next_offset, next_number=self.counters.next_number,
            finished=self.memory.finished, forgotten=self.memory.forgotten,
            renewed_at=self.workforce.renewed_at, idle_since=self.workforce.idle_since,
        )  # fmt: skip

    def _write_worker(self, incarnation: str, rows: Rows) -> None:
        worker = self.workforce.get(incarnation)
        row = _WORKER + incarnation.encode()
        if worker is None:
            rows.delete(row)
        else:
            rows.put(row, codec.dump(worker.record))

    def _is_able(self, task: str) -> bool:
        return self.workforce.pools.is_able(task)

    def _task_is_able(self, task: str) -> None:
        self.waiting.task_is_able(task)

    def _expires_at(self, key: str) -> datetime | None:
        run = self.runs.get(key)
        return run.deadline_at if run is not None and run.waits else None


def _write_head(head: Head, rows: Rows) -> None:
    """One that says nothing has no row: rows are a function of the state, not of when it was saved."""
    if head == Head():
        rows.delete(_HEAD)
    else:
        rows.put(_HEAD, codec.dump(head))


def load_shard(queue: str, number: int, rows: Rows, retention: timedelta) -> Shard:
    """A shard as its rows say; a new one where there are none."""
    stored = rows.get(_HEAD)
    head = Head() if stored is None else codec.load(Head, codec.parse(stored))
    shard = Shard(queue, number, rows, retention, head)
    for _, value in rows.scan(_WORKER, _WORKER_END):
        shard.workforce.restore(codec.load(WorkerRecord, codec.parse(value)))
    runs = [_read_run(row, value, rows) for row, value in list(rows.scan(RUN, RUN_END))]
    for run in sorted(runs, key=lambda run: (run.not_before, run.number)):
        _restore(shard, run)
    return shard


def _read_run(row: bytes, value: bytes, rows: Rows) -> OpenRun:
    """An open run. Its row is given its name where an older version named it by the run id alone."""
    run = read_run(value)
    if row != run_row(key_of(run)):
        rows.delete(row)
        rows.put(run_row(key_of(run)), value)
    return run


def _restore(shard: Shard, run: OpenRun) -> None:
    shard.runs[key_of(run)] = run
    if run.lease:
        shard.leases[run.lease] = run
    if run.waits:
        shard.wait(run)
    else:
        shard.workforce.lease(run)
