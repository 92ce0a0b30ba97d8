"""The worker protocol over HTTP: whole reports for our SDK, and the simple form for other languages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel

from api import reports, requests
from api.document import takes
from api.reading import json_response
from api.relay import HTTP, UNNUMBERED, ClientGone
from api.runlogs import LogWriter
from schemas.internal import WorkerReport

if TYPE_CHECKING:
    from api.reading import Reads
    from api.services import ApiServices

_CLIENT_GONE = 499  # nobody reads it; the figures tell it apart


class WorkerRoutes:
    """`/v1/queues/{queue}/…` and `/v1/leases…`."""

    def __init__(self, services: ApiServices, reads: Reads) -> None:
        self._services = services
        self._logs = LogWriter(services, reads)

    def router(self) -> APIRouter:
        """What is where."""
        router = APIRouter(tags=["workers"])

        def add(path: str, handler: Any, summary: str, body: type[BaseModel]) -> None:
            router.add_api_route(path, handler, methods=["POST"], summary=summary, openapi_extra=takes(body))

        add("/v1/queues/{queue}/workers:report", self.report, "A whole report, for all leases", reports.Report)
        add("/v1/queues/{queue}/leases:claim", self.claim, "Ask for work", reports.Claim)
        add("/v1/leases:heartbeat", self.heartbeat, "Keep leases", reports.Heartbeat)
        add("/v1/leases/{lease}:complete", self.complete, "Be done with a lease", reports.Completion)
        return router

    async def report(self, request: Request, queue: str) -> Response:
        requests.name(queue, "queue")
        body = reports.read(reports.Report, await requests.raw_body(request))
        fact, unknown = self._fact(queue, body)
        try:
            post = await self._services.relay.report(fact, wait=body.wait, gone=_gone(request))
        except ClientGone:
            return Response(status_code=_CLIENT_GONE)
        return Response(post.json(unknown), media_type="application/json")

    async def claim(self, request: Request, queue: str) -> Response:
        requests.name(queue, "queue")
        body = reports.read(reports.Claim, await requests.raw_body(request))
        try:
            leases = await self._services.leases.claim(
                queue=queue, worker=body.worker, tasks=body.tasks, slots=body.slots, wait=body.wait,
                claim_id=body.claim_id, gone=_gone(request),
            )  # fmt: skip
        except ClientGone:
            return Response(status_code=_CLIENT_GONE)
        return json_response({"leases": leases})

    async def heartbeat(self, request: Request) -> Response:
        body = reports.read(reports.Heartbeat, await requests.raw_body(request))
        return json_response(await self._services.leases.heartbeat(body.worker, body.leases))

    async def complete(self, request: Request, lease: str) -> Response:
        body = reports.read(reports.Completion, await requests.raw_body(request))
        finished = reports.finished_lease(body, lease, "")
        unkept = await self._logs.complete(lease, body.logs) if body.logs else ""
        await self._services.leases.complete(lease, finished, body.worker)
        more = {"logs_refused": unkept} if unkept else {}
        return json_response({"lease": lease, "outcome": body.outcome, **more})

    def _fact(self, queue: str, body: reports.Report) -> tuple[WorkerReport, list[str]]:
        """The report as a fact, and the leases that are none of this shard."""
        prefix = f"{queue}.{body.shard}."
        finished = tuple(
            reports.finished_lease(each, each.lease, f"/finished/{number}") for number, each in enumerate(body.finished)
        )
        held, started = body.held, body.started
        foreign = {lease for lease in (*held, *started) if not lease.startswith(prefix)}
        foreign.update(each.lease for each in finished if not each.lease.startswith(prefix))
        if foreign:
            held = tuple(lease for lease in held if lease not in foreign)
            started = tuple(lease for lease in started if lease not in foreign)
            finished = tuple(each for each in finished if each.lease not in foreign)
        fact = WorkerReport(
            queue=queue,
            shard=body.shard,
            worker=body.worker,
            incarnation=body.incarnation,
            number=UNNUMBERED if body.number is None else body.number,
            inbox=self._services.relay.inbox,
            read_up_to=body.read_up_to,
            slots=body.slots,
            tasks=body.tasks,
            held=held,
            started=started,
            finished=finished,
            draining=body.draining,
            claim_id=body.claim_id,
            slots_total=body.slots_total,
            stuck=body.stuck,
            client=body.client,
            transport=HTTP,
        )
        return fact, sorted(foreign)


def _gone(request: Request) -> Any:
    """Return when the client has closed its connection. Its body was read, so that is all that can still come."""

    async def gone() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    return gone
