"""The store port on RocksDB: the state of one partition in one folder.

Every batch goes to RocksDB's own log before it is applied, so it is whole or absent after kill -9. A store may lose
its newest batches to a loss of power, never single ones of them: its position in the changelog is in the same batch,
and the changelog's tail is replayed from there.

A store that cannot be trusted is set aside, never repaired: its folder is renamed beside its place, where somebody may
look at what happened to it, and an empty one takes its place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from rocksdict import DBRecoveryMode, Options

from runtime.store import StoreCorrupt
from runtime.stores import quarantine
from runtime.stores.database import MIB, Database, new_batch, sized

# Eight stores and a log share one machine with everything else: 12 MiB a store in buffers and cache.
WRITE_BUFFER = 4 * MIB
CACHE = 4 * MIB
OPEN_FILES_MAX = 64  # Sixteen partitions of a node, beside its log, stay near the usual limit of 1024 open files.

AFTER_ALL = b"\xff" * 1024  # Keys are at most a few hundred bytes.


class RocksStore(Database):
    """`Store` in a folder that it alone may write; waits a moment for a predecessor that is closing."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, _options())

    @classmethod
    def opened(cls, path: Path, *, told: Callable[[str, str], None]) -> RocksStore:
        """Open it; when it is damaged, set it aside and begin anew: `told` hears why, and where it is kept."""
        try:
            return cls(path)
        except StoreCorrupt as damage:
            told(str(damage), str(quarantine.set_aside(path)))
            return cls(path)

    @property
    def place(self) -> str:
        """See `Store.place`."""
        return str(self._path)

    def apply(self, changes: Mapping[bytes, bytes | None]) -> None:
        """See `Store.apply`."""
        batch = new_batch()
        for key, value in changes.items():
            if value is None:
                batch.delete(key)
            else:
                batch.put(key, value)
        self.write(batch)

    def clear(self) -> None:
        """See `Store.clear`."""
        batch = new_batch()
        batch.delete_range(b"", AFTER_ALL)
        self.write(batch)

    def set_aside(self) -> str:
        """See `Store.set_aside`."""
        self.close()
        kept = quarantine.set_aside(self._path)
        self._open(_options())
        return str(kept)


def _options() -> Options:
    return sized(
        write_buffer=WRITE_BUFFER,
        cache=CACHE,
        open_files_max=OPEN_FILES_MAX,
        recovery=DBRecoveryMode.point_in_time(),
    )
