"""The store port: ordered bytes of one partition, changed by atomic batches.

An adapter promises: a batch is applied whole or not at all, also over kill -9; reads see every applied batch;
`scan` walks in byte order; after `open` returns, no other process can write. A store that cannot be read
(checksum, missing file) raises `StoreCorrupt` at `open` or at the read, never returns wrong bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class StoreError(Exception):
    """The store could not do what was asked: no space, no permission, closed, or open somewhere else."""


class StoreCorrupt(StoreError):
    """The store cannot be trusted: set it aside and rebuild it from the changelog."""


class Store(Protocol):
    """Ordered bytes -> bytes."""

    @property
    def place(self) -> str:
        """Where it is, as an operator finds it."""
        ...

    def get(self, key: bytes) -> bytes | None:
        """The value of `key`."""
        ...

    def scan(self, start: bytes, end: bytes | None, *, reverse: bool = False) -> Iterator[tuple[bytes, bytes]]:
        """Entries with start <= key < end (None: to the last), ascending, or descending when `reverse`.

        The iterator sees the store as it was when the scan began.
        """
        ...

    def apply(self, changes: Mapping[bytes, bytes | None]) -> None:
        """Write all changes (None deletes) atomically."""
        ...

    def clear(self) -> None:
        """Forget everything."""
        ...

    def set_aside(self) -> str:
        """Begin anew, empty; what was there is kept for a look: the answer says where, or that it is not."""
        ...

    def close(self) -> None:
        """Release the store; idempotent."""
        ...
