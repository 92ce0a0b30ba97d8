"""One RocksDB as Tidewheel uses it: raw bytes, atomic batches, and reads that never pass over damage.

Habits of the binding that are tamed here and nowhere else (rocksdict 0.3.29, each found by a test of ours):
- its item iterators end silently at a damaged block: we ask the iterator for its status after the last entry;
- an iterator that is alive keeps the folder locked after `close`: `close` takes the iterators down;
- an iterator does not keep its bounds alive, and reads freed memory: `Scan` holds both;
- its lower bound sets the upper one: the lower one is compared here;
- its snapshots do not pin what they read: an iterator does, from the moment that it is made.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import cast
from weakref import WeakSet

from rocksdict import (
    AccessType,
    BlockBasedOptions,
    Cache,
    DBCompressionType,
    DBRecoveryMode,
    Options,
    Rdict,
    RdictIter,
    ReadOptions,
    WriteBatch,
    WriteOptions,
)

from runtime.store import StoreCorrupt, StoreError

MIB = 1024 * 1024

# A closing predecessor flushes a write buffer or two before it lets go: well under a second.
LOCK_TRIES_MAX = 40
LOCK_RETRY_SECONDS = 0.05


class StoreLocked(StoreError):
    """Another one, in this process or another, has it open for writing."""


class Database:
    """Ordered bytes -> bytes in one folder; any number of threads."""

    def __init__(self, path: Path, options: Options, *, read_only: bool = False, sync: bool = False) -> None:
        self._path = path
        self._scans: WeakSet[Scan] = WeakSet()
        self._write_options = WriteOptions()
        self._write_options.sync = sync
        self._closed = True
        self._open(options, read_only=read_only)

    def get(self, key: bytes) -> bytes | None:
        """The value of `key`."""
        try:
            value: bytes | None = self._rocks.get(key)
        except Exception as error:
            raise translated(error, self._path) from error
        return value

    def get_all(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """The values of many keys, in one call."""
        try:
            return cast("list[bytes | None]", self._rocks.get([*keys]))
        except Exception as error:
            raise translated(error, self._path) from error

    def scan(self, start: bytes, end: bytes | None, *, reverse: bool = False) -> Iterator[tuple[bytes, bytes]]:
        """Entries with start <= key < end, as they are now."""
        bounds = ReadOptions()
        if end is not None:
            bounds.set_iterate_upper_bound(end)
        try:
            scan = Scan(self._path, self._rocks.iter(bounds), bounds)
        except Exception as error:
            raise translated(error, self._path) from error
        self._scans.add(scan)
        return scan.descending(start) if reverse else scan.ascending(start)

    def write(self, batch: WriteBatch) -> None:
        """Apply a batch atomically; it survives kill -9, and with `sync` a loss of power."""
        try:
            self._rocks.write(batch, self._write_options)
        except Exception as error:
            raise translated(error, self._path) from error

    def close(self) -> None:
        """Release the folder; idempotent. Scans that are under way end with an error."""
        if self._closed:
            return
        self._closed = True
        for scan in list(self._scans):
            scan.release()
        # On the way it writes its buffers into tables, which a full or damaged disk refuses. The folder is let go of
        # all the same, and what was not written is in the write-ahead log: whoever opens it next is told what is wrong.
        with suppress(Exception):
            self._rocks.close()

    def _open(self, options: Options, *, read_only: bool = False) -> None:
        self._rocks = _open(self._path, options, read_only=read_only)
        self._closed = False


class Scan:
    """A range as it was when the scan began. A damaged block raises; it never ends a scan.

    The walks look at `_rows` anew for each entry and keep no other reference to it, so that `release` lets go of it.
    """

    def __init__(self, path: Path, rows: RdictIter, bounds: ReadOptions) -> None:
        self._path = path
        self._rows: RdictIter | None = rows
        self._bounds = bounds

    def ascending(self, start: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Entries from `start` up."""
        assert self._rows is not None
        self._rows.seek(start)
        return self._ascend()

    def descending(self, start: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Entries from the end of the range down to `start`."""
        assert self._rows is not None
        self._rows.seek_to_last()
        return self._descend(start)

    def release(self) -> None:
        """Let go of the database."""
        self._rows = None

    def _ascend(self) -> Iterator[tuple[bytes, bytes]]:
        while (rows := self._rows) is not None and rows.valid():
            entry = (rows.key(), rows.value())
            rows.next()
            rows = None
            yield entry
        self._finish()

    def _descend(self, start: bytes) -> Iterator[tuple[bytes, bytes]]:
        while (rows := self._rows) is not None and rows.valid():
            entry = (rows.key(), rows.value())
            if entry[0] < start:
                break
            rows.prev()
            rows = None
            yield entry
        self._finish()

    def _finish(self) -> None:
        if self._rows is None:
            raise StoreError(f"{self._path} was closed during a scan")
        try:
            self._rows.status()
        except Exception as error:
            raise translated(error, self._path) from error
        finally:
            self.release()


def new_batch() -> WriteBatch:
    """An empty batch of raw bytes."""
    return WriteBatch(raw_mode=True)


def sized(*, write_buffer: int, cache: int, open_files_max: int, recovery: DBRecoveryMode) -> Options:
    """Options for a database of known appetite: two write buffers, one cache, no compression to depend on."""
    options = Options(raw_mode=True)
    options.create_if_missing(True)  # noqa: FBT003  the binding takes it by position
    options.set_write_buffer_size(write_buffer)
    options.set_max_write_buffer_number(2)
    # What was written but not yet sorted into tables is read again at the next start: seconds, not minutes.
    options.set_max_total_wal_size(4 * write_buffer)
    table = BlockBasedOptions()
    table.set_block_cache(Cache(cache))
    table.set_bloom_filter(10, False)  # noqa: FBT003  the binding takes it by position
    options.set_block_based_table_factory(table)
    options.set_compression_type(DBCompressionType.none())
    options.set_max_open_files(open_files_max)
    options.set_max_background_jobs(2)
    options.set_wal_recovery_mode(recovery)
    # RocksDB's own diary: enough to understand the last start, and no more.
    options.set_keep_log_file_num(2)
    options.set_max_log_file_size(MIB)
    # A table that is mostly deletions (trimmed and superseded records) is rewritten soon: scans walk over them.
    options.add_compact_on_deletion_collector_factory(1024, 512, 0.5)
    return options


def translated(error: Exception, path: Path) -> StoreError:
    """What the binding raised, as who can act on it. It has one exception and tells the kinds by their text."""
    text = str(error)
    if "Corruption" in text or ("No such file" in text and path.exists()):
        return StoreCorrupt(f"{path}: {text}")
    if "lock hold by current process" in text or "While lock file" in text:
        return StoreLocked(f"{path} is in use by another process, or opened twice by this one")
    return StoreError(f"{path}: {text}")


def _open(path: Path, options: Options, *, read_only: bool) -> Rdict:
    if read_only and not path.is_dir():
        raise StoreError(f"{path} does not exist")
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"{path} cannot be made: {error}") from error
    # Without its CURRENT file a full folder would be taken for a new one, and be silently empty.
    if not (path / "CURRENT").exists() and (read_only or any(path.glob("*.sst"))):
        raise StoreCorrupt(f"{path} has no CURRENT file")
    access = AccessType.read_only(error_if_log_file_exist=False) if read_only else AccessType.read_write()
    for attempt in range(1, LOCK_TRIES_MAX + 1):
        try:
            return Rdict(str(path), options, access_type=access)
        except Exception as error:
            failure = translated(error, path)
            if not isinstance(failure, StoreLocked) or attempt == LOCK_TRIES_MAX:
                raise failure from error
            time.sleep(LOCK_RETRY_SECONDS)
    raise AssertionError("the last try returns or raises")
