"""Breakers: which of them hold runs, since when and why; and closing them by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from api import requests, views, writes
from api.document import BY, NOTE, accepts
from api.runs import PageQuery
from projections.store.reader import ALL, Scope
from schemas import refusals
from schemas.commands import EVERYONE
from schemas.facts import BreakerState
from schemas.faults import Refused

if TYPE_CHECKING:
    from api.reading import Reads
    from api.services import ApiServices

STATES = tuple(state.value for state in BreakerState)
_RESET: dict[str, dict[str, Any]] = {
    "queue": {"type": "string"},
    "breaker": {"type": "string", "description": "job:send-report, host:api.example.com; this or `all`"},
    "all": {"type": "boolean", "description": "of the tenant in the queue"},
    "note": NOTE,
    "by": BY,
}


class BreakerQuery(PageQuery):
    """Which breakers."""

    queue: str | None = None
    state: str | None = None


class BreakerRoutes:
    """`/v1/…/breakers`."""

    def __init__(self, services: ApiServices, reads: Reads) -> None:
        self._services = services
        self._reads = reads

    def router(self) -> APIRouter:
        """What is where."""
        router = APIRouter(tags=["breakers"])
        add, tenant = router.add_api_route, "/v1/tenants/{tenant}/breakers"
        add("/v1/breakers", self.list_all, methods=["GET"], summary="Breakers that are not closed, of all tenants")
        add(tenant, self.list_of_tenant, methods=["GET"], summary="Breakers of a tenant that are not closed")
        what, body = "Close a breaker, or all of a tenant in a queue", accepts("queue", **_RESET)
        add(f"{tenant}:reset", self.reset, methods=["POST"], summary=what, openapi_extra=body)
        return router

    async def list_all(self, request: Request, wanted: Annotated[BreakerQuery, Query()]) -> Response:
        return await self._list(request, ALL, wanted)

    async def list_of_tenant(self, request: Request, tenant: str, wanted: Annotated[BreakerQuery, Query()]) -> Response:
        return await self._list(request, Scope(tenant=requests.name(tenant, "tenant")), wanted)

    async def reset(self, request: Request, tenant: str) -> Response:
        """Its dispatcher answers with those that were not closed."""
        document = await requests.json_object(request)
        requests.only(document, _RESET)
        data = {"tenant": requests.name(tenant, "tenant"), "name": EVERYONE, **document}
        return await writes.send(self._services.commander, request, "tidewheel.breaker.reset.v1", data)

    async def _list(self, request: Request, scope: Scope, wanted: BreakerQuery) -> Response:
        if wanted.state is not None and wanted.state not in STATES:
            raise Refused(refusals.unknown_word(wanted.state, STATES, "/state"))
        answered = await self._reads.ask(
            request, self._services.reader.breakers, scope, queue=wanted.queue, state=wanted.state,
            cursor=wanted.cursor, limit=wanted.limit,
        )  # fmt: skip
        page = answered.value
        more = {"cursor": page.cursor} if page.cursor else {}
        return answered.json({"breakers": [views.breaker(row) for row in page.rows], **more})
