"""Which definition was in force when? From the compacted topic `versions`."""

from __future__ import annotations

from projections.event import REMOVED, Event, instant
from projections.projection import Key, Projection, Row, json, outdated
from schemas import topics
from schemas.internal import ScheduleVersion


def _key(event: Event) -> Key:
    if event.type == ScheduleVersion.TYPE:
        return event.data["tenant"], event.data["schedule"], event.data["version"]
    tenant, schedule, version = event.data["key"]
    return tenant, schedule, int(version)


def _version(row: Row | None, event: Event) -> Row | None:
    if outdated(row, event):
        return row
    data = event.data
    return {
        "tenant": data["tenant"],
        "schedule": data["schedule"],
        "version": data["version"],
        "definition": json(data["definition"]),
        "effective_from": instant(data["effective_from"]),
        "effective_to": instant(data.get("effective_to")),
        "tz_version": data["tz_version"],
        "removed_at": None,
        "sequence": event.sequence,
    }


def _removed(row: Row | None, event: Event) -> Row | None:
    """The row stays for a while, so that an echo of the version cannot bring it back."""
    if row is None or row["removed_at"] is not None or outdated(row, event):
        return row
    return {**row, "removed_at": event.appended_at, "sequence": event.sequence}


PROJECTION = Projection(
    table="versions",
    key=_key,
    folds={ScheduleVersion.TYPE: _version, REMOVED[topics.VERSIONS]: _removed},
)
