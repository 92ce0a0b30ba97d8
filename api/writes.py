"""Writes: a request becomes a command, and the owner's answer becomes the response."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from fastapi import Response

from api import requests
from api.commander import ANSWER_SECONDS
from api.problems import Problem
from api.reading import json_response
from schemas.faults import Fault, Refused

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fastapi import Request

    from api.commander import Answer, Commander

POSITION = "Tidewheel-Position"


async def send(
    commander: Commander, request: Request, type_: str, data: Mapping[str, Any], *, body_at: str = "/data",
    command_id: str | None = None,
) -> Response:  # fmt: skip
    """Send a command and answer as its owner does. `body_at` is where the request's body stands in its data."""
    command_id = command_id or requests.command_id(request)
    try:
        answer = await commander.ask(type_, data, command_id, _patience(request))
    except Refused as error:
        raise Refused(*(_moved(fault, body_at) for fault in error.faults)) from error
    if answer is None:
        return _later(command_id)
    return _response(answer, body_at)


def _patience(request: Request) -> float:
    preferences = [part.strip().lower() for part in request.headers.get("prefer", "").split(",")]
    return 0.0 if "respond-async" in preferences else ANSWER_SECONDS


def _later(command_id: str) -> Response:
    """It stands in the log and will be decided; nobody knows yet how."""
    where = f"/v1/commands/{quote(command_id, safe='')}"
    return json_response({"command_id": command_id, "state": "pending", "url": where}, 202, {"Location": where})


def _response(answer: Answer, body_at: str) -> Response:
    headers = {POSITION: answer.position} if answer.position else {}
    if answer.status >= 400:  # noqa: PLR2004 -- where HTTP's refusals begin
        raise Problem(
            answer.status, str(answer.body.get("reason") or "refused"), str(answer.body.get("detail") or ""),
            faults=[_moved(fault, body_at) for fault in answer.faults], headers=headers, more=answer.body,
        )  # fmt: skip
    if answer.status == 204:  # noqa: PLR2004 -- No Content
        return Response(status_code=204, headers=headers)
    if isinstance(version := answer.body.get("version"), int):
        headers["ETag"] = f'"{version}"'
    return json_response(answer.body, answer.status, headers)


def _moved(fault: Fault, body_at: str) -> Fault:
    """The pointer as the client sees it: into its own body, not into the command we made of it."""
    pointer = fault.pointer
    for prefix in (body_at, "/data"):
        if pointer == prefix or pointer.startswith(prefix + "/"):
            pointer = pointer.removeprefix(prefix)
            break
    return Fault(pointer=pointer, code=fault.code, message=fault.message, remedy=fault.remedy)
