"""Runs: list, one with its attempts, its events and the runs of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from api import requests, views
from api.problems import not_found
from api.reading import read_instant, read_labels
from projections.store.reader import ALL, OPEN_STATES, RunFilter, Scope
from schemas import refusals
from schemas.facts import Outcome
from schemas.faults import Refused

if TYPE_CHECKING:
    from api.reading import Reads
    from api.services import ApiServices

RUN_ID_MAX = 256
STATES = (*OPEN_STATES, *(outcome.value for outcome in Outcome))
GROUPS = {"open": OPEN_STATES, "finished": tuple(outcome.value for outcome in Outcome)}


class PageQuery(BaseModel):
    """Which part of a list."""

    model_config = ConfigDict(extra="forbid")

    cursor: str | None = None
    limit: int | None = None


class RunQuery(PageQuery):
    """Which runs. Instants are half-open, of the creation."""

    schedule: str | None = None
    state: list[str] = []
    from_: str | None = Field(default=None, alias="from")
    to: str | None = None
    label: list[str] = []


class RunRoutes:
    """`/v1/…/runs`."""

    def __init__(self, services: ApiServices, reads: Reads) -> None:
        self._services = services
        self._reads = reads

    def router(self) -> APIRouter:
        """What is where."""
        router = APIRouter(tags=["runs"])
        one = "/v1/tenants/{tenant}/runs/{run_id}"
        add = router.add_api_route
        add("/v1/runs", self.list_all, methods=["GET"], summary="Runs of all tenants, newest first")
        add("/v1/tenants/{tenant}/runs", self.list_of_tenant, methods=["GET"], summary="Runs of a tenant, newest first")
        add(one, self.get, methods=["GET"], summary="One run with its attempts and events")
        return router

    async def list_all(self, request: Request, wanted: Annotated[RunQuery, Query()]) -> Response:
        return await self._list(request, ALL, wanted)

    async def list_of_tenant(self, request: Request, tenant: str, wanted: Annotated[RunQuery, Query()]) -> Response:
        return await self._list(request, Scope(tenant=requests.name(tenant, "tenant")), wanted)

    async def get(self, request: Request, tenant: str, run_id: str) -> Response:
        scope = Scope(tenant=requests.name(tenant, "tenant"))
        answered = await self._reads.ask(request, in_full, self._services, scope, run_id)
        if answered.value is None:
            raise not_found(f"run {run_id} of {tenant}")
        return answered.json(answered.value)

    async def _list(self, request: Request, scope: Scope, wanted: RunQuery) -> Response:
        reader = self._services.reader
        answered = await self._reads.ask(
            request, reader.runs, scope, run_filter(wanted), cursor=wanted.cursor, limit=wanted.limit
        )
        page = answered.value
        more = {"cursor": page.cursor} if page.cursor else {}
        return answered.json({"runs": [views.run(row) for row in page.rows], **more})


def in_full(services: ApiServices, scope: Scope, run_id: str) -> views.Json | None:
    """A run with everything that is known of it."""
    row = services.reader.run(scope, run_id)
    if row is None:
        return None
    attempts = services.reader.attempts(scope, run_id)
    story = services.reader.story(scope, row["schedule"], run_id)
    return views.run_in_full(row, attempts, story, services.reader.again(scope, {run_id}))


def run_filter(wanted: RunQuery) -> RunFilter:
    """What the query parameters ask for. `state` may be given several times, or with commas."""
    words = [word for text in wanted.state for word in text.split(",") if word]
    known = (*STATES, *GROUPS)
    faults = [refusals.unknown_word(word, known, "/state") for word in words if word not in known]
    if faults:
        raise Refused(*faults)
    return RunFilter(
        schedule=wanted.schedule,
        states=tuple(state for word in words for state in GROUPS.get(word, (word,))),
        from_=read_instant(wanted.from_, "/from"),
        to=read_instant(wanted.to, "/to"),
        labels=read_labels(wanted.label),
    )
