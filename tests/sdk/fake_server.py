"""A tiny HTTP server that stands in for Tidewheel's: real sockets, scripted answers.

`Server` speaks HTTP/1.1 in the running loop; `in_thread` runs one for callers without a loop. `Queue` is an owner of
one queue as a worker meets it: it hands out runs, reads reports and keeps them for the test to look at.
"""

import asyncio
import contextlib
import json
import threading
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Self

import pytest

DEADLINE_SECONDS = 30  # for whatever a test waits for; met in milliseconds when all is well
over_http = pytest.mark.parametrize("brokers", ["http"], indirect=True)  # a test that hears or cuts single answers


@dataclass
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Response:
    body: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


class Hangup(Exception):
    """Raised by a handler to close the connection without an answer."""


Handler = Callable[[Request], Awaitable[Response]]


class Server:
    def __init__(self, handler: Handler) -> None:
        self.handler = handler
        self.url = ""
        self._connections: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            while (request := await _read(reader)) is not None:
                writer.write(_render(await self.handler(request)))
                await writer.drain()
        except (Hangup, ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._connections.discard(task)
            writer.close()


async def _read(reader: asyncio.StreamReader) -> Request | None:
    line = await reader.readline()
    if not line:
        return None
    method, path, _ = line.decode().split()
    headers = {}
    while header := (await reader.readline()).decode().strip():
        name, _, value = header.partition(":")
        headers[name.lower()] = value.strip()
    return Request(method, path, headers, await reader.readexactly(int(headers.get("content-length", 0))))


def _render(response: Response) -> bytes:
    said = response.body
    body = said if isinstance(said, bytes) else b"" if said is None else json.dumps(said).encode()
    kind = "application/json" if response.status < 400 else "application/problem+json"
    headers = {"Content-Length": str(len(body)), "Content-Type": kind, **response.headers}
    lines = [f"HTTP/1.1 {response.status} Scripted", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    return "\r\n".join(lines).encode() + body


@contextlib.contextmanager
def in_thread(handler: Callable[[Request], Response]) -> Iterator[str]:
    """The URL of a server with a plain function as its handler."""
    ready = threading.Event()
    loop, stop = asyncio.new_event_loop(), asyncio.Event()
    url: list[str] = []

    async def handle(request: Request) -> Response:
        return handler(request)

    async def serve() -> None:
        async with Server(handle) as server:
            url.append(server.url)
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    assert ready.wait(DEADLINE_SECONDS)
    try:
        yield url[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(DEADLINE_SECONDS)
        loop.close()


class Queue:
    """One queue's owners and door. `reports` is everything the worker said, in the order it arrived."""

    def __init__(self) -> None:
        self.reports: list[dict[str, Any]] = []
        self.waiting: list[dict[str, Any]] = []  # hand-outs for the next long poll
        self.waiting_prompt: list[dict[str, Any]] = []  # hand-outs for the next answer to a prompt report
        self.answers: list[dict[str, Any]] = []  # what the next answers say besides
        self.silence: Callable[[dict[str, Any]], bool] = lambda report: False  # whose reports are read, not answered
        self.deaf: Callable[[dict[str, Any]], bool] = lambda report: False  # whose reports are not even read
        self.refuse: Callable[[dict[str, Any]], Response | None] = lambda report: None
        self.before_answer: Callable[[dict[str, Any]], Awaitable[Any] | None] = lambda report: None
        self.logs: list[dict[str, Any]] = []  # what attempts wrote
        self.refuse_log: Callable[[dict[str, Any]], Response | None] = lambda written: None
        self.told: list[tuple[str, str]] = []  # (log or finished, lease) as it came
        self.layouts: list[dict[str, Any]] = []  # what shards said,
        self._heard: dict[str, int] = {}  # and how many words of that each incarnation was told
        self.offset = 0
        self.options: dict[str, Any] = {}  # with which a worker finds it,
        self.environment: dict[str, str] = {}  # or by its environment
        self._changed = asyncio.Condition()

    async def handle(self, request: Request) -> Response:
        if (request.method, request.path) == ("POST", "/v1/leases:log"):
            return await self.hear_log(request)
        assert (request.method, request.path) == ("POST", "/v1/queues/default/workers:report")
        report = request.json
        if self.deaf(report):
            raise Hangup
        async with self._changed:
            self.reports.append(report)
            self.told += [("finished", lease) for lease in leases(report, "finished")]
            self._changed.notify_all()
        if self.silence(report):
            raise Hangup
        if (wait := self.before_answer(report)) is not None:
            await wait
        refused = self.refuse(report)
        return refused or Response(await self._answer(report))

    async def hear_log(self, request: Request) -> Response:
        """Lines of attempts: kept in the order in which they came, repeats too."""
        if (refused := self.refuse_log(request.json)) is not None:
            return refused
        async with self._changed:
            self.told += [("log", each["lease"]) for each in request.json["attempts"]]
            self.logs += request.json["attempts"]
            self._changed.notify_all()
        return Response({"refused": []})

    def lines(self, lease: str) -> list[dict[str, Any]]:
        """What an attempt wrote, by its lines' numbers."""
        found = {line["line"]: line for each in self.logs if each["lease"] == lease for line in each["lines"]}
        return [found[number] for number in sorted(found)]

    def texts(self, lease: str, *streams: str) -> list[str]:
        """The same, as text alone, of some streams."""
        return [line["text"] for line in self.lines(lease) if not streams or line["stream"] in streams]

    async def _answer(self, report: dict[str, Any]) -> dict[str, Any]:
        waiting = self.waiting if report.get("wait") else self.waiting_prompt

        def mine() -> list[dict[str, Any]]:
            return [each for each in waiting if each["shard"] == report.get("shard", 0)]

        async with self._changed:
            if report.get("wait"):
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(report["wait"]):
                        await self._changed.wait_for(lambda: mine() or self.answers or self._unheard(report))
            leases = [{**each, "incarnation": report["incarnation"]} for each in mine()]
            waiting[:] = [each for each in waiting if each not in mine()]
            extra = self.answers.pop(0) if self.answers else {}
            if words := self._unheard(report):
                extra = {**extra, "layouts": words}
                self._heard[report["incarnation"]] = len(self.layouts)
            return {"leases": leases, "cancelled": [], "lost": [], "unknown": [], **extra}

    def _unheard(self, report: dict[str, Any]) -> list[dict[str, Any]]:
        return self.layouts[self._heard.get(report["incarnation"], 0) :]

    async def hand_out(self, *runs: dict[str, Any], prompt: bool = False) -> list[str]:
        """Give runs to the worker, by the long poll or by the answer to a prompt report; returns their leases."""
        return await self.give(*map(self.lease_of, runs), prompt=prompt)

    async def give(self, *handouts: dict[str, Any], prompt: bool = False, **answer: Any) -> list[str]:
        """Give hand-outs, made by `lease_of`, to the worker; `answer` is said besides."""
        async with self._changed:
            self.answers += [answer] if answer else []
            (self.waiting_prompt if prompt else self.waiting).extend(handouts)
            self._changed.notify_all()
        return [handout["lease"] for handout in handouts]

    def lease_of(self, run: dict[str, Any]) -> dict[str, Any]:
        """A hand-out of a run (see `run`), at the next offset."""
        self.offset += 1
        about = {
            "lease_duration": "PT30S",
            "start_by": "PT10S",
            "attempt": 1,
            "may_have_run": False,
            **run.pop("handout", {}),
        }
        shard = run.pop("shard", 0)
        lease = f"default.{shard}.{self.offset}.key{self.offset}"
        return {"offset": self.offset, "shard": shard, "lease": lease, "timeout": "PT1H", "run": run, **about}

    async def say(self, **answer: Any) -> None:
        """Answer the next report with this, besides what it brings."""
        async with self._changed:
            self.answers.append(answer)
            self._changed.notify_all()

    async def tell(self, *layouts: dict[str, Any]) -> None:
        """Shards say how they stand: every incarnation is told once."""
        async with self._changed:
            self.layouts += layouts
            self._changed.notify_all()

    def in_shard(self, shard: int) -> list[dict[str, Any]]:
        """What was said to the owner of one shard."""
        return [report for report in self.reports if report.get("shard", 0) == shard]

    async def until(self, condition: Callable[[], Any]) -> Any:
        """Wait until the reports make a condition true; returns what it said."""
        async with asyncio.timeout(DEADLINE_SECONDS), self._changed:
            return await self._changed.wait_for(condition)

    async def reported(self, key: str, lease: str) -> dict[str, Any]:
        """The first report that lists the lease under held, started or finished."""

        def found() -> dict[str, Any] | None:
            return next((report for report in self.reports if lease in leases(report, key)), None)

        report: dict[str, Any] = await self.until(found)
        return report

    async def finished(self, lease: str) -> dict[str, Any]:
        """The first outcome that was reported of a lease."""
        report = await self.reported("finished", lease)
        entry: dict[str, Any] = next(entry for entry in report["finished"] if entry["lease"] == lease)
        return entry


def leases(report: dict[str, Any], key: str) -> list[str]:
    return [entry["lease"] if isinstance(entry, dict) else entry for entry in report[key]]


def run(
    task: str, payload: dict[str, Any] | None = None, *, handout: dict[str, Any] | None = None, **fields: Any
) -> dict[str, Any]:
    """A run of a task, as the server gives it out; `handout` overrides fields of the hand-out around it."""
    return {
        "tenant": "acme",
        "schedule": "nightly",
        "run_id": "nightly.20260308T020000Z",
        "nominal_time": "2026-03-08T02:00:00Z",
        "job": {"queue": "default", "target": {"type": "task", "name": task}, "payload": payload or {}},
        "handout": handout or {},
        **fields,
    }
