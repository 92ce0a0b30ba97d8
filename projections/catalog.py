"""Which jobs, calendars, queues and tenants are registered? From the compacted topic `catalog`.

A deleted one keeps its row without a definition, so that an echo of an older version cannot bring it back.
"""

from __future__ import annotations

from projections.event import REMOVED, Event, instant
from projections.projection import Key, Projection, Row, json, outdated
from schemas import topics
from schemas.facts import CatalogEntry


def _key(event: Event) -> Key:
    if event.type == CatalogEntry.TYPE:
        return event.data["kind"], event.data["tenant"], event.data["name"]
    return tuple(event.data["key"])


def _entry(row: Row | None, event: Event) -> Row | None:
    data = event.data
    if outdated(row, event) or (row is not None and row["version"] >= data["version"]):
        return row
    return {
        "kind": data["kind"],
        "tenant": data["tenant"],
        "name": data["name"],
        "version": data["version"],
        "definition": json(data.get("definition")),
        "changed_at": instant(data["changed_at"]),
        "sequence": event.sequence,
    }


def _removed(row: Row | None, event: Event) -> Row | None:
    if row is None or row["definition"] is None or outdated(row, event):
        return row
    return {**row, "definition": None, "changed_at": event.appended_at, "sequence": event.sequence}


PROJECTION = Projection(table="catalog", key=_key, folds={CatalogEntry.TYPE: _entry, REMOVED[topics.CATALOG]: _removed})
