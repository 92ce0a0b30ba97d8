"""Reads: off the event loop, as fresh as asked for, and saying how fresh."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

import orjson
from fastapi import Request, Response

from schemas.faults import Fault, Refused

if TYPE_CHECKING:
    from api.services import ApiServices, Progress
    from runtime.record import TopicPartition

P = ParamSpec("P")
T = TypeVar("T")

AT_LEAST = "Tidewheel-At-Least"
AS_OF = "Tidewheel-As-Of"
FRESH_SECONDS = 2.0
YEARS = (1970, 9_900)  # of instants that are asked for: beyond, calendars and milliseconds end
JSON = orjson.OPT_UTC_Z
THREADS = 8  # SQLite answers in milliseconds; more threads would only share one interpreter


class Reads:
    """Asks the read model and the log for request handlers."""

    def __init__(self, services: ApiServices) -> None:
        self._services = services
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="reads")

    async def ask(self, request: Request, question: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Answered[T]:
        """The answer to a question, not older than the request wants it, if two seconds are enough for that."""
        if AT_LEAST in request.headers:
            await self.catch_up()
        as_of = self._services.progress.as_of
        return Answered(await self.off_loop(question, *args, **kwargs), as_of)

    async def off_loop(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run what may block in a thread."""
        call = partial(function, *args, **kwargs)
        return await asyncio.get_running_loop().run_in_executor(self._pool, call)

    def close(self) -> None:
        """Let the threads end."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def catch_up(self) -> None:
        """Wait until the rows follow the log to where it ends now: whatever was answered before stands before that.

        Where they do not in time, `Tidewheel-As-Of` tells.
        """
        await self.reach(self._services.progress, await self.off_loop(self._ends))

    async def reach(self, progress: Progress, targets: Mapping[TopicPartition, int]) -> bool:
        """Wait until everything before the targets is in the rows; False when that takes too long."""
        if progress.reached(targets):
            return True
        try:
            with self.moving(progress) as moved:
                async with asyncio.timeout(FRESH_SECONDS):
                    while not progress.reached(targets):
                        moved.clear()
                        if not progress.reached(targets):
                            await moved.wait()
        except TimeoutError:
            return False
        return True

    @contextmanager
    def moving(self, *followed: Progress) -> Iterator[asyncio.Event]:
        """An event that is set whenever rows have moved."""
        loop, moved = asyncio.get_running_loop(), asyncio.Event()
        silences = [progress.on_progress(lambda: _notify(loop, moved)) for progress in followed]
        try:
            yield moved
        finally:
            for silence in silences:
                silence()

    def _ends(self) -> Mapping[TopicPartition, int]:
        return self._services.log.end_offsets(self._services.progress.inputs())


@dataclass(frozen=True, slots=True)
class Answered(Generic[T]):
    """A value, and as of when it is true."""

    value: T
    as_of: datetime

    def json(self, data: Any, headers: Mapping[str, str] | None = None) -> Response:
        """The answer made of it."""
        return json_response(data, headers={AS_OF: instant(self.as_of), **(headers or {})})


def json_response(data: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Data as JSON; instants in UTC with `Z`."""
    return Response(orjson.dumps(data, option=JSON), status, dict(headers or {}), "application/json")


def instant(at: datetime) -> str:
    """RFC 3339 in UTC, as everywhere."""
    return orjson.dumps(at, option=JSON).decode().strip('"')


def read_instant(text: str | None, pointer: str) -> datetime | None:
    """A query parameter that is an instant."""
    if text is None:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        at = None
    if at is None or at.tzinfo is None or not YEARS[0] <= at.year <= YEARS[1]:
        message = f"{text[:100]!r} is not an RFC 3339 instant with an offset, from {YEARS[0]} to {YEARS[1]}"
        raise Refused(Fault(pointer=pointer, code="instant", message=message, remedy="write 2026-03-08T05:15:53Z"))
    return at.astimezone(UTC)


def read_labels(texts: Sequence[str]) -> dict[str, str]:
    """Query parameters `label=key=value` or `label=key:value`."""
    labels = {}
    for text in texts:
        key, separator, value = text.replace(":", "=", 1).partition("=") if "=" not in text else text.partition("=")
        if not separator or not key:
            message = f"{text[:100]!r} is not a label"
            raise Refused(Fault(pointer="/label", code="label", message=message, remedy="write label=team=finance"))
        labels[key] = value
    return labels


def _notify(loop: asyncio.AbstractEventLoop, moved: asyncio.Event) -> None:
    with suppress(RuntimeError):  # it is closed: nobody waits, and whoever moves the rows goes on
        loop.call_soon_threadsafe(moved.set)
