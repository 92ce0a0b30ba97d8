"""What every request passes before anything reads it: who is it for, from where, how large.

Without keys on loopback, the browser is the enemy: a page of somebody else's may send requests to 127.0.0.1, under
its own name for it (DNS rebinding) or from its own origin. Both are refused here, for reads and for writes.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders

from api.problems import Problem, unforeseen
from api.reports import REPORT_BYTES_MAX
from runtime import telemetry
from runtime.telemetry import Metric

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry, Counter, Histogram
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_log = logging.getLogger("tidewheel.api")

BODY_BYTES_MAX = 256 * 1024
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_METHODS = _SAFE | {"PUT", "POST", "DELETE", "PATCH"}  # a client may send any word; a series for each would have no end
_LENGTH = re.compile(r"[0-9]{1,15}")

SECURITY_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Gate:
    """ASGI middleware around the whole application."""

    def __init__(self, app: ASGIApp, *, allowed_hosts: Iterable[str], registry: CollectorRegistry) -> None:
        self._app = app
        self._allowed_hosts = frozenset(allowed_hosts)
        self._requests: Counter = telemetry.make(Metric.HTTP_REQUESTS, registry)
        self._seconds: Histogram = telemetry.make(Metric.HTTP_REQUEST_SECONDS, registry)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, or pass on with a bounded body; headers and figures for both."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.perf_counter(), 0

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        problem = self._objection(scope)
        try:
            if problem is not None:
                await problem.response()(scope, receive, answer)
            else:
                await self._app(scope, _bounded(receive, _body_bytes_max(scope["path"])), answer)
        except Exception:
            _log.exception("api.unforeseen: %s %s", scope["method"], scope["path"])
            if status:  # The answer has begun: only the connection can still say that it is broken.
                raise
            await unforeseen().response()(scope, receive, answer)
        finally:
            route = getattr(scope.get("route"), "path", "-")
            method = scope["method"] if scope["method"] in _METHODS else telemetry.OTHER
            self._requests.labels(method, route, str(status)).inc()
            self._seconds.labels(method, route).observe(time.perf_counter() - began)

    def _objection(self, scope: Scope) -> Problem | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if self._allowed_hosts and _without_port(host) not in self._allowed_hosts:
            return Problem(421, "wrong_host", "This server does not go by that name; call it by its address.")
        origin = headers.get("origin")
        if origin is not None and scope["method"] not in _SAFE and _host_of(origin) != host:
            return Problem(403, "wrong_origin", "Another site's page may not change anything here.")
        if "\0" in scope["path"] or b"%00" in scope["query_string"]:
            return Problem(400, "bad_request", "The address has a NUL in it, which no name has.")
        length = headers.get("content-length", "0")
        if not _LENGTH.fullmatch(length):
            return Problem(400, "bad_request", "Content-Length is not a number.")
        if int(length) > (most := _body_bytes_max(scope["path"])):
            return _too_large(most)
        return None


def _bounded(receive: Receive, most: int) -> Receive:
    """A body that was sent in chunks, without its length beforehand, ends at the limit too."""
    read = 0

    async def bounded() -> Message:
        nonlocal read
        message: dict[str, Any] = dict(await receive())
        read += len(message.get("body", b""))
        if read > most:
            raise _too_large(most)
        return message

    return bounded


def _too_large(most: int) -> Problem:
    return Problem(413, "too_large", f"The body is larger than {most} bytes.")


def _body_bytes_max(path: str) -> int:
    return REPORT_BYTES_MAX if path.endswith("/workers:report") else BODY_BYTES_MAX


def _host_of(origin: str) -> str:
    """Host and port of an origin; nobody's where it is none, such as `null` or `http://[`."""
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return (name if colon and port.isdigit() else host).lower()
