"""What becomes of a run, from its creation to its one outcome."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from typing import Any, ClassVar

from schemas.facts.fact import Fact, OfSchedule
from schemas.facts.parts import (
    BreakerReason,
    BreakerState,
    Cause,
    ErrorInfo,
    JobSnapshot,
    Outcome,
    RunDeferReason,
    Upstream,
)
from schemas.frozen import frozen


@frozen
class RunCreated(OfSchedule):
    """A run exists. `due_at` is when it should start, `deadline_at` when it ends `expired` at the latest.
    `start_by_at` is when it ends `expired` unless an attempt has begun.

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
    start_by_at: datetime | None = None


@frozen
class RunDeferred(OfSchedule):
    """A created run waits for a worker since `since`, and why. `breaker`: which one, where that is the reason.

    `start_by_at`: when it ends `expired` if it still waits then.
    """

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
    start_by_at: datetime | None = None


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
    # The event id that it was read with, and that a repeat goes by: no part of what it says.
    known_id: str = field(default="", compare=False, metadata={"wire": False})


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
    `attempts` within its window opened it; `run_id` and `error` are of the last one that failed, or that was lost with
    its worker.
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
