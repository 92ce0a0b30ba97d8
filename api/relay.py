"""The relay between workers that speak HTTP and the dispatcher, which speaks through the log.

    report ──▶ `attempts`, at the queue's shard, with this node's inbox ──▶ dispatcher
    answer ◀── mailbox of the incarnation ◀── `dispatch.<queue>`, this node's inbox ◀── hand-outs, notices

The relay decides nothing and stores nothing. A worker that stops asking is not to be handed more than it will fetch:
when a wait has ended and no report follows soon, or the client is gone, the node itself reports no free slots.

All of this runs in the event loop; the feed's thread only brings records.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from api.layouts import Layouts
from api.mailbox import NOTHING, RESEND_SECONDS, HandedOut, Mailbox, Post, Word, read
from api.problems import Problem, overloaded
from runtime.record import Outgoing, Record
from schemas import codec, identity, topics
from schemas.internal import OF_LEASES, FinishedLease, WorkerReport

if TYPE_CHECKING:
    from api.appender import Appender
    from api.inboxes import InboxFeed
    from runtime.log import Log

SOURCE = "tidewheel/api"
HTTP = "http"  # the way by which its workers come
UNNUMBERED = -1  # the worker does not number its reports: the node does

SILENCE_SECONDS = 2.0  # after a finished wait; then the worker is taken to have gone
FORGOTTEN_SECONDS = 120.0  # without a word: several leases and reports would have passed
SWEEP_SECONDS = 30.0
MAILBOXES_MAX = 20_000
QUEUES_MAX = 1_000  # on one node: each costs a topic and a place in the reader

Gone = Callable[[], Awaitable[object]]  # returns when the client has gone away


class WorkerRelay:
    """Passes reports on, and answers with what came for their worker."""

    def __init__(self, *, log: Log, appender: Appender, feed: InboxFeed, now: Callable[[], datetime]) -> None:
        self.inbox = feed.inbox
        self._log = log
        self._appender = appender
        self._feed = feed
        self._now = now
        self._mailboxes: dict[str, Mailbox] = {}
        self.layouts = Layouts()
        self._waiting: dict[str, dict[str, Mailbox]] = {}  # by queue and incarnation: whose workers wait for post
        self._queues: dict[str, asyncio.Task[None]] = {}
        self._background: set[asyncio.Task[None]] = set()
        self._swept_at = 0.0

    async def report(
        self, fact: WorkerReport, *, wait: float = 0, gone: Gone | None = None, fetch: bool = True
    ) -> Post:
        """Pass a report on, and return what there is for the worker, waiting at most `wait` seconds for something.

        The fact's number is the worker's own, or UNNUMBERED. `ClientGone` when `gone` returned before there was post.
        Without `fetch` hand-outs stay where they are, and only notices are answered.
        """
        asked_at = _time()
        await self.follow(fact.queue)
        box = self._heard(fact)
        if box.last is None and self.layouts.shards(fact.queue) > 1:
            box.is_behind = True
        box.acknowledge(fact.read_up_to)
        if box.begin_claim(fact.claim_id):
            await self._pass_on(box, fact)
        if wait > 0 and not await self._wait_for(fact, box, wait, gone):
            return NOTHING
        self._expect_more(box)
        post = self._with_words(fact.queue, box, box.take(_time(), handouts=fetch))
        if post.handouts:
            post = replace(post, waited=min(handout.came_at for handout in post.handouts) - asked_at)
        if fact.claim_id:
            box.last_claim, box.claimed = fact.claim_id, tuple(handout.offset for handout in post.handouts)
        return post

    def has_unread(self, incarnation: str) -> bool:
        """Whether there are hand-outs that a worker has not said to have read."""
        box = self._mailboxes.get(incarnation)
        return box is not None and bool(box.fresh or box.given)

    async def complete(self, queue: str, shard: int, finished: FinishedLease) -> None:
        """Pass on how an attempt ended, from one who was told its lease and is no worker."""
        fact = WorkerReport(
            queue=queue, shard=shard, worker="completion", incarnation="completion", number=OF_LEASES,
            inbox=self.inbox, read_up_to=-1, slots=0, tasks=(), finished=(finished,),
        )  # fmt: skip
        await self._append(fact)

    async def follow(self, queue: str) -> None:
        """Return once the queue exists and this node's inbox of it is read."""
        following = self._queues.get(queue)
        if following is None:
            if len(self._queues) >= QUEUES_MAX:
                raise overloaded("Too many queues have workers on this node.")
            following = self._queues[queue] = asyncio.create_task(self._feed.follow(queue, self._deliver))
        if following.done() and following.exception() is None:
            return
        try:
            await asyncio.shield(following)
        finally:
            if following.done() and following.exception() is not None:
                self._queues.pop(queue, None)

    # --- reports ------------------------------------------------------------------------------------------------

    async def _pass_on(self, box: Mailbox, fact: WorkerReport) -> None:
        """A worker's own numbers count by twos, so that one of the node's fits behind each."""
        number = box.number + 1 if fact.number == UNNUMBERED else fact.number * 2
        if number >= box.number:
            box.number, box.last = number, fact
        await self._append(replace(fact, number=number))

    async def _close_slots(self, box: Mailbox) -> None:
        """Nobody fetches what would be handed out now."""
        last = box.last
        if last is None or not last.slots or box.waiting is not None:
            return
        box.number += 1
        box.last = replace(last, number=box.number, slots=0, started=(), finished=(), claim_id="")
        await self._append(box.last)

    async def _append(self, fact: WorkerReport) -> None:
        shards = self._log.partitions(topics.ATTEMPTS)
        partition = (identity.partition_of(fact.queue, shards) + fact.shard) % shards
        _, value = codec.encode(fact, source=SOURCE, time=self._now())
        await self._appender.append(Outgoing(topics.ATTEMPTS, partition, fact.incarnation.encode(), value))

    # --- answers ------------------------------------------------------------------------------------------------

    def _with_words(self, queue: str, box: Mailbox, post: Post) -> Post:
        """The post, and what shards of the queue have said since the worker was told last."""
        words = tuple(self.layouts.since(queue, box.heard, _time()))
        box.is_behind, box.heard = False, self.layouts.number
        return replace(post, words=words) if words else post

    async def _wait_for(self, fact: WorkerReport, box: Mailbox, seconds: float, gone: Gone | None) -> bool:
        """Wait for post, words of the queue's shards included."""
        waiting = self._waiting.setdefault(fact.queue, {})
        waiting[fact.incarnation] = box
        try:
            return await self._wait(box, seconds, gone)
        finally:
            if box.waiting is None:
                waiting.pop(fact.incarnation, None)

    async def _wait(self, box: Mailbox, seconds: float, gone: Gone | None) -> bool:
        """Until there is post or the time is up. False when another wait of this worker has taken over."""
        if box.waiting is not None:
            box.waiting.set()
        mine = box.waiting = asyncio.Event()
        leaving = asyncio.ensure_future(gone()) if gone is not None else None
        until = _time() + seconds
        try:
            while box.waiting is mine and not box.has_post(_time()) and _time() < until:
                mine.clear()
                await _either(mine, leaving, min(until - _time(), RESEND_SECONDS if box.given else seconds))
            return box.waiting is mine
        finally:
            if leaving is not None:
                leaving.cancel()
            if box.waiting is mine:
                box.waiting = None
                self._expect_more(box, 0 if leaving is not None and leaving.done() else SILENCE_SECONDS)

    def _expect_more(self, box: Mailbox, seconds: float = SILENCE_SECONDS) -> None:
        """A worker with free slots is expected back soon, unless it waits in another call."""
        if box.silence is not None:
            box.silence.cancel()
        box.silence = asyncio.get_running_loop().call_later(seconds, self._silent, box)

    def _silent(self, box: Mailbox) -> None:
        task = asyncio.get_running_loop().create_task(self._close_slots(box))
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    # --- mailboxes ------------------------------------------------------------------------------------------------

    def _heard(self, fact: WorkerReport) -> Mailbox:
        box = self._box(fact.incarnation)
        box.heard_at = _time()
        if box.silence is not None:
            box.silence.cancel()
            box.silence = None
        if box.number == 0 and fact.number == UNNUMBERED:  # A restarted node goes on above what it counted before.
            box.number = int(self._now().timestamp() * 1000)
        return box

    def _box(self, incarnation: str) -> Mailbox:
        box = self._mailboxes.get(incarnation)
        if box is None:
            self._sweep()
            if len(self._mailboxes) >= MAILBOXES_MAX:
                raise overloaded("Too many workers report to this node.")
            box = self._mailboxes[incarnation] = Mailbox(heard_at=_time())
        return box

    def _deliver(self, records: Sequence[Record]) -> None:
        for record in records:
            if record.value is None or record.key is None:
                continue
            post = read(record.value)
            if isinstance(post, Word):
                self._hear(post)
                continue
            box = None if post is None else self._box_for(post.incarnation)
            if box is None:
                continue
            if isinstance(post, HandedOut):
                box.put(post, _time())
            elif post is not None:
                box.notice(post)

    def _hear(self, word: Word) -> None:
        if self.layouts.hear(word, _time()):
            for box in self._waiting.get(word.queue, {}).values():
                box.fall_behind()

    def _box_for(self, incarnation: str) -> Mailbox | None:
        """None when there is no room for workers that were never heard of here: their leases end by themselves."""
        try:
            return self._box(incarnation)
        except Problem:
            return None

    def _sweep(self) -> None:
        now = _time()
        if now - self._swept_at < SWEEP_SECONDS and len(self._mailboxes) < MAILBOXES_MAX:
            return
        self._swept_at = now
        for incarnation, box in list(self._mailboxes.items()):
            if now - box.heard_at > FORGOTTEN_SECONDS and box.waiting is None:
                del self._mailboxes[incarnation]


class ClientGone(Exception):
    """The client closed its connection while it waited."""


async def _either(event: asyncio.Event, leaving: asyncio.Future[object] | None, seconds: float) -> None:
    """Until the event, or for so long; `ClientGone` when the client leaves before."""
    waiting = asyncio.ensure_future(event.wait())
    try:
        both: set[asyncio.Future[Any]] = {waiting} if leaving is None else {waiting, leaving}
        await asyncio.wait(both, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
    if leaving is not None and leaving.done() and not event.is_set():
        raise ClientGone


def _time() -> float:
    return asyncio.get_running_loop().time()
