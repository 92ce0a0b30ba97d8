"""What the contract names and this version cannot do: answered 501 `not_supported` with its name, never silently."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from fastapi import APIRouter, Response

from api.problems import not_supported

_TENANT = "/v1/tenants/{tenant}"

LATER: tuple[tuple[str, str, str], ...] = (
    ("POST", f"{_TENANT}/jobs/{{name}}:run", "running a registered job by itself"),
)


def router() -> APIRouter:
    """All of them."""
    router = APIRouter(tags=["not supported yet"])
    for method, path, what in LATER:
        summary, parameters = f"Not supported yet: {what}", {"parameters": list(_parameters(path))}
        router.add_api_route(path, _refusing(what), methods=[method], summary=summary, openapi_extra=parameters)
    return router


def _parameters(path: str) -> Iterator[dict[str, Any]]:
    """The names in a path: nothing reads them, but the document must say that they stand there."""
    for name in re.findall(r"{(\w+)}", path):
        yield {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}


def _refusing(what: str) -> Callable[[], Awaitable[Response]]:
    async def refuse() -> Response:
        raise not_supported(what)

    return refuse
