"""Who changed what, when and why: the versions of a queue, tenant, job or calendar, and the story of a schedule.

The newest first, in pages. Each says which fields are others than in the version before, where that is still known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from api import views
from api.difference import changed_fields
from projections.store import history
from projections.store.reader import Scope
from schemas.commands import EVERYONE
from schemas.facts import ScheduleAccepted, ScheduleDeleted, SchedulePaused, ScheduleResumed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from projections.store.reader import Reader

JOB, CALENDAR, QUEUE, TENANT = "job", "calendar", "queue", "tenant"
OWNED = (JOB, CALENDAR)  # by a tenant
SUMMARY = "Its versions, newest first: who changed what, when and why"
_SAID = ("by", "note", "source", "command_id")
_WHAT = {
    ScheduleAccepted.TYPE: "put",
    SchedulePaused.TYPE: "paused",
    ScheduleResumed.TYPE: "resumed",
    ScheduleDeleted.TYPE: "deleted",
}

Definition = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Meant:
    """A thing of the catalog: what it is, whose, and what people call it."""

    kind: str
    tenant: str
    name: str

    @property
    def shown(self) -> str:
        """For messages."""
        return {QUEUE: self.name, TENANT: self.tenant}.get(self.kind, f"{self.tenant}/{self.name}")

    @property
    def in_file(self) -> tuple[str, str, str]:
        """Kind, tenant and name as a definition file says them."""
        return self.kind.title(), self.tenant, self.tenant if self.kind == TENANT else self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """A page of them as the API shows them, and of each the definition that was in force before, where it is known."""

    shown: Sequence[views.Json]
    before: Sequence[Definition | None]
    cursor: str | None

    @property
    def json(self) -> views.Json:
        """The answer."""
        return {"changes": self.shown, **({"cursor": self.cursor} if self.cursor else {})}


def of_reference(reader: Reader, meant: Meant, cursor: str | None, limit: int | None) -> Changes | None:
    """The versions of a reference definition; None of what there never was."""
    scope = Scope(tenant=meant.tenant)
    page = history.changes(reader, scope, meant.kind, meant.name, cursor=cursor, limit=limit)
    if not page.rows and cursor is None and reader.entry(scope, meant.kind, meant.name) is None:
        return None
    behind = (
        history.changes(reader, scope, meant.kind, meant.name, cursor=page.cursor, limit=1).rows if page.cursor else ()
    )
    definitions = [row["definition"] for row in (*page.rows, *behind)]
    # Before one behind a deletion there was nothing; before the oldest of all nothing is known.
    before = [*(definition or {} for definition in definitions[1:]), None][: len(page.rows)]
    shown = [_change(row, was) for row, was in zip(page.rows, before, strict=True)]
    return Changes(shown=shown, before=before, cursor=page.cursor)


def _change(row: views.Row, before: Definition | None) -> views.Json:
    definition = row["definition"]
    view = {"version": row["version"], "changed_at": row["changed_at"]}
    view |= {name: row[name] for name in _SAID if row[name]}
    if definition is None:
        return view | {"deleted": True}
    if before is not None:
        view["fields"] = changed_fields(before, definition)
    return view | {"definition": definition}


def of_schedule(reader: Reader, tenant: str, name: str, cursor: str | None, limit: int | None) -> Changes | None:
    """What was done to a schedule: `what` is put, paused, resumed or deleted. None of what there never was."""
    scope = Scope(tenant=tenant)
    page = history.story(reader, scope, name, newest=True, cursor=cursor, limit=limit)
    if not page.rows and cursor is None and reader.schedule(scope, name) is None:
        return None
    events = [views.event(row) for row in page.rows]
    put = {event["data"]["version"] for event in events if event["type"] == ScheduleAccepted.TYPE}
    known = history.definitions(reader, scope, name, {version - 1 for version in put})
    before = [_before(event, known) for event in events]
    shown = [_told(event, was) for event, was in zip(events, before, strict=True)]
    return Changes(shown=shown, before=before, cursor=page.cursor)


def _before(event: views.Json, known: Mapping[int, Definition]) -> Definition | None:
    """A version that makes a schedule anew has none before it."""
    data = event["data"]
    if event["type"] != ScheduleAccepted.TYPE or data["created"]:
        return None
    return known.get(data["version"] - 1)


def _told(event: views.Json, before: Definition | None) -> views.Json:
    data = event["data"]
    view = {"what": _WHAT[event["type"]], "version": data["version"], "changed_at": data["accepted_at"]}
    view |= {name: data[name] for name in (*_SAID, "reason", "failed_runs", "warnings") if data.get(name)}
    if event["type"] == ScheduleDeleted.TYPE:
        return view | {"deleted": True}
    if event["type"] != ScheduleAccepted.TYPE:
        return view
    if before is not None:
        view["fields"] = changed_fields(before, data["definition"])
    return view | {"definition": data["definition"]}


def meant_by(kind: str, tenant: str, name: str) -> Meant:
    """What a document of a definition file is about, applied for a tenant."""
    match kind:
        case "queue":
            return Meant(kind=kind, tenant=EVERYONE, name=name)
        case "tenant":
            return Meant(kind=kind, tenant=name, name=EVERYONE)
        case _:
            return Meant(kind=kind, tenant=tenant, name=name)
