"""Which backfills are there, and how far has each come? From `run-events`.

Each event says it whole: how many occurrences are decided, how many runs ended how. So the newest one stands, and an
event that comes again changes nothing.
"""

from __future__ import annotations

from projections.event import Event, instant
from projections.projection import Key, Projection, Row, json
from schemas.facts import BackfillFinished, BackfillProgressed, BackfillStarted

RUNNING = "running"

_EMPTY: Row = {
    "version": None, "range_from": None, "range_to": None, "order": None, "reprocess": None, "max_active": None,
    "rate": None, "occurrences": None, "started_at": None, "by": "", "note": "", "state": RUNNING, "decided": 0,
    "counts": "{}", "cursor": None, "expected_at": None, "told_at": None, "finished_at": None, "reason": "",
    "appended_at": None,
}  # fmt: skip


def _key(event: Event) -> Key:
    return event.data["tenant"], event.data["schedule"], event.data["backfill"]


def _row(row: Row | None, event: Event) -> Row:
    """Of one whose start was trimmed, or not read yet, nothing is known but its name."""
    if row is not None:
        return row
    tenant, schedule, backfill = _key(event)
    return {**_EMPTY, "tenant": tenant, "schedule": schedule, "id": backfill}


def _started(row: Row | None, event: Event) -> Row | None:
    if row is not None and row["started_at"] is not None:
        return row
    data = event.data
    new = {
        **_row(row, event),
        "version": data["version"],
        "range_from": instant(data["from"]),
        "range_to": instant(data["to"]),
        "order": data["order"],
        "reprocess": data["reprocess"],
        "max_active": data["max_active"],
        "rate": data["rate"],
        "occurrences": data["occurrences"],
        "started_at": instant(data["started_at"]),
        "by": data.get("by") or "",
        "note": data.get("note") or "",
    }
    new["told_at"] = new["told_at"] or new["started_at"]
    new["appended_at"] = new["appended_at"] or event.appended_at
    return new


def _progressed(row: Row | None, event: Event) -> Row | None:
    data = event.data
    told_at = instant(data["progressed_at"])
    row = _row(row, event)
    if row["finished_at"] is not None or (row["told_at"] is not None and row["told_at"] > told_at):
        return row
    return {**row, **_told(event), "state": data["state"], "told_at": told_at}


def _finished(row: Row | None, event: Event) -> Row | None:
    row = _row(row, event)
    if row["finished_at"] is not None:
        return row
    finished_at = instant(event.data["finished_at"])
    return {
        **row, **_told(event), "state": event.data["outcome"], "told_at": finished_at, "finished_at": finished_at
    }  # fmt: skip


def _told(event: Event) -> Row:
    data = event.data
    return {
        "decided": data["decided"],
        "occurrences": data["occurrences"],
        "counts": json(data["counts"]),
        "cursor": instant(data["cursor"]),
        "expected_at": instant(data.get("expected_at")),
        "reason": data.get("reason") or "",
        "appended_at": event.appended_at,
    }


PROJECTION = Projection(
    table="backfills",
    key=_key,
    folds={
        BackfillStarted.TYPE: _started,
        BackfillProgressed.TYPE: _progressed,
        BackfillFinished.TYPE: _finished,
    },
)
