"""Runs asked to end: one, or all that a selector names. Each is a command of its own, and the answer says what it met.

Only the owner of a run knows how it stands. One whose owner has forgotten it is told of from the read model.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request, Response

from api import requests, selection, writes
from api.commander import ANSWER_SECONDS
from api.document import BY, NOTE, accepts
from api.problems import Problem, not_found
from api.reading import json_response
from api.runs import RUN_ID_MAX
from projections.store.reader import ALL, OPEN_STATES, Scope
from schemas import identity, refusals
from schemas.faults import Fault, Refused

if TYPE_CHECKING:
    from api.commander import Answer
    from api.reading import Reads
    from api.services import ApiServices

CANCEL = "tidewheel.run.cancel.v1"
SELECTED_MAX = 200  # of one request, which waits for the answer to each
TOGETHER = 10  # that are asked for at once
SPACING_SECONDS = 0.05  # between those and the next: two hundred a second leave an owner room for everybody else
_NOT_FOUND = 404
_FINISHED = "already_finished"
_WHY: dict[str, dict[str, Any]] = {"note": NOTE, "by": BY}
_STATES = {
    "type": "array",
    "minItems": 1,
    "items": {"enum": list(OPEN_STATES)},
    "description": "open ones if not given",
}
_SELECTOR = selection.schema(
    "which of the open runs; {} is all. Instants are half-open, of the creation",
    queue={"type": "string"}, state=_STATES,
)  # fmt: skip
_MANY = {"selector": _SELECTOR, "limit": selection.limit_schema(SELECTED_MAX), "cursor": selection.CURSOR}


class CancelRoutes:
    """`/v1/…/runs/{id}:cancel`, `/v1/…/runs:cancel`."""

    def __init__(self, services: ApiServices, reads: Reads) -> None:
        self._services = services
        self._reads = reads

    def router(self) -> APIRouter:
        """What is where."""
        router = APIRouter(tags=["runs"])
        one, many = accepts(**_WHY), accepts("selector", **_MANY, **_WHY)
        add, tenant = router.add_api_route, "/v1/tenants/{tenant}/runs"
        what = "Ask a run to end"
        add(f"{tenant}/{{run_id}}:cancel", self.cancel, methods=["POST"], summary=what, openapi_extra=one)
        what = "Ask the open runs of a tenant to end that a selector names"
        add(f"{tenant}:cancel", self.cancel_many, methods=["POST"], summary=what, openapi_extra=many)
        what = "The same, of all tenants: those of a queue, for example"
        add("/v1/runs:cancel", self.cancel_of_all, methods=["POST"], summary=what, openapi_extra=many)
        return router

    # --- one ---

    async def cancel(self, request: Request, tenant: str, run_id: str) -> Response:
        document = await requests.json_object(request)
        requests.only(document, _WHY)
        schedule = identity.schedule_of(run_id)
        scope = Scope(tenant=requests.name(tenant, "tenant"))
        if len(run_id) > RUN_ID_MAX or not identity.is_owner(schedule):
            raise not_found(f"run {run_id[:RUN_ID_MAX]} of {tenant}")
        data: dict[str, Any] = {"tenant": tenant, "name": schedule, "run_id": run_id, **document}
        try:
            return await writes.send(self._services.commander, request, CANCEL, data)
        except Problem as problem:
            if problem.status != _NOT_FOUND or (told := await self._ended(request, scope, run_id)) is None:
                raise
        return json_response({"tenant": tenant, "name": schedule, "run_id": run_id, **told})

    async def _ended(self, request: Request, scope: Scope, run_id: str) -> dict[str, Any] | None:
        """How a run ended of which its owner knows nothing any more: it is not kept for what has no instant."""
        await self._reads.catch_up()
        row = (await self._reads.ask(request, self._services.reader.run, scope, run_id)).value
        if row is None or row["outcome"] is None:
            return None
        return {"state": _FINISHED, "outcome": row["outcome"], "attempts": row["attempts"]}

    # --- many ---

    async def cancel_many(self, request: Request, tenant: str) -> Response:
        return await self._many(request, Scope(tenant=requests.name(tenant, "tenant")))

    async def cancel_of_all(self, request: Request) -> Response:
        return await self._many(request, ALL)

    async def _many(self, request: Request, scope: Scope) -> Response:
        """The newest first: what has just been made has not begun. When that takes too long the cursor comes early."""
        document = await requests.json_object(request)
        requests.only(document, (*_MANY, *_WHY))
        chosen, limit = _selected(document.get("selector")), selection.limit(document, SELECTED_MAX)
        why = {name: document[name] for name in _WHY if name in document}
        page = (await self._reads.ask(
            request, self._services.reader.runs, scope, chosen, cursor=selection.cursor(document), limit=limit
        )).value  # fmt: skip
        key, told, position = requests.command_id(request), list[dict[str, Any]](), ""
        deadline = asyncio.get_running_loop().time() + ANSWER_SECONDS
        for begin in range(0, len(page.rows), TOGETHER):
            left = deadline - asyncio.get_running_loop().time()
            if begin and left <= 0:  # those that were asked may stay open for hours: from the beginning we never got on
                stopped = "it takes too long; go on by the cursor"
                return _answer(told, position, {"stopped": stopped, "cursor": page.behind(page.rows[begin - 1])})
            rows = page.rows[begin : begin + TOGETHER]
            answers = await asyncio.gather(*(self._one(row, why, key, left) for row in rows))
            told += [said for said, _ in answers]
            position = next((at for _, at in reversed(answers) if at), position)
            await asyncio.sleep(SPACING_SECONDS)
        return _answer(told, position, {"cursor": page.cursor} if page.cursor else {})

    async def _one(
        self, row: Mapping[str, Any], why: Mapping[str, Any], key: str, seconds: float
    ) -> tuple[dict[str, Any], str]:
        tenant, run_id = row["tenant"], row["run_id"]
        # A repeated request is the same commands.
        command_id = identity.event_id("cancel", key, f"{tenant}/{run_id}".encode())
        data = {"tenant": tenant, "name": row["schedule"], "run_id": run_id, **why}
        named = {"tenant": tenant, "run_id": run_id}
        answer = await self._services.commander.ask(CANCEL, data, command_id, seconds)
        if answer is None:
            return {**named, "state": "pending", "command_id": command_id}, ""
        return {**named, **_met(answer)}, answer.position


def _met(answer: Answer) -> dict[str, Any]:
    """What a cancel met. Runs that the rows show open and their owner does not know are over: it was told first."""
    if answer.status == _NOT_FOUND:
        return {"state": _FINISHED}
    return {name: answer.body[name] for name in ("state", "outcome", "reason", "detail") if name in answer.body}


def _answer(told: Sequence[dict[str, Any]], position: str, more: Mapping[str, Any]) -> Response:
    counts = Counter(str(each.get("state", "refused")) for each in told)
    headers = {writes.POSITION: position} if position else {}
    return json_response({"runs": told, "counts": dict(sorted(counts.items())), **more}, headers=headers)


def _selected(selector: Any) -> Any:
    """The selector; `state` narrows what is open."""
    states = selector.get("state", list(OPEN_STATES)) if isinstance(selector, dict) else []
    states = [states] if isinstance(states, str) else states
    if not isinstance(states, list) or not all(isinstance(state, str) for state in states):
        raise Refused(Fault(pointer="/selector/state", code="type", message="must be a list of states"))
    if isinstance(selector, dict) and not states:  # to the filter it would mean any
        raise Refused(Fault(pointer="/selector/state", code="missing", message="must have a state, or not be given"))
    unknown = [state for state in states if state not in OPEN_STATES]
    if unknown:
        raise Refused(*(refusals.unknown_word(state, OPEN_STATES, "/selector/state") for state in unknown))
    rest = {name: value for name, value in selector.items() if name != "state"} if isinstance(selector, dict) else None
    return selection.read(rest, states, more=("queue",))
