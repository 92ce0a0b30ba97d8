"""A worker's way through the server's API: whole reports on two connections at most, and what runs write on a third."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

import httpx

from tidewheel import jsontext
from tidewheel.connection import CONNECT_SECONDS, headers, is_here, read, server_url
from tidewheel.errors import TidewheelError, Unreachable
from tidewheel.holdings import Report
from tidewheel.logs.capture import Chunk
from tidewheel.wire import Answer


class HttpTransport:
    """`Transport`. A report may ask to wait for post: then its answer takes so long when there is none."""

    inbox = None

    def __init__(self, url: str | None, token: str | None, queue: str, shard: int = 0) -> None:
        self.place = server_url(url)
        self._path = f"{self.place}/v1/queues/{quote(queue, safe='')}/workers:report"
        self._shard = b'{"shard":%d,' % shard if shard else b"{"  # A server that knows of none is told of none.
        self._log_path = f"{self.place}/v1/leases:log"
        self._client = httpx.AsyncClient(
            headers={**headers(token), "Content-Type": "application/json"},
            limits=httpx.Limits(max_connections=3, max_keepalive_connections=3),
            trust_env=not is_here(self.place),
            timeout=httpx.Timeout(None, connect=CONNECT_SECONDS),  # The caller bounds each call as a whole.
        )

    async def report(self, report: Report) -> Answer:
        """See `Transport.report`."""
        return _answer(await self._post(self._path, self._shard + report.body[1:]))

    async def log(self, chunks: Sequence[Chunk]) -> Mapping[str, str]:
        """See `Transport.log`."""
        return _refused(await self._post(self._log_path, b'{"attempts":[%b]}' % b",".join(map(_attempt, chunks))))

    async def _post(self, path: str, body: bytes) -> Any:
        try:
            return read(await self._client.post(path, content=body))
        except httpx.TransportError as error:
            raise Unreachable(f"{self.place} cannot be reached: {str(error) or type(error).__name__}") from error

    async def close(self) -> None:
        """See `Transport.close`."""
        await self._client.aclose()


def _attempt(chunk: Chunk) -> bytes:
    kept = {} if chunk.retention is None else {"retention": chunk.retention}
    head = jsontext.dumps({"lease": chunk.lease, "run_id": chunk.run_id, **kept})
    return b'%b,"lines":[%b]}' % (head[:-1], b",".join(chunk.lines))


def _refused(data: Any) -> Mapping[str, str]:
    try:
        return {str(each["lease"]): str(each["reason"]) for each in data["refused"]}
    except (KeyError, TypeError) as error:
        raise TidewheelError(f"the server's answer cannot be understood ({error!r}): is it a newer version?") from error


def _answer(data: Any) -> Answer:
    try:
        return Answer.read(data)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise TidewheelError(f"the server's answer cannot be understood ({error!r}): is it a newer version?") from error
