"""How does each breaker stand? From `run-events`. One that is closed keeps its row, and says why it was closed."""

from __future__ import annotations

from projections.event import Event, instant
from projections.projection import Key, Projection, Row, json
from schemas.facts import BreakerChanged


def _key(event: Event) -> Key:
    data = event.data
    return data["tenant"], data["queue"], data["shard"], data["breaker"]


def _changed(row: Row | None, event: Event) -> Row | None:
    data = event.data
    changed_at = instant(data["changed_at"])
    if row is not None and row["changed_at"] >= changed_at:
        return row
    return {
        "tenant": data["tenant"],
        "queue": data["queue"],
        "shard": data["shard"],
        "breaker": data["breaker"],
        "state": data["state"],
        "reason": data["reason"],
        "changed_at": changed_at,
        "since": instant(data.get("since")),
        "until": instant(data.get("until")),
        "failures": data.get("failures", 0),
        "ended": data.get("attempts", 0),
        "run_id": data.get("run_id"),
        "error": json(data.get("error")),
        "by": data.get("by"),
        "note": data.get("note"),
        "appended_at": event.appended_at,
    }


PROJECTION = Projection(table="breakers", key=_key, folds={BreakerChanged.TYPE: _changed})
