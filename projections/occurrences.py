"""Why has an occurrence no run (yet)? From `run-events`.

Only what was not created stands here: a skipped occurrence, a range of them, a reading that a clock change dropped,
a deferral. The run of a created one says the rest, for its id follows from the nominal time.

What a run of another schedule would have led to has no nominal time: it stands where it was decided.
"""

from __future__ import annotations

from projections.event import Event, instant
from projections.projection import Key, Projection, Row, json
from schemas import identity
from schemas.facts import OccurrenceDeferred, OccurrenceSkipped

SKIPPED = "skipped"
DEFERRED = "deferred"


def _key(event: Event) -> Key:
    data = event.data
    decision = SKIPPED if event.type == OccurrenceSkipped.TYPE else DEFERRED
    return data["tenant"], data["schedule"], _from(event), decision, _name(event)


def _name(event: Event) -> str:
    """What tells decisions of one instant apart: a local reading, or the end of the id that the run would have had."""
    data = event.data
    upstream = data.get("upstream")
    if upstream is None:
        return data.get("local_time") or ""
    nominal = upstream.get("nominal_time") or ""
    names = (data["tenant"], data["schedule"], upstream["schedule"], upstream["run_id"], nominal)
    return identity.dependency_run_id(*names).rpartition(".")[2]


def _from(event: Event) -> int:
    """Where it stands in the schedule's order. A dropped local reading stands where it was decided."""
    data = event.data
    nominal = data.get("nominal_time") or (data.get("range") or {}).get("from") or data["decided_at"]
    return instant(nominal) or 0


def _skipped(row: Row | None, event: Event) -> Row | None:
    data = event.data
    decided_at = instant(data["decided_at"])
    if row is not None and row["decided_at"] >= decided_at:
        return row
    range_ = data.get("range")
    return {
        **_common(event),
        "decision": SKIPPED,
        "local_time": _name(event),
        "nominal_to": instant(range_["to"]) if range_ else None,
        "count": range_["count"] if range_ else 1 if data.get("nominal_time") else 0,
        "until": None,
        "since": None,
        "rule": data["rule"],
        "tz_version": data["tz_version"],
    }


def _detail(event: Event) -> str:
    upstream = event.data.get("upstream")
    said = [] if upstream is None else [f"after {upstream['run_id']}, which {upstream['outcome']}"]
    return ": ".join([*said, *filter(None, (event.data.get("detail"),))])


def _deferred(row: Row | None, event: Event) -> Row | None:
    data = event.data
    decided_at = instant(data["decided_at"])
    if row is not None and row["decided_at"] >= decided_at:
        return row
    return {
        **_common(event),
        "decision": DEFERRED,
        "local_time": "",
        "nominal_to": None,
        "count": 1,
        "until": instant(data.get("until")),
        "since": instant(data.get("since")),
        "rule": data.get("rule") or "",
        "tz_version": data.get("tz_version") or "",
    }


def _common(event: Event) -> Row:
    data = event.data
    return {
        "tenant": data["tenant"],
        "schedule": data["schedule"],
        "nominal_from": _from(event),
        "version": data["version"],
        "reason": data["reason"],
        "decided_at": instant(data["decided_at"]),
        "blocked_by": data.get("blocked_by"),
        "detail": _detail(event),
        "used": json(data.get("used")),
        "appended_at": event.appended_at,
    }


PROJECTION = Projection(
    table="occurrences",
    key=_key,
    folds={OccurrenceSkipped.TYPE: _skipped, OccurrenceDeferred.TYPE: _deferred},
)
