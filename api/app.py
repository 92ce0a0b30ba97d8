"""The application: routes, the gate around them, errors as problems. Made from its services; there are no globals."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute

from api import document, problems
from api.backfills import BackfillRoutes
from api.breakers import BreakerRoutes
from api.cancels import CancelRoutes
from api.commands import CommandRoutes
from api.events import EventRoutes
from api.fleet import FleetRoutes
from api.gate import Gate
from api.health import HealthRoutes
from api.load import LoadRoutes
from api.page import PageRoutes
from api.preview import PreviewRoutes
from api.rawlog import LogRoutes
from api.reading import Reads
from api.references import CalendarRoutes, JobRoutes, QueueRoutes, TenantRoutes
from api.reruns import RerunRoutes
from api.runlogs import RunLogRoutes
from api.runs import RunRoutes
from api.schedules import ScheduleRoutes
from api.services import ApiServices
from api.workers import WorkerRoutes

DESCRIPTION = """\
Schedules in, runs out. A write answers when its owner has accepted or refused it and carries `Tidewheel-Position`;
a read with `Tidewheel-At-Least` waits up to two seconds to show it, and says with `Tidewheel-As-Of` how fresh it is.
Errors are problem+json with a JSON pointer for each fault.
"""


def create_app(services: ApiServices) -> FastAPI:
    """The ASGI application of a node."""
    reads = Reads(services)
    app = _with_routes(services, reads)
    problems.handle_all(app)
    app.add_middleware(Gate, allowed_hosts=services.settings.allowed_hosts, registry=services.registry)
    return app


def openapi_document() -> dict[str, Any]:
    """The OpenAPI document that is published. Routes only remember their services until they are asked."""
    nothing: Any = None
    return document.of(_with_routes(nothing, nothing))


def _with_routes(services: ApiServices, reads: Reads) -> FastAPI:
    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        yield
        reads.close()

    app = FastAPI(
        title="Tidewheel", version=document.VERSION, description=DESCRIPTION, docs_url=None, redoc_url=None,
        redirect_slashes=False, lifespan=lifespan, generate_unique_id_function=_operation_id,
        responses=document.PROBLEM,
    )  # fmt: skip
    app.include_router(WorkerRoutes(services, reads).router())  # first: routes are tried in order, and workers ask most
    references = (JobRoutes, CalendarRoutes, QueueRoutes, TenantRoutes)
    for routes in (
        ScheduleRoutes, BackfillRoutes, RunRoutes, RunLogRoutes, CancelRoutes, RerunRoutes, BreakerRoutes,
        *references, FleetRoutes, PreviewRoutes, LoadRoutes, CommandRoutes, LogRoutes, EventRoutes, HealthRoutes,
    ):  # fmt: skip
        app.include_router(routes(services, reads).router())
    PageRoutes(services, reads).mount(app)
    app.openapi = lambda: document.of(app)  # type: ignore[method-assign]  # FastAPI's own way
    return app


def _operation_id(route: APIRoute) -> str:
    method = min(route.methods or {"GET"}).lower()
    words = route.path.removeprefix("/v1").translate(str.maketrans("/:{}-.", "      ")).split()
    return "_".join([method, *words])
