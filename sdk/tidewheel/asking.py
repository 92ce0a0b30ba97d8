"""How a client asks its server, and what it is answered with.

A write carries an idempotency key, so that it can be repeated after a lost answer without doing anything twice. What a
client has written it sees in its next read.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import httpx
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from tidewheel import connection, jsontext
from tidewheel.errors import TidewheelError, Unreachable

ALL_TENANTS = "*"
ATTEMPTS_MAX = 4  # Together with their pauses they bridge the restart of a server.
PAUSE_SECONDS_MAX = 2.0
ANSWER_SECONDS = 15.0  # The server itself waits up to 10 s for the owner of what is written.

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Part of a list. `cursor` leads to the next part; None at the end. `body` is the answer as it came."""

    items: tuple[Json, ...]
    cursor: str | None
    body: Json

    def __iter__(self) -> Iterator[Json]:
        return iter(self.items)


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What a write did: `created`, `updated`, `unchanged` or `deleted`; `body` is the owner's answer."""

    status: int
    body: Json

    @property
    def change(self) -> str:
        """In one word, what changed."""
        if self.status == httpx.codes.CREATED:
            return "created"
        return "unchanged" if self.body.get("changed") is False else "updated"


class Asking:
    """What every method of a client is made of. Threads may share one."""

    def __init__(
        self,
        url: str | None = None,
        tenant: str | None = None,
        token: str | None = None,
        *,
        position: str | None = None,
    ) -> None:
        self.url = connection.server_url(url)
        self.tenant = tenant or os.environ.get("TIDEWHEEL_TENANT") or "default"
        self.position = position  # of the last write: reads wait until they show it
        self._http = httpx.Client(
            base_url=self.url,
            headers=connection.headers(token),
            trust_env=not connection.is_here(self.url),
            timeout=httpx.Timeout(ANSWER_SECONDS, connect=connection.CONNECT_SECONDS),
        )
        self._retrying = Retrying(
            retry=retry_if_exception_type(Unreachable),
            stop=stop_after_attempt(ATTEMPTS_MAX),
            wait=wait_random_exponential(multiplier=0.1, max=PAUSE_SECONDS_MAX),
            reraise=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give the connection back."""
        self._http.close()

    def _path(self, kind: str, name: str, tenant: str | None) -> str:
        return f"/v1/tenants/{quote(tenant or self.tenant, safe='')}/{kind}/{quote(name, safe='')}"

    def _list(self, kind: str, tenant: str | None, wanted: Mapping[str, Any]) -> Page:
        tenant = tenant or self.tenant
        path = f"/v1/{kind}" if tenant == ALL_TENANTS else f"/v1/tenants/{quote(tenant, safe='')}/{kind}"
        body = self._read(path, {key.rstrip("_"): value for key, value in wanted.items()})
        return Page(items=tuple(body.get(kind) or body.get("items") or ()), cursor=body.get("cursor"), body=body)

    def _read(self, path: str, wanted: Mapping[str, Any] | None = None) -> Json:
        return self._send("GET", path, wanted).body

    def _write(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None,
        expected_version: int | None = None,
        idempotency_key: str | None = None,
    ) -> Written:
        headers = {"Idempotency-Key": idempotency_key or secrets.token_hex(16)}
        if expected_version is not None:
            headers["If-Match"] = str(expected_version)
        return self._send(method, path, None, body, headers)

    def _send(
        self,
        method: str,
        path: str,
        wanted: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Written:
        """One request, repeated while the server cannot be reached: a read, or a write with its key."""
        request = self._http.build_request(
            method,
            path,
            params=_query(wanted) or None,
            content=None if body is None else _encoded(body),
            headers={**(headers or {}), **({} if body is None else {"Content-Type": "application/json"})},
        )
        if self.position is not None and method in {"GET", "POST"}:
            request.headers["Tidewheel-At-Least"] = self.position
        return self._retrying(self._send_once, request)

    def _send_once(self, request: httpx.Request) -> Written:
        try:
            response = self._http.send(request)
        except httpx.TransportError as error:
            raise Unreachable(f"{self.url} cannot be reached: {str(error) or type(error).__name__}") from error
        answer = connection.read(response)
        if response.status_code == httpx.codes.ACCEPTED:
            where = response.headers.get("Location", "")
            raise Unreachable(
                f"the command stands in the log, but its owner has not answered yet; see {where}", status=202
            )
        if not isinstance(answer, dict):
            raise TidewheelError(f"{request.url} answered a {type(answer).__name__}: is it a Tidewheel server?")
        self.position = response.headers.get("Tidewheel-Position", self.position)
        return Written(status=response.status_code, body=answer)


def given(**fields: Any) -> Json:
    """What was given of a body."""
    return {key: value for key, value in fields.items() if value is not None}


def path_of(kind: str, name: str) -> str:
    """Of what belongs to no tenant."""
    return f"/v1/{kind}/{quote(name, safe='')}"


def _encoded(body: Mapping[str, Any]) -> bytes:
    try:
        return jsontext.dumps_strictly(dict(body))
    except ValueError as error:
        raise TidewheelError(f"this cannot be sent as JSON: {error}") from error


def _query(wanted: Mapping[str, Any] | None) -> dict[str, Any]:
    given = {key: value for key, value in (wanted or {}).items() if value is not None}
    return {key: instant(value) if isinstance(value, datetime) else value for key, value in given.items()}


def instant(at: datetime) -> str:
    """RFC 3339 in UTC; a reading without a zone is taken for UTC."""
    return at.replace(tzinfo=at.tzinfo or UTC).astimezone(UTC).isoformat().replace("+00:00", "Z")
