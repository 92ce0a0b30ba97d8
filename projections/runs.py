"""Which runs are there, and how does each stand? From `run-events`.

A row keeps the furthest that each kind of event has brought the run, and its state follows from these marks. That
is why an event that comes twice, or after a later one, changes nothing.
"""

from __future__ import annotations

from projections.event import Event, instant
from projections.projection import Key, Projection, Row, json
from schemas.facts import (
    AttemptFinished,
    AttemptStarted,
    RunCancelRequested,
    RunCreated,
    RunDeferred,
    RunFinished,
    RunRetryScheduled,
)

QUEUED, RUNNING, RETRY_WAIT = "queued", "running", "retry_wait"

_STARTED, _ENDED = 1, 2  # how far the hand-out in `handout` has come

_EMPTY: Row = {
    "tenant": None, "schedule": None, "run_id": None, "state": QUEUED, "version": None, "cause": None, "of": None,
    "queue": None, "labels": "{}", "nominal_time": None, "created_at": None, "due_at": None, "deadline_at": None,
    "start_by_at": None,
    "started_at": None, "finished_at": None, "outcome": None, "reason": "", "attempts": 0, "handout": -1, "phase": 0,
    "worker": None, "ended_at": None, "retry_attempt": 0, "retry_at": None, "waiting": None, "waiting_since": None,
    "waiting_at": None, "waiting_until": None, "cancel_requested_at": None, "error": None, "error_at": None,
    "rule": None, "tz_version": None, "backfill": None, "used": None, "detail": None, "appended_at": None,
    "shard": None,
}  # fmt: skip


def state_of(row: Row) -> str:
    """The state that the marks of a row amount to."""
    if row["outcome"] is not None:
        return str(row["outcome"])
    if row["phase"] == _STARTED:
        return RUNNING
    return RETRY_WAIT if row["retry_attempt"] > row["attempts"] else QUEUED


def _key(event: Event) -> Key:
    return event.data["tenant"], event.data["run_id"]


def _changed(row: Row | None, event: Event, **marks: object) -> Row:
    new = row.copy() if row is not None else _begun(event)
    before = new["appended_at"]
    new.update(marks)
    new["state"] = state_of(new)
    if before is None or event.appended_at > before:
        new["appended_at"] = event.appended_at
    return new


def _begun(event: Event) -> Row:
    """A run whose creation was not read: history before it has been trimmed."""
    data = event.data
    named = {"tenant": data["tenant"], "schedule": data["schedule"], "run_id": data["run_id"]}
    return {**_EMPTY, **named, "created_at": event.appended_at}


def _created(row: Row | None, event: Event) -> Row | None:
    if row is not None and row["due_at"] is not None:
        return row
    data = event.data
    return _changed(
        row, event,
        version=data["version"],
        cause=data["cause"],
        of=data.get("of"),
        queue=data["job"]["queue"],
        shard=data["shard"],
        labels=json(data.get("labels") or {}),
        nominal_time=instant(data.get("nominal_time")),
        created_at=instant(data["created_at"]),
        due_at=instant(data["due_at"]),
        deadline_at=instant(data["deadline_at"]),
        start_by_at=instant(data.get("start_by_at")),
        rule=data.get("rule"),
        tz_version=data.get("tz_version"),
        backfill=data.get("backfill"),
        used=json(data.get("used")),
        detail=data.get("detail"),
    )  # fmt: skip


def _deferred(row: Row | None, event: Event) -> Row | None:
    data = event.data
    decided_at = instant(data["decided_at"])
    if row is not None and row["waiting_at"] is not None and row["waiting_at"] >= decided_at:
        return row
    return _changed(
        row, event,
        waiting=data["reason"],
        waiting_since=instant(data["since"]),
        waiting_at=decided_at,
        waiting_until=instant(data.get("until")),
    )  # fmt: skip


def _retry_scheduled(row: Row | None, event: Event) -> Row | None:
    data = event.data
    if row is not None and row["retry_attempt"] >= data["attempt"]:
        return row
    return _changed(row, event, retry_attempt=data["attempt"], retry_at=instant(data["retry_at"]))


def _cancel_requested(row: Row | None, event: Event) -> Row | None:
    if row is not None and row["cancel_requested_at"] is not None:
        return row
    return _changed(row, event, cancel_requested_at=instant(event.data["requested_at"]))


def _attempt_started(row: Row | None, event: Event) -> Row | None:
    data = event.data
    started_at = instant(data["started_at"])
    first = started_at if row is None or row["started_at"] is None else min(row["started_at"], started_at)
    if row is not None and (row["handout"], row["phase"]) >= (data["handout"], _STARTED):
        return row if first == row["started_at"] else _changed(row, event, started_at=first)
    return _changed(row, event, started_at=first, phase=_STARTED, **_attempt(row, event))


def _attempt_finished(row: Row | None, event: Event) -> Row | None:
    data = event.data
    if row is not None and (row["handout"], row["phase"]) >= (data["handout"], _ENDED):
        return row
    marks = _attempt(row, event)
    finished_at = instant(data["finished_at"])
    if data.get("error") is not None:
        marks |= {"error": json(data["error"]), "error_at": finished_at}
    return _changed(row, event, phase=_ENDED, ended_at=finished_at, **marks)


def _attempt(row: Row | None, event: Event) -> Row:
    data = event.data
    attempts = max(data["attempt"], row["attempts"] if row is not None else 0)
    return {"handout": data["handout"], "attempts": attempts, "worker": data["worker"]}


def _finished(row: Row | None, event: Event) -> Row | None:
    """The first outcome stands: a run has one."""
    if row is not None and row["outcome"] is not None:
        return row
    data = event.data
    finished_at = instant(data["finished_at"])
    marks: Row = {"outcome": data["outcome"], "finished_at": finished_at, "reason": data.get("reason") or ""}
    if data.get("error") is not None:
        marks |= {"error": json(data["error"]), "error_at": finished_at}
    if row is None or row["due_at"] is None:
        marks |= _as_finished(data)
    attempts = max(data["attempts"], row["attempts"] if row is not None else 0)
    return _changed(row, event, attempts=attempts, **marks)


def _as_finished(data: Row) -> Row:
    """What the outcome alone still tells of a run whose creation was trimmed."""
    return {
        "version": data["version"],
        "cause": data["cause"],
        "of": data.get("of"),
        "labels": json(data.get("labels") or {}),
        "nominal_time": instant(data.get("nominal_time")),
        "created_at": instant(data["created_at"]),
        "started_at": instant(data.get("started_at")),
    }


PROJECTION = Projection(
    table="runs",
    key=_key,
    folds={
        RunCreated.TYPE: _created,
        RunDeferred.TYPE: _deferred,
        RunRetryScheduled.TYPE: _retry_scheduled,
        RunCancelRequested.TYPE: _cancel_requested,
        AttemptStarted.TYPE: _attempt_started,
        AttemptFinished.TYPE: _attempt_finished,
        RunFinished.TYPE: _finished,
    },
)
