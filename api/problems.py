"""Every error is problem+json (RFC 9457) with the faults and their JSON pointers; nobody is shown a stack trace."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import orjson
from fastapi import Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.routing import Match, Route

from projections.store.reader import RowsAway
from runtime.log import LogError
from schemas import codec
from schemas.faults import Fault, Refused

if TYPE_CHECKING:
    from fastapi import FastAPI, Request

MEDIA_TYPE = "application/problem+json"


class Problem(Exception):
    """An answer that is no success. `code` is a stable word for programs."""

    def __init__(
        self, status: int, code: str, detail: str = "", *, faults: Iterable[Fault] = (),
        headers: Mapping[str, str] | None = None, more: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(detail or code)
        self.status = status
        self.code = code
        self.detail = detail
        self.faults = tuple(faults)
        self.headers = dict(headers or {})
        self.more = dict(more or {})

    def body(self) -> bytes:
        """The JSON of the answer."""
        return orjson.dumps(
            {
                "type": f"urn:tidewheel:problem:{self.code}",
                "title": HTTPStatus(self.status).phrase,
                "status": self.status,
                "code": self.code,
                **({"detail": self.detail} if self.detail else {}),
                **({"faults": [codec.plain(fault) for fault in self.faults]} if self.faults else {}),
                **self.more,
            }
        )

    def response(self) -> Response:
        """The answer itself."""
        return Response(self.body(), self.status, self.headers, MEDIA_TYPE)


def not_found(what: str) -> Problem:
    """There is no such thing, or not any more."""
    return Problem(404, "not_found", f"There is no {what}.")


def overloaded(what: str) -> Problem:
    """A bound was reached; later there is room again."""
    return Problem(503, "overloaded", what, headers={"Retry-After": "1"})


def away(what: str) -> Problem:
    """Something that we need is away; it may be back soon."""
    return Problem(503, "unavailable", what, headers={"Retry-After": "1"})


def refused(faults: Iterable[Fault], status: int = 422) -> Problem:
    """An input that will never be accepted as it stands."""
    found = tuple(faults)
    detail = "; ".join(f"{fault.pointer or '/'}: {fault.message}" for fault in found[:3])
    if any(fault.code == "not_json" for fault in found):
        return Problem(400, "not_json", detail, faults=found)
    return Problem(status, "refused", detail, faults=found)


def handle_all(app: FastAPI) -> None:
    """Let every error of the application leave it as a problem."""
    app.add_exception_handler(Problem, _problem)
    app.add_exception_handler(Refused, _refused)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(RequestValidationError, _parameters)
    app.add_exception_handler(LogError, _log)
    app.add_exception_handler(RowsAway, _rows_away)


async def _rows_away(_request: Request, _error: Exception) -> Response:
    """Its words are the database's own, for the log of whoever runs it and for no one else."""
    return away("The read model cannot be asked at present; schedules and runs go on without it.").response()


async def _problem(_request: Request, error: Exception) -> Response:
    assert isinstance(error, Problem)
    return error.response()


async def _refused(_request: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    return refused(error.faults).response()


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code = {404: "not_found", 405: "method_not_allowed", 400: "bad_request"}.get(error.status_code, "http_error")
    detail = {404: f"There is nothing at {request.url.path}.", 405: f"{request.method} is not possible here."}
    headers = {"Allow": ", ".join(_methods(request))} if error.status_code == 405 else error.headers  # noqa: PLR2004 -- Method Not Allowed
    return Problem(
        error.status_code, code, detail.get(error.status_code, str(error.detail)), headers=headers
    ).response()


def _methods(request: Request) -> list[str]:
    """What is possible at this place: a route knows its own method only."""
    found: set[str] = set()
    for route in request.app.router.routes:
        if isinstance(route, Route) and route.matches(request.scope)[0] is not Match.NONE:
            found |= route.methods or set()
    return sorted(found)


async def _parameters(_request: Request, error: Exception) -> Response:
    """A query or path parameter that does not fit. Pointers name the parameter."""
    assert isinstance(error, RequestValidationError)
    faults = [
        Fault(pointer="/" + "/".join(map(str, detail["loc"][1:])), code=detail["type"], message=detail["msg"])
        for detail in error.errors()
    ]
    return refused(faults, 400).response()


async def _log(_request: Request, error: Exception) -> Response:
    return overloaded(f"The log cannot be used right now ({type(error).__name__}).").response()


def unforeseen() -> Problem:
    """Our own mistake. The server's log says more than we tell a stranger."""
    return Problem(500, "internal", "Something went wrong here, and the server's log says what.")
