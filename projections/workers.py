"""Who works, and how did each stand when it was heard of last? From the compacted topic `workers`.

One that is silent or replaced keeps its row for a while: so that people see who is gone, and no echo brings it back.
"""

from __future__ import annotations

from projections.event import REMOVED, Event, instant
from projections.projection import Key, Projection, Row, json, outdated
from schemas import topics
from schemas.internal import WorkerListed


def _key(event: Event) -> Key:
    if event.type == WorkerListed.TYPE:
        return event.data["queue"], event.data["shard"], event.data["incarnation"]
    queue, shard, *incarnation = event.data["key"]
    return queue, int(shard), "/".join(incarnation)


def _listed(row: Row | None, event: Event) -> Row | None:
    if outdated(row, event):
        return row
    data = event.data
    return {
        "queue": data["queue"],
        "shard": data["shard"],
        "incarnation": data["incarnation"],
        "worker": data["worker"],
        "draining": data.get("draining", False),
        "slots_total": data.get("slots_total"),
        "stuck": data.get("stuck", 0),
        "tasks": json(data["tasks"]),
        "client": data.get("client", ""),
        "transport": data.get("transport", ""),
        "heard_at": instant(data["heard_at"]),
        "gone_at": None,
        "appended_at": event.appended_at,
        "sequence": event.sequence,
    }


def _gone(row: Row | None, event: Event) -> Row | None:
    if row is None or row["gone_at"] is not None or outdated(row, event):
        return row
    return {**row, "gone_at": event.appended_at, "appended_at": event.appended_at, "sequence": event.sequence}


PROJECTION = Projection(
    table="workers", key=_key, folds={WorkerListed.TYPE: _listed, REMOVED[topics.WORKERS]: _gone}
)  # fmt: skip
