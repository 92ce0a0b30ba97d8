"""Registered jobs: put, get, list, delete."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request, Response

from api import requests, views, writes
from api.document import takes
from api.problems import not_found
from api.schedules import definition_of
from projections.store.reader import ALL, Scope
from schemas import definitions

if TYPE_CHECKING:
    from api.reading import Reads
    from api.services import ApiServices

KIND = "job"


class JobRoutes:
    """`/v1/…/jobs`."""

    def __init__(self, services: ApiServices, reads: Reads) -> None:
        self._services = services
        self._reads = reads

    def router(self) -> APIRouter:
        """What is where."""
        router = APIRouter(tags=["jobs"])
        one = "/v1/tenants/{tenant}/jobs/{name}"
        add = router.add_api_route
        add("/v1/jobs", self.list_all, methods=["GET"], summary="Registered jobs of all tenants")
        add("/v1/tenants/{tenant}/jobs", self.list_of_tenant, methods=["GET"], summary="Registered jobs of a tenant")
        add(one, self.put, methods=["PUT"], summary="Create or replace", openapi_extra=takes(definitions.Job))
        add(one, self.get, methods=["GET"], summary="One registered job")
        add(one, self.delete, methods=["DELETE"], summary="Remove; schedules that name it skip their occurrences")
        return router

    async def list_all(self, request: Request, cursor: str | None = None, limit: int | None = None) -> Response:
        return await self._list(request, ALL, cursor, limit)

    async def list_of_tenant(
        self, request: Request, tenant: str, cursor: str | None = None, limit: int | None = None
    ) -> Response:
        return await self._list(request, Scope(tenant=requests.name(tenant, "tenant")), cursor, limit)

    async def get(self, request: Request, tenant: str, name: str) -> Response:
        scope = Scope(tenant=requests.name(tenant, "tenant"))
        answered = await self._reads.ask(request, self._services.reader.entry, scope, KIND, name)
        if answered.value is None:
            raise not_found(f"job {tenant}/{name}")
        view = views.entry(answered.value)
        return answered.json(view, {"ETag": f'"{view["version"]}"'})

    async def put(self, request: Request, tenant: str, name: str) -> Response:
        definition = definition_of(await requests.json_object(request), "Job", tenant, name)
        definitions.read_job(definition, strict=True)
        return await self._send(request, "put", tenant, name, {"definition": definition}, body_at="/data/definition")

    async def delete(self, request: Request, tenant: str, name: str) -> Response:
        return await self._send(request, "delete", tenant, name, {})

    async def _list(self, request: Request, scope: Scope, cursor: str | None, limit: int | None) -> Response:
        reader = self._services.reader
        answered = await self._reads.ask(request, reader.entries, scope, KIND, cursor=cursor, limit=limit)
        page = answered.value
        more = {"cursor": page.cursor} if page.cursor else {}
        return answered.json({"jobs": [views.entry(row) for row in page.rows], **more})

    async def _send(
        self, request: Request, verb: str, tenant: str, name: str, data: dict[str, Any], *, body_at: str = "/data"
    ) -> Response:
        data = {"tenant": requests.name(tenant, "tenant"), "name": requests.name(name, "job"), **data}
        if (expected := requests.expected_version(request)) is not None:
            data["expected_version"] = expected
        return await writes.send(self._services.commander, request, f"tidewheel.job.{verb}.v1", data, body_at=body_at)
