"""What became of a command? From the facts that carry a command's id, and from `rejections`.

The first answer stands: a repeated command changes nothing and is answered as the first time.
"""

from __future__ import annotations

from collections.abc import Callable

from projections.event import Event, instant
from projections.projection import Fold, Key, Projection, Row, json
from schemas.commands import EVERYONE
from schemas.facts import (
    BreakerChanged,
    CatalogEntry,
    CommandRejected,
    RunCancelRequested,
    RunCreated,
    ScheduleAccepted,
    ScheduleDeleted,
    SchedulePaused,
    ScheduleResumed,
)

ACCEPTED, REJECTED = "accepted", "rejected"


def _key(event: Event) -> Key | None:
    data = event.data
    if not data.get("command_id"):
        return None
    return data["command_id"], data["tenant"], _name(data)


def _name(data: Row) -> str:
    """What the command was about; a breaker is its tenant's."""
    return str(data.get("schedule") or data.get("name") or EVERYONE)


def _accepted(at: str, *fields: str) -> Fold:
    """The fold of a fact that says a command was accepted at its field `at`; `fields` are worth telling."""
    return _first(lambda data: _answer(data, ACCEPTED, at, {name: data[name] for name in fields if name in data}))


def _rejected(data: Row) -> Row:
    told: Row = {name: data[name] for name in ("reason", "faults", "position", "command_type") if name in data}
    return _answer(data, REJECTED, "rejected_at", told)


def _first(answer: Callable[[Row], Row]) -> Fold:
    def fold(row: Row | None, event: Event) -> Row | None:
        if row is not None:
            return row
        return {**answer(event.data), "appended_at": event.appended_at}

    return fold


def _answer(data: Row, outcome: str, at: str, told: Row) -> Row:
    return {
        "command_id": data["command_id"],
        "tenant": data["tenant"],
        "name": _name(data),
        "source": data.get("source") or "",
        "outcome": outcome,
        "answered_at": instant(data[at]),
        "told": json(told),
    }


PROJECTION = Projection(
    table="commands",
    key=_key,
    folds={
        ScheduleAccepted.TYPE: _accepted("accepted_at", "version", "created", "words", "next", "warnings"),
        SchedulePaused.TYPE: _accepted("accepted_at", "version"),
        ScheduleResumed.TYPE: _accepted("accepted_at", "version"),
        ScheduleDeleted.TYPE: _accepted("accepted_at", "version"),
        RunCreated.TYPE: _accepted("created_at", "run_id"),
        RunCancelRequested.TYPE: _accepted("requested_at", "run_id"),
        BreakerChanged.TYPE: _accepted("changed_at", "breaker", "state"),
        CatalogEntry.TYPE: _accepted("changed_at", "kind", "version"),
        CommandRejected.TYPE: _first(_rejected),
    },
    once=True,
)
