"""A worker's way through the server's API: whole reports, on two connections at most."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import httpx

from tidewheel.connection import CONNECT_SECONDS, headers, is_here, read, server_url
from tidewheel.errors import TidewheelError, Unreachable
from tidewheel.holdings import Report
from tidewheel.wire import Answer


class HttpTransport:
    """`Transport`. A report may ask to wait for post: then its answer takes so long when there is none."""

    inbox = None

    def __init__(self, url: str | None, token: str | None, queue: str) -> None:
        self.place = server_url(url)
        self._path = f"{self.place}/v1/queues/{quote(queue, safe='')}/workers:report"
        self._client = httpx.AsyncClient(
            headers={**headers(token), "Content-Type": "application/json"},
            limits=httpx.Limits(max_connections=2, max_keepalive_connections=2),
            trust_env=not is_here(self.place),
            timeout=httpx.Timeout(None, connect=CONNECT_SECONDS),  # The caller bounds each call as a whole.
        )

    async def report(self, report: Report) -> Answer:
        """See `Transport.report`."""
        try:
            return _answer(read(await self._client.post(self._path, content=report.body)))
        except httpx.TransportError as error:
            raise Unreachable(f"{self.place} cannot be reached: {str(error) or type(error).__name__}") from error

    async def close(self) -> None:
        """See `Transport.close`."""
        await self._client.aclose()


def _answer(data: Any) -> Answer:
    try:
        return Answer.read(data)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise TidewheelError(f"the server's answer cannot be understood ({error!r}): is it a newer version?") from error
