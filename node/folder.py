"""The data folder: who may write to it, and what it was made for."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import IO

import orjson

from schemas import topics

LOCK = "lock"
LAYOUT = "layout.json"


class FolderRefused(Exception):
    """The data folder cannot be used; the text says why and what to do."""


class DataFolder:
    """A data folder held by this process until `release`."""

    def __init__(self, path: Path, lock: IO[str]) -> None:
        self.path = path
        self._lock = lock

    @classmethod
    def hold(cls, path: Path) -> DataFolder:
        """Take the folder (made when missing); `FolderRefused` when another process has it."""
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = (path / LOCK).open("a+")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            lock.seek(0)
            owner = lock.read().strip() or "another process"
            lock.close()
            message = f"{path} is in use by process {owner}: stop it, or give another --data"
            raise FolderRefused(message) from error
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        return cls(path, lock)

    def check_layout(self, layout: topics.Layout) -> None:
        """Write the partition counts down once; refuse other ones afterwards: they decide where a key lives."""
        file = self.path / LAYOUT
        wanted = {"schedule": layout.schedule, "shard": layout.shard}
        if not file.exists():
            part = file.with_suffix(".part")
            part.write_bytes(orjson.dumps(wanted))
            part.rename(file)
            return
        stored = orjson.loads(file.read_bytes())
        if stored != wanted:
            message = (
                f"partitions: {self.path} was made with {stored['schedule']} partitions, not {layout.schedule}; "
                f"set partitions to {stored['schedule']}"
            )
            raise FolderRefused(message)

    def layout(self) -> topics.Layout:
        """The partition counts that were written down; `FolderRefused` when nobody has worked in it yet."""
        file = self.path / LAYOUT
        if not file.exists():
            raise FolderRefused(f"{self.path} holds no log yet")
        return topics.Layout(**orjson.loads(file.read_bytes()))

    def release(self) -> None:
        """Let another process have it; idempotent."""
        self._lock.close()
