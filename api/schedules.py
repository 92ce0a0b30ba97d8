"""Schedules: put, get, list, delete; pause, resume, trigger, skip; what their versions were."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from api import changes, requests, selection, views, writes
from api.backlog import backlog, held
from api.declared import Declared
from api.document import (
    BY,
    BY_CHARACTERS_MAX,
    INSTANT,
    NOTE,
    NOTE_CHARACTERS_MAX,
    OVERLAP,
    PAYLOAD,
    SAID,
    accepts,
    takes,
)
from api.explain import forecast_of
from api.problems import Problem, not_found
from api.reading import json_response, read_labels
from projections.store.reader import ALL, Scope
from schemas import definitions, refusals
from schemas.faults import Fault, Refused

if TYPE_CHECKING:
    from api.reading import Reads
    from api.services import ApiServices, Outlook

NEXT_SHOWN = 3
A_MOMENT = timedelta(seconds=1)  # a definition is judged by asking what it means, however short the time asked for
AHEAD = timedelta(days=366 * 9)  # a 29th of February may be eight years away
SELECTED_MAX = 500  # schedules paused or resumed by one request: each is a command of its own
STATES = ("active", "paused", "deleted")
_SELECTOR = {
    "type": "object",
    "description": "{} for all",
    "properties": {"labels": {"type": "object", "additionalProperties": {"type": "string"}}},
    "additionalProperties": False,
}
FILE_FIELDS = ("kind", "tenant", "name")
SAID_MAX = {"note": NOTE_CHARACTERS_MAX, "by": BY_CHARACTERS_MAX}


class ScheduleRoutes:
    """`/v1/…/schedules`."""

    def __init__(self, services: ApiServices, reads: Reads) -> None:
        self._services = services
        self._reads = reads
        self._declared = Declared(services, reads)

    def router(self) -> APIRouter:
        """What is where."""
        router = APIRouter(tags=["schedules"])
        many, one = "/v1/tenants/{tenant}/schedules", "/v1/tenants/{tenant}/schedules/{name}"
        add = router.add_api_route
        add("/v1/schedules", self.list_all, methods=["GET"], summary="Schedules of all tenants")
        add(many, self.list_of_tenant, methods=["GET"], summary="Schedules of a tenant")
        noted = accepts(note=NOTE, by=BY)
        chosen = accepts("selector", selector=_SELECTOR, note=NOTE, by=BY)
        with_backfill = accepts(note=NOTE, by=BY, backfill={"type": "boolean", "description": "of what it skipped"})
        for_one_run = accepts(payload=PAYLOAD, overlap=OVERLAP, note=NOTE, by=BY)
        what = "Pause all that a selector names"
        add(f"{many}:pause", self.pause_many, methods=["POST"], summary=what, openapi_extra=chosen)
        what = "Resume all that a selector names"
        add(f"{many}:resume", self.resume_many, methods=["POST"], summary=what, openapi_extra=chosen)
        what = "Skip its occurrences from now on"
        add(f"{one}:pause", self.pause, methods=["POST"], summary=what, openapi_extra=noted)
        what = "Its occurrences have runs again"
        add(f"{one}:resume", self.resume, methods=["POST"], summary=what, openapi_extra=with_backfill)
        add(f"{one}:trigger", self.trigger, methods=["POST"], summary="One run now", openapi_extra=for_one_run)
        what, one_of_them = (
            "One occurrence to come has no run",
            accepts("nominal_time", nominal_time=INSTANT, note=NOTE, by=BY),
        )
        add(f"{one}:skip", self.skip, methods=["POST"], summary=what, openapi_extra=one_of_them)
        add(f"{one}/versions", self.versions, methods=["GET"], summary="Its versions, newest first")
        what = "What was done to it, newest first: who put, paused, resumed or deleted it, when and why"
        add(f"{one}/changes", self.changes, methods=["GET"], summary=what)
        put = {**takes(definitions.Schedule), **SAID}
        add(one, self.put, methods=["PUT"], summary="Create or replace", openapi_extra=put)
        add(one, self.get, methods=["GET"], summary="One schedule as it stands")
        what = "End it; open runs finish unless runs=cancel"
        add(one, self.delete, methods=["DELETE"], summary=what, openapi_extra=SAID)
        return router

    # --- reads ----------------------------------------------------------------------------------------------------

    async def list_all(
        self, request: Request, label: Annotated[list[str], Query()] = [], state: str | None = None,  # noqa: B006
        cursor: str | None = None, limit: int | None = None,
    ) -> Response:  # fmt: skip
        return await self._list(request, ALL, label, state, cursor, limit)

    async def list_of_tenant(
        self, request: Request, tenant: str, label: Annotated[list[str], Query()] = [],  # noqa: B006
        state: str | None = None, cursor: str | None = None, limit: int | None = None,
    ) -> Response:  # fmt: skip
        scope = Scope(tenant=requests.name(tenant, "tenant"))
        return await self._list(request, scope, label, state, cursor, limit)

    async def get(self, request: Request, tenant: str, name: str) -> Response:
        requests.name(tenant, "tenant")
        requests.name(name, "schedule")
        answered = await self._reads.ask(request, self._view, Scope(tenant=tenant), name)
        if answered.value is None:
            raise not_found(f"schedule {tenant}/{name}")
        return answered.json(answered.value, {"ETag": f'"{answered.value["version"]}"'})

    async def versions(self, request: Request, tenant: str, name: str) -> Response:
        scope = Scope(tenant=requests.name(tenant, "tenant"))
        answered = await self._reads.ask(request, self._services.reader.versions, scope, name)
        if not answered.value:
            raise not_found(f"schedule {tenant}/{name}")
        return answered.json({"versions": [views.version(row) for row in answered.value]})

    async def changes(
        self, request: Request, tenant: str, name: str, cursor: str | None = None, limit: int | None = None
    ) -> Response:
        requests.name(tenant, "tenant")
        requests.name(name, "schedule")
        reader = self._services.reader
        answered = await self._reads.ask(request, changes.of_schedule, reader, tenant, name, cursor, limit)
        if answered.value is None:
            raise not_found(f"schedule {tenant}/{name}")
        return answered.json(answered.value.json)

    async def _list(
        self, request: Request, scope: Scope, label: list[str], state: str | None, cursor: str | None, limit: int | None
    ) -> Response:
        if state is not None and state not in STATES:
            raise Refused(refusals.unknown_word(state, STATES, "/state"))
        labels = read_labels(label)
        answered = await self._reads.ask(request, self._views, scope, state, labels, cursor, limit)
        return answered.json(answered.value)

    def _views(
        self, scope: Scope, state: str | None, labels: dict[str, str], cursor: str | None, limit: int | None
    ) -> views.Json:
        page = self._services.reader.schedules(scope, state=state, labels=labels, cursor=cursor, limit=limit)
        return {"schedules": [self.view(row) for row in page.rows], **({"cursor": page.cursor} if page.cursor else {})}

    def _view(self, scope: Scope, name: str) -> views.Json | None:
        row = self._services.reader.schedule(scope, name)
        if row is None or row["state"] == "deleted":
            return None
        others = views.dependants(self._services.reader.schedules(scope, after=name).rows, name)
        more = {
            "backlog": backlog(self._services, row),
            "held": held(self._services, row),
            "dependants": others or None,
        }
        return {**self.view(row), **{name: value for name, value in more.items() if value is not None}}

    def view(self, row: views.Row) -> views.Json:
        """A row as it is shown, with what comes next."""
        return views.schedule(row, outlook(self._services, row))

    # --- writes ---------------------------------------------------------------------------------------------------

    async def put(self, request: Request, tenant: str, name: str) -> Response:
        document = await requests.json_object(request)
        definition = definition_of(document, "Schedule", tenant, name)
        now = self._services.now()
        subject, until = f"{tenant}/{name}", now + A_MOMENT
        outlook = self._services.forecast(subject, definition, from_=now, to=until, limit=1, by_catalog=False)
        await self._declared.check_schedule(tenant, name, outlook.definition)
        data = {"definition": definition, **requests.said(request)}
        return await self._send(request, "put", tenant, name, data, body_at="/data/definition")

    async def delete(self, request: Request, tenant: str, name: str, runs: str | None = None) -> Response:
        data = requests.said(request) | ({} if runs is None else {"runs": runs})
        return await self._send(request, "delete", tenant, name, data)

    async def pause(self, request: Request, tenant: str, name: str) -> Response:
        return await self._with_body(request, "pause", tenant, name, ("note", "by"))

    async def resume(self, request: Request, tenant: str, name: str) -> Response:
        return await self._with_body(request, "resume", tenant, name, ("note", "by", "backfill"))

    async def trigger(self, request: Request, tenant: str, name: str) -> Response:
        return await self._with_body(request, "trigger", tenant, name, ("payload", "overlap", "note", "by"))

    async def skip(self, request: Request, tenant: str, name: str) -> Response:
        return await self._with_body(request, "skip_occurrence", tenant, name, ("nominal_time", "note", "by"))

    async def pause_many(self, request: Request, tenant: str) -> Response:
        return await self._each(request, "pause", tenant)

    async def resume_many(self, request: Request, tenant: str) -> Response:
        return await self._each(request, "resume", tenant)

    async def _with_body(
        self, request: Request, verb: str, tenant: str, name: str, known: tuple[str, ...]
    ) -> Response:  # fmt: skip
        document = await requests.json_object(request)
        requests.only(document, known)
        return await self._send(request, verb, tenant, name, document)

    async def _send(
        self, request: Request, verb: str, tenant: str, name: str, data: dict[str, Any], *, body_at: str = "/data"
    ) -> Response:
        requests.name(tenant, "tenant")
        requests.name(name, "schedule")
        data = {"tenant": tenant, "name": name, **data}
        if (expected := requests.expected_version(request)) is not None:
            data["expected_version"] = expected
        return await writes.send(
            self._services.commander, request, f"tidewheel.schedule.{verb}.v1", data, body_at=body_at
        )  # fmt: skip

    async def _each(self, request: Request, verb: str, tenant: str) -> Response:
        """One command for each schedule that the selector names; the answer says what became of each."""
        scope = Scope(tenant=requests.name(tenant, "tenant"))
        document = await requests.json_object(request)
        requests.only(document, ("selector", *SAID_MAX))
        said = _said(document)
        labels = _selected(document.get("selector"))
        answered = await self._reads.ask(
            request, self._services.reader.schedules, scope, labels=labels, limit=SELECTED_MAX
        )
        if answered.value.cursor is not None:
            detail = f"The selector names more than {SELECTED_MAX} schedules: narrow it by labels."
            raise Problem(422, "too_many", detail)
        key, position = requests.command_id(request), ""
        results = []
        for row in answered.value.rows:
            data = {"tenant": tenant, "name": row["name"], **said}
            answer = await self._services.commander.ask(
                f"tidewheel.schedule.{verb}.v1", data, f"{key}/{row['name']}"[:128]
            )
            told = {"status": 202} if answer is None else {**answer.body, "status": answer.status}
            results.append({**told, "name": row["name"]})
            position = answer.position if answer is not None else position
        return json_response({"schedules": results}, headers={writes.POSITION: position} if position else {})


def definition_of(document: dict[str, Any], kind: str, tenant: str, name: str) -> dict[str, Any]:
    """The body of a definition file; what it says of its own kind and name must be what the path says."""
    faults = [
        Fault(pointer=f"/{field}", code="contradiction", message=f"says {document[field]!r}, the path says {wanted!r}")
        for field, wanted in zip(FILE_FIELDS, (kind, tenant, name), strict=True)
        if field in document and document[field] != wanted
    ]
    if faults:
        raise Refused(*faults)
    return {field: value for field, value in document.items() if field not in FILE_FIELDS}


def outlook(services: ApiServices, row: views.Row, limit: int = NEXT_SHOWN) -> Outlook | None:
    """What comes next of a schedule; None when this version does not understand its definition."""
    now = services.now()
    return forecast_of(services, row, now, now + AHEAD, limit)


def _said(document: dict[str, Any]) -> dict[str, str]:
    """Why and who, for each of many; refused once, before any of them is written."""
    given = {field: document[field] for field in SAID_MAX if field in document}
    faults = [
        Fault(pointer=f"/{field}", code=field, message=f"must be a string of at most {SAID_MAX[field]} characters")
        for field, text in given.items()
        if not isinstance(text, str) or len(text) > SAID_MAX[field]
    ]
    if faults:
        raise Refused(*faults)
    return given


def _selected(selector: Any) -> dict[str, str]:
    """`{}` names all; `{"labels": {…}}` those that have them all."""
    if not isinstance(selector, dict):
        message = "is required: {} for all, or {labels: {…}}"
        raise Refused(Fault(pointer="/selector", code="missing", message=message))
    labels: dict[str, str] = selector.get("labels", {})
    unknown = [refusals.unknown_field(field, ("labels",), "/selector") for field in selector if field != "labels"]
    if not isinstance(labels, dict) or not all(map(selection.is_text, (*labels, *labels.values()))):
        message = "must be an object of strings without NUL"
        unknown.append(Fault(pointer="/selector/labels", code="type", message=message))
    if unknown:
        raise Refused(*unknown)
    return labels
