"""What became of a command: for those who did not wait, or waited too long."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import APIRouter, Request, Response

from api import views
from api.commander import SOURCE
from api.problems import not_found
from projections.store.reader import ALL

if TYPE_CHECKING:
    from api.reading import Reads
    from api.services import ApiServices


class CommandRoutes:
    """`/v1/commands/{id}`."""

    def __init__(self, services: ApiServices, reads: Reads) -> None:
        self._services = services
        self._reads = reads

    def router(self) -> APIRouter:
        """What is where."""
        router = APIRouter(tags=["commands"])
        router.add_api_route(
            "/v1/commands/{command_id:path}", self.get, methods=["GET"], summary="What became of a command (7 days)"
        )  # fmt: skip
        return router

    async def get(self, request: Request, command_id: str) -> Response:
        command = self._services.reader.command
        answered = await self._reads.ask(request, command, ALL, command_id, SOURCE)
        if answered.value is None:  # Perhaps it was decided just now.
            await self._reads.catch_up()
            answered = await self._reads.ask(request, command, ALL, command_id, SOURCE)
        if answered.value is not None:
            return answered.json(views.command(answered.value))
        if self._services.commander.waits_for(command_id):
            return answered.json({"command_id": command_id, "state": "pending"})
        raise not_found(f"command {command_id[:128]} whose outcome is known")
