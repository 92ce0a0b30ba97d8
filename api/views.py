"""Rows as the API shows them. Names are those of the contract; what is not known is absent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import orjson

from schemas import identity
from schemas.commands import EVERYONE
from schemas.facts import Outcome, RunCreated

if TYPE_CHECKING:
    from api.services import Outlook
    from projections.store.paging import Page

Row = Mapping[str, Any]
Json = dict[str, Any]


def timezone(definition: Mapping[str, Any] | None) -> str:
    """The zone that a schedule's definition is read in."""
    zone: str = ((definition or {}).get("trigger") or {}).get("timezone", "UTC")
    return zone


def schedule(row: Row, outlook: Outlook | None) -> Json:
    """A schedule as it stands. `next` are its coming occurrences; a paused one has none that will run."""
    definition = row["definition"] or {}
    coming = [] if outlook is None else [each.nominal_time for each in outlook.occurrences]
    alive = row["state"] == "active"
    return _known(
        tenant=row["tenant"],
        name=row["name"],
        version=row["version"],
        state=row["state"],
        pause=row["pause"] if row["state"] == "paused" else None,
        labels=row["labels"] or {},
        note=definition.get("note"),
        words=None if outlook is None else outlook.words,
        timezone=timezone(definition),
        next=coming if alive else [],
        next_run_at=coming[0] if alive and coming else None,
        last_run=_last(row),
        effective_at=row["effective_at"],
        changed_at=row["changed_at"],
        deleted_at=row["deleted_at"],
        tz_version=row["tz_version"],
        definition=definition,
    )


def dependants(rows: Iterable[Row], name: str) -> list[Json]:
    """The schedules that name one in `after`, each with how."""
    return [
        {"schedule": row["name"], "mode": each["mode"], "condition": each["condition"]}
        for row in rows
        for each in (row["definition"] or {}).get("after") or ()
        if each["schedule"] == name
    ]


def _last(row: Row) -> Json | None:
    if row["last_run_id"] is None and row["last_finished_run_id"] is None:
        return None
    return _known(
        run_id=row["last_run_id"],
        nominal_time=row["last_nominal_time"],
        created_at=row["last_created_at"],
        finished_run_id=row["last_finished_run_id"],
        outcome=row["last_outcome"],
        finished_at=row["last_finished_at"],
    )


def version(row: Row) -> Json:
    """One version of a schedule: it decides nominal instants in (effective_from, effective_to]."""
    names = ("tenant", "schedule", "version", "effective_from", "effective_to", "tz_version", "definition")
    return _known(**{name: row[name] for name in names})


_BREAKER = (
    "tenant", "queue", "breaker", "state", "since", "until", "changed_at", "failures", "run_id", "error", "by", "note",
    "shard",
)  # fmt: skip


def breaker(row: Row) -> Json:
    """A breaker as it stands. `ended`: how many attempts ended where `failures` of them failed."""
    said = {name: row[name] or None for name in _BREAKER}
    return _known(**said, reason=row["reason"], ended=row["ended"] or None)


_AGAIN = ("run_id", "rule", "cause", "state", "created_at", "finished_at")
_RUN = (
    "tenant", "schedule", "run_id", "state", "version", "cause", "of", "queue", "nominal_time", "created_at",
    "due_at", "deadline_at", "start_by_at", "started_at", "finished_at", "outcome", "worker", "cancel_requested_at",
    "error", "backfill",
)  # fmt: skip


def run(row: Row) -> Json:
    """A run as it stands."""
    is_open = row["outcome"] is None
    view = _known(**{name: row[name] for name in _RUN}, reason=row["reason"] or None)
    if row["outcome"] == Outcome.SUCCEEDED:
        view.pop("error", None)  # that of an earlier attempt, which tells of it itself
    if not is_open or row["started_at"] is not None:
        view.pop("start_by_at", None)  # it has begun, or never will
    if (job := identity.job_of(row["schedule"])) is not None:
        view["of_job"] = job
    if row["shard"]:
        view["shard"] = row["shard"]
    view["labels"] = row["labels"] or {}
    view["attempt_count"] = row["attempts"]
    if is_open and row["state"] == "retry_wait":
        view["retry_at"] = row["retry_at"]
    if is_open and row["state"] != "running" and _still_waits(row):
        waiting = {"reason": row["waiting"], "since": row["waiting_since"], "until": row["waiting_until"]}
        view["waiting"] = _known(**waiting)
    return view


def _still_waits(row: Row) -> bool:
    """A deferral before the last attempt is over says nothing of the time after it."""
    return row["waiting"] is not None and (row["ended_at"] is None or row["waiting_at"] >= row["ended_at"])


def dead_letter(row: Row, redriven: Mapping[str, str]) -> Json:
    """A run that was given up, and what it was redriven as."""
    return run(row) | _known(redriven_as=redriven.get(row["run_id"]))


def run_in_full(row: Row, attempts: Page, story: Page, again: Iterable[Row], telling: Iterable[Row]) -> Json:
    """A run with a page of its attempts and one of its events, the job it was created from, and the runs of it that
    came later. `telling` are the events that say of which job it is and what came of it, on whichever page they stand.
    """
    view = run(row) | attempts_of(attempts) | events_of(story)
    view |= {f"{name}_cursor": page.cursor for name, page in (("attempts", attempts), ("events", story)) if page.more}
    if later := [_known(**{name: each[name] for name in _AGAIN}) for each in again]:
        view["reruns"] = later
    for each in map(event, telling):
        data = each["data"]
        if each["type"] == RunCreated.TYPE:
            view["job"] = data["job"]
            view |= {name: data[name] for name in ("upstream", "chain") if name in data}
        elif "result" in data:
            view["result"] = data["result"]
    return view


def attempts_of(page: Page) -> Json:
    """A page of a run's attempts."""
    return {"attempts": [attempt(each) for each in page.rows]}


def events_of(page: Page) -> Json:
    """A page of its story."""
    return {"events": [event(each) for each in page.rows]}


_ATTEMPT = (
    "attempt",
    "handout",
    "state",
    "worker",
    "incarnation",
    "handed_out_at",
    "started_at",
    "finished_at",
    "error",
)


def attempt(row: Row) -> Json:
    """One hand-out of a run."""
    return _known(**{name: row[name] for name in _ATTEMPT}, counted=row["counted"])


_LINE = ("attempt", "handout", "line", "at", "stream", "level", "text", "cut", "dropped")


def log_line(line: Row) -> Json:
    """A line that an attempt wrote."""
    return {name: line[name] for name in _LINE if name in line}


def event(row: Row) -> Json:
    """A fact as it was written."""
    document = orjson.loads(row["event"])
    names = ("id", "type", "time", "source", "subject", "data")
    return {name: document[name] for name in names if name in document} | {"appended_at": row["appended_at"]}


def undone(row: Row) -> Json:
    """An occurrence without a run, and why."""
    view = _known(
        decision=row["decision"],
        reason=row["reason"],
        version=row["version"],
        decided_at=row["decided_at"],
        until=row["until"],
        since=row["since"],
        rule=row["rule"] or None,
        tz_version=row["tz_version"] or None,
        blocked_by=row["blocked_by"],
        detail=row["detail"] or None,
        used=row["used"],
    )
    if row["local_time"].startswith("d-"):
        return view  # what a run of another schedule would have led to: it has no instant of its own
    if row["local_time"]:
        return view | {"local_time": row["local_time"]}
    if row["nominal_to"] is not None:
        return view | {"range": {"from": row["nominal_from"], "to": row["nominal_to"], "count": row["count"]}}
    return view | {"nominal_time": row["nominal_from"]}


def created(row: Row) -> Json:
    """An occurrence that has a run."""
    return _known(
        decision="created",
        nominal_time=row["nominal_time"],
        run_id=row["run_id"],
        reason=row["cause"],
        backfill=row["backfill"],
        version=row["version"],
        rule=row["rule"],
        tz_version=row["tz_version"],
        used=row["used"],
        due_at=row["due_at"] if row["due_at"] != (row["nominal_time"] or row["due_at"]) else None,
        decided_at=row["created_at"],
        state=row["state"],
        start_by_at=row["start_by_at"] if row["outcome"] is None and row["started_at"] is None else None,
        finished_at=row["finished_at"],
        outcome_reason=row["reason"] or None,
        detail=row["detail"] or None,
    )


_BACKFILL = (
    "tenant", "schedule", "state", "version", "order", "reprocess", "max_active", "rate", "occurrences", "decided",
    "cursor", "started_at", "expected_at", "finished_at",
)  # fmt: skip
_COUNTS: Json = {"created": 0, "reprocessed": 0, "left_out": {}, "ended": {}, "active": 0}


def backfill(row: Row) -> Json:
    """A backfill and how far it has come; `done` is the part of its occurrences that is through."""
    counts = {**_COUNTS, **(row["counts"] or {})}
    told = {name: row[name] for name in _BACKFILL}
    is_over = row["finished_at"] is not None
    through = row["decided"] - counts["active"]
    return {
        **_known(backfill=row["id"], **told, by=row["by"] or None, note=row["note"] or None),
        **_known(reason=row["reason"] or None, as_of=row["told_at"]),
        "from": row["range_from"],
        "to": row["range_to"],
        "counts": counts,
        "done": round(through / row["occurrences"], 4) if row["occurrences"] else float(is_over),
    }


def worker(row: Row, working: Sequence[Row]) -> Json:
    """A worker as it stood when it was heard of, and what the rows know it to have in hand."""
    names = ("worker", "incarnation", "queue", "shard", "state", "tasks", "slots_total", "heard_at", "gone_at")
    used = working[0]["count"] if working else 0
    total = row["slots_total"]
    free = None if total is None else max(0, total - used - row["stuck"])
    view = _known(
        **{name: row[name] for name in names}, transport=row["transport"] or None, client=row["client"] or None,
        slots_free=0 if row["state"] != "present" and free is not None else free,
    )  # fmt: skip
    view |= {"slots_used": used, "stuck": row["stuck"], "draining": bool(row["draining"])}
    in_hand = ("tenant", "run_id", "attempt", "started_at")
    return view | {"attempts": [_known(**{name: each[name] for name in in_hand}) for each in working]}


def command(row: Row) -> Json:
    """What became of a command."""
    names = ("command_id", "tenant", "name", "answered_at")
    return {**(row["told"] or {}), **{name: row[name] for name in names}, "state": row["outcome"]}


def entry(row: Row) -> Json:
    """A reference definition. A queue is nobody's, and a tenant is called by its own name."""
    names = ("tenant", "name", "version", "changed_at", "definition")
    view = {name: row[name] for name in names}
    if view["tenant"] == EVERYONE:
        view.pop("tenant")
    if view["name"] == EVERYONE:
        view["name"] = view.pop("tenant")
    return view


def _known(**values: Any) -> Json:
    return {name: value for name, value in values.items() if value is not None}
