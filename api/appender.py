"""Appends to the log for many requests at once: whoever comes while one append is under way goes with the next.

The loop never waits for the disk, and a thousand small reports cost a few appends. An append that fails fails for
all that went with it: each of their requests answers that it did not happen, and may be repeated.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from api.problems import overloaded
from runtime.lifecycle import Running, Threaded, ThreadService

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runtime.log import Log
    from runtime.record import Outgoing

PENDING_MAX = 10_000  # records that wait; at a kilobyte each they stay far below what a process has
AT_ONCE_MAX = 1_000


@dataclass(frozen=True, slots=True)
class _Waiting:
    record: Outgoing
    loop: asyncio.AbstractEventLoop
    done: asyncio.Future[None]


class Appender(Threaded):
    """Appends records that come from coroutines. A service (`runtime.lifecycle`)."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._waiting: deque[_Waiting] = deque()
        self._come = threading.Event()
        self._thread = ThreadService("appender", self._run, interrupt=self._come.set)

    async def append(self, record: Outgoing) -> None:
        """Return when the record is durable."""
        if len(self._waiting) >= PENDING_MAX:
            raise overloaded("Too many records wait to be appended.")
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        self._waiting.append(_Waiting(record, loop, done))
        self._come.set()
        await done

    def _run(self, running: Running) -> None:
        running.ready()
        while not running.stopping.is_set():
            self._come.wait()
            self._come.clear()
            self._append_all()
        self._append_all()  # what came while we were told to stop

    def _append_all(self) -> None:
        while some := self._take():
            self._append(some)

    def _take(self) -> list[_Waiting]:
        some: list[_Waiting] = []
        while self._waiting and len(some) < AT_ONCE_MAX:
            some.append(self._waiting.popleft())
        return some

    def _append(self, some: Sequence[_Waiting]) -> None:
        error: BaseException | None = None
        try:
            self._log.append([each.record for each in some])
        except Exception as failed:  # noqa: BLE001 -- whatever it was, it is what each waiting request must be told
            error = failed
        by_loop: dict[asyncio.AbstractEventLoop, list[asyncio.Future[None]]] = {}
        for each in some:
            by_loop.setdefault(each.loop, []).append(each.done)
        for loop, futures in by_loop.items():
            if not loop.is_closed():
                loop.call_soon_threadsafe(_settle, futures, error)


def _settle(futures: Sequence[asyncio.Future[None]], error: BaseException | None) -> None:
    for future in futures:
        if future.done():
            continue
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(error)
