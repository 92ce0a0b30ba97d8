"""The store port in memory: for tests, and for the simulation, where a crash is the loss of the object."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Mapping
from weakref import WeakSet

from runtime.store import StoreError

FEW = 32  # keys that come and go: one by one, each a search and a move of what stands behind it


class MemoryStore:
    """`Store` in a dict and the sorted list of its keys."""

    place = "memory"

    def __init__(self) -> None:
        self._values: dict[bytes, bytes] = {}
        self._keys: list[bytes] = []
        self._scans: WeakSet[Scan] = WeakSet()
        self._closed = False

    def get(self, key: bytes) -> bytes | None:
        """See `Store.get`."""
        self._check_open()
        return self._values.get(key)

    def scan(self, start: bytes, end: bytes | None, *, reverse: bool = False) -> Iterator[tuple[bytes, bytes]]:
        """See `Store.scan`."""
        self._check_open()
        keys = self._keys
        first = bisect_left(keys, start)
        after = len(keys) if end is None else bisect_left(keys, end)
        if first >= after:
            return iter(())  # as most looks at what is due find it
        indexes = range(after - 1, first - 1, -1) if reverse else range(first, after)
        scan = Scan((key, self._values[key]) for key in (keys[index] for index in indexes))
        self._scans.add(scan)
        return scan

    def apply(self, changes: Mapping[bytes, bytes | None]) -> None:
        """See `Store.apply`."""
        self._check_open()
        self._settle_scans()
        values = self._values
        gone = [key for key, value in changes.items() if value is None and values.pop(key, None) is not None]
        new = [key for key, value in changes.items() if value is not None and key not in values]
        values.update((key, value) for key, value in changes.items() if value is not None)
        if len(gone) + len(new) > FEW:  # Two sorted runs merge in one pass.
            left = set(gone)
            self._keys = sorted([key for key in self._keys if key not in left] + sorted(new))
            return
        for key in gone:
            del self._keys[bisect_left(self._keys, key)]
        for key in new:
            insort(self._keys, key)

    def clear(self) -> None:
        """See `Store.clear`."""
        self._check_open()
        self._settle_scans()
        self._values.clear()
        self._keys = []

    def set_aside(self) -> str:
        """See `Store.set_aside`."""
        self.clear()
        return "nowhere: it was in memory"

    def close(self) -> None:
        """See `Store.close`. Scans that are under way end with an error."""
        self._closed = True
        for scan in list(self._scans):
            scan.release()

    def _settle_scans(self) -> None:
        if self._scans:
            for scan in list(self._scans):
                scan.settle()
            self._scans.clear()

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError("the store is closed")


class Scan(Iterator[tuple[bytes, bytes]]):
    """Entries read lazily, and all at once when the store is about to change under them."""

    def __init__(self, entries: Iterator[tuple[bytes, bytes]]) -> None:
        self._entries: Iterator[tuple[bytes, bytes]] | None = entries

    def __next__(self) -> tuple[bytes, bytes]:
        if self._entries is None:
            raise StoreError("the store was closed during the scan")
        return next(self._entries)

    def settle(self) -> None:
        """Read what is left."""
        self._entries = iter(list(self._entries or ()))

    def release(self) -> None:
        """Let go of the store."""
        self._entries = None
