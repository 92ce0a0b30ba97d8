"""Histories as the owners would write them: facts of runs and schedules, and records of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from runtime.record import SEQUENCE_HEADER, Outgoing, TopicPartition
from schemas import codec, identity, topics
from schemas.facts import (
    AttemptFinished,
    AttemptOutcome,
    AttemptStarted,
    Cause,
    ErrorInfo,
    Fact,
    JobSnapshot,
    Outcome,
    RetryPolicy,
    RunCreated,
    RunFinished,
    RunRetryScheduled,
)
from schemas.internal import ScheduleCurrent, ScheduleVersion, WorkerListed

START = datetime(2026, 3, 1, tzinfo=UTC)
LAYOUT = topics.Layout(schedule=2, shard=2)

DEFINITION: dict[str, Any] = {
    "labels": {"team": "finance"},
    "trigger": {"cron": "0 2 * * *", "timezone": "Europe/London"},
    "job": {"target": {"type": "task", "name": "reports.nightly"}},
}
JOB = JobSnapshot(
    queue="default",
    target={"type": "task", "name": "reports.nightly"},
    payload={"day": "2026-03-01"},
    priority="normal",
    timeout=timedelta(hours=1),
    deadline=timedelta(days=7),
    lease=timedelta(seconds=30),
    retry=RetryPolicy(
        max_attempts=3, initial=timedelta(seconds=1), factor=2.0, max=timedelta(minutes=5), jitter="full"
    ),
)


def at(seconds: float) -> datetime:
    """An instant of the history."""
    return START + timedelta(seconds=seconds)


def current(
    name: str, version: int = 1, *, tenant: str = "acme", state: str = "active", **fields: Any
) -> ScheduleCurrent:
    return ScheduleCurrent(
        tenant=tenant, schedule=name, version=version, state=state, definition={**DEFINITION, **fields},
        effective_at=at(version), changed_at=at(version), tz_version="2026a",
    )  # fmt: skip


def version(name: str, number: int, *, to: datetime | None = None, tenant: str = "acme") -> ScheduleVersion:
    return ScheduleVersion(
        tenant=tenant, schedule=name, version=number, definition=DEFINITION, effective_from=at(number),
        effective_to=to, tz_version="2026a",
    )  # fmt: skip


def created(name: str, second: float, *, tenant: str = "acme", **fields: Any) -> RunCreated:
    nominal = at(second)
    values: dict[str, Any] = {
        "tenant": tenant,
        "schedule": name,
        "run_id": identity.occurrence_run_id(name, nominal),
        "version": 1,
        "cause": Cause.SCHEDULE,
        "created_at": nominal,
        "due_at": nominal,
        "deadline_at": nominal + timedelta(days=7),
        "shard": 0,
        "job": JOB,
        "rule": "on_time",
        "tz_version": "2026a",
        "nominal_time": nominal,
        "labels": {"team": "finance"},
    }
    return RunCreated(**{**values, **fields})


def started(
    run: RunCreated, second: float, *, handout: int = 0, attempt: int = 1, worker: str = "w-1"
) -> AttemptStarted:
    return AttemptStarted(
        tenant=run.tenant, schedule=run.schedule, run_id=run.run_id, attempt=attempt, worker=worker,
        incarnation=f"{worker}-a", handout=handout, handed_out_at=at(second), started_at=at(second),
    )  # fmt: skip


def ended(
    start: AttemptStarted, second: float, outcome: AttemptOutcome = AttemptOutcome.SUCCEEDED, error: str = ""
) -> AttemptFinished:
    return AttemptFinished(
        tenant=start.tenant, schedule=start.schedule, run_id=start.run_id, attempt=start.attempt, outcome=outcome,
        worker=start.worker, incarnation=start.incarnation, handout=start.handout, handed_out_at=start.handed_out_at,
        finished_at=at(second), started_at=start.started_at,
        error=ErrorInfo(type="ValueError", message=error) if error else None,
    )  # fmt: skip


def retried(run: RunCreated, second: float, attempt: int) -> RunRetryScheduled:
    return RunRetryScheduled(
        tenant=run.tenant, schedule=run.schedule, run_id=run.run_id, attempt=attempt, retry_at=at(second + 5),
        decided_at=at(second),
    )  # fmt: skip


def finished(
    run: RunCreated, second: float, outcome: Outcome = Outcome.SUCCEEDED, attempts: int = 1, result: Any = None
) -> RunFinished:
    return RunFinished(
        tenant=run.tenant, schedule=run.schedule, run_id=run.run_id, version=run.version, cause=run.cause,
        outcome=outcome, attempts=attempts, created_at=run.created_at, finished_at=at(second),
        nominal_time=run.nominal_time, started_at=run.created_at, labels=run.labels,
        result=result,
    )  # fmt: skip


def succeeded(name: str, second: float, *, handout: int = 0, tenant: str = "acme") -> list[Fact]:
    """The four facts of a run that went well."""
    run = created(name, second, tenant=tenant)
    start = started(run, second + 0.1, handout=handout)
    return [run, start, ended(start, second + 1), finished(run, second + 1)]


def listed(worker: str, second: float = 0, *, incarnation: str = "", **fields: Any) -> WorkerListed:
    """A worker as it stood when it was heard of, so many seconds into the history."""
    values: dict[str, Any] = {
        "queue": "default", "shard": 0, "worker": worker, "incarnation": incarnation or f"{worker}-a",
        "tasks": ("mail", "reports.nightly"), "heard_at": at(second), "slots_total": 8, "client": "tidewheel/0.1.0",
        "transport": "http",
    }  # fmt: skip
    return WorkerListed(**{**values, **fields})


_KEYED: dict[type[Fact], str] = {
    ScheduleCurrent: topics.SCHEDULES,
    ScheduleVersion: topics.VERSIONS,
    WorkerListed: topics.WORKERS,
}
_SINGLE = frozenset({topics.CATALOG, topics.WORKERS})  # topics of one partition


def record(fact: Fact, *, sequence: int = 1, topic: str | None = None) -> Outgoing:
    """The record of a fact, where its owner would put it."""
    topic = topic or _KEYED.get(type(fact), topics.RUN_EVENTS)
    key = f"{fact.subject}/{fact.version}" if isinstance(fact, ScheduleVersion) else fact.subject
    partitions = 1 if topic in _SINGLE else LAYOUT.schedule
    _, value = codec.encode(fact, source="tidewheel/test", time=START)
    headers = ((SEQUENCE_HEADER, f"scheduler-0-{sequence}".encode()),)
    return Outgoing(topic, identity.partition_of(fact.subject, partitions), key.encode(), value, headers)


def tombstone(topic: str, key: str, *, sequence: int = 1) -> Outgoing:
    partitions = 1 if topic in _SINGLE else LAYOUT.schedule
    headers = ((SEQUENCE_HEADER, f"scheduler-0-{sequence}".encode()),)
    return Outgoing(topic, identity.partition_of("/".join(key.split("/")[:2]), partitions), key.encode(), None, headers)


def records(facts: Iterable[Fact]) -> Iterator[Outgoing]:
    """Each fact in a transaction of its own."""
    for sequence, fact in enumerate(facts, 1):
        yield record(fact, sequence=sequence)


def create_topics(log: Any, layout: topics.Layout = LAYOUT) -> None:
    log.create({spec: layout.partitions(spec.family) for spec in topics.topic_table(topics.Retention())})


def everything(log: Any, names: Sequence[str]) -> list[Any]:
    """All records of topics, partition after partition."""
    found = []
    for topic in names:
        for partition in range(log.partitions(topic)):
            place = TopicPartition(topic, partition)
            reader = log.open_reader({place: log.begin_offset(place)})
            while records_ := reader.poll(records_max=1000, bytes_max=1 << 23, timeout=0):
                found.extend(records_)
            reader.close()
    return found
