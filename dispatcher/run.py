"""A run that is not finished, as the shard keeps it in memory: small, without the run's body.

It is the one thing inside that is changed in place: a shard holds a hundred thousand of them, and each takes a
handful of steps. Only `evolution` changes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

from dispatcher import breakers, budgets
from dispatcher.breakers import Aboard
from dispatcher.lifecycle import LEASED, WAITING, RunState
from schemas.facts import AttemptOutcome, BreakerPolicy, RunCreated, RunDeferReason

# A worker drops what it could not begin to read within that; said in each hand-out. Of a short lease it is a third: the
# worker stops two thirds of a lease after it began, if nobody hears of it, and the run must not be another's by then.
START_BY = timedelta(seconds=10)
START_BY_PER_LEASE = 3
_LONG_LEASE = START_BY * START_BY_PER_LEASE
DEADLINE, START_WITHIN = "deadline", "start_within"  # why a run expires, by what limits it


class Named(Protocol):
    """What names a run: a run itself, and every fact about one."""

    @property
    def tenant(self) -> str: ...

    @property
    def run_id(self) -> str: ...


def key_of(run: Named) -> str:
    """What a run goes by in its shard, where tenants stand beside each other: its id is unique within its tenant."""
    return f"{run.tenant}/{run.run_id}"


@dataclass(slots=True, kw_only=True)
class OpenRun:
    """A run on its way. `lease_offset` and what follows is of its last hand-out, also after that ended."""

    run_id: str
    tenant: str
    schedule: str
    number: int  # in order of creation within the shard
    lane: str
    task: str
    lease_duration: timedelta
    timeout: timedelta
    deadline_at: datetime
    state: RunState
    not_before: datetime
    queued_at: datetime  # since when it waits
    attempts: int = 0  # hand-outs made: the number of the last attempt
    used: int = 0  # attempts that count against the policy
    losses: int = 0  # started attempts lost with their worker, in a row
    blame: float = 0.0  # its share in those losses
    started_at: datetime | None = None  # when the first attempt began
    cancel_requested: bool = False
    terminated: bool = False  # its lease ends without its worker's word
    deferred: RunDeferReason | None = None  # the last reason told
    concurrency: str = ""  # its key
    concurrency_limit: int = 0
    budget_percent: int = 20  # of first attempts may be retries
    counts_first: bool = False  # whether its first attempt adds to the retry budget
    job_breaker: str = ""  # of a job that has a name
    host_breaker: str = ""  # of the host that it calls
    breaker_policy: BreakerPolicy | None = None  # that its job gives
    held_by: str = ""  # the breaker behind which it waits, or waited last
    lease_offset: int = -1
    lease: str = ""  # the text that proves the right to it
    incarnation: str = ""
    handed_out_at: datetime | None = None
    attempt_started_at: datetime | None = None
    attempt_outcome: AttemptOutcome | None = None  # how it ended; None while the lease is live
    start_by_at: datetime | None = None  # when it expires unless an attempt has begun

    @property
    def waits(self) -> bool:
        """Whether it may be handed out, now or later."""
        return self.state in WAITING

    @property
    def is_leased(self) -> bool:
        """Whether a worker has the right to it."""
        return self.state in LEASED

    @property
    def is_retry(self) -> bool:
        """Whether its next attempt is one that a budget must allow: the job has failed, not its worker."""
        return self.state is RunState.RETRY_WAIT and self.attempt_outcome is not AttemptOutcome.LEASE_EXPIRED

    @property
    def own_breaker(self) -> str:
        """The breaker of its job."""
        return self.job_breaker or f"schedule:{self.schedule}"

    @property
    def breakers(self) -> tuple[str, ...]:
        """The breakers that must let it go."""
        return (self.own_breaker, self.host_breaker) if self.host_breaker else (self.own_breaker,)

    def aboard(self, outcome: AttemptOutcome = AttemptOutcome.LOST) -> Aboard:
        """What the breaker of its job has to know of it when its worker goes."""
        return Aboard(
            tenant=self.tenant, breaker=self.own_breaker, run_id=self.run_id, handout=self.lease_offset,
            handed_out_at=self.handed_out(), outcome=outcome, policy=self.breaker_policy,
            begun=self.attempt_started_at is not None,
        )  # fmt: skip

    @property
    def subject(self) -> str:
        """The schedule whose run it is; what its events are keyed by."""
        return f"{self.tenant}/{self.schedule}"

    def handed_out(self) -> datetime:
        """When its last attempt was handed out; there must have been one."""
        assert self.handed_out_at is not None, f"{self.run_id} was never handed out"
        return self.handed_out_at

    def timeout_at(self) -> datetime:
        """When its attempt has taken too long. One that is held and never begun is given its time to begin."""
        return (self.attempt_started_at or self.handed_out() + self.start_by) + self.timeout

    def over_at(self) -> datetime:
        """When its attempt is over at the latest."""
        return min(self.timeout_at(), self.expires_at())

    @property
    def start_by(self) -> timedelta:
        """How long after a hand-out its worker may still begin."""
        return START_BY if self.lease_duration >= _LONG_LEASE else self.lease_duration / START_BY_PER_LEASE

    @property
    def unstarted_until(self) -> datetime | None:
        """By when an attempt has to begin; None once one has, and where there is no such limit."""
        return self.start_by_at if self.started_at is None else None

    def expires_at(self) -> datetime:
        """When it expires, as far as it has come."""
        return min(self.deadline_at, self.unstarted_until or self.deadline_at)

    def expired_by(self, at: datetime, *, begun: bool = False) -> str:
        """Why it is expired at an instant; nothing when it is not. `begun`: as is only heard of now."""
        first_begin = None if begun else self.unstarted_until
        limits = ((self.deadline_at, DEADLINE), (first_begin or self.deadline_at, START_WITHIN))
        limit, reason = min(limits, key=lambda each: each[0])  # the first of equal ones
        return reason if limit <= at else ""


def opened(fact: RunCreated, number: int) -> OpenRun:
    """The run that begins with `fact`."""
    job = fact.job
    limited = job.concurrency
    return OpenRun(
        run_id=fact.run_id, tenant=fact.tenant, schedule=fact.schedule, number=number, lane=job.priority,
        task=task_of(job.target), lease_duration=job.lease, timeout=job.timeout, deadline_at=fact.deadline_at,
        state=RunState.QUEUED, not_before=fact.due_at, queued_at=fact.created_at,
        concurrency="" if limited is None else limited.key,
        concurrency_limit=0 if limited is None else limited.limit,
        budget_percent=job.retry.budget_percent, counts_first=budgets.counts(fact),
        start_by_at=fact.start_by_at,
        job_breaker=breakers.name_of(fact), host_breaker=breakers.host_of(fact), breaker_policy=job.breaker,
    )  # fmt: skip


def task_of(target: Mapping[str, Any]) -> str:
    """What a worker must offer in its `tasks` to be given the run: a task's name, `http:`, or `command:<name>`."""
    kind, name = str(target.get("type", "")), str(target.get("name", ""))
    if kind == "http":
        return "http:"  # whatever else a definition from a topic says: any worker that serves HTTP can call it
    return name if kind == "task" else f"{kind}:{name}"
