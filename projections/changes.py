"""Who changed a queue, a tenant, a job or a calendar, when and why? Every version, as far back as history is kept."""

from __future__ import annotations

from projections.event import Event, instant
from projections.projection import Key, Projection, Row, json
from schemas.facts import CatalogEntry


def _key(event: Event) -> Key:
    data = event.data
    return data["kind"], data["tenant"], data["name"], data["version"]


def _changed(row: Row | None, event: Event) -> Row | None:
    if row is not None:
        return row
    data = event.data
    return {
        "kind": data["kind"],
        "tenant": data["tenant"],
        "name": data["name"],
        "version": data["version"],
        "definition": json(data.get("definition")),
        "changed_at": instant(data["changed_at"]),
        "by": data.get("by") or "",
        "note": data.get("note") or "",
        "source": data.get("source") or "",
        "command_id": data.get("command_id") or "",
        "appended_at": event.appended_at,
    }


PROJECTION = Projection(table="changes", key=_key, folds={CatalogEntry.TYPE: _changed}, once=True)
