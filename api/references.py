"""What schedules and runs refer to: jobs, calendars, queues, tenants. Put, get, list, delete."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request, Response

from api import changes, queues, requests, views, writes
from api.changes import CALENDAR, JOB, OWNED, QUEUE, TENANT, Meant
from api.declared import Declared
from api.document import AFTER_CATALOG, BY, NOTE, OVERLAP, PAYLOAD, SAID, accepts, takes
from api.problems import not_found
from api.schedules import definition_of
from projections.store.reader import ALL, Scope
from schemas import definitions, references
from schemas.commands import EVERYONE

if TYPE_CHECKING:
    from api.reading import Reads
    from api.services import ApiServices


class References:
    """What all kinds have in common."""

    def __init__(self, services: ApiServices, reads: Reads) -> None:
        self._services = services
        self._reads = reads
        self._declared = Declared(services, reads)

    async def get(self, request: Request, meant: Meant) -> Response:
        scope = Scope(tenant=meant.tenant)
        answered = await self._reads.ask(request, self._services.reader.entry, scope, meant.kind, meant.name)
        if answered.value is None:
            raise not_found(f"{meant.kind} {meant.shown}")
        view = views.entry(answered.value)
        return answered.json(view, {"ETag": f'"{view["version"]}"'})

    async def changes(self, request: Request, meant: Meant, cursor: str | None, limit: int | None) -> Response:
        answered = await self._reads.ask(request, changes.of_reference, self._services.reader, meant, cursor, limit)
        if answered.value is None:
            raise not_found(f"{meant.kind} {meant.shown}")
        return answered.json(answered.value.json)

    async def put(self, request: Request, meant: Meant) -> Response:
        definition = definition_of(await requests.json_object(request), *meant.in_file)
        model, _ = definitions.read_as(references.KINDS[meant.kind], definition, strict=True)
        if meant.kind in OWNED:
            await self._declared.check(meant.tenant, getattr(model, "queue", None), pointer="/queue")
        return await self._send(request, "put", meant, {"definition": definition}, body_at="/data/definition")

    async def delete(self, request: Request, meant: Meant) -> Response:
        return await self._send(request, "delete", meant, {})

    async def list(
        self, request: Request, scope: Scope, kind: str, plural: str, cursor: str | None, limit: int | None
    ) -> Response:
        reader = self._services.reader
        answered = await self._reads.ask(request, reader.entries, scope, kind, cursor=cursor, limit=limit)
        page = answered.value
        more = {"cursor": page.cursor} if page.cursor else {}
        return answered.json({plural: [views.entry(row) for row in page.rows], **more})

    async def _send(
        self, request: Request, verb: str, meant: Meant, data: dict[str, Any], *, body_at: str = "/data"
    ) -> Response:
        data = {"tenant": meant.tenant, "name": meant.name, **data}
        if (expected := requests.expected_version(request)) is not None:
            data["expected_version"] = expected
        data |= requests.said(request)
        type_ = f"tidewheel.{meant.kind}.{verb}.v1"
        return await writes.send(self._services.commander, request, type_, data, body_at=body_at)


class OwnedRoutes:
    """`/v1/…/jobs` and `/v1/…/calendars`: what belongs to a tenant."""

    KIND: str
    PLURAL: str
    GONE: str  # what a deletion leads to

    def __init__(self, services: ApiServices, reads: Reads) -> None:
        self._references = References(services, reads)

    def router(self) -> APIRouter:
        """What is where."""
        router, what = APIRouter(tags=[self.PLURAL]), self.PLURAL.title()
        many, model = f"/v1/tenants/{{tenant}}/{self.PLURAL}", takes(references.KINDS[self.KIND])
        one = f"{many}/{{name}}"
        add = router.add_api_route
        add(f"/v1/{self.PLURAL}", self.list_all, methods=["GET"], summary=f"{what} of all tenants")
        add(many, self.list_of_tenant, methods=["GET"], summary=f"{what} of a tenant")
        add(one, self.put, methods=["PUT"], summary="Create or replace", openapi_extra={**model, **SAID})
        add(one, self.get, methods=["GET"], summary=f"One {self.KIND}")
        add(one, self.delete, methods=["DELETE"], summary=self.GONE, openapi_extra=SAID)
        add(f"{one}/changes", self.changes, methods=["GET"], summary=changes.SUMMARY)
        return router

    async def list_all(self, request: Request, cursor: str | None = None, limit: int | None = None) -> Response:
        return await self._references.list(request, ALL, self.KIND, self.PLURAL, cursor, limit)

    async def list_of_tenant(
        self, request: Request, tenant: str, cursor: str | None = None, limit: int | None = None
    ) -> Response:
        scope = Scope(tenant=requests.name(tenant, "tenant"))
        return await self._references.list(request, scope, self.KIND, self.PLURAL, cursor, limit)

    async def get(self, request: Request, tenant: str, name: str) -> Response:
        return await self._references.get(request, self._meant(tenant, name))

    async def put(self, request: Request, tenant: str, name: str) -> Response:
        return await self._references.put(request, self._meant(tenant, name))

    async def delete(self, request: Request, tenant: str, name: str) -> Response:
        return await self._references.delete(request, self._meant(tenant, name))

    async def changes(
        self, request: Request, tenant: str, name: str, cursor: str | None = None, limit: int | None = None
    ) -> Response:
        return await self._references.changes(request, self._meant(tenant, name), cursor, limit)

    def _meant(self, tenant: str, name: str) -> Meant:
        return Meant(kind=self.KIND, tenant=requests.name(tenant, "tenant"), name=requests.name(name, self.KIND))


class JobRoutes(OwnedRoutes):
    """Registered jobs."""

    KIND, PLURAL = JOB, "jobs"
    GONE = "Remove; schedules that name it skip their occurrences"

    def __init__(self, services: ApiServices, reads: Reads) -> None:
        super().__init__(services, reads)
        self._services = services

    def router(self) -> APIRouter:
        router = super().router()
        once = accepts(payload=PAYLOAD, overlap=OVERLAP, after_catalog=AFTER_CATALOG, note=NOTE, by=BY)
        router.add_api_route(
            "/v1/tenants/{tenant}/jobs/{name}:run", self.run, methods=["POST"], summary="One run, of no schedule",
            openapi_extra=once,
        )  # fmt: skip
        return router

    async def run(self, request: Request, tenant: str, name: str) -> Response:
        document = await requests.json_object(request)
        requests.only(document, ("payload", "overlap", "after_catalog", "note", "by"))
        meant = self._meant(tenant, name)
        data = {"tenant": meant.tenant, "name": meant.name, **document}
        return await writes.send(self._services.commander, request, "tidewheel.job.run.v1", data)


class CalendarRoutes(OwnedRoutes):
    """Calendars."""

    KIND, PLURAL = CALENDAR, "calendars"
    GONE = "Remove; schedules that name it exclude nothing by it"


class QueueRoutes:
    """`/v1/queues`: their definitions."""

    def __init__(self, services: ApiServices, reads: Reads) -> None:
        self._services = services
        self._reads = reads
        self._references = References(services, reads)

    def router(self) -> APIRouter:
        """What is where."""
        router, one, model = APIRouter(tags=["queues"]), "/v1/queues/{queue}", takes(references.Queue)
        add = router.add_api_route
        add("/v1/queues", self.list_all, methods=["GET"], summary="Declared queues")
        add(
            one, self.put, methods=["PUT"], summary="Declare, or change its definition", openapi_extra={**model, **SAID}
        )
        add(one, self.get, methods=["GET"], summary="One declared queue")
        what = "Remove its definition; it goes on with the defaults"
        add(one, self.delete, methods=["DELETE"], summary=what, openapi_extra=SAID)
        add(f"{one}/changes", self.changes, methods=["GET"], summary=changes.SUMMARY)
        add(f"{one}/backlog", self.backlog, methods=["GET"], summary="What waits and runs in it, shard by shard")
        return router

    async def list_all(self, request: Request, cursor: str | None = None, limit: int | None = None) -> Response:
        return await self._references.list(request, ALL, QUEUE, "queues", cursor, limit)

    async def get(self, request: Request, queue: str) -> Response:
        return await self._references.get(request, self._meant(queue))

    async def put(self, request: Request, queue: str) -> Response:
        return await self._references.put(request, self._meant(queue))

    async def delete(self, request: Request, queue: str) -> Response:
        return await self._references.delete(request, self._meant(queue))

    async def changes(
        self, request: Request, queue: str, cursor: str | None = None, limit: int | None = None
    ) -> Response:
        return await self._references.changes(request, self._meant(queue), cursor, limit)

    async def backlog(self, request: Request, queue: str) -> Response:
        """A queue need not be declared for that."""
        answered = await self._reads.ask(request, queues.backlog, self._services.reader, requests.name(queue, "queue"))
        return answered.json(answered.value)

    def _meant(self, queue: str) -> Meant:
        return Meant(kind=QUEUE, tenant=EVERYONE, name=requests.name(queue, "queue"))


class TenantRoutes:
    """`/v1/tenants`: who has schedules or a definition, and the definitions."""

    def __init__(self, services: ApiServices, reads: Reads) -> None:
        self._services = services
        self._reads = reads
        self._references = References(services, reads)

    def router(self) -> APIRouter:
        """What is where."""
        router, one, model = APIRouter(tags=["tenants"]), "/v1/tenants/{tenant}", takes(references.Tenant)
        add = router.add_api_route
        add("/v1/tenants", self.list_all, methods=["GET"], summary="Tenants that have schedules or are declared")
        add(
            one, self.put, methods=["PUT"], summary="Declare, or change its definition", openapi_extra={**model, **SAID}
        )
        add(one, self.get, methods=["GET"], summary="One declared tenant")
        what = "Remove its definition; what it has stays"
        add(one, self.delete, methods=["DELETE"], summary=what, openapi_extra=SAID)
        add(f"{one}/changes", self.changes, methods=["GET"], summary=changes.SUMMARY)
        return router

    async def list_all(self, request: Request) -> Response:
        answered = await self._reads.ask(request, self._services.reader.tenants)
        return answered.json({"tenants": answered.value})

    async def get(self, request: Request, tenant: str) -> Response:
        return await self._references.get(request, self._meant(tenant))

    async def put(self, request: Request, tenant: str) -> Response:
        return await self._references.put(request, self._meant(tenant))

    async def delete(self, request: Request, tenant: str) -> Response:
        return await self._references.delete(request, self._meant(tenant))

    async def changes(
        self, request: Request, tenant: str, cursor: str | None = None, limit: int | None = None
    ) -> Response:
        return await self._references.changes(request, self._meant(tenant), cursor, limit)

    def _meant(self, tenant: str) -> Meant:
        return Meant(kind=TENANT, tenant=requests.name(tenant, "tenant"), name=EVERYONE)


def kind_of(document: dict[str, Any]) -> str | None:
    """Which kind of the catalog a document of a definition file is; None for a schedule."""
    kind = str(document.get("kind", "")).lower()
    return kind if kind in references.KINDS and document.get("kind") == kind.title() else None


def normal_form(kind: str, definition: dict[str, Any]) -> dict[str, Any]:
    """A definition as it would stand in the catalog; `Refused` for what a put would refuse."""
    model, _ = definitions.read_as(references.KINDS[kind], definition, strict=True)
    return definitions.normal_form(model)
