"""What did a schedule do last? From `run-events`.

A row of its own beside `schedules`, because it follows another topic: each table follows one, so that it does not
matter in which order topics are read.
"""

from __future__ import annotations

from projections.event import Event, instant
from projections.projection import Key, Projection, Row
from schemas.facts import RunCreated, RunFinished

_EMPTY: Row = {
    "created_run_id": None, "created_nominal_time": None, "created_at": None,
    "finished_run_id": None, "outcome": None, "finished_at": None, "touched_at": None,
}  # fmt: skip


def _key(event: Event) -> Key:
    return event.data["tenant"], event.data["schedule"]


def _row(row: Row | None, event: Event) -> Row:
    return row if row is not None else {"tenant": event.data["tenant"], "name": event.data["schedule"], **_EMPTY}


def _created(row: Row | None, event: Event) -> Row | None:
    row, data = _row(row, event), event.data
    created = (instant(data["created_at"]), data["run_id"])
    if row["created_run_id"] is not None and created <= (row["created_at"], row["created_run_id"]):
        return row
    return {
        **row,
        "created_run_id": data["run_id"],
        "created_nominal_time": instant(data.get("nominal_time")),
        "created_at": created[0],
        "touched_at": event.appended_at,
    }


def _finished(row: Row | None, event: Event) -> Row | None:
    row, data = _row(row, event), event.data
    finished = (instant(data["finished_at"]), data["run_id"])
    if row["finished_run_id"] is not None and finished <= (row["finished_at"], row["finished_run_id"]):
        return row
    return {
        **row,
        "finished_run_id": data["run_id"],
        "outcome": data["outcome"],
        "finished_at": finished[0],
        "touched_at": event.appended_at,
    }


PROJECTION = Projection(table="activity", key=_key, folds={RunCreated.TYPE: _created, RunFinished.TYPE: _finished})
