"""What worker and server say to each other. Made from the published schemas by `make generate`."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict


class BreakerPolicy(TypedDict):
    """When a breaker opens: at `failures` within `window` that are `percent` of what ended there; never at 0."""

    failures: int
    percent: int
    probes: int
    wait: str
    window: str


class Concurrency(TypedDict):
    """At most `limit` runs of a tenant that name `key` are with workers of a queue; the smallest limit given counts."""

    key: str
    limit: int


class ErrorInfo(TypedDict):
    """What a failed attempt said. `type` is at most 256 characters, `message` at most 4,096."""

    message: NotRequired[str]
    type: str


class FinishedLease(TypedDict):
    """A worker's word that it is done with a lease. `lease` is the opaque lease text of the hand-out."""

    error: NotRequired[ErrorInfo]
    lease: str
    outcome: str
    result: NotRequired[Any]
    retry_after: NotRequired[str]


class HandOut(TypedDict):
    """The record that gives a run to a worker. Only the named incarnation may act on it."""

    attempt: int
    handed_out_at: str
    inbox: int
    incarnation: str
    lease: str
    lease_duration: str
    lease_key: str
    may_have_run: bool
    offset: int
    run: RunCreated
    shard: int
    start_by: str
    timeout: str


class JobSnapshot(TypedDict):
    """The whole job as it was when the run was created: nothing that changes later changes a run."""

    breaker: NotRequired[BreakerPolicy]
    concurrency: NotRequired[Concurrency]
    deadline: str
    lease: str
    log_retention: NotRequired[str]
    name: NotRequired[str]
    payload: dict[str, Any]
    priority: str
    queue: str
    retry: RetryPolicy
    start_within: NotRequired[str]
    target: dict[str, Any]
    timeout: str
    version: NotRequired[int]


class LeaseNotice(TypedDict):
    """Tells a worker that leases ended (`ended`: drop them) or should stop (`cancelled`: ask the task)."""

    cancelled: NotRequired[list[str]]
    ended: NotRequired[list[str]]
    ended_by: NotRequired[str]
    inbox: int
    incarnation: str
    incarnation_ended: NotRequired[bool]
    queue: str


class QueueLayout(TypedDict):
    """How a shard of a queue with several stands, told to the workers: their slots go where work waits."""

    free: int
    inbox: NotRequired[int]
    queue: str
    queued: int
    running: int
    shard: int
    shards: int
    told_at: str
    workers: int


class RetryPolicy(TypedDict):
    """When a failed attempt is tried again."""

    budget_percent: NotRequired[int]
    factor: float
    initial: str
    jitter: str
    max: str
    max_attempts: int
    never_on: NotRequired[list[str]]


class RunCreated(TypedDict):
    """A run exists. `due_at` is when it should start, `deadline_at` when it ends `expired` at the latest."""

    backfill: NotRequired[str]
    cause: str
    chain: NotRequired[list[str]]
    command_id: NotRequired[str]
    created_at: str
    deadline_at: str
    detail: NotRequired[str]
    due_at: str
    interval_from: NotRequired[str]
    job: JobSnapshot
    labels: NotRequired[dict[str, str]]
    nominal_time: NotRequired[str]
    of: NotRequired[str]
    rule: str
    run_id: str
    schedule: str
    shard: int
    start_by_at: NotRequired[str]
    tenant: str
    tz_version: str
    upstream: NotRequired[Upstream]
    used: NotRequired[dict[str, int]]
    version: int


class Upstream(TypedDict):
    """The run of another schedule that led to a run."""

    finished_at: str
    nominal_time: NotRequired[str]
    outcome: str
    run_id: str
    schedule: str


class WorkerReport(TypedDict):
    """What a worker says of itself, on `attempts`: one for all its leases."""

    claim_id: NotRequired[str]
    client: NotRequired[str]
    draining: NotRequired[bool]
    finished: NotRequired[list[FinishedLease]]
    held: NotRequired[list[str]]
    inbox: int
    incarnation: str
    number: int
    queue: str
    read_up_to: int
    shard: int
    slots: int
    slots_total: NotRequired[int]
    started: NotRequired[list[str]]
    stuck: NotRequired[int]
    tasks: list[str]
    transport: NotRequired[str]
    worker: str
