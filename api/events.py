"""The stream of events: what is written on `run-events`, `rejections` and `catalog`, as it is written there.

Server-sent events. Each has as its id the position behind it, so whoever comes back with the last id that was seen
goes on with the next event, and sees none twice and misses none. Nothing is kept for a reader: it reads the log at its
own pace, one bounded batch at a time, and one that is slow keeps nobody up. One that takes next to nothing for half a
minute is cut, as it holds one of few places; how each stream ended is said at its end, where that can still be said.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Annotated, Any, Literal

import orjson
from fastapi import APIRouter, Header, Query, Response

from api import requests
from api.following import CURSOR_LENGTH_MAX, Places, Wanted, places_of, read_types
from api.problems import Problem, overloaded
from runtime import telemetry
from runtime.log import LogError, OffsetOutOfRange
from runtime.record import TopicPartition
from runtime.telemetry import Metric

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry, Counter, Gauge
    from starlette.types import Message, Receive, Scope, Send

    from api.reading import Reads
    from api.services import ApiServices
    from runtime.log import Log, Reader

STREAMS_MAX = 32  # at a time: each holds a reader of the log and a thread
RECORDS_MAX, BYTES_MAX = 500, 1024 * 1024  # of one batch: all that is held for a reader
POLL_SECONDS = 1.0  # how long it takes at most to notice that a reader has gone
SILENT_SECONDS = 15.0  # then the position is sent alone: proxies cut what is silent for a minute
STALLED_SECONDS = 30.0  # a reader that does not take so much
SENT_BYTES = 64 * 1024  # in so long is cut: 2 KiB a second will do
LAST_MAX = 10_000
MEDIA_TYPE = "text/event-stream"
_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


class EventRoutes:
    """`/v1/events`, of all tenants and of one."""

    def __init__(self, services: ApiServices, reads: Reads) -> None:
        self._services, self._reads = services, reads

    def router(self) -> APIRouter:
        """What is where."""
        router = APIRouter(tags=["events"])
        responses: dict[int | str, dict[str, Any]] = {
            200: {"description": "Server-sent events", "content": {MEDIA_TYPE: {"schema": {"type": "string"}}}},
            410: {"description": "The cursor is older than what is kept"},
        }
        what = "What happens, as it happens"
        router.add_api_route("/v1/events", self.everything, methods=["GET"], summary=what, responses=responses)
        router.add_api_route(
            "/v1/tenants/{tenant}/events", self.of_tenant, methods=["GET"], summary=f"{what} to one tenant's",
            responses=responses,
        )  # fmt: skip
        return router

    async def everything(  # noqa: PLR0913 -- a filter each
        self, tenant: str | None = None, schedule: str | None = None, run: str | None = None,
        type_: Annotated[list[str] | None, Query(alias="type")] = None,
        from_: Annotated[Literal["now", "oldest"], Query(alias="from")] = "now",
        last: Annotated[int | None, Query(ge=0, le=LAST_MAX)] = None,
        cursor: Annotated[str | None, Query(max_length=CURSOR_LENGTH_MAX)] = None,
        last_event_id: Annotated[str | None, Header()] = None, *, follow: bool = True,
    ) -> Response:  # fmt: skip
        wanted = Wanted(tenant=tenant, schedule=schedule, run_id=run, types=read_types(type_ or ()))
        behind = LAST_MAX + 1 if from_ == "oldest" else 0
        return await self._stream(wanted, last_event_id or cursor, behind if last is None else last, follow=follow)

    async def of_tenant(  # noqa: PLR0913 -- a filter each
        self, tenant: str, schedule: str | None = None, run: str | None = None,
        type_: Annotated[list[str] | None, Query(alias="type")] = None,
        from_: Annotated[Literal["now", "oldest"], Query(alias="from")] = "now",
        last: Annotated[int | None, Query(ge=0, le=LAST_MAX)] = None,
        cursor: Annotated[str | None, Query(max_length=CURSOR_LENGTH_MAX)] = None,
        last_event_id: Annotated[str | None, Header()] = None, *, follow: bool = True,
    ) -> Response:  # fmt: skip
        return await self.everything(
            requests.name(tenant, "tenant"), schedule, run, type_, from_, last, cursor, last_event_id, follow=follow
        )  # fmt: skip

    async def _stream(self, wanted: Wanted, cursor: str | None, last: int, *, follow: bool) -> Response:
        start = await self._reads.off_loop(starting, self._services.log, wanted, cursor, last)
        feed = Feed(self._services.log, wanted, start, follow=follow)
        return EventStream(feed, self._streams)

    @cached_property
    def _streams(self) -> Streams:
        return Streams(self._services.registry)


class Streams:
    """Those that are open: so many and no more, each with a thread to wait in. From the event loop."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._pool = ThreadPoolExecutor(STREAMS_MAX, thread_name_prefix="events")
        self._open: Gauge = telemetry.make(Metric.EVENT_STREAMS, registry)
        self._ended: Counter = telemetry.make(Metric.EVENT_STREAMS_ENDED, registry)
        self._count = 0

    def enter(self) -> bool:
        """Whether there is room for one more."""
        if self._count >= STREAMS_MAX:
            return False
        self._count += 1
        self._open.set(self._count)
        return True

    def leave(self, feed: Feed, reason: str) -> None:
        """One is over; its reader is closed where it was read."""
        self._count -= 1
        self._open.set(self._count)
        self._ended.labels(reason).inc()
        feed.wake()
        self._pool.submit(feed.close)

    async def read(self, feed: Feed) -> Taken:
        """The next of a stream."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, feed.take)


@dataclass(frozen=True, slots=True)
class Start:
    """Where a stream begins: the next offsets of all places, and where those that are read ended when it was asked."""

    places: Places
    positions: Mapping[TopicPartition, int]
    ends: Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class Taken:
    """What one look brought: text to be sent, perhaps none, and why there is no more; empty: there may be."""

    text: bytes
    cursor: str
    end: str = ""


def starting(log: Log, wanted: Wanted, cursor: str | None, last: int) -> Start:
    """Behind a cursor, or `last` offsets before the end of each partition; 410 for what is not kept any more."""
    places = places_of(log)
    read = wanted.places(
        {place.topic: place.partition + 1 for place in places.all}
    )  # the last of a topic says how many
    ends = log.end_offsets(places.all)
    begins = {place: log.begin_offset(place) for place in read}
    if cursor is None:
        back = {place: max(begins[place], ends[place] - last) if last <= LAST_MAX else begins[place] for place in read}
        return Start(places, {**ends, **back}, {place: ends[place] for place in read})
    positions = places.read(cursor)
    for place in read:
        if not begins[place] <= positions[place] <= ends[place]:
            more = {"topic": place.topic, "partition": place.partition, "begin": begins[place], "end": ends[place]}
            detail = "Events behind that cursor are no longer kept: some are missed. Begin anew with `from` or `last`."
            raise Problem(410, "trimmed", detail, more=more)
    return Start(places, positions, {place: ends[place] for place in read})


class Feed:
    """Reads one stream's events, batch by batch; calls from one thread at a time, except `wake`."""

    def __init__(self, log: Log, wanted: Wanted, start: Start, *, follow: bool) -> None:
        self._log, self._wanted, self._places = log, wanted, start.places
        self._positions = dict(start.positions)
        self._ends = None if follow else start.ends
        self._read = tuple(start.ends)
        self._reader: Reader | None = None
        self._closed = False
        self._in_use = Lock()  # a reader is closed by nobody else while it waits

    @property
    def cursor(self) -> str:
        """Where it stands."""
        return self._places.write(self._positions)

    def take(self) -> Taken:
        """What there is next, waiting for a second at most."""
        try:
            with self._in_use:
                return self._take()
        except OffsetOutOfRange:
            return Taken(b"", self.cursor, "trimmed")
        except LogError:
            return Taken(b"", self.cursor, "unavailable")

    def _take(self) -> Taken:
        if self._is_through():
            return Taken(b"", self.cursor, "reached")
        if self._reader is None and not self._closed:
            self._reader = self._log.open_reader({place: self._positions[place] for place in self._read})
        reader = self._reader
        if reader is None:
            return Taken(b"", self.cursor, "closed")
        text = bytearray()
        for record in reader.poll(records_max=RECORDS_MAX, bytes_max=BYTES_MAX, timeout=POLL_SECONDS):
            place = TopicPartition(record.topic, record.partition)
            if self._ends is not None and record.offset >= self._ends[place]:
                continue  # it came while we read; whoever wants it follows, or comes back with the cursor
            self._positions[place] = record.offset + 1
            event = self._wanted.event(record)
            if event is not None:
                text += b"id: %b\nevent: %b\ndata: %b\n\n" % (self.cursor.encode(), event[0].encode(), event[1])
        for place in self._read:  # behind the last record there may be offsets that hold none
            at = reader.position(place)
            self._positions[place] = at if self._ends is None else min(at, self._ends[place])
        return Taken(bytes(text), self.cursor, "reached" if self._is_through() else "")

    def _is_through(self) -> bool:
        return self._ends is not None and all(self._positions[place] >= end for place, end in self._ends.items())

    def wake(self) -> None:
        """Make a waiting `take` return."""
        if self._reader is not None:
            self._reader.wake()

    def close(self) -> None:
        """Give the reader back; idempotent."""
        self._closed = True
        with self._in_use:
            if self._reader is not None:
                self._reader.close()
                self._reader = None


class EventStream(Response):
    """The answer: goes on until its reader has gone, takes nothing, or there is no more."""

    media_type = MEDIA_TYPE

    def __init__(self, feed: Feed, streams: Streams) -> None:
        super().__init__(headers=_HEADERS)
        del self.headers["content-length"]
        self._feed, self._streams = feed, streams

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See above."""
        if not self._streams.enter():
            what = f"{STREAMS_MAX} streams of events are open here; end one, or ask another node."
            await overloaded(what).response()(scope, receive, send)
            return
        gone = asyncio.ensure_future(_gone(receive))
        reason = "broken"  # by what nobody foresaw, or by the end of the process
        try:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            reason = await self._run(send, gone)
        finally:
            gone.cancel()
            self._streams.leave(self._feed, reason)

    async def _run(self, send: Send, gone: asyncio.Future[None]) -> str:
        loop = asyncio.get_running_loop()
        opening = b": events\nretry: 2000\nid: %b\n\n" % self._feed.cursor.encode()
        if not await self._sent(send, opening):
            return "stalled"
        told_at, told = loop.time(), self._feed.cursor
        while not gone.done():
            taken = await self._streams.read(self._feed)
            text = taken.text
            if not text and taken.cursor != told and loop.time() - told_at >= SILENT_SECONDS:
                text = b"id: %b\n\n" % taken.cursor.encode()
            elif not text and loop.time() - told_at >= SILENT_SECONDS:
                text = b": nothing new\n\n"
            if text:
                if not await self._sent(send, text):
                    return "stalled"
                told_at, told = loop.time(), taken.cursor
            if taken.end:
                await self._sent(send, _ending(taken), last=True)
                return taken.end
        return "gone"

    async def _sent(self, send: Send, text: bytes, *, last: bool = False) -> bool:
        """Whether the reader took it, each part in time."""
        for start in range(0, len(text), SENT_BYTES):
            part, more = text[start : start + SENT_BYTES], not last or start + SENT_BYTES < len(text)
            message: Message = {"type": "http.response.body", "body": part, "more_body": more}
            try:
                async with asyncio.timeout(STALLED_SECONDS):
                    await send(message)
            except TimeoutError:
                return False
        return True


def _ending(taken: Taken) -> bytes:
    told = orjson.dumps({"reason": taken.end, "cursor": taken.cursor})
    return b"id: %b\nevent: end\ndata: %b\n\n" % (taken.cursor.encode(), told)


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
