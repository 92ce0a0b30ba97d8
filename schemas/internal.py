"""Records that only Tidewheel's own processes read: versioned and documented, not promised to others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime, timedelta
from typing import Any, ClassVar

from schemas.facts import BreakerPolicy, ErrorInfo, Fact, RunCreated
from schemas.faults import Fault
from schemas.frozen import frozen


@frozen
class FinishedLease:
    """A worker's word that it is done with a lease. `lease` is the opaque lease text of the hand-out."""

    lease: str
    outcome: str  # succeeded | failed | cancelled | interrupted
    result: Any = None
    error: ErrorInfo | None = None
    retry_after: timedelta | None = None  # a failed attempt asks not to be tried again before


OF_LEASES = -1  # the number of a report that speaks of leases only, and not of who sends it


@frozen
class WorkerReport(Fact):
    """What a worker says of itself, on `attempts`: one for all its leases.

    `number` grows with each report of an incarnation: an older one's `held` and `slots` are ignored. With OF_LEASES
    only `finished` counts, whoever says it: to quote a lease whole is to be given the right to end it.
    `read_up_to` is the last hand-out offset the worker has read (-1 none); `held`, `started` are lease texts.
    `slots` counts free slots at that moment. `inbox` is a partition of `dispatch.<queue>`. What it says of itself for
    people (`slots_total`, `stuck`, `client`, `transport`) decides nothing.
    """

    TYPE: ClassVar[str] = "tidewheel.worker.report.v1"
    queue: str
    shard: int
    worker: str
    incarnation: str
    number: int
    inbox: int
    read_up_to: int
    slots: int
    tasks: tuple[str, ...]
    held: tuple[str, ...] = ()
    started: tuple[str, ...] = ()
    finished: tuple[FinishedLease, ...] = ()
    draining: bool = False
    claim_id: str = ""
    slots_total: int | None = None  # free and taken ones
    stuck: int = 0  # tasks that were asked to stop long ago and have not: each keeps its slot
    client: str = ""  # its software and the version of it
    transport: str = ""  # http | kafka

    @property
    def subject(self) -> str:
        return self.incarnation


@frozen
class HandOut(Fact):
    """The record that gives a run to a worker. Only the named incarnation may act on it."""

    TYPE: ClassVar[str] = "tidewheel.run.handed_out.v1"
    incarnation: str
    inbox: int
    shard: int
    offset: int
    lease: str
    lease_key: str
    lease_duration: timedelta
    timeout: timedelta
    start_by: timedelta
    attempt: int
    may_have_run: bool
    handed_out_at: datetime
    run: RunCreated

    @property
    def subject(self) -> str:
        return self.incarnation


@frozen
class LeaseNotice(Fact):
    """Tells a worker that leases ended (`ended`: drop them) or should stop (`cancelled`: ask the task)."""

    TYPE: ClassVar[str] = "tidewheel.lease.notice.v1"
    queue: str
    incarnation: str
    inbox: int
    ended: tuple[str, ...] = ()
    cancelled: tuple[str, ...] = ()
    incarnation_ended: bool = False
    ended_by: str = ""

    @property
    def subject(self) -> str:
        return self.incarnation


@frozen
class QueueLayout(Fact):
    """How a shard of a queue with several stands, told to the workers: their slots go where work waits.

    `shards` is how many new runs are spread over, as the queue's definition says; one beyond them still has old ones.
    `queued` runs want nothing but a slot (0: none does; the count ends at 10,000), `running` are with `workers`, which
    have `free` slots; while anything is queued, only workers count that have one of its tasks. A shard that says
    nothing wants nothing. `inbox` None: it stands in every inbox; else it is the answer to one incarnation's first
    report.
    """

    TYPE: ClassVar[str] = "tidewheel.queue.layout.v1"
    queue: str
    shard: int
    shards: int
    queued: int
    running: int
    free: int
    workers: int
    told_at: datetime
    inbox: int | None = None

    @property
    def subject(self) -> str:
        return f"{self.queue}/{self.shard}"


@frozen
class LogLine:
    """A line that an attempt wrote. `line` counts from 0 in each attempt, across its streams.

    `stream`: `log` (Python's logging, with its `level`), `stdout`, `stderr`, `http` (what an endpoint answered), or
    `worker`, which speaks of the log itself. `cut` counts characters that were cut off its end, `dropped` lines that
    were left out before it.
    """

    line: int
    at: datetime
    stream: str
    text: str
    level: str = ""
    cut: int = 0
    dropped: int = 0


@frozen
class RunLogged(Fact):
    """Some lines of one attempt, on `logs`: written by its worker, while it runs or soon after.

    Whose they are follows from `proof` (`identity.log_proof`), which only who has the lease can make; `run_id` says
    where the record stands. A worker repeats a record as it was, so its first line names it.
    """

    TYPE: ClassVar[str] = "tidewheel.run.logged.v1"
    run_id: str
    proof: str
    lines: tuple[LogLine, ...]
    retention: timedelta | None = None  # the job's `log_retention`

    @property
    def subject(self) -> str:
        return self.run_id


@frozen
class RunInquired(Fact):
    """The scheduler asks what became of a run it has no outcome of; carries the run whole."""

    TYPE: ClassVar[str] = "tidewheel.run.inquired.v1"
    run: RunCreated
    inquired_at: datetime

    @property
    def subject(self) -> str:
        return self.run.subject


@frozen
class BreakerResetRequested(Fact):
    """Someone asked for a breaker of a tenant to be closed, or for all of them in a shard (`breaker` empty)."""

    TYPE: ClassVar[str] = "tidewheel.breaker.reset_requested.v1"
    tenant: str
    queue: str
    shard: int
    requested_at: datetime
    breaker: str = ""
    by: str = ""
    note: str = ""
    command_id: str = ""
    source: str = ""
    reply_to: int | None = None
    shards: int = 1  # how many were asked, each with a request and an answer of its own

    @property
    def subject(self) -> str:
        return f"{self.tenant}/{self.queue}"


@frozen
class CommandAnswered(Fact):
    """The owner's answer to a command, on the asking node's partition of `replies`.

    `status` is the HTTP status the door gives; `body` what it shows (version, run_id, words, next …). Where several
    owners answer, each gives `part` of `parts`: lists of their bodies go together, numbers add up.
    """

    TYPE: ClassVar[str] = "tidewheel.command.answered.v1"
    command_id: str
    reply_to: int
    status: int
    body: Mapping[str, Any]
    faults: tuple[Fault, ...] = ()
    part: int = 0
    parts: int = 1

    @property
    def subject(self) -> str:
        return self.command_id


@frozen
class ScheduleVersion(Fact):
    """One version of a schedule on the compacted topic `versions`: what the audit walks.

    It decides nominal instants in (effective_from, effective_to]; `effective_to` None while it is in force.
    """

    TYPE: ClassVar[str] = "tidewheel.schedule.version.v1"
    tenant: str
    schedule: str
    version: int
    definition: Mapping[str, Any]
    effective_from: datetime
    tz_version: str
    effective_to: datetime | None = None

    @property
    def subject(self) -> str:
        return f"{self.tenant}/{self.schedule}"


@frozen
class ScheduleCurrent(Fact):
    """The accepted definition of a schedule as it stands, on the compacted topic `schedules`."""

    TYPE: ClassVar[str] = "tidewheel.schedule.current.v1"
    tenant: str
    schedule: str
    version: int
    state: str  # active | paused
    definition: Mapping[str, Any]
    effective_at: datetime
    changed_at: datetime
    tz_version: str
    pause: Mapping[str, Any] | None = None  # of a paused one: since when, by whom and why, as far as was said

    @property
    def subject(self) -> str:
        return f"{self.tenant}/{self.schedule}"


# --- what the dispatcher's own state follows from -----------------------------------------------------------------
#
# They stand in decision records and are published nowhere. `queue` and `shard` name the state they evolve.


@frozen
class WorkerReported(Fact):
    """What a report changed of its worker. `read_up_to` never goes back and never names a hand-out not yet made.

    `overdue` are hand-outs that the owner had ended, and which the report lists all the same.
    """

    TYPE: ClassVar[str] = "tidewheel.worker.reported.v1"
    queue: str
    shard: int
    worker: str
    incarnation: str
    number: int
    inbox: int
    read_up_to: int
    slots: int
    tasks: tuple[str, ...]
    reported_at: datetime
    draining: bool = False
    slots_total: int | None = None
    stuck: int = 0
    client: str = ""
    transport: str = ""
    overdue: tuple[int, ...] = ()

    @property
    def subject(self) -> str:
        return self.incarnation


@frozen
class WorkerListed(Fact):
    """How a worker stands: its line in the list of workers, whole, on the compacted topic `workers`.

    Stated when what it says has changed, and once a minute: a list that is a minute old costs a fleet of thousands
    next to nothing. `slots_total` is not known of everybody. A record without a value (written with `WorkerLapsed` and
    `WorkerEnded`) takes the line away.
    """

    TYPE: ClassVar[str] = "tidewheel.worker.listed.v1"
    queue: str
    shard: int
    worker: str
    incarnation: str
    tasks: tuple[str, ...]
    heard_at: datetime
    draining: bool = False
    slots_total: int | None = None
    stuck: int = 0
    client: str = ""
    transport: str = ""

    @property
    def subject(self) -> str:
        return f"{self.queue}/{self.shard}/{self.incarnation}"


@frozen
class WorkerLapsed(Fact):
    """A worker has not reported for its period: nothing is handed to it until it does."""

    TYPE: ClassVar[str] = "tidewheel.worker.lapsed.v1"
    queue: str
    shard: int
    incarnation: str
    lapsed_at: datetime

    @property
    def subject(self) -> str:
        return self.incarnation


@frozen
class WorkerEnded(Fact):
    """Another incarnation took this one's name: it never gets a run again."""

    TYPE: ClassVar[str] = "tidewheel.worker.ended.v1"
    queue: str
    shard: int
    incarnation: str
    ended_by: str
    ended_at: datetime

    @property
    def subject(self) -> str:
        return self.incarnation


@frozen
class WorkersForgotten(Fact):
    """Ended incarnations that are not remembered any longer."""

    TYPE: ClassVar[str] = "tidewheel.worker.forgotten.v1"
    queue: str
    shard: int
    incarnations: tuple[str, ...]
    forgotten_at: datetime

    @property
    def subject(self) -> str:
        return f"{self.queue}/{self.shard}"


@frozen
class LeasesRenewed(Fact):
    """After a takeover, once the evidence has been read: every lease and every worker gets one fresh period."""

    TYPE: ClassVar[str] = "tidewheel.leases.renewed.v1"
    queue: str
    shard: int
    renewed_at: datetime

    @property
    def subject(self) -> str:
        return f"{self.queue}/{self.shard}"


@frozen
class QueueLimits:
    """What a queue's definition says of its hand-outs. `paused_at`: there are none since then."""

    weights: Mapping[str, int] = field(default_factory=dict)
    rate: str | None = None
    paused_at: datetime | None = None
    shards: int = 1  # over which new runs are spread


@frozen
class TenantLimits:
    """What a tenant's definition says of one queue; nothing given, nothing limited. `paused_at`: as of a queue."""

    running: int | None = None
    queued: int | None = None
    rate: str | None = None
    paused_at: datetime | None = None
    breaker: BreakerPolicy | None = None  # of hosts, and of jobs that give none


@frozen
class LimitsAdopted(Fact):
    """A shard follows the catalog up to `offset`. `limits` None: the queue's are as before; `tenants`: who changed."""

    TYPE: ClassVar[str] = "tidewheel.limits.adopted.v1"
    queue: str
    shard: int
    offset: int
    adopted_at: datetime
    limits: QueueLimits | None = None
    tenants: Mapping[str, TenantLimits] = field(default_factory=dict)

    @property
    def subject(self) -> str:
        return f"{self.queue}/{self.shard}"


@frozen
class MemoryTrimmed(Fact):
    """One bounded step of forgetting what ended before `until`: outcomes of runs, hand-outs that no longer count."""

    TYPE: ClassVar[str] = "tidewheel.memory.trimmed.v1"
    queue: str
    shard: int
    until: datetime
    trimmed_at: datetime

    @property
    def subject(self) -> str:
        return f"{self.queue}/{self.shard}"


PUBLISHED_INTERNALS: tuple[type[Fact], ...] = (
    WorkerReport,
    HandOut,
    LeaseNotice,
    QueueLayout,
    RunLogged,
    RunInquired,
    BreakerResetRequested,
    CommandAnswered,
    ScheduleVersion,
    ScheduleCurrent,
    WorkerReported,
    WorkerListed,
    WorkerLapsed,
    WorkerEnded,
    WorkersForgotten,
    LeasesRenewed,
    LimitsAdopted,
    MemoryTrimmed,
)
