"""The workers of a shard: who is there, what each holds, who has a free slot, and when one must be looked at again.

A worker is known by its incarnation. It is *present* while its last report is younger than its period, *lapsed* after
that until it reports again, *ended* once another incarnation has taken its name. A lapsed one without leases is not
worth a row; an ended one is kept for a day, so that its process can be told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from enum import StrEnum

from dispatcher.breakers import Aboard
from dispatcher.pools import Offer, Pools, Tasks
from dispatcher.run import OpenRun
from dispatcher.timers import Timers
from schemas.facts import AttemptOutcome
from schemas.frozen import frozen
from schemas.internal import WorkerReported

PERIOD_MIN = timedelta(seconds=15)  # three times what an idle worker waits between two reports
OVERDUE_MAX = 256  # jobs: where so many are aboard a silent worker, its end says nothing of any
ENDED_KEPT = timedelta(days=1)  # a process that was cut off longer than that and comes back is taken for a new one


class Attendance(StrEnum):
    """Whether a worker is there."""

    PRESENT = "present"
    LAPSED = "lapsed"
    ENDED = "ended"


@frozen
class WorkerRecord:
    """What is stored of a worker: its last report, and how it stands."""

    incarnation: str
    worker: str
    number: int
    inbox: int
    read_up_to: int
    slots: int
    tasks: tuple[str, ...]
    reported_at: datetime
    draining: bool = False
    attendance: Attendance = Attendance.PRESENT
    ended_by: str = ""
    ended_at: datetime | None = None
    slots_total: int | None = None
    stuck: int = 0
    client: str = ""
    transport: str = ""
    listed_at: datetime | None = None
    charged_at: datetime | None = None  # until when tenants are charged for what it holds (shares)
    unlisted: bool = False  # since it was listed it has said something else
    overdue: tuple[Aboard, ...] = ()  # of each job the last run that was ended for it since it reported
    is_missed: bool = False  # that it went with all it held has been noted since it reported


@frozen
class Measure:
    """Of what a worker holds: when the first lease or attempt is over, and how long the shortest lease lasts."""

    first_end: datetime | None
    shortest: timedelta | None


class Worker:
    """A worker with what follows from its record and from its leases."""

    __slots__ = ("leases", "listed", "measure", "offer", "record", "unread")

    def __init__(self, record: WorkerRecord) -> None:
        self.record = record
        self.leases: dict[int, OpenRun] = {}  # live ones, by hand-out offset
        self.unread = 0  # how many of them it had not read of when it reported
        self.measure: Measure | None = None  # None: to be taken again
        self.listed: Tasks = ()  # the tasks under which it is counted
        self.offer: tuple[Tasks, Offer] | None = None  # as which it stands in its pool

    @property
    def is_present(self) -> bool:
        """Whether its last report is younger than its period."""
        return self.record.attendance is Attendance.PRESENT

    @property
    def is_ended(self) -> bool:
        """Whether its name is another's."""
        return self.record.attendance is Attendance.ENDED

    @property
    def takes_runs(self) -> bool:
        """Whether it is there to stay."""
        return self.is_present and not self.record.draining and not self.record.is_missed

    @property
    def free(self) -> int:
        """Slots it had when it reported, less what was handed to it since."""
        return self.record.slots - self.unread if self.takes_runs else 0


class Workforce:
    """All workers of a shard. `renewed_at` is when leases last had a fresh period after a takeover."""

    def __init__(self, on_able: Callable[[str], None]) -> None:
        self._pools = Pools(on_able)
        self._moved: dict[Worker, None] = {}  # whose place in the pools has to be found again, before they are asked
        self.renewed_at: datetime | None = None
        self.idle_since: datetime | None = None  # since when nobody takes runs; None while somebody does, or never did
        self.by_incarnation: dict[str, Worker] = {}
        self._by_name: dict[str, str] = {}
        self._taking: dict[str, None] = {}  # who takes runs, now or when a slot is free
        self._taking_task: Counter[str] = Counter()  # how many of them have a task
        self._attendance: Timers[str] = Timers(self._look_at)
        self._forgetting: Timers[str] = Timers(self._forget_at)

    # --- questions ------------------------------------------------------------------------------------------------

    @property
    def pools(self) -> Pools:
        """Who has a free slot now."""
        self.settle()
        return self._pools

    def get(self, incarnation: str) -> Worker | None:
        """A known worker."""
        return self.by_incarnation.get(incarnation)

    def of(self, run: OpenRun) -> Worker:
        """The worker that holds a run: whoever holds one is known."""
        return self.by_incarnation[run.incarnation]

    def named(self, name: str) -> Worker | None:
        """The incarnation that has a name now."""
        incarnation = self._by_name.get(name)
        return None if incarnation is None else self.by_incarnation[incarnation]

    def is_empty(self) -> bool:
        """Whether nobody takes runs."""
        return not self._taking

    def takers(self) -> int:
        """How many take runs, now or when a slot is free."""
        return len(self._taking)

    def has_task(self, task: str) -> bool:
        """Whether somebody takes runs of the task, now or when a slot is free."""
        return task in self._taking_task

    def first_attendance(self) -> tuple[datetime, str] | None:
        """The worker of which first something is over, or that first lapses, unless it reports; and when."""
        return self._attendance.first()

    def first_forgetting(self) -> tuple[datetime, str] | None:
        """The ended incarnation that is first to be forgotten, and when."""
        return self._forgetting.first()

    def lease_ends_at(self, run: OpenRun) -> datetime:
        """When a live lease ends. A report renews the leases whose hand-out the worker has read of."""
        record = self.of(run).record
        renewed_at = record.reported_at if run.lease_offset <= record.read_up_to else run.handed_out()
        return self._seen(renewed_at) + run.lease_duration

    def is_silent(self, run: OpenRun, at: datetime) -> bool:
        """Whether nobody has heard of a run's worker for as long as its lease."""
        return self._seen(self.of(run).record.reported_at) + run.lease_duration <= at

    def lapses_at(self, worker: Worker) -> datetime:
        """When a present worker has been silent for its period: one that holds long leases reports seldom."""
        shortest = self._measured(worker).shortest or PERIOD_MIN
        return self._seen(worker.record.reported_at) + max(PERIOD_MIN, shortest)

    # --- changes --------------------------------------------------------------------------------------------------

    def restore(self, record: WorkerRecord) -> Worker:
        """A worker as its record says; its leases follow with `lease`."""
        worker = self.by_incarnation[record.incarnation] = Worker(record)
        if record.ended_at is not None:
            self._forgetting.not_before(record.incarnation, record.ended_at + ENDED_KEPT)
            return worker
        self._by_name[record.worker] = record.incarnation
        self._follow(worker)
        return worker

    def report(self, fact: WorkerReported, charged_at: datetime | None) -> Worker:
        """A worker is present, and as it says; what it holds is charged up to an instant."""
        worker = self.by_incarnation.get(fact.incarnation)
        known = None if worker is None else worker.record
        record = WorkerRecord(
            incarnation=fact.incarnation, worker=fact.worker, number=fact.number, inbox=fact.inbox,
            read_up_to=fact.read_up_to, slots=fact.slots, tasks=fact.tasks, reported_at=fact.reported_at,
            draining=fact.draining, slots_total=fact.slots_total, stuck=fact.stuck, client=fact.client,
            transport=fact.transport, charged_at=charged_at, listed_at=None if known is None else known.listed_at,
            unlisted=known is not None and (known.unlisted or shown(known) != shown(fact)),
            overdue=() if known is None else tuple(each for each in known.overdue if each.handout in fact.overdue),
        )  # fmt: skip
        if worker is None:
            worker = self.restore(record)
        else:
            worker.record = record
            self._follow(worker)
        self._note_idle(fact.reported_at)
        return worker

    def listed(self, incarnation: str, at: datetime) -> None:
        """A worker stands in the list of workers as it is."""
        worker = self.by_incarnation[incarnation]
        worker.record = replace(worker.record, listed_at=at, unlisted=False)

    def lapse(self, incarnation: str, at: datetime) -> Worker | None:
        """A worker is silent: nothing is handed to it until it reports. None when nothing of it is left."""
        worker = self.by_incarnation[incarnation]
        worker.record = replace(worker.record, attendance=Attendance.LAPSED, listed_at=None)
        self._follow(worker)
        self._note_idle(at)
        return self._unless_gone(worker)

    def ran_over(self, run: OpenRun, outcome: AttemptOutcome) -> Aboard:
        """A run that a worker holds was ended, as its time is up: the worker may be there or not."""
        worker, mine = self.of(run), run.aboard(outcome)
        others = [each for each in worker.record.overdue if (each.tenant, each.breaker) != (mine.tenant, mine.breaker)]
        worker.record = replace(worker.record, overdue=(*others, mine)[-OVERDUE_MAX:])
        return mine

    def missed(self, incarnation: str, at: datetime) -> list[Aboard]:
        """A worker has gone without a word: what went with it, once; of each job what was handed out last.

        Until it reports nothing more is handed to it, whatever long lease it may still hold.
        """
        worker = self.by_incarnation[incarnation]
        if worker.record.is_missed:
            return []
        held = (worker.leases[offset] for offset in sorted(worker.leases))
        of_jobs = {(run.tenant, run.own_breaker): run for run in held}
        aboard = [*worker.record.overdue, *(run.aboard() for run in of_jobs.values())]
        if aboard:
            worker.record = replace(worker.record, overdue=(), is_missed=True)
            self._follow(worker)
            self._note_idle(at)
        return aboard

    def end(self, incarnation: str, ended_by: str, at: datetime) -> Worker:
        """A worker's name is another's; its leases end with it."""
        worker = self.by_incarnation[incarnation]
        self._release_name(worker.record)
        worker.record = replace(worker.record, attendance=Attendance.ENDED, ended_by=ended_by, ended_at=at)
        self._follow(worker)
        self._attendance.drop(incarnation)
        self._note_idle(at)
        self._forgetting.not_before(incarnation, at + ENDED_KEPT)
        return worker

    def forget(self, incarnation: str) -> None:
        """An ended worker is not remembered any longer."""
        del self.by_incarnation[incarnation]
        self._forgetting.drop(incarnation)

    def renew(self, at: datetime) -> None:
        """Every lease and every worker gets one fresh period from `at` on."""
        self.renewed_at = at
        for worker in self.by_incarnation.values():
            worker.measure = None

    def settle(self) -> None:
        """Bring the pools to what is known: once for all that a worker was handed or gave back since they were asked.

        Whoever can be handed runs from then on is told of, as `on_able`.
        """
        if self._moved:
            moved, self._moved = self._moved, {}
            for worker in moved:
                self._offer(worker)

    def lease(self, run: OpenRun) -> None:
        """A worker holds a run, as the run's last hand-out says."""
        worker = self.of(run)
        worker.leases[run.lease_offset] = run
        if run.lease_offset > worker.record.read_up_to:
            worker.unread += 1
            self._moved[worker] = None
        end = self._first_end(run)
        if (known := worker.measure) is not None:
            worker.measure = _with(known, end, run.lease_duration)
        lapse = self._seen(worker.record.reported_at) + max(PERIOD_MIN, run.lease_duration)
        self._attendance.not_before(run.incarnation, min(end, lapse))

    def begin(self, run: OpenRun) -> None:
        """A worker has begun what it holds: its time runs from now."""
        self.of(run).measure = None
        self._attendance.not_before(run.incarnation, run.over_at())  # when its lease ends is known

    def release(self, run: OpenRun) -> Worker | None:
        """A lease ended. The worker, or None when the lease was the last thing that kept it."""
        worker = self.of(run)
        del worker.leases[run.lease_offset]
        worker.measure = None
        if run.lease_offset > worker.record.read_up_to:
            worker.unread -= 1
            self._moved[worker] = None
        if not worker.leases:
            self._attendance.not_before(run.incarnation, self._seen(worker.record.reported_at) + PERIOD_MIN)
        return self._unless_gone(worker)

    # --- what follows from a record ---------------------------------------------------------------------------------

    def _follow(self, worker: Worker) -> None:
        """Bring the indexes to what the record says."""
        record = worker.record
        worker.measure = None
        worker.unread = sum(1 for offset in worker.leases if offset > record.read_up_to)
        self._count(worker)
        self._moved[worker] = None
        # Leases end later after a report, never earlier: what is known of them stays a lower bound.
        self._attendance.not_before(record.incarnation, self._seen(record.reported_at) + PERIOD_MIN)

    def _count(self, worker: Worker) -> None:
        """Count a worker and its tasks while it takes runs."""
        listed = worker.record.tasks if worker.takes_runs else ()
        if listed != worker.listed:
            self._taking_task.update(set(listed).difference(worker.listed))
            self._taking_task -= Counter(set(worker.listed).difference(listed))
            worker.listed = listed
        if worker.takes_runs:
            self._taking[worker.record.incarnation] = None
        else:
            self._taking.pop(worker.record.incarnation, None)

    def _offer(self, worker: Worker) -> None:
        """Keep a worker in its pool, by its free slots, while it has any."""
        free, record = worker.free, worker.record
        offer = (record.tasks, (-free, record.incarnation)) if free > 0 else None
        if offer != worker.offer:
            if worker.offer is not None:
                self._pools.remove(*worker.offer)
            if offer is not None:
                self._pools.add(*offer)
            worker.offer = offer

    def _seen(self, instant: datetime) -> datetime:
        """No lease and no worker is older than the last fresh period."""
        return instant if self.renewed_at is None else max(instant, self.renewed_at)

    def _measured(self, worker: Worker) -> Measure:
        if worker.measure is None:
            leases = worker.leases.values()
            worker.measure = Measure(
                first_end=min(map(self._first_end, leases), default=None),
                shortest=min((run.lease_duration for run in leases), default=None),
            )
        return worker.measure

    def _look_at(self, incarnation: str) -> datetime | None:
        """When something of a worker must be decided."""
        worker = self.by_incarnation.get(incarnation)
        if worker is None or worker.is_ended:
            return None
        first_end = self._measured(worker).first_end
        if not worker.is_present:
            return first_end
        lapses_at = self.lapses_at(worker)
        return lapses_at if first_end is None else min(first_end, lapses_at)

    def _first_end(self, run: OpenRun) -> datetime:
        """When a lease or its attempt is over, whichever comes first."""
        return min(self.lease_ends_at(run), run.over_at())

    def _forget_at(self, incarnation: str) -> datetime | None:
        worker = self.by_incarnation.get(incarnation)
        if worker is None or worker.record.ended_at is None:
            return None
        return worker.record.ended_at + ENDED_KEPT

    def _note_idle(self, at: datetime) -> None:
        if not self.is_empty():
            self.idle_since = None
        elif self.idle_since is None:
            self.idle_since = at

    def _unless_gone(self, worker: Worker) -> Worker | None:
        record = worker.record
        if record.attendance is not Attendance.LAPSED or worker.leases:
            return worker
        del self.by_incarnation[record.incarnation]
        self._attendance.drop(record.incarnation)
        self._release_name(record)
        return None

    def _release_name(self, record: WorkerRecord) -> None:
        if self._by_name.get(record.worker) == record.incarnation:
            del self._by_name[record.worker]


def shown(said: WorkerRecord | WorkerReported) -> tuple[object, ...]:
    """What the list of workers tells of a report."""
    return said.worker, said.tasks, said.draining, said.slots_total, said.stuck, said.client, said.transport


def _with(measure: Measure, end: datetime, lease: timedelta) -> Measure:
    """The measure with one more lease."""
    first_end, shortest = measure.first_end, measure.shortest
    if first_end is None or shortest is None:
        return Measure(first_end=end, shortest=lease)
    if end >= first_end and lease >= shortest:
        return measure
    return Measure(first_end=min(first_end, end), shortest=min(shortest, lease))
