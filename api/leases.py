"""The simple form of the worker protocol, for any language: claim, heartbeat, complete.

The node keeps the books that a whole report needs: per queue and worker name, which leases are held and how far the
hand-outs were read. A lease counts as held for as long as its worker names it within the lease's time.

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
from typing import TYPE_CHECKING, Any

from api.problems import Problem, overloaded
from api.relay import HTTP, UNNUMBERED
from api.reports import LEASE_LENGTH_MAX
from schemas import durations, identity
from schemas.internal import FinishedLease, WorkerReport

if TYPE_CHECKING:
    from api.mailbox import Post
    from api.relay import Gone, WorkerRelay

WORKERS_MAX = 10_000
CLAIMS_REMEMBERED = 16  # of one worker: repeats come within seconds
COMPLETED_REMEMBERED = 10_000  # of all workers: repeats come within seconds
FORGOTTEN_SECONDS = 3_600.0  # without a word; the leases themselves end much earlier
SHARD_MAX = 999  # more than a queue will have: a text that names a later one is no lease
_LEASE = re.compile(r"(?P<queue>.+)\.(?P<shard>[0-9]+)\.[0-9]+\.[^.]+", re.DOTALL)  # queue, shard, offset, key
LEASE_SECONDS_UNKNOWN = 30.0  # of a lease that another node gave: the default of jobs


@dataclass(slots=True)
class Held:
    """A lease that a worker has, and until when it has it without another word."""

    seconds: float
    until: float
    run: tuple[str, timedelta | None] | None = None  # which one, and how long its logs are kept


@dataclass(slots=True)
class Books:
    """What is kept for one worker of one queue."""

    queue: str
    worker: str
    incarnation: str
    tasks: tuple[str, ...] = ()
    read_up_to: int = -1
    open_slots: int = 0
    held: dict[str, Held] = field(default_factory=dict)
    cancelled: set[str] = field(default_factory=set)
    lost: set[str] = field(default_factory=set)
    claims: OrderedDict[str, list[dict[str, Any]]] = field(default_factory=OrderedDict)
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    heard_at: float = 0.0


REPEAT_SECONDS = 5.0  # the idle period of a worker: three of them without a word, and the owner takes it to be gone


class SimpleLeases:
    """Claims, heartbeats and completions, made into whole reports."""

    def __init__(self, relay: WorkerRelay, *, repeat_seconds: float = REPEAT_SECONDS) -> None:
        self._relay = relay
        self.repeat_seconds = repeat_seconds
        self._books: dict[tuple[str, str], Books] = {}
        self._owners: dict[str, Books] = {}  # by lease
        self._completed: dict[str, None] = {}

    async def claim(
        self, *, queue: str, worker: str, tasks: Sequence[str], slots: int, wait: float, claim_id: str,
        gone: Gone | None = None,
    ) -> list[dict[str, Any]]:  # fmt: skip
        """Leases for the worker; the same ones for the same claim id. Claims of one worker take turns."""
        books = self._of(queue, worker)
        deadline = _time() + wait
        async with books.turn:
            if claim_id and claim_id in books.claims:
                return books.claims[claim_id]
            given = await self._claim(books, tuple(tasks), slots, max(0.0, deadline - _time()), gone)
            if claim_id:
                books.claims[claim_id] = given
                while len(books.claims) > CLAIMS_REMEMBERED:
                    books.claims.popitem(last=False)
            return given

    async def _claim(
        self, books: Books, tasks: tuple[str, ...], slots: int, wait: float, gone: Gone | None
    ) -> list[dict[str, Any]]:
        """Open slots, wait, close them again; what came until they were closed belongs to this claim too."""
        books.tasks, books.open_slots = tasks, slots
        deadline = _time() + wait
        try:
            post = await self._report(books, wait=min(wait, self.repeat_seconds), gone=gone, fetch=True)
            while not post.handouts and (left := deadline - _time()) > 0:
                post = await self._report(books, wait=min(left, self.repeat_seconds), gone=gone, fetch=True)
        finally:
            books.open_slots = 0
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
        by_queue: dict[str, list[str]] = {}
        for lease in leases:
            queue = queue_of(lease)
            if queue is None or lease in self._completed:
                unknown.append(lease)
            else:
                by_queue.setdefault(queue, []).append(lease)
        cancelled: list[str] = []
        lost: list[str] = []
        for queue, some in by_queue.items():
            books = self._of(queue, worker)
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
        queue = queue_of(lease)
        if books is None and worker is not None and queue is not None:
            books = self._of(queue, worker)
        if books is not None:
            self._drop(books, lease)
            await self._report(books, finished=[finished])
        elif (place := place_of(lease)) is not None:
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

    def _of(self, queue: str, worker: str) -> Books:
        books = self._books.get((queue, worker))
        if books is None:
            self._forget_old()
            if len(self._books) >= WORKERS_MAX:
                raise overloaded("Too many workers claim leases from this node.")
            books = Books(queue=queue, worker=worker, incarnation=incarnation_of(queue, worker))
            self._books[queue, worker] = books
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
            queue=books.queue, shard=0, worker=books.worker, incarnation=books.incarnation, number=UNNUMBERED,
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
            books.incarnation = incarnation_of(books.queue, f"{books.worker}\0{books.incarnation}")
            books.read_up_to = -1


def incarnation_of(queue: str, worker: str) -> str:
    """The incarnation under which every node reports for this worker."""
    return "http-" + hashlib.sha256(f"{queue}\0{worker}".encode()).hexdigest()[:24]


def queue_of(lease: str) -> str | None:
    """The queue that a lease belongs to, None for a text that is no lease."""
    place = place_of(lease)
    return None if place is None else place[0]


def place_of(lease: str) -> tuple[str, int] | None:
    """The queue and shard that a lease belongs to, None for a text that is no lease."""
    found = _LEASE.fullmatch(lease) if len(lease) <= LEASE_LENGTH_MAX else None
    if found is None or not identity.is_name(found["queue"]) or int(found["shard"]) > SHARD_MAX:
        return None
    return found["queue"], int(found["shard"])


def _time() -> float:
    return asyncio.get_running_loop().time()
