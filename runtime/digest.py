"""A digest of a partition's rows, taken now and then beside the work.

It is the sum of a hash of each row, so the order does not matter. A walk takes the rows a few at a time; what changes
behind it changes its sum too. When it has seen all, the next footer carries the digest of the state that its
transaction leaves, and so do those behind it that leave the same. Whoever builds that state from the log, in another
process, must come to the same.

Between two walks a change costs nothing, and while one is under way it costs a hash of what was and of what will be: a
digest that is kept with every change was measured at a twentieth of the scheduler's work. A sum of hashes tells
accidents, not forgeries.
"""

from __future__ import annotations

from hashlib import blake2b
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from runtime.store import Store

ROWS, ROWS_END = b"r", b"s"  # where rows stand in a store (runtime.workspace)
BYTES = 16
EVERY_SECONDS = 600.0  # between two walks: several within the hour for which Kafka keeps every record of a changelog
ROWS_A_STEP = 200  # half a millisecond of a batch's hundred
_MASK = (1 << 8 * BYTES) - 1


def of_row(key: bytes, value: bytes) -> int:
    """The hash of a row; the length of the key stands last, so that no two rows are written the same way."""
    return int.from_bytes(blake2b(key + value + len(key).to_bytes(2, "big"), digest_size=BYTES).digest(), "big")


def text(rows: Iterable[tuple[bytes, bytes]]) -> str:
    """The digest of these rows."""
    return _text(sum(of_row(key, value) for key, value in rows))


def counted(store: Store) -> str:
    """The digest of what a store holds, row by row."""
    return text(store.scan(ROWS, ROWS_END))


class Walk:
    """One walk after the other over the rows of a store that changes meanwhile. Calls from one thread."""

    def __init__(self, store: Store, *, rows: int = ROWS_A_STEP, every: float = EVERY_SECONDS) -> None:
        self._store, self._rows, self._every = store, rows, every
        self._sum = 0
        self._to = ROWS  # rows before this key are in the sum
        self._ended_at: float | None = None
        self._known = ""  # the digest of the rows as they are, until they change

    def step(self, boot: float) -> None:
        """Go on, if it is time for a walk."""
        if self._ended_at is None:
            self._ended_at = boot  # a process that has just begun has other things to do
        if self._to == ROWS_END or boot - self._ended_at < self._every:
            return
        count = 0
        for key, value in islice(self._store.scan(self._to, ROWS_END), self._rows):
            self._sum += of_row(key, value)
            self._to = key + b"\0"
            count += 1
        if count < self._rows:
            self._to = ROWS_END

    def change(self, rows: Mapping[bytes, bytes | None]) -> None:
        """These rows are about to be written."""
        if rows:
            self._known = ""
        if self._to == ROWS:
            return
        for key, value in rows.items():
            if key < self._to:
                stored = self._store.get(key)
                self._sum -= 0 if stored is None else of_row(key, stored)
                self._sum += 0 if value is None else of_row(key, value)

    def taken(self, boot: float) -> str:
        """The digest of the rows with all announced changes written; "" while it is not known."""
        if self._to == ROWS_END:
            self._known = _text(self._sum)
            self._sum, self._to, self._ended_at = 0, ROWS, boot
        return self._known


def _text(total: int) -> str:
    return f"{total & _MASK:0{2 * BYTES}x}"
