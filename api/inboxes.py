"""The inboxes of this node: one partition of each queue's dispatch topic that a worker here has reported for.

An inbox is read from a little before its end, so that a node that was restarted finds again what its workers have not
been given yet; they say themselves what they have read.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from runtime.lifecycle import Running, Threaded, ThreadService, persevere
from runtime.log import LogError, OffsetOutOfRange
from runtime.record import TopicPartition
from schemas import identity, topics

if TYPE_CHECKING:
    from runtime.log import Log, Reader
    from runtime.record import Record

_logger = logging.getLogger("tidewheel.api")

BACKLOG_RECORDS = 2_000  # more hand-outs than workers of one node have open at a time


@dataclass(frozen=True, slots=True)
class _Wish:
    queue: str
    loop: asyncio.AbstractEventLoop
    followed: asyncio.Future[None]


class InboxFeed(Threaded):
    """Reads this node's inboxes and gives what it finds to `deliver`, in the event loop. A service."""

    def __init__(self, *, log: Log, node_id: str, ensure_queue: Callable[[str], None]) -> None:
        self.inbox = identity.partition_of(node_id, topics.INBOXES)
        self._log = log
        self._ensure_queue = ensure_queue
        self._wishes: deque[_Wish] = deque()
        self._behind: dict[TopicPartition, tuple[int, list[_Wish]]] = {}
        self._followed: dict[TopicPartition, int] = {}  # and where we stand
        self._come = threading.Event()
        self._reader: Reader | None = None
        self._deliver: Callable[[Sequence[Record]], None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = ThreadService("inboxes", self._run, interrupt=self._wake)

    async def follow(self, queue: str, deliver: Callable[[Sequence[Record]], None]) -> None:
        """Return once the inbox of this queue is read, and what stood in it has been delivered."""
        self._deliver = deliver
        self._loop = asyncio.get_running_loop()
        wish = _Wish(queue, self._loop, self._loop.create_future())
        self._wishes.append(wish)
        self._wake()
        await wish.followed

    def _wake(self) -> None:
        self._come.set()
        if self._reader is not None:
            self._reader.wake()

    # --- the thread -----------------------------------------------------------------------------------------------

    def _run(self, running: Running) -> None:
        """A log that is away for a while costs time: we go on from where we stood."""
        running.ready()
        persevere(running, lambda: self._feed(running), against=LogError, told=_complain)

    def _feed(self, running: Running) -> None:
        self._reader = reader = self._log.open_reader(self._followed)
        try:
            while not running.stopping.is_set():
                self._begin_to_follow(reader)
                if not self._followed:  # A reader of nothing has nothing to wait for.
                    self._come.wait()
                    self._come.clear()
                    continue
                self._read(reader)
                self._settle_reached(reader)
        finally:
            reader.close()

    def _read(self, reader: Reader) -> None:
        try:
            records = reader.poll(records_max=2_000, bytes_max=8 * 1024 * 1024, timeout=1.0)
        except OffsetOutOfRange:  # The process stood still for an hour; those hand-outs have long been given to others.
            reader.assign({place: self._log.begin_offset(place) for place in self._followed})
            return
        self._followed = {place: reader.position(place) for place in self._followed}
        if records:
            self._call(self._deliver_all, records)

    def _begin_to_follow(self, reader: Reader) -> None:
        while self._wishes:
            wish = self._wishes.popleft()
            place = TopicPartition(topics.dispatch_topic(wish.queue), self.inbox)
            try:
                self._ensure_queue(wish.queue)
                end = self._log.end_offset(place)
                begin = max(self._log.begin_offset(place), end - BACKLOG_RECORDS)
            except Exception as error:  # noqa: BLE001 -- whatever it was, it is what the waiting report must be told
                self._call(_fail, wish.followed, error)
                continue
            if place not in self._followed:
                reader.assign({place: begin})
                self._followed[place] = begin
            wishes = self._behind.get(place, (end, []))[1]
            self._behind[place] = (end, [*wishes, wish])
        self._settle_reached(reader)

    def _settle_reached(self, reader: Reader) -> None:
        for place, (end, wishes) in list(self._behind.items()):
            if reader.position(place) >= end:
                del self._behind[place]
                for wish in wishes:
                    self._call(_settle, wish.followed)

    def _deliver_all(self, records: Sequence[Record]) -> None:
        assert self._deliver is not None
        self._deliver(records)

    def _call(self, function: Callable[..., None], *args: object) -> None:
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(function, *args)


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _fail(future: asyncio.Future[None], error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)


def _complain(error: Exception) -> None:
    _logger.warning("inboxes.unreadable: %s", error)
