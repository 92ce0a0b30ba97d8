"""Is it alive, is it ready, how is it doing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Response
from fastapi.responses import PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from api.reading import instant, json_response

if TYPE_CHECKING:
    from api.reading import Reads
    from api.services import ApiServices


class HealthRoutes:
    """`/healthz`, `/readyz`, `/metrics`."""

    def __init__(self, services: ApiServices, reads: Reads) -> None:
        self._services = services
        self._reads = reads

    def router(self) -> APIRouter:
        """What is where."""
        router = APIRouter(tags=["health"])
        router.add_api_route("/healthz", self.alive, methods=["GET"], summary="The process answers")
        what = "Everything does its work, or what does not"
        unready: dict[int | str, dict[str, Any]] = {
            503: {"description": "Not yet", "content": {"application/json": {}}}
        }
        router.add_api_route("/readyz", self.ready, methods=["GET"], summary=what, responses=unready)
        what = "Figures for Prometheus"
        router.add_api_route(
            "/metrics", self.metrics, methods=["GET"], summary=what, response_class=PlainTextResponse
        )  # fmt: skip
        return router

    async def alive(self) -> Response:
        return json_response({"status": "alive", "version": self._services.settings.version})

    async def ready(self) -> Response:
        unready = await self._reads.off_loop(self._services.unready)
        body = {"status": "unready" if unready else "ready", "unready": dict(unready)}
        return json_response({**body, "as_of": instant(self._services.progress.as_of)}, 503 if unready else 200)

    async def metrics(self) -> Response:
        figures = await self._reads.off_loop(generate_latest, self._services.registry)
        return Response(figures, headers={"Content-Type": CONTENT_TYPE_LATEST})
