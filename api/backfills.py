"""Backfills: start, pause, resume, cancel; how far they have come."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from api import requests, views, writes
from api.document import BY, INSTANT, NOTE, accepts
from api.problems import not_found
from api.runs import PageQuery
from projections.store.reader import ALL, BACKFILL_STATES, Scope
from schemas import refusals
from schemas.commands import ACTIVE_RUNS_MAX
from schemas.faults import Refused

if TYPE_CHECKING:
    from api.reading import Reads
    from api.services import ApiServices

ID_MAX = 64
_START: dict[str, dict[str, Any]] = {
    "from": INSTANT,
    "to": {**INSTANT, "description": "exclusive; now, where it is not given"},
    "order": {"enum": ["oldest", "newest"], "default": "oldest"},
    "reprocess": {"enum": ["none", "failed", "completed"], "default": "none"},
    "max_active": {"type": "integer", "minimum": 1, "maximum": ACTIVE_RUNS_MAX, "default": 1},
    "rate": {"type": "string", "default": "10/s"},
    "as_of": {"type": "integer", "minimum": 1, "description": "the version; the current one, where it is not given"},
    "dry_run": {"type": "boolean", "description": "say what it would do, and do nothing"},
    "note": NOTE,
    "by": BY,
}


class BackfillQuery(PageQuery):
    """Which backfills."""

    state: str | None = None


class BackfillRoutes:
    """`/v1/…/backfills`."""

    def __init__(self, services: ApiServices, reads: Reads) -> None:
        self._services = services
        self._reads = reads

    def router(self) -> APIRouter:
        """What is where."""
        router = APIRouter(tags=["backfills"])
        many = "/v1/tenants/{tenant}/schedules/{name}/backfills"
        one = many + "/{backfill}"
        add, noted = router.add_api_route, accepts(note=NOTE, by=BY)
        add("/v1/backfills", self.list_all, methods=["GET"], summary="Backfills of all tenants, newest first")
        add(many, self.list_of_schedule, methods=["GET"], summary="Backfills of a schedule, newest first")
        what = "Run the occurrences of a past range"
        add(many, self.start, methods=["POST"], summary=what, openapi_extra=accepts("from", **_START))
        add(f"{one}:pause", self.pause, methods=["POST"], summary="No further runs for now", openapi_extra=noted)
        add(f"{one}:resume", self.resume, methods=["POST"], summary="Go on creating runs", openapi_extra=noted)
        what = "End it; runs that nobody has begun are cancelled"
        add(f"{one}:cancel", self.cancel, methods=["POST"], summary=what, openapi_extra=noted)
        add(one, self.get, methods=["GET"], summary="How far one has come")
        return router

    async def list_all(self, request: Request, wanted: Annotated[BackfillQuery, Query()]) -> Response:
        return await self._list(request, ALL, None, wanted)

    async def list_of_schedule(
        self, request: Request, tenant: str, name: str, wanted: Annotated[BackfillQuery, Query()]
    ) -> Response:
        scope = Scope(tenant=requests.name(tenant, "tenant"))
        return await self._list(request, scope, requests.name(name, "schedule"), wanted)

    async def get(self, request: Request, tenant: str, name: str, backfill: str) -> Response:
        scope = Scope(tenant=requests.name(tenant, "tenant"))
        requests.name(name, "schedule")
        answered = await self._reads.ask(request, self._services.reader.backfill, scope, name, backfill[:ID_MAX])
        if answered.value is None:
            raise not_found(f"backfill {backfill[:ID_MAX]} of {tenant}/{name}")
        return answered.json(views.backfill(answered.value))

    async def start(self, request: Request, tenant: str, name: str) -> Response:
        document = await requests.json_object(request)
        requests.only(document, _START)
        return await self._send(request, "start", tenant, name, document)

    async def pause(self, request: Request, tenant: str, name: str, backfill: str) -> Response:
        return await self._change(request, "pause", tenant, name, backfill)

    async def resume(self, request: Request, tenant: str, name: str, backfill: str) -> Response:
        return await self._change(request, "resume", tenant, name, backfill)

    async def cancel(self, request: Request, tenant: str, name: str, backfill: str) -> Response:
        return await self._change(request, "cancel", tenant, name, backfill)

    async def _change(self, request: Request, verb: str, tenant: str, name: str, backfill: str) -> Response:
        document = await requests.json_object(request)
        requests.only(document, ("note", "by"))
        return await self._send(request, verb, tenant, name, {"backfill": backfill[:ID_MAX], **document})

    async def _send(self, request: Request, verb: str, tenant: str, name: str, data: dict[str, Any]) -> Response:
        requests.name(tenant, "tenant")
        requests.name(name, "schedule")
        data = {"tenant": tenant, "name": name, **data}
        return await writes.send(self._services.commander, request, f"tidewheel.backfill.{verb}.v1", data)

    async def _list(self, request: Request, scope: Scope, name: str | None, wanted: BackfillQuery) -> Response:
        if wanted.state is not None and wanted.state not in BACKFILL_STATES:
            raise Refused(refusals.unknown_word(wanted.state, BACKFILL_STATES, "/state"))
        answered = await self._reads.ask(
            request, self._services.reader.backfills, scope, schedule=name, state=wanted.state, cursor=wanted.cursor,
            limit=wanted.limit,
        )  # fmt: skip
        page = answered.value
        more = {"cursor": page.cursor} if page.cursor else {}
        return answered.json({"backfills": [views.backfill(row) for row in page.rows], **more})
