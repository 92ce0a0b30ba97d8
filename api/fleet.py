"""The list of workers: who serves which queue, with what, and what each has in hand."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Query, Request, Response

from api import views
from api.runs import PageQuery
from projections.store.reader import ALL, WORKER_STATES, Scope
from schemas import refusals
from schemas.faults import Refused

if TYPE_CHECKING:
    from datetime import datetime

    from api.reading import Reads
    from api.services import ApiServices
    from projections.store.reader import Reader

SILENT_AFTER = timedelta(minutes=3)  # lines are a minute old at most: two were missed


class WorkerQuery(PageQuery):
    """Which workers. `worker` is a name or an incarnation."""

    queue: str | None = None
    state: str | None = None
    worker: str | None = None


class FleetRoutes:
    """`/v1/workers`."""

    def __init__(self, services: ApiServices, reads: Reads) -> None:
        self._services = services
        self._reads = reads

    def router(self) -> APIRouter:
        """What is where."""
        router = APIRouter(tags=["workers"])
        router.add_api_route(
            "/v1/workers", self.list_all, methods=["GET"], summary="Workers of all queues, by queue and name"
        )
        return router

    async def list_all(self, request: Request, wanted: Annotated[WorkerQuery, Query()]) -> Response:
        answered = await self._reads.ask(
            request, page_of, self._services.reader, ALL, wanted, self._services.now(), wanted.limit
        )
        workers, cursor = answered.value
        return answered.json({"workers": workers, **({"cursor": cursor} if cursor else {})})


def page_of(
    reader: Reader, scope: Scope, wanted: WorkerQuery, now: datetime, limit: int | None
) -> tuple[list[views.Json], str | None]:
    """Workers with what they have in hand, as far as `scope` may see it, and the cursor of the next ones."""
    if wanted.state and wanted.state not in WORKER_STATES:
        raise Refused(refusals.unknown_word(wanted.state, WORKER_STATES, "/state"))
    page = reader.workers(
        heard_since=now - SILENT_AFTER, queue=wanted.queue, state=wanted.state or None, worker=wanted.worker,
        cursor=wanted.cursor, limit=limit,
    )  # fmt: skip
    working: dict[str, list[views.Row]] = {}
    for row in reader.at_work(scope, {row["incarnation"] for row in page.rows}):
        working.setdefault(row["incarnation"], []).append(row)
    return [views.worker(row, working.get(row["incarnation"], [])) for row in page.rows], page.cursor
