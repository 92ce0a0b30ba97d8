"""A network between clients and one Kafka broker that loses, holds and delays requests of one kind.

Clients are given the proxy's address. The broker tells them its own; in every answer that place is overwritten, four
bytes of a port by four others, so that they stay here. Requests are told apart by their first two bytes, the API key.
"""

from __future__ import annotations

import asyncio
import struct
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from threading import Event, Thread

SECONDS = 20.0  # A deadline for what takes a moment.

PRODUCE, FETCH, METADATA, JOIN_GROUP, HEARTBEAT, END_TXN = 0, 1, 3, 11, 12, 26


class Fate(StrEnum):
    """What becomes of a request."""

    HOLD = "hold"  # kept until `release`, its connection to the broker too
    DROP = "drop"  # never arrives
    LOSE_ANSWER = "lose_answer"  # arrives, and the client's connection ends before the answer


@dataclass
class Rule:
    """The next request of a kind meets this fate, once; or each one does."""

    key: int
    fate: Fate
    lasting: bool = False
    met: Event = field(default_factory=Event)
    sent: Event = field(default_factory=Event)
    send: Callable[[], None] = lambda: None


class Proxy:
    """Listens on a free port of this machine. Everything below `open` and `close` may be called from any thread."""

    def __init__(self, bootstrap: str) -> None:
        host, _, port = bootstrap.rpartition(":")
        self._host, self._port = host, int(port)
        self._rules: list[Rule] = []
        self._seen: dict[int, int] = defaultdict(int)
        self._loop = asyncio.new_event_loop()
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._thread = Thread(target=self._loop.run_forever, daemon=True)
        self.bootstrap = ""

    # --- what a test says -----------------------------------------------------------------------------------------

    def next(self, key: int, fate: Fate) -> Rule:
        """What becomes of the next request of a kind."""
        rule = Rule(key, fate)
        self._rules.append(rule)
        return rule

    def every(self, key: int, fate: Fate) -> Rule:
        """What becomes of all requests of a kind from now on."""
        rule = Rule(key, fate, lasting=True)
        self._rules.append(rule)
        return rule

    def release(self, rule: Rule) -> None:
        """Send a held request on to the broker, as it was."""
        assert rule.met.wait(SECONDS), "no such request came"
        self._loop.call_soon_threadsafe(rule.send)
        assert rule.sent.wait(SECONDS)

    def cut(self) -> None:
        """End all connections."""
        self._loop.call_soon_threadsafe(self._cut)

    def seen(self, key: int) -> int:
        """How many requests of a kind have come."""
        return self._seen[key]

    # --- life -----------------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Listen."""
        self._thread.start()
        self._server = asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(SECONDS)
        self.bootstrap = f"{self._host}:{self._server.sockets[0].getsockname()[1]}"

    def close(self) -> None:
        """End everything."""
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(SECONDS)
        self._loop.close()

    async def _listen(self) -> asyncio.Server:
        return await asyncio.start_server(self._serve, self._host, 0)

    async def _end(self) -> None:
        assert self._server is not None
        self._server.close()
        self._cut()  # Who reads from a closed connection comes to its end.
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _cut(self) -> None:
        for writer in self._writers:
            writer.close()

    # --- one connection -------------------------------------------------------------------------------------------

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        up_reader, up_writer = await asyncio.open_connection(self._host, self._port)
        self._writers |= {writer, up_writer}
        answers = asyncio.ensure_future(self._answers(up_reader, writer))
        self._tasks.add(answers)
        holds = False
        try:
            async for frame in _frames(reader):
                holds = self._request(frame, writer, up_writer) or holds
                await up_writer.drain()
        except ConnectionError:
            pass
        finally:
            if not holds:
                up_writer.close()
            self._tasks.discard(task)

    def _request(self, frame: bytes, writer: asyncio.StreamWriter, up_writer: asyncio.StreamWriter) -> bool:
        """Let a request meet its fate; whether the connection to the broker must outlive the client's."""
        (key,) = struct.unpack(">h", frame[4:6])
        self._seen[key] += 1
        rule = next((rule for rule in self._rules if rule.key == key), None)
        if rule is None:
            up_writer.write(frame)
            return False
        if not rule.lasting:
            self._rules.remove(rule)
        match rule.fate:
            case Fate.HOLD:
                rule.send = partial(_send, rule, frame, up_writer)
            case Fate.LOSE_ANSWER:
                up_writer.write(frame)
                writer.close()
            case Fate.DROP:
                pass
        rule.met.set()
        return rule.fate is not Fate.DROP

    async def _answers(self, up_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert self._server is not None
        own = struct.pack(">i", self._server.sockets[0].getsockname()[1])
        place, ours = (self._host.encode() + struct.pack(">i", self._port)), self._host.encode() + own
        try:
            async for frame in _frames(up_reader):
                writer.write(frame.replace(place, ours))
                await writer.drain()
        except ConnectionError:
            pass
        writer.close()


def _send(rule: Rule, frame: bytes, up_writer: asyncio.StreamWriter) -> None:
    up_writer.write(frame)
    rule.sent.set()


async def _frames(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """Kafka's frames: four bytes of length, then as many."""
    while True:
        try:
            head = await reader.readexactly(4)
            yield head + await reader.readexactly(struct.unpack(">i", head)[0])
        except asyncio.IncompleteReadError:
            return


@contextmanager
def proxied(bootstrap: str) -> Iterator[Proxy]:
    """A proxy in front of a broker."""
    proxy = Proxy(bootstrap)
    proxy.open()
    try:
        yield proxy
    finally:
        proxy.close()
