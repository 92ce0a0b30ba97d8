"""A run as one HTTP request: signed, sent only where it may go, and judged by its answer.

    2xx                        succeeded; 202 too, unless the worker offered to be told later (`completion_url`)
    anything else              failed as `http:404`; what Retry-After says is passed on
    no answer, or half a one   failed as `http:timeout`, `http:broken`, `http:unreachable`: the outcome is unknown
    not allowed from here      failed as `http:refused`

Redirects are not followed, no proxy, cookie or password of the environment is used, and an encoded body is not
decoded. A request has one time for everything, from the first look for an address to the last byte of the answer.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple

import httpcore
import httpx

from tidewheel import jsontext, wire
from tidewheel.context import RunContext
from tidewheel.logs.sources import CURRENT
from tidewheel.targets import facts, signing
from tidewheel.targets.network import AddressRefused, Guarded, Resolve, resolve
from tidewheel.targets.offers import HTTP, Target, TargetFailed
from tidewheel.targets.settings import Http
from tidewheel.wire import HandOut

READ_BYTES_MAX = 1024 * 1024  # of an answer; a longer one is cut off, and its connection with it
HEADER_BYTES_MAX = 16 * 1024
RESULT_JSON_BYTES_MAX = 12 * 1024  # of an answer that becomes the result whole: with what is around it under 16 KiB
TEXT_CHARACTERS_MAX = 2048  # of an answer that does not
RETRY_AFTER_SECONDS_MAX = 7 * 86_400.0
IDLE_CONNECTIONS = 20  # that are kept for the next request,
IDLE_SECONDS = 15.0  # so long: below what servers commonly wait
BODILESS = frozenset({"GET", "DELETE"})
DEFAULT_PORTS = {"http": 80, "https": 443}


class Answer(NamedTuple):
    """What came back. `size` counts what was read of the body, `is_whole` says whether that was all."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    is_whole: bool


@dataclass(slots=True)
class _Host:
    """How many requests go to one host, and who waits for it: one slow host must not take every slot."""

    places: asyncio.Semaphore
    users: int = 0


class Caller:
    """Calls endpoints for a worker. `open` it in the loop that it is used in, and `close` it there."""

    def __init__(self, settings: Http, resolve: Resolve = resolve) -> None:
        self._settings = settings
        self._guarded = Guarded(settings.allow, resolve)
        self._hosts: dict[str, _Host] = {}  # those with a request under way: at most one a slot
        self._per_host = 1
        self._pool: httpcore.AsyncConnectionPool | None = None

    @property
    def target(self) -> Target:
        """As what runs are given to it."""
        return Target(name=HTTP, function=self.run)

    def open(self, slots: int) -> None:
        """Be ready for as many requests at once as the worker has slots."""
        settings = self._settings
        self._per_host = settings.per_host or max(1, slots // 2)
        context = (
            ssl.create_default_context(cafile=settings.ca_file) if settings.ca_file else httpx.create_ssl_context()
        )
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=context,
            max_connections=None,  # bounded by the slots
            max_keepalive_connections=IDLE_CONNECTIONS,
            keepalive_expiry=IDLE_SECONDS,
            network_backend=self._guarded,
        )

    async def close(self) -> None:
        """Close all connections."""
        if self._pool is not None:
            await self._pool.aclose()

    async def run(self, context: RunContext, handout: HandOut) -> dict[str, Any]:
        """What the endpoint answered; TargetFailed when that is no success."""
        request = self._request(context, handout)
        seconds = min(self._settings.answer_within_seconds, handout.timeout_seconds)
        async with self._place_at(request.host, seconds):
            answer = await self._send(request, seconds)
        _note(request, answer)
        if answer.status == 202 and self._settings.completion_url is not None:  # noqa: PLR2004 -- as the page says
            context.log.info("%s will complete the run later", request.shown)
            await asyncio.Event().wait()  # until the owner says that the lease has ended, or the run is to stop
        return _judged(request.shown, answer)

    # --- the request ---

    def _request(self, context: RunContext, handout: HandOut) -> _Request:
        settings, target = self._settings, handout.target
        url = _read(str(target.get("url", "")))
        method = str(target.get("method", "POST"))
        if url.scheme != "https" and not settings.plain:
            raise TargetFailed("http:refused", f"{url.host} would be called without TLS: this worker does not do that")
        port = url.port or DEFAULT_PORTS[url.scheme]
        if port not in settings.ports:
            raise TargetFailed("http:refused", f"port {port} is none that this worker calls")
        if method in BODILESS and handout.payload:
            raise TargetFailed("PayloadMisfit", f"{method} has no body that would carry the payload")
        body = b"" if method in BODILESS else jsontext.dumps(dict(handout.payload))
        headers = {
            **{str(name).lower(): str(value) for name, value in (target.get("headers") or {}).items()},
            "user-agent": "tidewheel-worker",
            "accept-encoding": "identity",
            **({} if method in BODILESS else {"content-type": "application/json"}),
            **facts.headers(handout),
            **signing.headers(self._keys(context, target), context.run_id, int(time.time()), body),
        }
        if settings.completion_url is not None:
            headers["tidewheel-completion-url"] = f"{settings.completion_url}/v1/leases/{handout.lease}:complete"
        return _Request(method=method, url=url, headers=headers, body=body)

    def _keys(self, context: RunContext, target: Mapping[str, Any]) -> tuple[bytes, ...]:
        name = target.get("secret")
        if name is None:
            return ()
        keys = self._settings.secrets.get(f"{context.tenant}/{name}")
        if keys is None:
            raise TargetFailed("http:refused", f"this worker has no secret {name!r} of tenant {context.tenant!r}")
        return keys

    async def _send(self, request: _Request, seconds: float) -> Answer:
        assert self._pool is not None, "calls are made between open and close"
        try:
            async with asyncio.timeout(seconds):
                return await _exchange(self._pool, request)
        except AddressRefused as error:
            raise TargetFailed("http:refused", str(error)) from error
        except TimeoutError as error:
            message = f"{request.shown} had not answered wholly after {seconds:g} s: it may have done the work"
            raise TargetFailed("http:timeout", message) from error
        except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
            raise TargetFailed("http:unreachable", f"{request.shown} cannot be reached: {error}") from error
        except (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError) as error:
            message = f"{request.shown} broke off: {error or type(error).__name__}: it may have done the work"
            raise TargetFailed("http:broken", message) from error

    @asynccontextmanager
    async def _place_at(self, name: str, seconds: float) -> AsyncIterator[None]:
        """One of the requests that go to a host at once; `http:busy` when none of them ends in time."""
        host = self._hosts.setdefault(name, _Host(asyncio.Semaphore(self._per_host)))
        host.users += 1
        try:
            try:
                async with asyncio.timeout(seconds):
                    await host.places.acquire()
            except TimeoutError as error:
                message = (
                    f"{name} had {self._per_host} requests under way for {seconds:g} s, as many as are made at once"
                )
                raise TargetFailed("http:busy", message) from error
            try:
                yield
            finally:
                host.places.release()
        finally:
            host.users -= 1
            if not host.users:
                del self._hosts[name]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    """What is sent."""

    method: str
    url: httpx.URL
    headers: Mapping[str, str]
    body: bytes = field(repr=False)

    @property
    def host(self) -> str:
        return self.url.host

    @property
    def shown(self) -> str:
        """The URL for people: without what may be a secret in it."""
        return f"{self.url.scheme}://{self.url.netloc.decode()}{self.url.path}"


def _read(text: str) -> httpx.URL:
    try:
        url = httpx.URL(text)
    except (httpx.InvalidURL, TypeError) as error:
        raise TargetFailed("http:refused", f"the target's URL cannot be read: {error}") from error
    if url.scheme not in DEFAULT_PORTS or not url.host or url.userinfo:
        raise TargetFailed("http:refused", "the target's URL is no http or https URL, or has a user in it")
    return url


async def _exchange(pool: httpcore.AsyncConnectionPool, request: _Request) -> Answer:
    url = httpcore.URL(
        scheme=request.url.raw_scheme, host=request.url.raw_host, port=request.url.port, target=request.url.raw_path
    )
    headers = [(name.encode(), value.encode()) for name, value in request.headers.items()]
    async with pool.stream(request.method, url, headers=headers, content=request.body) as response:
        if sum(len(name) + len(value) for name, value in response.headers) > HEADER_BYTES_MAX:
            raise httpcore.RemoteProtocolError(f"its headers have over {HEADER_BYTES_MAX} bytes")
        said = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers}
        body = b""
        async for more in response.aiter_stream():
            body += more
            if len(body) > READ_BYTES_MAX:
                return Answer(response.status, said, body[:READ_BYTES_MAX], is_whole=False)
        return Answer(response.status, said, body, is_whole=True)


# --- the answer ------------------------------------------------------------------------------------------------------


def _note(request: _Request, answer: Answer) -> None:
    """The answer in the run's log: its status, and the head of its body."""
    capture = CURRENT.get()
    if capture is None:
        return
    whole = "" if answer.is_whole else ", cut off"
    said = f"{request.method} {request.shown} answered {answer.status}, {len(answer.body)} bytes{whole}"
    text = _text(answer)
    capture.write("http", f"{said}\n{text}" if text else said)


def _judged(shown: str, answer: Answer) -> dict[str, Any]:
    if 200 <= answer.status < 300:  # noqa: PLR2004 -- what success is in HTTP
        return {"status": answer.status, **_body(answer)}
    more = ", which is not followed" if 300 <= answer.status < 400 else ""  # noqa: PLR2004 -- and what a redirect is
    text = _text(answer)
    message = f"{shown} answered {answer.status}{more}{': ' if text else ''}{text}"
    raise TargetFailed(f"http:{answer.status}", message, retry_after_seconds=_retry_after(answer))


def _body(answer: Answer) -> dict[str, Any]:
    """The body as the run's result keeps it: as JSON where it is some, and not too much of it."""
    if not answer.body:
        return {}
    if (
        answer.is_whole
        and len(answer.body) <= RESULT_JSON_BYTES_MAX
        and "json" in answer.headers.get("content-type", "")
    ):
        try:
            body = jsontext.loads(answer.body)
            jsontext.dumps_strictly(body)
        except ValueError:
            pass
        else:
            if not wire.is_deeper(body, wire.RESULT_DEPTH_MAX - 1):
                return {"body": body}
    return {"body": _text(answer), "body_bytes": len(answer.body)}


def _text(answer: Answer) -> str:
    encoding = answer.headers.get("content-encoding", "identity")
    if answer.body and encoding != "identity":
        return f"({encoding} was not asked for, and is not decoded)"
    return answer.body[: 4 * TEXT_CHARACTERS_MAX].decode("utf-8", "replace")[:TEXT_CHARACTERS_MAX]


def _retry_after(answer: Answer) -> float | None:
    """What Retry-After asks for: seconds, or a date."""
    said = answer.headers.get("retry-after", "").strip()
    if said.isascii() and said.isdigit():
        seconds = float(said[:12])
    else:
        try:
            seconds = parsedate_to_datetime(said).timestamp() - time.time()
        except (ValueError, TypeError, OverflowError):
            return None
    return min(max(0.0, seconds), RETRY_AFTER_SECONDS_MAX)
