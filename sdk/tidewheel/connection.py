"""HTTP to a Tidewheel server: where it is, who asks, and what its answers mean."""

from __future__ import annotations

import os
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

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
