"""A queue that keeps its entries in order, cheaply where entries mostly come in order."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

E = TypeVar("E", bound=tuple[Any, ...])

CUT_AT = 1024  # taken heads are cut off when there are so many: one memory move for a thousand of them


class SortedQueue(Generic[E]):
    """Entries in order, no two of them equal. To add at the end or take from the head costs the same at any length."""

    __slots__ = ("_entries", "_head")

    def __init__(self, entries: list[E] | None = None) -> None:
        self._entries = entries or []  # those before `_head` are taken
        self._head = 0

    def __len__(self) -> int:
        return len(self._entries) - self._head

    def __iter__(self) -> Iterator[E]:
        return (self._entries[at] for at in range(self._head, len(self._entries)))

    def first(self) -> E:
        """The head; there must be one."""
        return self._entries[self._head]

    def add(self, entry: E) -> None:
        """Put an entry where it belongs."""
        entries = self._entries
        if self._head == len(entries) or entry > entries[-1]:
            entries.append(entry)
        elif self._head and entry < entries[self._head]:
            self._head -= 1
            entries[self._head] = entry
        else:
            insort(entries, entry, lo=self._head)

    def remove(self, entry: E) -> None:
        """Take an entry out; it must be there."""
        assert self.discard(entry), f"{entry[:2]} is not in its queue"

    def discard(self, entry: E) -> bool:
        """Take an entry out; whether it was there."""
        entries = self._entries
        if self._head < len(entries) and entries[self._head] == entry:
            self._head += 1
            if self._head >= CUT_AT or self._head == len(entries):
                self._cut()
            return True
        at = bisect_left(entries, entry, lo=self._head)
        if at == len(entries) or entries[at] != entry:
            return False
        del entries[at]
        return True

    def _cut(self) -> None:
        del self._entries[: self._head]
        self._head = 0
