"""Which schedules are there, and how do they stand? From the compacted topic `schedules`."""

from __future__ import annotations

from projections.event import REMOVED, Event, instant
from projections.projection import Key, Projection, Row, json, outdated
from schemas import topics
from schemas.internal import ScheduleCurrent

DELETED = "deleted"


def _key(event: Event) -> Key:
    if event.type == ScheduleCurrent.TYPE:
        return event.data["tenant"], event.data["schedule"]
    return tuple(event.data["key"])


def _current(row: Row | None, event: Event) -> Row | None:
    if outdated(row, event):
        return row
    data = event.data
    definition = data["definition"]
    return {
        "tenant": data["tenant"],
        "name": data["schedule"],
        "version": data["version"],
        "state": data["state"],
        "labels": json(definition.get("labels") or {}),
        "definition": json(definition),
        "effective_at": instant(data["effective_at"]),
        "changed_at": instant(data["changed_at"]),
        "tz_version": data["tz_version"],
        "pause": json(data.get("pause")),
        "deleted_at": None,
        "sequence": event.sequence,
    }


def _removed(row: Row | None, event: Event) -> Row | None:
    """The row stays for as long as history does, so that one can still see what was deleted, and when."""
    if row is None or row["state"] == DELETED or outdated(row, event):
        return row
    return {**row, "state": DELETED, "deleted_at": event.appended_at, "sequence": event.sequence}


PROJECTION = Projection(
    table="schedules",
    key=_key,
    folds={ScheduleCurrent.TYPE: _current, REMOVED[topics.SCHEDULES]: _removed},
)
