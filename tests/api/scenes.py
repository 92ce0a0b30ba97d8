"""A night that somebody is woken by: schedules, runs that went well, and some that did not."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from schemas import identity
from schemas.facts import (
    AttemptFinished,
    AttemptOutcome,
    AttemptStarted,
    Cause,
    DeferReason,
    ErrorInfo,
    NominalRange,
    OccurrenceDeferred,
    OccurrenceSkipped,
    Outcome,
    RunCreated,
    RunDeferReason,
    RunDeferred,
    RunFinished,
    RunRetryScheduled,
    ScheduleAccepted,
    SchedulePaused,
    SkipReason,
)
from schemas.internal import ScheduleCurrent
from tests.projections.histories import JOB

SCRIPT = "<script>document.title = 'owned'</script>"
SECOND = timedelta(seconds=1)


def whole(now: datetime, ago: float) -> datetime:
    """A whole second some time ago."""
    return (now - ago * SECOND).replace(microsecond=0)


def schedule(now: datetime, name: str, cron: str, zone: str, **fields: Any) -> list[Any]:
    state = fields.pop("state", "active")
    definition = {
        "labels": fields.pop("labels", {}), "note": fields.pop("note", ""), "trigger": {"cron": cron, "timezone": zone},
        "job": {"target": {"type": "task", "name": name}},
    }  # fmt: skip
    common: dict[str, Any] = {"tenant": "acme", "schedule": name, "version": 1, "effective_at": now - 4000 * SECOND}
    accepted = ScheduleAccepted(
        **common, definition=definition, accepted_at=now - 4000 * SECOND, created=True, words="", next=(),
        tz_version="2026a", warnings=("/job: unknown field 'x'",) if fields.pop("warned", False) else (),
    )  # fmt: skip
    current = ScheduleCurrent(
        **common, state=state, definition=definition, changed_at=now - 3000 * SECOND, tz_version="2026a"
    )
    paused = SchedulePaused(
        **{**common, "effective_at": now - 3000 * SECOND}, accepted_at=now - 3000 * SECOND, by="ann", note="month's end"
    )
    return [accepted, current, *([paused] if state == "paused" else [])]


def run(now: datetime, name: str, ago: float, **fields: Any) -> RunCreated:
    nominal = whole(now, ago)
    return RunCreated(
        tenant="acme", schedule=name, run_id=identity.occurrence_run_id(name, nominal), version=1,
        cause=fields.pop("cause", Cause.SCHEDULE), created_at=nominal, due_at=nominal,
        deadline_at=nominal + timedelta(days=7), shard=0, job=JOB, rule="on_time", tz_version="2026a",
        nominal_time=nominal, labels={"team": "finance"}, **fields,
    )  # fmt: skip


def lease(handout: int) -> str:
    return f"default.0.{handout}.key{handout}"


def begun(of: RunCreated, after: float, *, handout: int = 0, attempt: int = 1) -> AttemptStarted:
    at = of.created_at + after * SECOND
    return AttemptStarted(
        tenant=of.tenant, schedule=of.schedule, run_id=of.run_id, attempt=attempt, worker="host-7-ab12",
        incarnation="9f3c", handout=handout, handed_out_at=at, started_at=at,
        log_check=identity.log_check(identity.log_proof(lease(handout))),
    )  # fmt: skip


def over(start: AttemptStarted, after: float, outcome: AttemptOutcome, error: str = "") -> AttemptFinished:
    return AttemptFinished(
        tenant=start.tenant, schedule=start.schedule, run_id=start.run_id, attempt=start.attempt, outcome=outcome,
        worker=start.worker, incarnation=start.incarnation, handout=start.handout, handed_out_at=start.handed_out_at,
        started_at=start.started_at, finished_at=start.started_at + after * SECOND,
        error=ErrorInfo(type="ConnectionRefusedError", message=error) if error else None,
    )  # fmt: skip


def done(of: RunCreated, after: float, outcome: Outcome, error: str = "", **fields: Any) -> RunFinished:
    return RunFinished(
        tenant=of.tenant, schedule=of.schedule, run_id=of.run_id, version=1, cause=of.cause, outcome=outcome,
        attempts=1, created_at=of.created_at, finished_at=of.created_at + after * SECOND, nominal_time=of.nominal_time,
        started_at=of.created_at, labels=of.labels,
        error=ErrorInfo(type="ConnectionRefusedError", message=error) if error else None, **fields,
    )  # fmt: skip


def night(now: datetime) -> list[Any]:
    """Everything, in the order of its partition."""
    facts: list[Any] = [
        *schedule(now, "nightly-report", "0 2 * * *", "Europe/London", labels={"team": "finance"}, warned=True,
                  note="Sends the figures of the day to the board."),
        *schedule(now, "hourly-load", "*/15 * * * *", "UTC", labels={"team": "data"}),
        *schedule(now, "tokyo-close", "30 15 * * 1-5", "Asia/Tokyo"),
        *schedule(now, "invoices", "0 6 1 * *", "Europe/London", state="paused"),
    ]  # fmt: skip
    for number in range(1, 9):
        load = run(now, "hourly-load", 900 * number)
        start = begun(load, 0.3, handout=number)
        ended = over(start, 41 + number, AttemptOutcome.SUCCEEDED)
        facts += [load, start, ended, done(load, 42 + number, Outcome.SUCCEEDED)]
    broken = run(now, "nightly-report", 5400)
    first, second = begun(broken, 0.4, handout=21), begun(broken, 65, handout=22, attempt=2)
    why = f"db-1:5432 refused the connection {SCRIPT}"
    retry = RunRetryScheduled(
        tenant="acme", schedule="nightly-report", run_id=broken.run_id, attempt=2,
        retry_at=broken.created_at + 64 * SECOND, decided_at=broken.created_at + 3 * SECOND,
    )  # fmt: skip
    facts += [
        broken, first, over(first, 2.4, AttemptOutcome.FAILED, why), retry, second,
        over(second, 2.1, AttemptOutcome.FAILED, why), done(broken, 68, Outcome.DEAD_LETTERED, why),
    ]  # fmt: skip
    running, waiting = run(now, "hourly-load", 30), run(now, "tokyo-close", 20, start_by_at=whole(now, -300))
    no_worker = RunDeferred(
        tenant="acme", schedule="tokyo-close", run_id=waiting.run_id, reason=RunDeferReason.NO_WORKER,
        since=waiting.created_at, decided_at=waiting.created_at,
    )  # fmt: skip
    facts += [running, begun(running, 0.2, handout=30), waiting, no_worker]
    where: dict[str, Any] = {"tenant": "acme", "schedule": "hourly-load", "version": 1}
    skip: dict[str, Any] = {**where, "decided_at": now - 8000 * SECOND, "rule": "overlap.skip", "tz_version": "2026a"}
    paused = NominalRange(from_=whole(now, 20_000), to=whole(now, 12_800), count=8)
    facts += [
        OccurrenceSkipped(
            **skip, reason=SkipReason.OVERLAP, nominal_time=whole(now, 9001), blocked_by=broken.run_id
        ),
        OccurrenceSkipped(**skip, reason=SkipReason.PAUSED, range=paused),
        OccurrenceDeferred(
            **where, nominal_time=whole(now, 10), reason=DeferReason.BUFFERED, decided_at=now - 9 * SECOND,
            blocked_by=running.run_id,
        ),
    ]  # fmt: skip
    return facts
