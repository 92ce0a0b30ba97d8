"""The state of one queue shard: rows, and what is worked out from them in memory.

    h             the head: counters, and instants that concern the whole shard
    r/<run>       an open run and its body, by its key (bodies; `run.key_of`)
    w/<inc.>      a worker                             (workforce)
    d/ t/ e/      what is over and still remembered    (memory)
    l/<tenant>    what is defined, "l/" of the queue   (limits)
    p/<tenant>    how far a rate is used, "p/" as well (limits, pacing)
    b/<schedule>  first attempts and retries           (budgets)
    k/<breaker>   what fails, and what that holds      (breakers)
    f/<lane>      whose turn it is                     (shares)

Everything else is an index that `load_shard` builds anew: queues in the order of handing out, timers, leases by
worker, who has a free slot. After that no step looks at more than it changes. Only `evolution` changes a shard.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import takewhile
from typing import Any

from dispatcher import budgets, calling
from dispatcher.bodies import RUN, RUN_END, Bodies, read_run, run_row
from dispatcher.breakers import Breaker
from dispatcher.budgets import Budget
from dispatcher.calling import Told
from dispatcher.deferrals import Deferrals
from dispatcher.held import Held
from dispatcher.holds import Holds
from dispatcher.lifecycle import RunState
from dispatcher.limits import Pace
from dispatcher.memory import Memory
from dispatcher.run import Named, OpenRun, key_of
from dispatcher.shares import PERIOD, Share, Standing
from dispatcher.timers import Timers
from dispatcher.waiting import Waiting
from dispatcher.workforce import WorkerRecord, Workforce
from runtime.machine import Rows, Wakeup
from schemas import codec
from schemas.frozen import frozen
from schemas.internal import QueueLimits, TenantLimits

_HEAD = b"h"
_WORKER, _WORKER_END = b"w/", b"w0"  # "0" follows "/"
LIMITS, PACE, BUDGET, SHARE, BREAKER = b"l/", b"p/", b"b/", b"f/", b"k/"


@frozen
class Head:
    """What the shard has besides runs and workers."""

    next_offset: int = 0  # of the next hand-out; never goes back
    next_number: int = 0  # of the next run
    finished: int = 0
    forgotten: int = 0
    renewed_at: datetime | None = None
    idle_since: datetime | None = None
    limits_offset: int = -1  # up to where the catalog is followed
    told: Told | None = None  # None of the only shard of its queue: nothing ever


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
        self.holds = Holds(number, self.workforce, self._breaker_changed)
        self.limits, self.breakers = self.holds.limits, self.holds.breakers
        self.limits_offset = head.limits_offset
        self.told = head.told or Told()
        self.waiting = Waiting(self.holds)
        self.deferrals = Deferrals(self.waiting, self.workforce)
        self.held = Held(self.waiting, self.holds, self.deferrals)
        self.deadlines: Timers[str] = Timers(self._expires_at)  # of runs that wait
        self.bodies = Bodies(rows)
        self.memory = Memory(rows, retention, finished=head.finished, forgotten=head.forgotten)
        self.loaded_at: datetime | None = None  # the first decision since `load`; no part of what is stored
        self._dirty_runs: dict[str, OpenRun] = {}
        self._dirty_workers: dict[str, None] = {}
        self._dirty_rows: dict[tuple[bytes, str], None] = {}
        self._saved_head = head
        self._budgets_minute = -1  # in which budgets were last looked through: in one minute none is over anew

    # --- questions ------------------------------------------------------------------------------------------------

    def wakeup(self) -> Wakeup:
        """When something has to be decided without an input."""
        self.workforce.settle()  # so that it is known which queues can open
        first = (self.deadlines.first(), self.workforce.first_forgetting(), self.breakers.first_due())
        tellings = (self.deferrals.due(), self.held.due())
        at = [each[0] for each in (*first, *tellings) if each is not None]
        others = (self.waiting.opening(), self.memory.trim_at(), calling.due(self.told, self.wanting_at()))
        at += [instant for instant in others if instant is not None]
        attendance = self.workforce.first_attendance()
        return Wakeup(at=min(at, default=None), on_evidence_at=None if attendance is None else attendance[0])

    @property
    def is_one_of_several(self) -> bool:
        """Whether its queue has, or had, other shards: then workers are told how it stands.

        Also who is alone again calls. Workers may have their slots in shards that are no more, which still have runs.
        """
        return self.limits.queue.shards > 1 or self.number > 0 or self.told.at is not None

    def wanting_at(self) -> datetime | None:
        """From when a run wants nothing but a slot, for others to know; None also where there are no others."""
        return self.waiting.wanting() if self.is_one_of_several else None

    def knows(self, run: Named) -> bool:
        """Whether a run is open, or over and remembered."""
        key = key_of(run)
        return key in self.runs or self.memory.knows(key)

    # --- changes, for `evolution` ---------------------------------------------------------------------------------

    def open(self, run: OpenRun) -> None:
        """A run is there; it does not wait yet."""
        self.runs[key_of(run)] = run
        self.limits.opened(run)
        self._key_changed(run)

    def wait(self, run: OpenRun) -> None:
        """A run waits for a worker, now or from `not_before` on."""
        self.limits.began_to_wait(run)
        leaf = self.waiting.add(run)
        self.deferrals.added(run)
        self.held.added(run, leaf)
        self.deadlines.not_before(key_of(run), run.expires_at())

    def line_up(self, run: OpenRun) -> None:
        """A run begins to wait: behind a breaker of its own, where one is not closed."""
        run.held_by = self.breakers.holding(run)
        self.wait(run)

    def stand_behind(self, run: OpenRun, breaker: str) -> None:
        """A run that waits does so behind a breaker from now on."""
        self.waiting.remove(run)
        self.deferrals.removed(run)
        self.held.removed(run)
        run.held_by = breaker
        leaf = self.waiting.add(run)
        self.deferrals.added(run)
        self.held.added(run, leaf)

    def stop_waiting(self, run: OpenRun) -> None:
        """A run waits no longer."""
        self.limits.stopped_waiting(run)
        self.waiting.remove(run)
        self.deferrals.removed(run)
        self.held.removed(run)
        if not self.waiting.in_lane[run.lane]:
            self.holds.share(run.lane).begin_anew()
            self._touch_row(SHARE, run.lane)

    def take(self, run: OpenRun, at: datetime) -> None:
        """A run that waits is handed to a worker."""
        self._count_try(run, at)
        for tenant in self.holds.share(run.lane).serve(run.tenant):
            self.waiting.turn_changed(run.lane, tenant)
        self._touch_row(SHARE, run.lane)
        self.stop_waiting(run)
        self.limits.taken(run)
        for name in self.limits.pace(run.tenant, at):
            self._touch_row(PACE, name)
        self._usage_changed(run)

    def give_back(self, run: OpenRun, at: datetime) -> None:
        """A run is with a worker no longer."""
        self._charge(run, self.workforce.of(run).record.charged_at, at)
        self.holds.share(run.lane).release(run.tenant)
        self.limits.given_back(run)
        self.breakers.given_back(run)
        self._usage_changed(run)

    def charge(self, incarnation: str, at: datetime) -> datetime | None:
        """A worker reports: its runs are charged, now and then; until when they are."""
        worker = self.workforce.get(incarnation)
        if worker is None:
            return at
        charged_at = worker.record.charged_at
        if charged_at is not None and at - charged_at < PERIOD:
            return charged_at
        for run in worker.leases.values():
            self._charge(run, charged_at, at)
        return at

    def set_budget(self, budget: Budget) -> None:
        """Another retry budget of a schedule."""
        self.holds.budgets[budget.subject] = budget
        self._budget_changed(budget.subject)

    def adopt(self, offset: int, queue: QueueLimits | None, tenants: Mapping[str, TenantLimits], at: datetime) -> None:
        """Limits as they are defined from now on."""
        self.limits_offset = offset
        if queue is not None:
            self.told = replace(self.told, resized_at=None if queue.shards == self.told.shards else at)
            self._touch_row(LIMITS, "")
            self._touch_row(PACE, "")
            self.limits.define_queue(queue)
            self.waiting.turns_changed()
        for tenant, limits in tenants.items():
            self._touch_row(LIMITS, tenant)
            self._touch_row(PACE, tenant)
            self.limits.define_tenant(tenant, limits)
            self.waiting.tenant_changed(tenant)
        if queue is not None or tenants:
            self.held.all_changed()

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
        self.limits.closed(run)
        self._key_changed(run)
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
        for key in self.breakers.touched:
            self._touch_row(BREAKER, key)
        for prefix, name in self._dirty_rows:
            self._write_row(prefix, name, rows)
        self.memory.save()
        head = self._head()
        if head != self._saved_head:
            _write_head(head, rows)
        self._dirty_runs.clear()
        self._dirty_workers.clear()
        self._dirty_rows.clear()
        self.breakers.touched.clear()
        self._saved_head = head

    def _head(self) -> Head:
        return Head(
            next_offset=self.counters.next_offset, next_number=self.counters.next_number,
            finished=self.memory.finished, forgotten=self.memory.forgotten,
            renewed_at=self.workforce.renewed_at, idle_since=self.workforce.idle_since,
            limits_offset=self.limits_offset, told=None if self.told == Told() else self.told,
        )  # fmt: skip

    def _touch_row(self, prefix: bytes, name: str) -> None:
        self._dirty_rows[prefix, name] = None

    def _write_row(self, prefix: bytes, name: str, rows: Rows) -> None:
        value = self._value_of(prefix, name)
        row = prefix + name.encode()
        if value is not None:
            rows.put(row, codec.dump(value))
        elif rows.get(row) is not None:
            rows.delete(row)

    def _value_of(self, prefix: bytes, name: str) -> Any:
        """What stands in a row; None where nothing is to be kept."""
        match prefix:
            case b"f/":
                share = self.holds.shares.get(name)
                standing = Standing() if share is None else share.standing()
                return None if standing == Standing() else standing
            case b"b/":
                return self.holds.budgets.get(name)
            case b"k/":
                return self.breakers.get(name)
            case b"p/":
                return self.limits.paces.get(name)
            case _ if name:
                return self.limits.tenants.get(name)
            case _:
                return None if self.limits.queue == QueueLimits() else self.limits.queue

    def _charge(self, run: OpenRun, charged_at: datetime | None, at: datetime) -> None:
        """For the time since then, where anyone else waits who might have had the slot."""
        if not self.waiting.has_others(run.lane, run.tenant):
            return
        since = run.handed_out() if charged_at is None else max(run.handed_out(), charged_at)
        for tenant in self.holds.share(run.lane).charge(run.tenant, max(at - since, timedelta())):
            self.waiting.turn_changed(run.lane, tenant)
        self._touch_row(SHARE, run.lane)

    def _count_try(self, run: OpenRun, at: datetime) -> None:
        """A first attempt or a retry, for the budget of its schedule."""
        if run.is_retry:
            self.set_budget(budgets.noted(self._budget(run, at), at, retries=1))
        elif run.state is RunState.QUEUED and run.counts_first:
            self.set_budget(budgets.noted(self._budget(run, at), at, firsts=1))

    def _budget(self, run: OpenRun, at: datetime) -> Budget:
        self._forget_budgets(at)
        known = self.holds.budgets.pop(run.subject, None)  # the one that changed last stands last
        if known is None:
            return Budget(subject=run.subject, minute=budgets.minute_of(at), percent=run.budget_percent)
        return known if known.percent == run.budget_percent else replace(known, percent=run.budget_percent)

    def _forget_budgets(self, at: datetime) -> None:
        """Those in whose ten minutes nothing was tried; the longest untouched stand first."""
        minute = budgets.minute_of(at)
        if minute == self._budgets_minute:
            return
        self._budgets_minute = minute
        gone = list(takewhile(lambda budget: budgets.is_over(budget, at), self.holds.budgets.values()))
        for budget in gone:
            del self.holds.budgets[budget.subject]
            self._budget_changed(budget.subject)

    def _budget_changed(self, subject: str) -> None:
        self._touch_row(BUDGET, subject)
        if not self.waiting.has_retries:
            return  # mostly: those of first attempts change, and hold nobody
        tenant, _, schedule = subject.partition("/")
        self.waiting.budget_changed(tenant, schedule)
        for leaf in self.waiting.of_schedule(tenant, schedule):
            self.held.changed(leaf)

    def _breaker_changed(self, tenant: str, name: str) -> None:
        self.waiting.breaker_changed(tenant, name)
        for leaf in self.waiting.of_breaker(tenant, name):
            self.held.changed(leaf)

    def _usage_changed(self, run: OpenRun) -> None:
        """A tenant and a key have more or fewer runs at work."""
        if self.limits.is_limited(run.tenant):
            self.waiting.tenant_changed(run.tenant)
            for leaf in self.waiting.of_tenant(run.tenant):
                self.held.changed(leaf)
        self._key_changed(run)

    def _key_changed(self, run: OpenRun) -> None:
        if run.concurrency:
            self.waiting.key_changed(run.tenant, run.concurrency)
            for leaf in self.waiting.of_key(run.tenant, run.concurrency):
                self.held.changed(leaf)

    def _write_worker(self, incarnation: str, rows: Rows) -> None:
        worker = self.workforce.get(incarnation)
        row = _WORKER + incarnation.encode()
        if worker is None:
            rows.delete(row)
        else:
            rows.put(row, codec.dump(worker.record))

    def _task_is_able(self, task: str) -> None:
        self.waiting.task_is_able(task)

    def _expires_at(self, key: str) -> datetime | None:
        run = self.runs.get(key)
        return run.expires_at() if run is not None and run.waits else None


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
    _restore_limits(shard, rows)
    runs = [_read_run(row, value, rows) for row, value in list(rows.scan(RUN, RUN_END))]
    runs.sort(key=lambda run: (run.not_before, run.number))
    for run in runs:
        _restore(shard, run)
    for worker in shard.workforce.by_incarnation.values():
        if not (worker.is_ended or worker.record.is_missed):  # else it is known what became of them
            for aboard in worker.record.overdue:
                shard.breakers.ran_over(worker.record.incarnation, aboard)
    for run in runs:
        if run.waits:
            shard.wait(run)
    return shard


def _restore_limits(shard: Shard, rows: Rows) -> None:
    """What is defined, and what of it is used up; the budgets in the order in which they changed."""
    limits, holds = shard.limits, shard.holds
    for name, value in _named(rows, LIMITS):
        if name:
            limits.define_tenant(name, codec.load(TenantLimits, value))
        else:
            limits.define_queue(codec.load(QueueLimits, value))
    for name, value in _named(rows, PACE):
        limits.paces[name] = codec.load(Pace, value)
    for name, value in _named(rows, SHARE):
        holds.shares[name] = Share(codec.load(Standing, value), limits.weight)
    known = [codec.load(Budget, value) for _, value in _named(rows, BUDGET)]
    for budget in sorted(known, key=lambda budget: budget.minute):
        holds.budgets[budget.subject] = budget
    noted = [codec.load(Breaker, value) for _, value in _named(rows, BREAKER)]
    for breaker in sorted(noted, key=lambda breaker: breaker.noted_at):
        holds.breakers.restore(breaker)


def _named(rows: Rows, prefix: bytes) -> Iterator[tuple[str, Any]]:
    for row, value in rows.scan(prefix, prefix[:-1] + b"0"):  # "0" follows "/"
        yield row[len(prefix) :].decode(), codec.parse(value)


def _read_run(row: bytes, value: bytes, rows: Rows) -> OpenRun:
    """An open run. Its row is given its name where an older version named it by the run id alone."""
    run = read_run(value)
    if row != run_row(key_of(run)):
        rows.delete(row)
        rows.put(run_row(key_of(run)), value)
    return run


def _restore(shard: Shard, run: OpenRun) -> None:
    shard.open(run)
    if run.lease:
        shard.leases[run.lease] = run
    if run.is_leased:
        shard.limits.taken(run)
        shard.holds.share(run.lane).resume(run.tenant)
        shard.breakers.taken(run)
        shard.workforce.lease(run)
