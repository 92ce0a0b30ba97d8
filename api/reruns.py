"""Runs again: a rerun of one that is over, dead letters and their redrives.

The owner forgets a run when it has its outcome, so the command brings the run as it was created; it stands in the read
model for as long as its history. What is refused here is refused by the owner too, who may know more.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import orjson
from fastapi import APIRouter, Query, Request, Response
from pydantic import Field

from api import requests, selection, views, writes
from api.commander import ANSWER_SECONDS, SOURCE
from api.document import BY, NOTE, accepts
from api.problems import Problem, not_found
from api.reading import json_response, read_instant, read_labels
from api.runs import RUN_ID_MAX, PageQuery
from projections.store import history
from projections.store.reader import Reader, RunFilter, Scope
from schemas import identity
from schemas.facts import Outcome, RunCreated

if TYPE_CHECKING:
    from api.reading import Reads
    from api.services import ApiServices
    from projections.store.paging import Page

SELECTED_MAX = 50  # of one request, which waits for the answer to each: some seconds, as clients wait for an answer
SPACING_SECONDS = 0.05  # between two: twenty a second let a queue that has just recovered stay so
_DEAD = (Outcome.DEAD_LETTERED.value,)
_HOW: dict[str, dict[str, Any]] = {
    "definition": {
        "enum": ["same", "current"],
        "default": "same",
        "description": "whose job: the old run's, or today's",
    },
    "note": NOTE,
    "by": BY,
}
_ONE = {**_HOW, "payload": {"type": "object", "description": "in place of the old run's"}}
_SELECTOR = selection.schema("which, by their runs; {} is all of the tenant. Instants are half-open, of the creation")
_MANY = {
    "selector": _SELECTOR,
    "limit": selection.limit_schema(SELECTED_MAX),
    "cursor": selection.CURSOR,
}


class LetterQuery(PageQuery):
    """Which dead letters. Instants are half-open, of the creation of the run."""

    schedule: str | None = None
    from_: str | None = Field(default=None, alias="from")
    to: str | None = None
    label: list[str] = Field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Old:
    """A run that may be run again: its row, itself as it was created, and what it was redriven as."""

    row: dict[str, Any]
    run: dict[str, Any] | None
    redriven_as: str | None


class RerunRoutes:
    """`/v1/…/runs/{id}:rerun`, `/v1/…/dead-letters…`."""

    def __init__(self, services: ApiServices, reads: Reads) -> None:
        self._services = services
        self._reads = reads

    def router(self) -> APIRouter:
        """What is where."""
        router = APIRouter(tags=["runs"])
        tenant = "/v1/tenants/{tenant}"
        add, one = router.add_api_route, accepts(**_ONE)
        what = "Another run of one that is over"
        add(f"{tenant}/runs/{{run_id}}:rerun", self.rerun, methods=["POST"], summary=what, openapi_extra=one)
        add(f"{tenant}/dead-letters", self.dead, methods=["GET"], summary="Runs that were given up, newest first")
        what = "Another run of one that was given up, once"
        add(
            f"{tenant}/dead-letters/{{run_id}}:redrive", self.redrive, methods=["POST"], summary=what, openapi_extra=one
        )
        what, chosen = "Redrive the dead letters that a selector names", accepts("selector", **_MANY, **_HOW)
        add(f"{tenant}/dead-letters:redrive", self.redrive_many, methods=["POST"], summary=what, openapi_extra=chosen)
        return router

    async def dead(self, request: Request, tenant: str, wanted: Annotated[LetterQuery, Query()]) -> Response:
        scope = Scope(tenant=requests.name(tenant, "tenant"))
        chosen = RunFilter(
            schedule=wanted.schedule, states=_DEAD, from_=read_instant(wanted.from_, "/from"),
            to=read_instant(wanted.to, "/to"), labels=read_labels(wanted.label),
        )  # fmt: skip
        answered = await self._reads.ask(
            request, _letters, self._services.reader, scope, chosen, wanted.cursor, wanted.limit
        )
        page, known = answered.value
        more = {"cursor": page.cursor} if page.cursor else {}
        return answered.json({"dead_letters": [views.dead_letter(row, known) for row in page.rows], **more})

    async def rerun(self, request: Request, tenant: str, run_id: str) -> Response:
        return await self._again(request, "rerun", tenant, run_id)

    async def redrive(self, request: Request, tenant: str, run_id: str) -> Response:
        return await self._again(request, "redrive", tenant, run_id)

    async def _again(self, request: Request, verb: str, tenant: str, run_id: str) -> Response:
        scope = Scope(tenant=requests.name(tenant, "tenant"))
        document = await requests.json_object(request)
        requests.only(document, _ONE)
        command_id = requests.command_id(request)
        old = await self._old(request, scope, run_id)
        if problem := _problem(old, verb, command_id):
            raise problem
        data = _data(old, document)
        return await writes.send(
            self._services.commander, request, f"tidewheel.run.{verb}.v1", data, command_id=command_id
        )  # fmt: skip

    async def _old(self, request: Request, scope: Scope, run_id: str) -> _Old:
        """The run; one that has no outcome in the rows may have one in the log."""
        if len(run_id) <= RUN_ID_MAX and identity.is_owner(identity.schedule_of(run_id)):
            old = (await self._reads.ask(request, _old, self._services.reader, scope, run_id)).value
            if old is None or old.row["outcome"] is None:
                await self._reads.catch_up()
                old = (await self._reads.ask(request, _old, self._services.reader, scope, run_id)).value
            if old is not None:
                return old
        raise not_found(f"run {run_id[:RUN_ID_MAX]} of {scope.tenant}")

    # --- many ---

    async def redrive_many(self, request: Request, tenant: str) -> Response:
        """One command for each, in the order of their creation; the answer says what became of each.

        When that takes too long it ends early, and its cursor goes on behind the last one that was asked for.
        """
        scope = Scope(tenant=requests.name(tenant, "tenant"))
        document = await requests.json_object(request)
        requests.only(document, (*_MANY, *_HOW))
        chosen, limit = selection.read(document.get("selector"), _DEAD), selection.limit(document, SELECTED_MAX)
        how = {name: document[name] for name in _HOW if name in document}
        page = (await self._reads.ask(
            request, self._services.reader.runs, scope, chosen, cursor=selection.cursor(document), limit=limit,
            newest=False,
        )).value  # fmt: skip
        key, position = requests.command_id(request), ""
        redriven: list[dict[str, Any]] = []
        refused: list[dict[str, Any]] = []
        deadline = asyncio.get_running_loop().time() + ANSWER_SECONDS
        before: dict[str, Any] | None = None
        for row in page.rows:
            left = deadline - asyncio.get_running_loop().time()
            if before is not None and left <= 0:
                stopped = {"stopped": "it takes too long; go on by the cursor", "cursor": page.behind(before)}
                return _told(redriven, refused, position, stopped)
            before = row
            said, position = await self._one(request, scope, row["run_id"], how, (key, left), position)
            (redriven if said["status"] < 400 else refused).append(said)  # noqa: PLR2004 -- where refusals begin
            await asyncio.sleep(SPACING_SECONDS)
        return _told(redriven, refused, position, {"cursor": page.cursor} if page.cursor else {})

    async def _one(
        self,
        request: Request,
        scope: Scope,
        run_id: str,
        how: dict[str, Any],
        asking: tuple[str, float],
        position: str,
    ) -> tuple[dict[str, Any], str]:
        key, seconds = asking
        command_id = identity.event_id("redrive", key, run_id.encode())  # a repeated request is the same commands
        old = await self._old(request, scope, run_id)
        if problem := _problem(old, "redrive", command_id):
            said = {"reason": problem.code, "detail": problem.detail, **problem.more, "status": problem.status}
            return {"of": run_id, **said}, position
        answer = await self._services.commander.ask("tidewheel.run.redrive.v1", _data(old, how), command_id, seconds)
        if answer is None:
            return {"of": run_id, "command_id": command_id, "status": 202}, position
        return {**answer.body, "of": run_id, "status": answer.status}, answer.position


def _letters(
    reader: Reader, scope: Scope, chosen: RunFilter, cursor: str | None, limit: int | None
) -> tuple[Page, dict[str, str]]:
    """A page of dead letters, and what those of them were redriven as that were."""
    page = reader.runs(scope, chosen, cursor=cursor, limit=limit)
    again = reader.again(scope, {row["run_id"] for row in page.rows})
    return page, {row["of"]: row["run_id"] for row in again if row["rule"] == "redrive"}


def _old(reader: Reader, scope: Scope, run_id: str) -> _Old | None:
    row = reader.run(scope, run_id)
    if row is None:
        return None
    created = history.told(reader, scope, row["schedule"], run_id, RunCreated.TYPE)
    run = None if created is None else orjson.loads(created["event"])["data"]
    redriven = (each["run_id"] for each in reader.again(scope, {run_id}) if each["rule"] == "redrive")
    return _Old(row=row, run=run, redriven_as=next(redriven, None))


def _problem(old: _Old, verb: str, command_id: str) -> Problem | None:
    """Why there is no other run of this one. A command that comes again is left to its owner, who remembers it."""
    run_id, state = old.row["run_id"], old.row["state"]
    if old.row["outcome"] is None:
        detail = f"Run {run_id} is still open ({state}): wait until it has its outcome, or cancel it."
        return Problem(409, "run_open", detail, more={"run_id": run_id, "state": state})
    if old.run is None:
        return Problem(410, "history_trimmed", f"What run {run_id} was created from is not kept any more.")
    if verb != "redrive":
        return None
    if old.row["outcome"] != Outcome.DEAD_LETTERED:
        detail = f"Run {run_id} is no dead letter, it ended {state}: rerun it instead."
        return Problem(409, "not_dead_lettered", detail, more={"run_id": run_id, "state": state})
    own = identity.rerun_run_id(old.row["tenant"], old.row["schedule"], SOURCE, command_id)
    if old.redriven_as in (None, own):
        return None
    detail = f"Dead letter {run_id} was redriven as {old.redriven_as}: look at that run, or rerun this one."
    return Problem(409, "already_redriven", detail, more={"run_id": run_id, "redriven_as": old.redriven_as})


def _data(old: _Old, how: dict[str, Any]) -> dict[str, Any]:
    row = old.row
    named = {"tenant": row["tenant"], "name": row["schedule"], "run_id": row["run_id"]}
    return {**named, "run": old.run, "outcome": row["outcome"], **how}


def _told(redriven: list[dict[str, Any]], refused: list[dict[str, Any]], position: str, more: Any) -> Response:
    headers = {writes.POSITION: position} if position else {}
    return json_response({"redriven": redriven, "refused": refused, **more}, headers=headers)
