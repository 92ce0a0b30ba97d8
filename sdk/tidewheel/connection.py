"""HTTP to a Tidewheel server: where it is, who asks, and what its answers mean."""

from __future__ import annotations

import os
from ipaddress import ip_address
from typing import Any
from urllib.parse import quote, urlsplit

import httpx

from tidewheel import jsontext
from tidewheel.errors import TidewheelError, Unreachable

URL_DEFAULT = "http://127.0.0.1:8440"
COME_BACK = frozenset({408, 425, 429, 500, 502, 503, 504})  # The same request may succeed later.
CONNECT_SECONDS = 5.0


def server_url(url: str | None) -> str:
    """The server's address: as given, else TIDEWHEEL_URL, else this machine."""
    return (url or os.environ.get("TIDEWHEEL_URL") or URL_DEFAULT).rstrip("/")


def headers(token: str | None) -> dict[str, str]:
    """What every request carries; the token as given, else TIDEWHEEL_TOKEN."""
    token = token or os.environ.get("TIDEWHEEL_TOKEN")
    return {"Authorization": f"Bearer {token}"} if token else {}


def is_here(url: str) -> bool:
    """Whether the server is this machine: no proxy stands between, whatever the environment says."""
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def read(response: httpx.Response) -> Any:
    """The JSON of an answer; Unreachable when it says to come back later, TidewheelError when it refuses."""
    if response.is_success:
        return _json(response) if response.content else {}
    problem = _problem(response)
    error = TidewheelError.of_problem(response.status_code, problem)
    if response.status_code in COME_BACK:
        raise Unreachable(str(error), status=error.status, faults=error.faults)
    raise error


def _json(response: httpx.Response) -> Any:
    try:
        return jsontext.loads(response.content)
    except ValueError as error:
        raise Unreachable(f"{response.url} answered what is not JSON: is it a Tidewheel server?") from error


def _problem(response: httpx.Response) -> dict[str, Any]:
    try:
        problem = jsontext.loads(response.content)
    except ValueError:
        problem = None
    return problem if isinstance(problem, dict) else {"title": f"{response.status_code} {response.reason_phrase}"}


class WorkerConnection:
    """The worker's way to the server: whole reports, on two connections at most."""

    def __init__(self, url: str | None, token: str | None, queue: str) -> None:
        self.url = server_url(url)
        self._path = f"{self.url}/v1/queues/{quote(queue, safe='')}/workers:report"
        self._client = httpx.AsyncClient(
            headers={**headers(token), "Content-Type": "application/json"},
            limits=httpx.Limits(max_connections=2, max_keepalive_connections=2),
            trust_env=not is_here(self.url),
            timeout=httpx.Timeout(None, connect=CONNECT_SECONDS),  # The caller bounds each call as a whole.
        )

    async def report(self, body: bytes) -> Any:
        """The server's answer to a report, as JSON."""
        try:
            return read(await self._client.post(self._path, content=body))
        except httpx.TransportError as error:
            raise Unreachable(f"{self.url} cannot be reached: {str(error) or type(error).__name__}") from error

    async def close(self) -> None:
        """Give the connections back."""
        await self._client.aclose()
