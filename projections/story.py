"""What happened, in order? The facts of a run, and those of a schedule itself, as they were written."""

from __future__ import annotations

from projections.event import Event
from projections.projection import Key, Projection, Row
from schemas.facts import (
    AttemptDuplicate,
    AttemptFinished,
    AttemptStarted,
    RunCancelRequested,
    RunCreated,
    RunDeferred,
    RunFinished,
    RunRetryScheduled,
    ScheduleAccepted,
    ScheduleDeleted,
    SchedulePaused,
    ScheduleResumed,
)

OF_A_RUN = (
    RunCreated, RunDeferred, RunRetryScheduled, RunCancelRequested, RunFinished,
    AttemptStarted, AttemptFinished, AttemptDuplicate,
)  # fmt: skip
OF_A_SCHEDULE = (ScheduleAccepted, SchedulePaused, ScheduleResumed, ScheduleDeleted)


def _key(event: Event) -> Key:
    return event.data["tenant"], event.data["schedule"], event.data.get("run_id") or "", event.id


def _told(row: Row | None, event: Event) -> Row | None:
    if row is not None:
        return row
    data = event.data
    return {
        "tenant": data["tenant"],
        "schedule": data["schedule"],
        "run_id": data.get("run_id") or "",
        "id": event.id,
        "offset": event.offset,
        "appended_at": event.appended_at,
        "event": event.raw.decode(),
    }


PROJECTION = Projection(
    table="story", key=_key, folds={fact.TYPE: _told for fact in OF_A_RUN + OF_A_SCHEDULE}, once=True
)
