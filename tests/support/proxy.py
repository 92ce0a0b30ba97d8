"""A network between clients and one Kafka broker that loses, holds, delays and repeats chosen requests.

Clients are given the proxy's address. The broker tells them its own; in every answer that place is overwritten, four
bytes of a port by four others, so that they stay here. Of a request only the header is looked at: API key, version and
correlation id, by which its answer is known.

What is to happen is said in rules. One that is added counts by itself; those of a course follow on one another, each
counting from where the one before was met, so that a course without end is a rough network (`rough`).
"""

from __future__ import annotations

import asyncio
import struct
from collections import Counter
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from random import Random
from threading import Event, Thread
from types import MappingProxyType
from typing import Any, TypeVar

_T = TypeVar("_T")
SECONDS = 20.0  # A deadline for what takes a moment.
ANSWER_SECONDS = 2.0  # for the broker to answer what comes late: it may have closed that connection, and never answers

PRODUCE, FETCH, METADATA, FIND_COORDINATOR, JOIN_GROUP, HEARTBEAT = 0, 1, 3, 10, 11, 12
INIT_PRODUCER_ID, ADD_PARTITIONS, ADD_OFFSETS, END_TXN, TXN_OFFSET_COMMIT = 22, 24, 25, 26, 28
NAMES: Mapping[int, str] = MappingProxyType({
    PRODUCE: "Produce", FETCH: "Fetch", METADATA: "Metadata", FIND_COORDINATOR: "FindCoordinator",
    JOIN_GROUP: "JoinGroup", HEARTBEAT: "Heartbeat",
    INIT_PRODUCER_ID: "InitProducerId", ADD_PARTITIONS: "AddPartitionsToTxn", ADD_OFFSETS: "AddOffsetsToTxn",
    END_TXN: "EndTxn", TXN_OFFSET_COMMIT: "TxnOffsetCommit",
})  # fmt: skip
# The answer of a broker that knows of no coordinator at the moment (versions 1 and 2): COORDINATOR_NOT_AVAILABLE.
NO_COORDINATOR = struct.pack(">ihhihi", 0, 15, -1, -1, 0, -1)
OF_A_TRANSACTION = (PRODUCE, INIT_PRODUCER_ID, ADD_PARTITIONS, ADD_OFFSETS, END_TXN, TXN_OFFSET_COMMIT)


class Fate(StrEnum):
    """What becomes of a request."""

    HOLD = "hold"  # kept until it is released or its seconds are over, its connection to the broker too
    STRAY = "stray"  # the same, and the client's connection ends: it asks again on another
    DELAY = "delay"  # arrives after its seconds, and what follows on its connection behind it
    DROP = "drop"  # never arrives
    CUT = "cut"  # never arrives, and the client's connection ends
    LOSE_ANSWER = "lose_answer"  # arrives, and the client's connection ends before the answer
    REPEAT = "repeat"  # arrives, and once more on another connection when it is released or its seconds are over
    RELEASE = "release"  # arrives after all that is kept, which is sent and answered between two pauses of its seconds
    ANSWER = "answer"  # never arrives, and is answered in the broker's place
    FREEZE = "freeze"  # nothing arrives any more, neither here nor there, until `thaw`; then this does too


KEPT = frozenset({Fate.HOLD, Fate.STRAY, Fate.REPEAT})
ARRIVING = frozenset(Fate) - {Fate.HOLD, Fate.STRAY, Fate.DROP, Fate.CUT, Fate.ANSWER}
CUTTING = frozenset({Fate.STRAY, Fate.LOSE_ANSWER, Fate.CUT})


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """The nth request of a kind from now on meets this fate; or each one does. No seconds: at once, or `release`.

    `answer` is what a request that is to be answered is told, without its number.
    """

    key: int
    fate: Fate
    nth: int = 1
    lasting: bool = False
    seconds: float | None = None
    answer: bytes = b""


@dataclass(slots=True, eq=False)
class Armed:
    """A rule that counts. `met`: its request has come; `sent` and `answered`: what was kept of it has been."""

    rule: Rule
    met: Event = field(default_factory=Event)
    sent: Event = field(default_factory=Event)
    answered: Event = field(default_factory=Event)
    left: int = 0
    send: Coroutine[Any, Any, None] | None = None

    def counts(self, key: int) -> bool:
        """Whether this request is the one."""
        if key != self.rule.key or self.left <= 0:
            return False
        self.left -= 1
        if self.left == 0 and self.rule.lasting:
            self.left = 1
            return True
        return self.left == 0


@dataclass(slots=True, eq=False)
class Course:
    """Rules that follow on one another; `armed` are those that counted so far, `over` when the last one was met."""

    rules: Iterator[Rule]
    armed: list[Armed] = field(default_factory=list)
    over: Event = field(default_factory=Event)

    def advance(self) -> None:
        """Let the next rule count."""
        rule = next(self.rules, None)
        if rule is None:
            self.over.set()
        else:
            self.armed.append(Armed(rule, left=rule.nth))


def rough(
    chance: Random, *, keys: Sequence[int] = OF_A_TRANSACTION, between: tuple[int, int] = (1, 20),
    fates: Sequence[Fate] = (Fate.STRAY, Fate.DELAY, Fate.CUT, Fate.LOSE_ANSWER, Fate.REPEAT),
    seconds: tuple[float, float] = (0.01, 0.5),
) -> Iterator[Rule]:  # fmt: skip
    """A network that is rough for ever, the same for the same seed; what comes late comes so many seconds late."""
    while True:
        key, nth, fate = chance.choice(keys), chance.randint(*between), chance.choice(fates)
        yield Rule(key=key, fate=fate, nth=nth, seconds=chance.uniform(*seconds))


class Proxy:
    """Listens on a free port of this machine. Everything below `open` and `close` may be called from any thread."""

    def __init__(self, bootstrap: str) -> None:
        host, _, port = bootstrap.rpartition(":")
        self._host, self._port = host, int(port)
        self._rules: list[Armed] = []
        self._courses: list[Course] = []
        self._kept: list[Armed] = []
        self._seen: Counter[int] = Counter()
        self._happened: Counter[str] = Counter()
        self._loop = asyncio.new_event_loop()
        self._flows = asyncio.Event()
        self._flows.set()
        self._ends = asyncio.Event()
        self._links: set[_Link] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._thread = Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self.bootstrap = ""

    # --- what a test says -----------------------------------------------------------------------------------------

    def add(self, rule: Rule) -> Armed:
        """A rule that counts from now on."""
        armed = Armed(rule, left=rule.nth)
        self._rules.append(armed)
        return armed

    def next(self, key: int, fate: Fate) -> Armed:
        """What becomes of the next request of a kind."""
        return self.add(Rule(key=key, fate=fate))

    def every(self, key: int, fate: Fate) -> Armed:
        """What becomes of all requests of a kind from now on."""
        return self.add(Rule(key=key, fate=fate, lasting=True))

    def follow(self, rules: Iterable[Rule]) -> Course:
        """Rules each of which counts once the one before was met."""
        course = Course(iter(rules))
        course.advance()
        self._courses.append(course)
        return course

    def clear(self) -> None:
        """No rule counts any more; what is kept is kept."""
        self._rules, self._courses = [], []

    def release(self, armed: Armed) -> None:
        """Send a held request on to the broker, as it was."""
        assert armed.met.wait(SECONDS), "no such request came"
        self._run(self._send(armed))
        assert armed.sent.is_set()

    def release_all(self) -> int:
        """Send on whatever is kept, and wait for the answers; how many there were."""
        return self._run(self._send_all())

    def thaw(self) -> None:
        """Let everything go on, also when nothing has met its `FREEZE`."""
        self._loop.call_soon_threadsafe(self._flows.set)

    def cut(self) -> None:
        """End all connections."""
        self._loop.call_soon_threadsafe(self._cut)

    def seen(self, key: int) -> int:
        """How many requests of a kind have come."""
        return self._seen[key]

    @property
    def happened(self) -> Mapping[str, int]:
        """What really befell requests: `EndTxn stray`, `EndTxn late`, `EndTxn late, answered` and so on."""
        return dict(self._happened)

    # --- life -----------------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Listen."""
        self._thread.start()
        self._server = self._run(self._listen())
        self.bootstrap = f"{self._host}:{self._server.sockets[0].getsockname()[1]}"

    def close(self) -> None:
        """End everything."""
        self._run(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(SECONDS)
        self._loop.close()

    def _run(self, what: Coroutine[Any, Any, _T]) -> _T:
        return asyncio.run_coroutine_threadsafe(what, self._loop).result(SECONDS)

    async def _listen(self) -> asyncio.Server:
        return await asyncio.start_server(self._serve, self._host, 0)

    async def _end(self) -> None:
        assert self._server is not None
        self._server.close()
        self._flows.set()
        self._ends.set()
        self._cut()  # Who reads from a closed connection comes to its end.
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for armed in self._kept:
            if armed.send is not None:
                armed.send.close()

    def _cut(self) -> None:
        for link in self._links:
            link.client.close()
            link.broker.close()

    # --- one connection -------------------------------------------------------------------------------------------

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._remember(asyncio.current_task())
        up_reader, up_writer = await asyncio.open_connection(self._host, self._port)
        link = _Link(writer, up_writer)
        self._links.add(link)
        self._remember(asyncio.ensure_future(self._answers(up_reader, link)))
        with suppress(ConnectionError):
            async for frame in _frames(reader):
                await self._flows.wait()
                await self._request(frame, link)
                await up_writer.drain()
        if not link.keeps:
            up_writer.close()

    def _remember(self, task: asyncio.Task[None] | None) -> None:
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _request(self, frame: bytes, link: _Link) -> None:
        """Let a request meet its fate."""
        (key,) = struct.unpack(">h", frame[4:6])
        self._seen[key] += 1
        armed = self._met(key)
        if armed is None:
            link.broker.write(frame)
            return
        rule = armed.rule
        self._happened[f"{NAMES.get(key, key)} {rule.fate}"] += 1
        if rule.fate in KEPT:
            self._keep(armed, frame, link)
        armed.met.set()
        match rule.fate:
            case Fate.DELAY:
                await self._pause(rule.seconds or 0)
            case Fate.RELEASE:
                await self._pause(rule.seconds or 0)
                await self._send_all()
                await self._pause(rule.seconds or 0)
            case Fate.ANSWER:
                link.client.write(struct.pack(">i", 4 + len(rule.answer)) + frame[8:12] + rule.answer)
            case Fate.FREEZE:
                self._flows.clear()
                await self._flows.wait()
            case _:
                pass
        if rule.fate in ARRIVING:
            link.broker.write(frame)
        if rule.fate in CUTTING:
            link.client.close()
        link.keeps |= rule.fate in {Fate.HOLD, Fate.STRAY, Fate.LOSE_ANSWER}

    async def _pause(self, seconds: float) -> None:
        """Seconds of a network; they are over when it ends."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._ends.wait(), seconds)

    def _met(self, key: int) -> Armed | None:
        """The rule that this request meets; all that wait for its kind have counted it."""
        found = [armed for armed in self._rules if armed.counts(key)]
        for course in self._courses:
            if not course.over.is_set() and course.armed[-1].counts(key):
                found.append(course.armed[-1])
                course.advance()
        self._rules = [armed for armed in self._rules if armed.left]
        return found[0] if found else None

    # --- what comes late ------------------------------------------------------------------------------------------

    def _keep(self, armed: Armed, frame: bytes, link: _Link) -> None:
        again = armed.rule.fate is Fate.REPEAT
        armed.send = self._send_again(armed, frame) if again else self._send_late(armed, frame, link)
        self._kept.append(armed)
        if armed.rule.seconds is not None:
            self._remember(asyncio.ensure_future(self._send_after(armed, armed.rule.seconds)))

    async def _send_after(self, armed: Armed, seconds: float) -> None:
        await self._pause(seconds)
        await self._send(armed)

    async def _send_all(self) -> int:
        kept, self._kept = self._kept, []
        await asyncio.gather(*(self._send(armed) for armed in kept))
        return len(kept)

    async def _send(self, armed: Armed) -> None:
        send, armed.send = armed.send, None
        if armed in self._kept:
            self._kept.remove(armed)
        if send is not None:
            self._happened[f"{NAMES.get(armed.rule.key, armed.rule.key)} late"] += 1
            with suppress(ConnectionError, TimeoutError):
                await asyncio.wait_for(send, ANSWER_SECONDS)
                self._happened[f"{NAMES.get(armed.rule.key, armed.rule.key)} late, answered"] += 1
                armed.answered.set()

    async def _send_late(self, armed: Armed, frame: bytes, link: _Link) -> None:
        answered = link.waiting[frame[8:12]] = asyncio.Event()
        link.broker.write(frame)
        armed.sent.set()
        await answered.wait()

    async def _send_again(self, armed: Armed, frame: bytes) -> None:
        reader, writer = await asyncio.open_connection(self._host, self._port)
        writer.write(frame)
        armed.sent.set()
        try:
            async for _ in _frames(reader):
                return
            raise ConnectionResetError("closed without an answer")
        finally:
            writer.close()

    async def _answers(self, up_reader: asyncio.StreamReader, link: _Link) -> None:
        assert self._server is not None
        own = struct.pack(">i", self._server.sockets[0].getsockname()[1])
        place, ours = (self._host.encode() + struct.pack(">i", self._port)), self._host.encode() + own
        with suppress(ConnectionError):
            async for frame in _frames(up_reader):
                await self._flows.wait()
                if (answered := link.waiting.pop(frame[4:8], None)) is not None:
                    answered.set()
                if not link.client.is_closing():
                    link.client.write(frame.replace(place, ours))
                    with suppress(ConnectionError):  # The client has gone; what was kept for the broker has not.
                        await link.client.drain()
        link.client.close()
        self._links.discard(link)


@dataclass(slots=True, eq=False)
class _Link:
    """A client's connection and ours to the broker for it, which stays when it `keeps` something."""

    client: asyncio.StreamWriter
    broker: asyncio.StreamWriter
    keeps: bool = False
    waiting: dict[bytes, asyncio.Event] = field(default_factory=dict)  # by correlation id


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
