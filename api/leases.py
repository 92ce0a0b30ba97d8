"""The simple form of the worker protocol, for any language: claim, heartbeat, complete.

The node keeps the books that a whole report needs: per shard and worker name, which leases are held and how far the
hand-outs were read. A lease counts as held for as long as its worker names it within the lease's time. Of a queue with
several shards a claim asks in those that want slots, and else in one after another.

The incarnation follows from the worker's name, so any node takes up where another left off: a worker that is not
known here names its leases in the next heartbeat, and they are held again.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from typing import TYPE_CHECKING, Any

from api.mailbox import NOTHING, Post
from api.problems import Problem, overloaded
from api.relay import HTTP, UNNUMBERED
from api.reports import LEASE_LENGTH_MAX
from schemas import durations, identity, topics
from schemas.internal import FinishedLease, WorkerReport

if TYPE_CHECKING:
    from api.relay import Gone, WorkerRelay

WORKERS_MAX = 10_000
CLAIMS_REMEMBERED = 16  # of one worker: repeats come within seconds
COMPLETED_REMEMBERED = 10_000  # of all workers: repeats come within seconds
FORGOTTEN_SECONDS = 3_600.0  # without a word; the leases themselves end much earlier
_LEASE = re.compile(r"(?P<queue>.+)\.(?P<shard>[0-9]{1,3})\.[0-9]+\.[^.]+", re.DOTALL)  # queue, shard, offset, key
LEASE_SECONDS_UNKNOWN = 30.0  # of a lease that another node gave: the default of jobs


@dataclass(slots=True)
class Held:
    """A lease that a worker has, and until when it has it without another word."""

    seconds: float
    until: float
    run: tuple[str, timedelta | None] | None = None  # which one, and how long its logs are kept


@dataclass(slots=True)
class Books:
    """What is kept for one worker of one shard of a queue."""

    queue: str
    shard: int
    worker: str
    incarnation: str
    tasks: tuple[str, ...] = ()
    read_up_to: int = -1
    open_slots: int = 0
    held: dict[str, Held] = field(default_factory=dict)
    cancelled: set[str] = field(default_factory=set)
    lost: set[str] = field(default_factory=set)
    # Of a worker's first shard: those in which its claims have asked, the one asked last at the end.
    asked: dict[int, None] = field(default_factory=dict)
    claims: OrderedDict[str, list[dict[str, Any]]] = field(default_factory=OrderedDict)
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    heard_at: float = 0.0


TURN_SECONDS = 1.0  # that a claim waits in some shards of several before it asks in others; they call when runs wait
REPEAT_SECONDS = 5.0  # the idle period of a worker: three of them without a word, and the owner takes it to be gone


class SimpleLeases:
    """Claims, heartbeats and completions, made into whole reports."""

    def __init__(self, relay: WorkerRelay, *, repeat_seconds: float = REPEAT_SECONDS) -> None:
        self._relay = relay
        self.repeat_seconds = repeat_seconds
        self._books: dict[tuple[str, int, str], Books] = {}
        self._owners: dict[str, Books] = {}  # by lease
        self._completed: dict[str, None] = {}

    async def claim(
        self, *, queue: str, worker: str, tasks: Sequence[str], slots: int, wait: float, claim_id: str,
        gone: Gone | None = None,
    ) -> list[dict[str, Any]]:  # fmt: skip
        """Leases for the worker; the same ones for the same claim id. Claims of one worker take turns."""
        books = self._of(queue, 0, worker)
        deadline = _time() + wait
        async with books.turn:
            if claim_id and claim_id in books.claims:
                return books.claims[claim_id]
            given = await self._claim(books, tuple(tasks), slots, deadline, gone)
            if claim_id:
                books.claims[claim_id] = given
                while len(books.claims) > CLAIMS_REMEMBERED:
                    books.claims.popitem(last=False)
            return given

    async def _claim(
        self, first: Books, tasks: tuple[str, ...], slots: int, deadline: float, gone: Gone | None
    ) -> list[dict[str, Any]]:
        """Open slots, wait, close them again; what came until they were closed belongs to this claim too."""
        for turn in count():
            if given := await self._late(first):
                break
            parts = self._parts(first, slots, turn)
            for books, some in parts:
                books.tasks, books.open_slots = tasks, some
            try:
                posts = await self._wait([books for books, _ in parts], deadline, gone)
            finally:
                for books, _ in parts:
                    books.open_slots = 0
            for (books, _), post in zip(parts, posts, strict=True):
                given += await self._close(books, post)
            if given or _time() >= deadline:
                break
        return given

    async def _late(self, first: Books) -> list[dict[str, Any]]:
        """What came for slots when they were being closed. Claims go on in other shards, and it would lie unread."""
        given: list[dict[str, Any]] = []
        for shard in list(first.asked):
            books = self._of(first.queue, shard, first.worker)
            if self._relay.has_unread(books.incarnation):
                given += await self._close(books, NOTHING)
        return given

    def _parts(self, first: Books, slots: int, turn: int) -> list[tuple[Books, int]]:
        """In which shards to ask for how many: in those that want slots, and every other time in any.

        Where there are more of them than slots, those are next that were asked the longest time ago.
        """
        layouts = self._relay.layouts
        shards = layouts.shards(first.queue)
        wanting = layouts.wanting(first.queue, _time()) if turn % 2 == 0 else []
        if shards == 1 and not wanting:
            return [(first, slots)]
        places = wanting or list(range(shards))
        turns = {shard: number for number, shard in enumerate(first.asked)}
        places = sorted(places, key=lambda shard: turns.get(shard, -1))[:slots]
        for shard in places:
            first.asked.pop(shard, None)
            first.asked[shard] = None
        each, more = divmod(slots, len(places))
        return [
            (self._of(first.queue, shard, first.worker), each + (number < more)) for number, shard in enumerate(places)
        ]

    async def _wait(self, parts: Sequence[Books], deadline: float, gone: Gone | None) -> list[Post]:
        """Until there is something for one of them, or it is time to ask elsewhere."""
        queue = parts[0].queue
        if len(parts) == 1 and self._relay.layouts.shards(queue) == 1:
            post = await self._report(parts[0], wait=self._left(deadline), gone=gone, fetch=True)
            while not post.handouts and _time() < deadline and self._relay.layouts.shards(queue) == 1:
                post = await self._report(parts[0], wait=self._left(deadline), gone=gone, fetch=True)
            return [post]
        wait = min(TURN_SECONDS, self._left(deadline))
        calls = [
            asyncio.ensure_future(self._report(books, wait=wait, gone=gone if number == 0 else None, fetch=True))
            for number, books in enumerate(parts)
        ]
        try:
            await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for call in calls:
                call.cancel()
            ends = await asyncio.gather(*calls, return_exceptions=True)
        for end in ends:
            if isinstance(end, BaseException) and not isinstance(end, asyncio.CancelledError):
                raise end
        return [end if isinstance(end, Post) else NOTHING for end in ends]

    def _left(self, deadline: float) -> float:
        return max(0.0, min(deadline - _time(), self.repeat_seconds))

    async def _close(self, books: Books, post: Post) -> list[dict[str, Any]]:
        """Take what came, and say that there are no slots any more."""
        given: list[dict[str, Any]] = []
        while True:
            fresh = self._take(books, post)
            given += fresh
            post = await self._report(books, started=[lease["lease"] for lease in fresh], fetch=True)
            if not post.handouts:
                return given

    async def heartbeat(self, worker: str, leases: Sequence[str]) -> dict[str, list[str]]:
        """Keep leases; which of them should stop, which are over, and which are none."""
        unknown: list[str] = []
        by_place: dict[tuple[str, int], list[str]] = {}
        for lease in leases:
            place = place_of(lease)
            if place is None or lease in self._completed:
                unknown.append(lease)
            else:
                by_place.setdefault(place, []).append(lease)
        cancelled: list[str] = []
        lost: list[str] = []
        for place, some in by_place.items():
            books = self._of(*place, worker)
            now = _time()
            for lease in some:
                known = self._hold(books, lease)
                known.until = now + known.seconds
            await self._report(books)
            cancelled += [lease for lease in some if lease in books.cancelled]
            lost += [lease for lease in some if lease in books.lost]
            books.lost.difference_update(some)
        return {"cancelled": cancelled, "lost": lost, "unknown": unknown}

    async def complete(self, lease: str, finished: FinishedLease, worker: str | None) -> None:
        """Be done with a lease; again, when the first answer got lost.

        Whoever quotes it whole may, and need not be its worker: an endpoint that a worker called answers so later.
        """
        if lease in self._completed:
            return
        books = self._owners.get(lease)
        place = place_of(lease)
        if books is None and worker is not None and place is not None:
            books = self._of(*place, worker)
        if books is not None:
            self._drop(books, lease)
            await self._report(books, finished=[finished])
        elif place is not None:
            await self._relay.complete(*place, finished)
        else:
            raise Problem(404, "unknown_lease", "That is no lease: quote it whole, as it was given.")
        self._completed[lease] = None
        if len(self._completed) > COMPLETED_REMEMBERED:
            del self._completed[next(iter(self._completed))]

    def run_of(self, lease: str) -> tuple[str, timedelta | None] | None:
        """The run of a lease that this node gave, and how long its logs are kept."""
        books = self._owners.get(lease)
        held = None if books is None else books.held.get(lease)
        return None if held is None else held.run

    # --- books ----------------------------------------------------------------------------------------------------

    def _of(self, queue: str, shard: int, worker: str) -> Books:
        books = self._books.get((queue, shard, worker))
        if books is None:
            self._forget_old()
            if len(self._books) >= WORKERS_MAX:
                raise overloaded("Too many workers claim leases from this node.")
            books = Books(queue=queue, shard=shard, worker=worker, incarnation=incarnation_of(queue, worker, shard))
            self._books[queue, shard, worker] = books
        books.heard_at = _time()
        return books

    def _take(self, books: Books, post: Post) -> list[dict[str, Any]]:
        """The leases of hand-outs that are new."""
        new = [handout.data for handout in post.handouts if handout.offset > books.read_up_to]
        for data in new:
            books.read_up_to = data["offset"]
            held = self._hold(books, data["lease"], durations.parse(data["lease_duration"]).total_seconds())
            kept = data["run"]["job"].get("log_retention")
            held.run = data["run"]["run_id"], None if kept is None else durations.parse(kept)
        names = ("lease", "lease_duration", "timeout", "attempt", "may_have_run", "offset", "run")
        return [{name: data[name] for name in names if name in data} for data in new]

    def _hold(self, books: Books, lease: str, seconds: float = LEASE_SECONDS_UNKNOWN) -> Held:
        held = books.held.get(lease)
        if held is None:
            held = books.held[lease] = Held(seconds=seconds, until=_time() + seconds)
            self._owners[lease] = books
        return held

    def _drop(self, books: Books, lease: str) -> None:
        books.held.pop(lease, None)
        books.cancelled.discard(lease)
        self._owners.pop(lease, None)

    def _forget_old(self) -> None:
        long_ago = _time() - FORGOTTEN_SECONDS
        for key, books in list(self._books.items()):
            if books.heard_at < long_ago and not books.turn.locked():
                for lease in books.held:
                    self._owners.pop(lease, None)
                del self._books[key]

    async def _report(
        self, books: Books, *, started: Iterable[str] = (), finished: Iterable[FinishedLease] = (), wait: float = 0,
        gone: Gone | None = None, fetch: bool = False,
    ) -> Post:  # fmt: skip
        now = _time()
        for lease in [lease for lease, held in books.held.items() if held.until < now]:
            self._drop(books, lease)
        fact = WorkerReport(
            queue=books.queue, shard=books.shard, worker=books.worker, incarnation=books.incarnation, number=UNNUMBERED,
            inbox=self._relay.inbox, read_up_to=books.read_up_to, slots=books.open_slots, tasks=books.tasks,
            held=tuple(books.held), started=tuple(started), finished=tuple(finished), transport=HTTP,
        )  # fmt: skip
        post = await self._relay.report(fact, wait=wait, gone=gone, fetch=fetch)
        self._note(books, post)
        return post

    def _note(self, books: Books, post: Post) -> None:
        books.cancelled.update(lease for lease in post.cancelled if lease in books.held)
        over = list(books.held) if post.incarnation_ended else [lease for lease in post.lost if lease in books.held]
        for lease in over:
            self._drop(books, lease)
            books.lost.add(lease)
        if post.incarnation_ended:  # Another process took the name: this one goes on under an incarnation of its own.
            books.incarnation = incarnation_of(books.queue, f"{books.worker}\0{books.incarnation}", books.shard)
            books.read_up_to = -1


def incarnation_of(queue: str, worker: str, shard: int = 0) -> str:
    """The incarnation under which every node reports for this worker in a shard."""
    within = f"\0{shard}" if shard else ""
    return "http-" + hashlib.sha256(f"{queue}\0{worker}{within}".encode()).hexdigest()[:24]


def place_of(lease: str) -> tuple[str, int] | None:
    """The queue and shard that a lease belongs to, None for a text that is no lease."""
    found = _LEASE.fullmatch(lease) if len(lease) <= LEASE_LENGTH_MAX else None
    if found is None or not identity.is_name(found["queue"]) or int(found["shard"]) >= topics.SHARDS_MAX:
        return None
    return found["queue"], int(found["shard"])


def _time() -> float:
    return asyncio.get_running_loop().time()
