"""What several facts say in the same words: causes, outcomes, reasons, and the values they are made of."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

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
    LOSSES = "losses"  # workers died one after another with runs of it: one is tried at a time
    SURVIVED = "survived"  # the worker lived through the one that was tried


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
    start_within: timedelta | None = None  # None: its first attempt may begin at any time before the deadline
