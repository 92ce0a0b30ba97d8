"""A worker's sessions, one for each shard of its queue that it serves. Most queues have one shard: there it is one.

A session is one incarnation, which belongs to one shard. A worker begins in the shard that every queue has, is told
there how many there are, and spreads its slots. To move some it says in the one shard that it has fewer, finishes what
it holds there, and has more in the other; `shards` decides which. In no shard do more tasks begin than the worker has
slots without one, wherever those stand.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import zlib
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from tidewheel import shards
from tidewheel.clock import boottime
from tidewheel.logs.redaction import Redaction
from tidewheel.session import OWN_MAX, Company, Session
from tidewheel.shards import Layouts, Place
from tidewheel.targets.offers import Target
from tidewheel.tasks import Task
from tidewheel.transport import Transport
from tidewheel.wire import Layout

_LOG = logging.getLogger("tidewheel.worker")

FIRST = 0  # the shard that every queue has
LOOK_SECONDS = 0.5  # between looks whether slots should move, while there are several shards
# Without slots and tasks a session stays so long. Slots that take turns come back to it; and a hand-out that was
# written before the owner heard that there are none any more would else wait for the end of its lease.
LINGER_SECONDS = 30.0
BARRED_SECONDS = 20.0  # after a shard was left: until its owner has forgotten the incarnation that was there


class Sessions:
    """`start`, then `wait` for the end; `drain` brings it about. `way` leads to a shard."""

    def __init__(
        self,
        way: Callable[[int], Transport],
        tasks: Mapping[str, Task | Target],
        *,
        name: str,
        slots: int,
        on_stuck: Callable[[int], None],
        redaction: Redaction | None = None,
    ) -> None:
        self._way, self._tasks, self._name, self._slots = way, tasks, name, slots
        self._on_stuck, self._redaction = on_stuck, redaction
        self._seed = zlib.crc32(name.encode())
        self._layouts, self._spread_over = Layouts(), 1
        self._sessions: dict[int, Session] = {}
        self._since: dict[int, float] = {}  # when each was last given slots, or fewer of them
        self._left: dict[int, float] = {}  # when a shard was left,
        self._leaving: set[int] = set()  # or while it is
        self._own: dict[int, deque[str]] = {}
        self._served: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()
        self._looked_at = 0.0
        self._draining = False
        self._over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._tending: asyncio.Task[None] | None = None
        self.place = ""  # where the queue is, for people

    def start(self) -> None:
        """Begin to work."""
        self._begin(FIRST, self._slots)
        self._tending = asyncio.create_task(self._tend())
        self._tending.add_done_callback(self._note_end_of)

    async def wait(self) -> None:
        """Until all sessions are over; raises what ended one of them, if it was not a drain."""
        try:
            await asyncio.shield(self._over)
        finally:
            if self._over.done():
                await self._close()

    async def drain(self, grace_seconds: float) -> None:
        """See `Session.drain`."""
        self._draining = True
        await asyncio.gather(*(session.drain(grace_seconds) for session in self._sessions.values()))
        if not self._sessions:  # as between one that ended and one that takes its slots
            self._end(None)

    @property
    def busy(self) -> int:
        """How many tasks are under way."""
        return sum(session.busy for session in self._sessions.values())

    # --- sessions ---

    def _begin(self, shard: int, slots: int) -> None:
        company = Company(
            slots=self._slots, free=lambda: self._slots - self.busy, hear=self._hear, changed=self._note_changed,
            own=self._own.setdefault(shard, deque(maxlen=OWN_MAX)),
        )  # fmt: skip
        transport = self._way(shard)
        session = self._sessions[shard] = Session(
            transport, self._tasks, name=self._name, slots=slots, on_stuck=self._look_for_stuck,
            redaction=self._redaction, company=company,
        )  # fmt: skip
        self.place = transport.place
        self._since[shard] = boottime()
        session.start()
        self._watched(self._serve(shard, session))

    async def _serve(self, shard: int, session: Session) -> None:
        try:
            await session.wait()
        except Exception as error:  # noqa: BLE001 -- whatever it was, it ends the worker, who is told of it
            self._end(error)
        self._forget(shard)
        if self._draining and not self._sessions:
            self._end(None)

    def _forget(self, shard: int) -> None:
        self._sessions.pop(shard, None)
        self._since.pop(shard, None)
        self._leaving.discard(shard)
        self._left[shard] = boottime()

    def _watched(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(coroutine)
        self._served.add(task)
        task.add_done_callback(self._served.discard)
        task.add_done_callback(self._note_end_of)

    def _note_end_of(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._end(error)

    def _look_for_stuck(self, _count: int) -> None:
        """Half of the slots gone for good is too much: the others would soon follow."""
        count = sum(session.stuck for session in self._sessions.values())
        if count * 2 >= self._slots and not self._draining:
            self._on_stuck(count)

    # --- slots ---

    def _hear(self, layout: Layout) -> None:
        self._layouts.hear(layout, boottime())
        self._looked_at = 0.0
        self._changed.set()

    def _note_changed(self) -> None:
        """A task began or ended; where there is no other session that is nobody's concern."""
        if self._is_among_several:
            self._changed.set()

    async def _tend(self) -> None:
        """Alone there is nothing to tend: the only session has all slots."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS if self._is_among_several else None):
                    await self._changed.wait()
            self._changed.clear()
            now = boottime()
            if self._is_among_several and not self._draining and now - self._looked_at >= LOOK_SECONDS:
                self._looked_at = now
                self._look(now)
            for session in self._sessions.values():
                session.refresh()

    @property
    def _is_among_several(self) -> bool:
        return self._layouts.shards > 1 or self._spread_over > 1 or len(self._sessions) > 1 or bool(self._layouts.heard)

    def _look(self, now: float) -> None:
        """Give each shard its slots, and leave those that have none any more."""
        places = {
            shard: Place(slots=session.slots, busy=session.busy, since=self._since[shard])
            for shard, session in self._sessions.items()
            if shard not in self._leaving
        }
        self._left = {shard: left_at for shard, left_at in self._left.items() if now - left_at < BARRED_SECONDS}
        is_whole = sum(place.slots for place in places.values()) == self._slots
        wanted = shards.moved(
            places, self._layouts, seed=self._seed, now=now, barred={*self._left, *self._leaving}
        ) if is_whole and self._layouts.shards == self._spread_over else self._spread_anew()  # fmt: skip
        if wanted != {shard: place.slots for shard, place in places.items() if place.slots}:
            _LOG.debug("slots by shard of the queue: %s", ", ".join(f"{n} in {at}" for at, n in sorted(wanted.items())))
        for shard in sorted({*wanted, *places}):
            self._give(shard, wanted.get(shard, 0), now)

    def _spread_anew(self) -> dict[int, int]:
        """The queue has another number of shards. Where one is just being left, the first takes its part.

        Where all are, those slots are given at a later look: the sessions that end would take them along.
        """
        if self._spread_over != self._layouts.shards:
            self._spread_over = self._layouts.shards
            _LOG.info("the queue has %d shards: %d slots are spread over them", self._spread_over, self._slots)
        wanted = shards.spread(self._slots, self._spread_over, self._seed)
        heirs = set(range(self._spread_over)) - self._leaving
        for shard in self._leaving & wanted.keys():
            slots = wanted.pop(shard)
            if heirs:
                heir = min(heirs)
                wanted[heir] = wanted.get(heir, 0) + slots
        return wanted

    def _give(self, shard: int, slots: int, now: float) -> None:
        session = self._sessions.get(shard)
        if session is None:
            self._begin(shard, slots)
        elif session.slots != slots:
            self._since[shard] = now
            session.resize(slots)
        elif not (slots or session.busy) and now - self._since[shard] >= LINGER_SECONDS:
            self._leaving.add(shard)
            self._watched(session.drain(0.0))

    # --- the end ---

    def _end(self, error: BaseException | None) -> None:
        if self._over.done():
            return
        if error is None:
            self._over.set_result(None)
            return
        self._over.set_exception(error)
        for session in self._sessions.values():
            session.end(error)

    async def _close(self) -> None:
        if self._tending is not None:
            self._tending.cancel()
            await asyncio.gather(self._tending, return_exceptions=True)
        await asyncio.gather(*self._served, return_exceptions=True)
