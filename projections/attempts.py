"""What became of each hand-out of a run? From `run-events`.

One row for each hand-out, not for each attempt number: an attempt that was interrupted is handed out again under
the number it had.
"""

from __future__ import annotations

from projections.event import Event, instant
from projections.projection import Key, Projection, Row, json
from schemas.facts import AttemptFinished, AttemptStarted

RUNNING = "running"


def _key(event: Event) -> Key:
    return event.data["tenant"], event.data["run_id"], event.data["handout"]


def _started(row: Row | None, event: Event) -> Row | None:
    if row is not None:
        return row
    return {
        **_handed_out(event), "state": RUNNING, "started_at": instant(event.data["started_at"]), "finished_at": None,
        "counted": True, "error": None, "log_check": event.data.get("log_check", ""),
    }  # fmt: skip


def _finished(row: Row | None, event: Event) -> Row | None:
    if row is not None and row["state"] != RUNNING:
        return row
    data = event.data
    return {
        **_handed_out(event),
        "state": data["outcome"],
        "started_at": instant(data.get("started_at")) or (row["started_at"] if row is not None else None),
        "finished_at": instant(data["finished_at"]),
        "counted": data.get("counted", True),
        "error": json(data.get("error")),
        "log_check": row["log_check"] if row is not None else "",
    }


def _handed_out(event: Event) -> Row:
    data = event.data
    return {
        "tenant": data["tenant"],
        "run_id": data["run_id"],
        "handout": data["handout"],
        "attempt": data["attempt"],
        "worker": data["worker"],
        "incarnation": data["incarnation"],
        "handed_out_at": instant(data["handed_out_at"]),
        "appended_at": event.appended_at,
    }


PROJECTION = Projection(
    table="attempts", key=_key, folds={AttemptStarted.TYPE: _started, AttemptFinished.TYPE: _finished}
)
