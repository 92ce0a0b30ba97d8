"""Runs: list, one with its attempts, its events and the runs of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from api import requests, views
from api.problems import not_found
from api.reading import read_instant, read_labels
from projections.store import history
from projections.store.reader import ALL, OPEN_STATES, RunFilter, Scope
from schemas import refusals
from schemas.facts import Outcome, RunCreated, RunFinished
from schemas.faults import Refused

if TYPE_CHECKING:
    from collections.abc import Callable

    from api.reading import Reads
    from api.services import ApiServices
    from projections.store.paging import Page
    from projections.store.reader import Reader

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


class PartQuery(PageQuery):
    """Which part of what is known of a run; the newest first where that is wanted."""

    newest: bool = False


FIRST = PartQuery()


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
        what = "One run with its first attempts and events; `attempts_cursor` and `events_cursor` lead to the others"
        add(one, self.get, methods=["GET"], summary=what)
        add(f"{one}/attempts", self.attempts, methods=["GET"], summary="Its attempts, the first one first")
        what = "What happened to it, in order, as it was written"
        add(f"{one}/events", self.events, methods=["GET"], summary=what)
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

    async def attempts(
        self, request: Request, tenant: str, run_id: str, wanted: Annotated[PartQuery, Query()]
    ) -> Response:
        return await self._part(request, tenant, run_id, _attempts, views.attempts_of, wanted)

    async def events(
        self, request: Request, tenant: str, run_id: str, wanted: Annotated[PartQuery, Query()]
    ) -> Response:
        return await self._part(request, tenant, run_id, _events, views.events_of, wanted)

    async def _part(
        self, request: Request, tenant: str, run_id: str, question: Callable[..., Page | None],
        shown: Callable[[Page], views.Json], wanted: PartQuery,
    ) -> Response:  # fmt: skip
        scope = Scope(tenant=requests.name(tenant, "tenant"))
        answered = await self._reads.ask(request, question, self._services.reader, scope, run_id, wanted)
        if answered.value is None:
            raise not_found(f"run {run_id} of {tenant}")
        page = answered.value
        return answered.json(shown(page) | ({"cursor": page.cursor} if page.cursor else {}))

    async def _list(self, request: Request, scope: Scope, wanted: RunQuery) -> Response:
        reader = self._services.reader
        answered = await self._reads.ask(
            request, reader.runs, scope, run_filter(wanted), cursor=wanted.cursor, limit=wanted.limit
        )
        page = answered.value
        more = {"cursor": page.cursor} if page.cursor else {}
        return answered.json({"runs": [views.run(row) for row in page.rows], **more})


def in_full(
    services: ApiServices, scope: Scope, run_id: str, attempts: PartQuery = FIRST, events: PartQuery = FIRST
) -> views.Json | None:
    """A run with what is known of it, of its attempts and of its events a page."""
    reader = services.reader
    row = reader.run(scope, run_id)
    if row is None:
        return None
    types = (RunCreated.TYPE,) if row["outcome"] is None else (RunCreated.TYPE, RunFinished.TYPE)
    telling = (history.told(reader, scope, row["schedule"], run_id, type_) for type_ in types)
    return views.run_in_full(
        row, _hand_outs(reader, scope, run_id, attempts), _story(reader, scope, row["schedule"], run_id, events),
        reader.again(scope, {run_id}), [each for each in telling if each is not None],
    )  # fmt: skip


def _attempts(reader: Reader, scope: Scope, run_id: str, wanted: PartQuery) -> Page | None:
    page = _hand_outs(reader, scope, run_id, wanted)
    return page if page.rows or reader.run(scope, run_id) is not None else None


def _hand_outs(reader: Reader, scope: Scope, run_id: str, wanted: PartQuery) -> Page:
    return history.attempts(reader, scope, run_id, newest=wanted.newest, cursor=wanted.cursor, limit=wanted.limit)


def _events(reader: Reader, scope: Scope, run_id: str, wanted: PartQuery) -> Page | None:
    row = reader.run(scope, run_id)
    return None if row is None else _story(reader, scope, row["schedule"], run_id, wanted)


def _story(reader: Reader, scope: Scope, schedule: str, run_id: str, wanted: PartQuery) -> Page:
    return history.story(
        reader, scope, schedule, run_id, newest=wanted.newest, cursor=wanted.cursor, limit=wanted.limit
    )  # fmt: skip


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
