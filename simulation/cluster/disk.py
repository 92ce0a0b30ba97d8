"""Disks of simulated nodes: what was written survives the process, and what may happen to a disk happens here.

A folder is one store. A process opens it by a handle; two living processes cannot hold it at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from random import Random

from runtime.partition import checkpoint_bytes, read_checkpoint
from runtime.store import StoreCorrupt, StoreError
from runtime.stores.memory import MemoryStore
from runtime.workspace import META
from simulation.loop import Machine

BEFORE_APPLY, AFTER_APPLY = "before apply", "after apply"
# Offsets by which a forged checkpoint is ahead of the truth; a log gets past some before its store is opened again.
AHEAD = (1, 2, 5, 20, 100, 1_000, 1_000_000)


@dataclass(slots=True, eq=False)
class Folder:
    """What stands on the disk under one name."""

    values: dict[bytes, bytes] = field(default_factory=dict)
    damaged: bool = False
    damaged_at: bytes | None = None  # the key whose reader sees it; None: whoever opens the store, or reads anything
    forged: bool = False  # its checkpoint says what is not true, and nobody has believed it yet
    snapshot: dict[bytes, bytes] | None = None
    holder: Machine | None = None


@dataclass(slots=True, eq=False)
class Disk:
    """The disk of a node."""

    folders: dict[str, Folder] = field(default_factory=dict)
    full: bool = False

    def open(
        self, name: str, machine: Machine, told: Callable[[str, str], None], passes: Callable[[str], None]
    ) -> DiskStore:
        """Open a store as `RocksStore.opened` does: a damaged one is set aside, and `told` hears of it.

        `passes` is called with each point of a change at which the process may die.
        """
        folder = self.folders.setdefault(name, Folder())
        if folder.holder is not None and folder.holder.alive:
            raise StoreError(f"{name} is in use by {folder.holder.name}")
        if folder.damaged and folder.damaged_at is None:
            told(f"{name} is damaged", "quarantine")
            folder = self.folders[name] = Folder()
        folder.holder = machine
        return DiskStore(self, name, folder, passes)

    # --- what may happen to it ------------------------------------------------------------------------------------

    def lose(self) -> None:
        """Everything on it is gone."""
        self.folders.clear()

    def damage(self, name: str, at: bytes | None = None) -> None:
        """A bit has flipped in a store; whoever opens it next sees it, or who reads one key, until that is written."""
        self.folders[name].damaged, self.folders[name].damaged_at = True, at

    def remember(self) -> None:
        """Take a copy of every store, to which `roll_back` goes back."""
        for folder in self.folders.values():
            folder.snapshot = dict(folder.values)

    def roll_back(self) -> bool:
        """Put the copies in the stores' place; whether there were any."""
        found = [folder for folder in self.folders.values() if folder.snapshot is not None]
        for folder in found:
            folder.values, folder.snapshot = folder.snapshot or {}, None
        return bool(found)

    def run_ahead(self) -> bool:
        """Let stores say that they have followed more of the changelog than is true; whether there are any."""
        found = [folder for folder in self.folders.values() if META in folder.values]
        for folder in found:
            checkpoint = read_checkpoint(folder.values[META])
            offset = checkpoint.changelog_offset + Random(folder.values[META]).choice(AHEAD)
            folder.values[META] = checkpoint_bytes(replace(checkpoint, changelog_offset=offset))
            folder.forged = True
        return bool(found)


class DiskStore(MemoryStore):
    """`Store` over a folder. Each change is on the disk before `apply` returns, whole or not at all."""

    def __init__(self, disk: Disk, name: str, folder: Folder, passes: Callable[[str], None]) -> None:
        super().__init__()
        self.place = name
        self._disk, self._folder, self._passes = disk, folder, passes
        self._values = dict(folder.values)
        self._keys = sorted(self._values)

    def get(self, key: bytes) -> bytes | None:
        """See `Store.get`."""
        self._check_whole(key)
        return super().get(key)

    def scan(self, start: bytes, end: bytes | None, *, reverse: bool = False) -> Iterator[tuple[bytes, bytes]]:
        """See `Store.scan`."""
        self._check_whole()
        found = super().scan(start, end, reverse=reverse)
        return self._up_to_damage(found) if self._folder.damaged else found

    def apply(self, changes: Mapping[bytes, bytes | None]) -> None:
        """See `Store.apply`."""
        self._check_whole()
        if self._disk.full:
            raise StoreError(f"{self.place}: no space left on device")
        self._passes(BEFORE_APPLY)
        self._folder.forged = False  # Whoever goes on with it answers for it.
        super().apply(changes)
        for key, value in changes.items():
            if key == self._folder.damaged_at:
                self._folder.damaged, self._folder.damaged_at = False, None
            if value is None:
                self._folder.values.pop(key, None)
            else:
                self._folder.values[key] = value
        self._passes(AFTER_APPLY)

    def clear(self) -> None:
        """See `Store.clear`."""
        super().clear()
        self._folder.values.clear()

    def set_aside(self) -> str:
        """See `Store.set_aside`."""
        super().clear()
        holder, self._folder.holder = self._folder.holder, None
        self._folder = self._disk.folders[self.place] = Folder(holder=holder)
        return "quarantine"

    def close(self) -> None:
        """See `Store.close`."""
        if not self._closed:
            self._folder.holder = None
        super().close()

    def _check_whole(self, *keys: bytes) -> None:
        if self._folder.damaged and (self._folder.damaged_at is None or self._folder.damaged_at in keys):
            raise StoreCorrupt(f"{self.place}: a checksum is wrong")

    def _up_to_damage(self, found: Iterator[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes]]:
        for key, value in found:
            self._check_whole(key)
            yield key, value
