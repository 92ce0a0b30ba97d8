"""When the first of many things is due, without asking each of them.

Each key has a *lower bound* of the instant at which it is due; the true instant is asked of the owner only when the
key comes to the top, and the bound is raised then. So what is put off again and again (a lease that every report
renews) costs nothing until its old bound comes up. What `first` answers is a function of the owner's state alone,
however the bounds came about.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable
from datetime import datetime
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)

STALE_MIN = 64  # below that many a heap is not worth rebuilding


class Timers(Generic[K]):
    """Keys by the instant at which each is due. `due_at(key)` is the truth; None means never, and forgets the key."""

    __slots__ = ("_bounds", "_due_at", "_heap")

    def __init__(self, due_at: Callable[[K], datetime | None]) -> None:
        self._due_at = due_at
        self._bounds: dict[K, datetime] = {}
        self._heap: list[tuple[datetime, K]] = []

    def __len__(self) -> int:
        return len(self._bounds)

    def not_before(self, key: K, instant: datetime) -> None:
        """The key is due at `instant` or later; call it whenever it may have come to be due earlier than known."""
        known = self._bounds.get(key)
        if known is None or instant < known:
            self._bounds[key] = instant
            heapq.heappush(self._heap, (instant, key))
            self._rebuild_when_stale()

    def drop(self, key: K) -> None:
        """The key is never due again."""
        self._bounds.pop(key, None)

    def first(self) -> tuple[datetime, K] | None:
        """The key that is due first, and when. Ties: the smallest key."""
        heap = self._heap
        while heap:
            bound, key = heap[0]
            if self._bounds.get(key) != bound:
                heapq.heappop(heap)
                continue
            due_at = self._due_at(key)
            if due_at == bound:
                return bound, key
            heapq.heappop(heap)
            del self._bounds[key]
            if due_at is not None:
                self._bounds[key] = due_at
                heapq.heappush(heap, (due_at, key))
        return None

    def _rebuild_when_stale(self) -> None:
        """Twice as many entries as keys at most: memory follows what is open, not what ever was."""
        if len(self._heap) > 2 * len(self._bounds) + STALE_MIN:
            self._heap = [(instant, key) for key, instant in self._bounds.items()]
            heapq.heapify(self._heap)
