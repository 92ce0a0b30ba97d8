"""When the first of many things is due, without asking each of them.

Each key has a *lower bound* of the instant at which it is due; the true instant is asked of the owner only when the
key comes to the top, and the bound is raised then. So what is put off again and again (a lease that every report
renews) costs nothing until its old bound comes up. What `first` answers is a function of the owner's state alone,
however the bounds came about.

Instants mostly come in order: those stand in a line, which costs nothing to append to and to take from. Only what
comes out of order goes to a heap.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Hashable
from datetime import datetime
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)

STALE_MIN = 64  # below that many entries it is not worth while to throw stale ones out


class Timers(Generic[K]):
    """Keys by the instant at which each is due. `due_at(key)` is the truth; None means never, and forgets the key."""

    __slots__ = ("_bounds", "_due_at", "_heap", "_line")

    def __init__(self, due_at: Callable[[K], datetime | None]) -> None:
        self._due_at = due_at
        self._bounds: dict[K, datetime] = {}
        self._line: deque[tuple[datetime, K]] = deque()  # in order
        self._heap: list[tuple[datetime, K]] = []

    def __len__(self) -> int:
        return len(self._bounds)

    def not_before(self, key: K, instant: datetime) -> None:
        """The key is due at `instant` or later; call it whenever it may have come to be due earlier than known."""
        known = self._bounds.get(key)
        if known is None or instant < known:
            self._bounds[key] = instant
            self._enter(instant, key)
            if len(self._line) + len(self._heap) > 2 * len(self._bounds) + STALE_MIN:
                self._throw_stale_out()

    def drop(self, key: K) -> None:
        """The key is never due again."""
        self._bounds.pop(key, None)

    def first(self) -> tuple[datetime, K] | None:
        """The key that is due first, and when."""
        while (top := self._top()) is not None:
            bound, key = top
            due_at = self._due_at(key) if self._bounds.get(key) == bound else None
            if due_at == bound:
                return top
            self._leave(top)
            if due_at is not None:
                self._bounds[key] = due_at
                self._enter(due_at, key)
        return None

    def _enter(self, instant: datetime, key: K) -> None:
        if not self._line or instant >= self._line[-1][0]:
            self._line.append((instant, key))
        else:
            heapq.heappush(self._heap, (instant, key))

    def _top(self) -> tuple[datetime, K] | None:
        if self._heap and (not self._line or self._heap[0][0] < self._line[0][0]):
            return self._heap[0]
        return self._line[0] if self._line else None

    def _leave(self, top: tuple[datetime, K]) -> None:
        if self._line and self._line[0] is top:
            self._line.popleft()
        else:
            heapq.heappop(self._heap)
        if self._bounds.get(top[1]) == top[0]:
            del self._bounds[top[1]]

    def _throw_stale_out(self) -> None:
        """Twice as many entries as keys at most: memory follows what is open, not what ever was."""
        self._line = deque(sorted((instant, key) for key, instant in self._bounds.items()))
        self._heap = []
