"""What happened: the facts that Tidewheel publishes.

Frozen dataclasses, because the cores build thousands a second and because an event, once written, is never
changed. Each names its CloudEvents type and its subject. Fields may be added with a default, never renamed,
removed or given another meaning: that is a new version of the type.

A field at its default is absent on the wire, so adding one changes neither the bytes nor the ids of old facts.
The annotations are read at run time by the codec: what they name is imported for real.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, ClassVar

from schemas.faults import Fault
from schemas.frozen import frozen


class Cause(StrEnum):
    """Why a run exists."""

    SCHEDULE = "schedule"
    CATCH_UP = "catch_up"
    BACKFILL = "backfill"
    MANUAL = "manual"
    DEPENDENCY = "dependency"
    RERUN = "rerun"


class Outcome(StrEnum):
    """How a run ended."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    DEAD_LETTERED = "dead_lettered"
    EXPIRED = "expired"


class AttemptOutcome(StrEnum):
    """How one attempt ended."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    LEASE_EXPIRED = "lease_expired"
    INTERRUPTED = "interrupted"
    LOST = "lost"


class SkipReason(StrEnum):
    """Why an occurrence has no run. `gap` and `fold` are local readings a DST policy dropped; they are not due."""

    PAUSED = "paused"
    OVERLAP = "overlap"
    CATCH_UP = "catch_up"
    EXCLUDED = "excluded"
    FROZEN = "frozen"
    CAP = "cap"
    ENDED = "ended"
    REQUESTED = "requested"
    UPSTREAM = "upstream"
    CYCLE = "cycle"
    NO_JOB = "no_job"
    GAP = "gap"
    FOLD = "fold"


class GapReason(StrEnum):
    """How an input lost what had not been read, or what had been answered."""

    DELETED = "deleted"  # by retention, before it was read
    TRUNCATED = "truncated"  # its end was lost, with records that had been answered
    RECREATED = "recreated"  # the topic is another one


class DeferReason(StrEnum):
    """Why a due occurrence is still waiting for its decision."""

    BUFFERED = "buffered"
    WAITING = "waiting"
    PACED = "paced"
    JITTER = "jitter"
    FROZEN = "frozen"


class RunDeferReason(StrEnum):
    """Why a created run is still waiting for a worker."""

    NO_QUEUE = "no_queue"
    NO_WORKER = "no_worker"
    NO_TASK = "no_task"
    CONCURRENCY = "concurrency"
    QUOTA = "quota"
    RATE = "rate"
    RETRY_BUDGET = "retry_budget"
    BREAKER = "breaker"
    PAUSED = "paused"


class BreakerState(StrEnum):
    """How a breaker stands: runs are handed out, none is, or a few are to see whether they fail."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class BreakerReason(StrEnum):
    """Why a breaker changed."""

    FAILURES = "failures"  # too many attempts failed within its window
    WAITED = "waited"  # it was open for as long as it is: now a few are tried
    PROBE_FAILED = "probe_failed"
    PROBE_SUCCEEDED = "probe_succeeded"
    RESET = "reset"  # somebody closed it
    UNPROVEN = "unproven"  # nothing was tried for a day


@frozen
class ErrorInfo:
    """What a failed attempt said. `type` is at most 256 characters, `message` at most 4,096."""

    type: str
    message: str = ""


@frozen
class NominalRange:
    """Occurrences in [from, to), `count` of them."""

    from_: datetime
    to: datetime
    count: int


@frozen
class Position:
    """Where a record stood."""

    topic: str
    partition: int
    offset: int


@frozen
class Upstream:
    """The run of another schedule that led to a run."""

    schedule: str
    run_id: str
    outcome: Outcome
    finished_at: datetime
    nominal_time: datetime | None = None


@frozen
class RetryPolicy:
    """When a failed attempt is tried again."""

    max_attempts: int
    initial: timedelta
    factor: float
    max: timedelta
    jitter: str
    never_on: tuple[str, ...] = ()
    budget_percent: int = 20  # of the first attempts of its schedule over ten minutes: so many may be retries


@frozen
class Concurrency:
    """At most `limit` runs of a tenant that name `key` are with workers of a queue; the smallest limit given counts."""

    key: str
    limit: int


@frozen
class BreakerPolicy:
    """When a breaker opens: at `failures` within `window` that are `percent` of what ended there; never at 0.

    After `wait` it lets `probes` runs go at once. Each probe that fails doubles the wait.
    """

    failures: int
    percent: int
    window: timedelta
    wait: timedelta
    probes: int


@frozen
class JobSnapshot:
    """The whole job as it was when the run was created: nothing that changes later changes a run."""

    queue: str
    target: Mapping[str, Any]
    payload: Mapping[str, Any]
    priority: str
    timeout: timedelta
    deadline: timedelta
    lease: timedelta
    retry: RetryPolicy
    name: str | None = None
    version: int | None = None
    concurrency: Concurrency | None = None
    log_retention: timedelta | None = None  # None: as long as the server keeps logs
    breaker: BreakerPolicy | None = None  # its tenant's in the queue, or else the one there is


class Fact:
    """A published fact. Subclasses are frozen dataclasses with a TYPE and a subject."""

    __slots__ = ()
    TYPE: ClassVar[str]

    @property
    def subject(self) -> str:
        """What the fact is about; also the key of its record."""
        raise NotImplementedError


class OfSchedule(Fact):
    """A fact whose subject is the schedule that stands in its `tenant` and `schedule` fields."""

    __slots__ = ()
    tenant: str
    schedule: str

    @property
    def subject(self) -> str:
        return f"{self.tenant}/{self.schedule}"


class _OfPartition(Fact):
    """A fact about one partition of a role; key and subject are `_/<role>-<partition>`."""

    __slots__ = ()
    role: str
    partition: int

    @property
    def subject(self) -> str:
        return f"_/{self.role}-{self.partition}"


# --- schedules ----------------------------------------------------------------------------------------------------


@frozen
class ScheduleAccepted(OfSchedule):
    """A version of a schedule came into force at `effective_at`: later nominal instants follow `definition`."""

    TYPE: ClassVar[str] = "tidewheel.schedule.accepted.v1"
    tenant: str
    schedule: str
    version: int
    definition: Mapping[str, Any]
    effective_at: datetime
    accepted_at: datetime
    created: bool
    words: str
    next: tuple[datetime, ...]
    tz_version: str
    source_version: int | None = None
    warnings: tuple[str, ...] = ()
    command_id: str = ""
    source: str = ""


@frozen
class SchedulePaused(OfSchedule):
    """From `effective_at` on, occurrences are skipped at their time and do not come back.

    `reason` is `failures` where the schedule paused itself: `failed_runs` are the last of those in a row, and
    `failures` says how many there were. It may stand behind a resumption that takes effect later.
    """

    TYPE: ClassVar[str] = "tidewheel.schedule.paused.v1"
    tenant: str
    schedule: str
    version: int
    effective_at: datetime
    accepted_at: datetime
    note: str = ""
    by: str = ""
    command_id: str = ""
    source: str = ""
    reason: str = ""
    failures: int = 0
    failed_runs: tuple[str, ...] = ()


@frozen
class ScheduleResumed(OfSchedule):
    """From `effective_at` on, occurrences have runs again."""

    TYPE: ClassVar[str] = "tidewheel.schedule.resumed.v1"
    tenant: str
    schedule: str
    version: int
    effective_at: datetime
    accepted_at: datetime
    note: str = ""
    by: str = ""
    command_id: str = ""
    source: str = ""


@frozen
class ScheduleDeleted(OfSchedule):
    """No occurrence after `effective_at`; queued and running runs finish unless `runs` is `cancel`."""

    TYPE: ClassVar[str] = "tidewheel.schedule.deleted.v1"
    tenant: str
    schedule: str
    version: int
    effective_at: datetime
    accepted_at: datetime
    runs: str = "keep"
    by: str = ""
    command_id: str = ""
    source: str = ""


@frozen
class CommandRejected(Fact):
    """A command or record was refused; nothing of it took effect. `position` is where it stood."""

    TYPE: ClassVar[str] = "tidewheel.command.rejected.v1"
    tenant: str
    name: str
    reason: str
    faults: tuple[Fault, ...]
    position: Position
    rejected_at: datetime
    command_id: str = ""
    command_type: str = ""
    source: str = ""
    raw: str | None = None  # the head of an unreadable record, base64, at most 1 KiB before encoding

    @property
    def subject(self) -> str:
        return f"{self.tenant}/{self.name}"


# --- reference definitions ----------------------------------------------------------------------------------------


@frozen
class CatalogEntry(Fact):
    """The current version of a reference definition; `definition` None says that it was deleted.

    `by` and `note` are what whoever changed it said: who they are, and why.
    """

    TYPE: ClassVar[str] = "tidewheel.catalog.entry.v1"
    kind: str
    tenant: str
    name: str
    version: int
    changed_at: datetime
    definition: Mapping[str, Any] | None = None
    command_id: str = ""
    source: str = ""
    by: str = ""
    note: str = ""

    @property
    def subject(self) -> str:
        return f"{self.kind}/{self.tenant}/{self.name}"


# --- occurrences --------------------------------------------------------------------------------------------------


@frozen
class OccurrenceSkipped(OfSchedule):
    """One occurrence (`nominal_time`) or several (`range`) will have no run, and why.

    `local_time` without `nominal_time` is a local reading that a DST policy dropped; it is not counted as due. Nor is
    what an `upstream` would have led to, which has no instant of its own.
    """

    TYPE: ClassVar[str] = "tidewheel.occurrence.skipped.v1"
    tenant: str
    schedule: str
    version: int
    reason: SkipReason
    decided_at: datetime
    rule: str
    tz_version: str
    nominal_time: datetime | None = None
    range: NominalRange | None = None
    local_time: str | None = None
    blocked_by: str | None = None
    detail: str = ""
    upstream: Upstream | None = None
    used: Mapping[str, int] = field(default_factory=dict)  # see `RunCreated`


@frozen
class OccurrenceDeferred(OfSchedule):
    """A due occurrence waits for its decision. `cause` is the one its run will have.

    One that an outage until `missed_until` left behind has its run not before `release_at`, and none from `expires_at`
    on; `until` is the former where it is `paced`. `since` is when one that is `waiting` for other schedules became due.
    One that is `frozen` was held at `since` by the freeze that `detail` names, until the window's end as it was known
    then; for one that was due in the window `missed_until` is when. Of what waits already only `until` is another one.
    """

    TYPE: ClassVar[str] = "tidewheel.occurrence.deferred.v1"
    tenant: str
    schedule: str
    version: int
    nominal_time: datetime
    reason: DeferReason
    decided_at: datetime
    until: datetime | None = None
    blocked_by: str | None = None
    cause: Cause = Cause.SCHEDULE
    rule: str = ""
    tz_version: str = ""
    detail: str = ""
    used: Mapping[str, int] = field(default_factory=dict)  # see `RunCreated`
    release_at: datetime | None = None
    expires_at: datetime | None = None
    missed_until: datetime | None = None
    since: datetime | None = None


# --- runs ---------------------------------------------------------------------------------------------------------


@frozen
class RunCreated(OfSchedule):
    """A run exists. `due_at` is when it should start, `deadline_at` when it ends `expired` at the latest.

    `interval_from` is the nominal instant before this one, so [interval_from, nominal_time) is the data interval.
    A run that a run of another schedule led to names it; `chain` are the schedules before this one, the first first.
    `used` are the versions of the catalog's entries that had a say, by their keys (`calendar/acme/uk-holidays`); 0 for
    one that was named and not there. `detail`: what it was to wait for and was missing when it went on anyway.
    """

    TYPE: ClassVar[str] = "tidewheel.run.created.v1"
    tenant: str
    schedule: str
    run_id: str
    version: int
    cause: Cause
    created_at: datetime
    due_at: datetime
    deadline_at: datetime
    shard: int
    job: JobSnapshot
    rule: str
    tz_version: str
    nominal_time: datetime | None = None
    interval_from: datetime | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    of: str | None = None
    command_id: str = ""
    backfill: str = ""  # whose run it is, where the cause is one
    upstream: Upstream | None = None
    chain: tuple[str, ...] = ()
    used: Mapping[str, int] = field(default_factory=dict)
    detail: str = ""


@frozen
class RunDeferred(OfSchedule):
    """A created run waits for a worker since `since`, and why. `breaker`: which one, where that is the reason."""

    TYPE: ClassVar[str] = "tidewheel.run.deferred.v1"
    tenant: str
    schedule: str
    run_id: str
    reason: RunDeferReason
    since: datetime
    decided_at: datetime
    until: datetime | None = None
    queue: str = ""  # with `shard`: whose run it is; the dispatcher finds the shard of a logged fact by them
    shard: int = 0
    breaker: str = ""


@frozen
class RunRetryScheduled(OfSchedule):
    """Attempt number `attempt` will be handed out not before `retry_at`."""

    TYPE: ClassVar[str] = "tidewheel.run.retry_scheduled.v1"
    tenant: str
    schedule: str
    run_id: str
    attempt: int
    retry_at: datetime
    decided_at: datetime
    error: ErrorInfo | None = None
    queue: str = ""
    shard: int = 0


@frozen
class RunCancelRequested(OfSchedule):
    """Someone asked for the run to end. Written behind `run.created` in the same partition of `runs`.

    `terminate` asks nobody: the run is `cancelled` and its lease ends as soon as this is read. `unstarted` is meant for
    a run that was never handed out, and says nothing to any other.
    """

    TYPE: ClassVar[str] = "tidewheel.run.cancel_requested.v1"
    tenant: str
    schedule: str
    run_id: str
    requested_at: datetime
    queue: str
    shard: int
    by: str = ""
    note: str = ""
    command_id: str = ""
    source: str = ""
    reply_to: int | None = None
    terminate: bool = False
    unstarted: bool = False


@frozen
class RunFinished(OfSchedule):
    """A run reached its one terminal outcome. `repeat` marks the answer to an inquiry: same id, no result."""

    TYPE: ClassVar[str] = "tidewheel.run.finished.v1"
    tenant: str
    schedule: str
    run_id: str
    version: int
    cause: Cause
    outcome: Outcome
    attempts: int
    created_at: datetime
    finished_at: datetime
    nominal_time: datetime | None = None
    started_at: datetime | None = None
    result: Any = None
    error: ErrorInfo | None = None
    of: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""
    repeat: bool = False
    queue: str = ""
    shard: int = 0
    known_id: str = field(default="", metadata={"wire": False})  # the event id that a repeat goes by


@frozen
class DeadLetter(OfSchedule):
    """A run given up, whole, so that it can be looked at and redriven."""

    TYPE: ClassVar[str] = "tidewheel.run.dead_lettered.v1"
    tenant: str
    schedule: str
    run_id: str
    run: RunCreated
    attempts: int
    finished_at: datetime
    error: ErrorInfo | None = None
    reason: str = ""  # attempts_used_up | quarantined


@frozen
class BreakerChanged(Fact):
    """A breaker of a tenant in a queue: `job:<name>`, `schedule:<name>` for a job without a name, or `host:<host>`.

    While it is `open`, until `until`, no run of it is handed out; `since` is when it last was closed. `failures` of
    `attempts` within its window opened it; `run_id` and `error` are of the last one that failed.
    """

    TYPE: ClassVar[str] = "tidewheel.breaker.changed.v1"
    tenant: str
    queue: str
    shard: int
    breaker: str
    state: BreakerState
    reason: BreakerReason
    changed_at: datetime
    since: datetime | None = None
    until: datetime | None = None
    failures: int = 0
    attempts: int = 0
    run_id: str = ""
    error: ErrorInfo | None = None
    by: str = ""
    note: str = ""
    command_id: str = ""
    source: str = ""

    @property
    def subject(self) -> str:
        return f"{self.tenant}/{self.queue}"


# --- backfills ----------------------------------------------------------------------------------------------------


@frozen
class BackfillCounts:
    """How far a backfill has come: each occurrence of its range that it has decided stands in one of the first three.

    `left_out` counts by what stood of them: how their run ended (succeeded, failed …), `open`, `waiting`, `excluded`,
    `beyond_history`. `ended` counts the outcomes of its own runs, `active` those that have none yet.
    """

    created: int = 0
    reprocessed: int = 0
    left_out: Mapping[str, int] = field(default_factory=dict)
    ended: Mapping[str, int] = field(default_factory=dict)
    active: int = 0


@frozen
class BackfillStarted(OfSchedule):
    """A backfill of [from, to) goes to work: `occurrences` of them, by the definition of `version`."""

    TYPE: ClassVar[str] = "tidewheel.backfill.started.v1"
    tenant: str
    schedule: str
    backfill: str
    version: int
    from_: datetime
    to: datetime
    order: str
    reprocess: str
    max_active: int
    rate: str
    occurrences: int
    started_at: datetime
    by: str = ""
    note: str = ""
    command_id: str = ""
    source: str = ""


@frozen
class BackfillProgressed(OfSchedule):
    """How far it has come, told every few seconds and when its state changes (running, paused, cancelling).

    Everything on this side of `cursor` is decided: before it, or for the newest first, from it on. `expected_at` is
    when it will be through if it goes on as it did since it was started or resumed.
    """

    TYPE: ClassVar[str] = "tidewheel.backfill.progressed.v1"
    tenant: str
    schedule: str
    backfill: str
    state: str
    cursor: datetime
    decided: int
    occurrences: int
    counts: BackfillCounts
    progressed_at: datetime
    expected_at: datetime | None = None
    reason: str = ""
    by: str = ""
    note: str = ""
    command_id: str = ""
    source: str = ""


@frozen
class BackfillFinished(OfSchedule):
    """Each of its runs has its outcome, and no more will come: `completed`, or `cancelled` on the way, and why."""

    TYPE: ClassVar[str] = "tidewheel.backfill.finished.v1"
    tenant: str
    schedule: str
    backfill: str
    outcome: str
    cursor: datetime
    decided: int
    occurrences: int
    counts: BackfillCounts
    finished_at: datetime
    reason: str = ""


# --- attempts -----------------------------------------------------------------------------------------------------


@frozen
class AttemptStarted(OfSchedule):
    """A worker says that user code began. `started_at` is the owner's instant of reading the report."""

    TYPE: ClassVar[str] = "tidewheel.attempt.started.v1"
    tenant: str
    schedule: str
    run_id: str
    attempt: int
    worker: str
    incarnation: str
    handout: int
    handed_out_at: datetime
    started_at: datetime
    queue: str = ""
    shard: int = 0
    log_check: str = ""  # what the log of this attempt is known by (`identity.log_check`)


@frozen
class AttemptFinished(OfSchedule):
    """An attempt ended. `counted` says whether it used up one of the run's attempts.

    `blame` is the run's share in the loss of its worker: one over the runs it had begun. At 2.0 a run is quarantined.
    """

    TYPE: ClassVar[str] = "tidewheel.attempt.finished.v1"
    tenant: str
    schedule: str
    run_id: str
    attempt: int
    outcome: AttemptOutcome
    worker: str
    incarnation: str
    handout: int
    handed_out_at: datetime
    finished_at: datetime
    counted: bool = True
    started_at: datetime | None = None
    error: ErrorInfo | None = None
    queue: str = ""
    shard: int = 0
    blame: float = 0.0


@frozen
class AttemptDuplicate(OfSchedule):
    """A report about a hand-out that no longer counts; it changed nothing."""

    TYPE: ClassVar[str] = "tidewheel.attempt.duplicate.v1"
    tenant: str
    schedule: str
    run_id: str
    worker: str
    incarnation: str
    handout: int
    reported: str
    received_at: datetime
    attempt: int | None = None


# --- facts of a partition -----------------------------------------------------------------------------------------


@frozen
class RecoveryStarted(_OfPartition):
    """Occurrences older than their grace were met: until the partition has reached `to`, age is measured against it."""

    TYPE: ClassVar[str] = "tidewheel.recovery.started.v1"
    role: str
    partition: int
    from_: datetime
    to: datetime
    tenant_rate: str = ""  # of what is caught up: the runs of one tenant that are released in a time


@frozen
class RecoveryFinished(_OfPartition):
    """Every occurrence up to `to` has its decision."""

    TYPE: ClassVar[str] = "tidewheel.recovery.finished.v1"
    role: str
    partition: int
    from_: datetime
    to: datetime
    finished_at: datetime


@frozen
class CatalogAdopted(_OfPartition):
    """The partition uses the catalog up to and including `offset`; `entries` are what changed.

    `position` is that of the transaction that wrote the record: what a command's `after_catalog` names.
    """

    TYPE: ClassVar[str] = "tidewheel.catalog.adopted.v1"
    role: str
    partition: int
    offset: int
    adopted_at: datetime
    entries: tuple[CatalogEntry, ...] = ()
    position: str = ""


@frozen
class OccurrenceMoved:
    """The next occurrence of a schedule by one tz database, and by a newer one. None: nothing more is due by it."""

    tenant: str
    schedule: str
    was: datetime | None = None
    becomes: datetime | None = None


@frozen
class TzAdopted(_OfPartition):
    """Undecided occurrences follow tz database `version` from now on.

    In `zones` clocks will show something else than by the previous one; None: that one's rules are not known. Of
    `schedules` in the partition the next occurrence of `moved_count` is another; `moved` names the first of them.
    `repeated_count` occurrences have a local time that was decided by the previous one already: they are skipped.
    """

    TYPE: ClassVar[str] = "tidewheel.tz.adopted.v1"
    role: str
    partition: int
    version: str
    adopted_at: datetime
    previous: str | None = None
    zones: tuple[str, ...] | None = None
    schedules: int = 0
    moved_count: int = 0
    moved: tuple[OccurrenceMoved, ...] = ()
    repeated_count: int = 0


@frozen
class ClockHeld(_OfPartition):
    """The wall clock cannot be believed: nothing is decided by time until it is released."""

    TYPE: ClassVar[str] = "tidewheel.clock.held.v1"
    role: str
    partition: int
    mark: datetime
    wall: datetime
    reason: str


@frozen
class ClockReleased(_OfPartition):
    """The wall clock is believed again; why it was not, and who accepted it if it did not come right by itself."""

    TYPE: ClassVar[str] = "tidewheel.clock.released.v1"
    role: str
    partition: int
    mark: datetime
    wall: datetime
    reason: str
    accepted_by: str = ""
    note: str = ""


@frozen
class GapAccepted(_OfPartition):
    """A partition goes on without a part of its input, because a person said so.

    It had read up to `read_up_to` and goes on at `goes_on_at`. Lost is [`lost_from`, `lost_to`); a topic that was
    created again does not say how much it held: `lost_to` None.
    """

    TYPE: ClassVar[str] = "tidewheel.gap.accepted.v1"
    role: str
    partition: int
    topic: str
    topic_partition: int
    reason: GapReason
    read_up_to: int
    goes_on_at: int
    lost_from: int
    accepted_by: str
    lost_to: int | None = None
    note: str = ""


@frozen
class HistoryTrimmed(_OfPartition):
    """Decisions before `until` are no longer kept."""

    TYPE: ClassVar[str] = "tidewheel.history.trimmed.v1"
    role: str
    partition: int
    until: datetime


FACTS: tuple[type[Fact], ...] = (
    ScheduleAccepted,
    SchedulePaused,
    ScheduleResumed,
    ScheduleDeleted,
    CommandRejected,
    CatalogEntry,
    OccurrenceSkipped,
    OccurrenceDeferred,
    RunCreated,
    RunDeferred,
    RunRetryScheduled,
    RunCancelRequested,
    RunFinished,
    DeadLetter,
    BreakerChanged,
    BackfillStarted,
    BackfillProgressed,
    BackfillFinished,
    AttemptStarted,
    AttemptFinished,
    AttemptDuplicate,
    RecoveryStarted,
    RecoveryFinished,
    CatalogAdopted,
    TzAdopted,
    ClockHeld,
    ClockReleased,
    GapAccepted,
    HistoryTrimmed,
)
