"""Compaction: of each key of a compacted partition the last record stays, and a tombstone stays for a day.

Each record is looked at once, in order, in steps of a bounded number of records; how far we are is written in the
same batch as what went. Which record is a key's latest stands in RocksDB, so a step holds in memory the keys of its
own records and nothing else (1,024 keys of 300 bytes: half a megabyte), and a restart continues where the last step
ended.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import islice
from threading import Lock
from typing import NamedTuple

from rocksdict import WriteBatch

from runtime.logs import layout
from runtime.logs.keeping import TOMBSTONES_KEPT
from runtime.logs.partition import Partition
from runtime.stores.database import Database, new_batch


class Latest(NamedTuple):
    """The latest record of a key that was looked at."""

    offset: int
    tombstone: bool
    appended_ms: int


def compact(
    database: Database, partition: Partition, now: datetime, lag: timedelta, records_max: int, lock: Lock
) -> int:  # fmt: skip
    """Look at up to `records_max` records that are older than `lag`; how many it were. The last one always stays."""
    batch = new_batch()
    looked_at, position = _supersede(database, partition, layout.to_ms(now - lag), records_max, batch)
    if looked_at:
        database.write(batch)
        with lock:
            partition.forget(position)
    return looked_at + _bury(database, partition, layout.to_ms(now - TOMBSTONES_KEPT), records_max)


def _supersede(
    database: Database, partition: Partition, until_ms: int, records_max: int, batch: WriteBatch
) -> tuple[int, int]:
    stored = database.get(layout.CLEANED + partition.key)
    position = layout.unpack_offset(stored) if stored else 0
    latest: dict[bytes, Latest] = {}
    looked_at = 0
    rows = database.scan(partition.record_key(position), partition.record_key(partition.end))
    for row_key, data in islice(rows, records_max):
        appended_ms = layout.appended_ms_of(data)
        if appended_ms > until_ms:
            break
        looked_at += 1
        position = layout.offset_in(row_key) + 1
        key, tombstone = layout.key_of(data)
        if key is None:  # Nothing can supersede it.
            continue
        if key in latest:
            batch.delete(partition.record_key(latest[key].offset))
        latest[key] = Latest(position - 1, tombstone, appended_ms)
    _remember(database, partition, latest, batch)
    batch.put(layout.CLEANED + partition.key, layout.pack_offset(position))
    return looked_at, position


def _remember(database: Database, partition: Partition, latest: dict[bytes, Latest], batch: WriteBatch) -> None:
    """The keys' earlier records go; the new ones take their place in the index."""
    index = {key: layout.LATEST + partition.key + key for key in latest}
    earlier = database.get_all(list(index.values()))
    for (key, new), stored in zip(latest.items(), earlier, strict=True):
        if stored is not None:
            old_offset, was_tombstone = layout.unpack_latest(stored)
            batch.delete(partition.record_key(old_offset))
            if was_tombstone:
                batch.delete(_grave(partition, old_offset))
        batch.put(index[key], layout.pack_latest(new.offset, tombstone=new.tombstone))
        if new.tombstone:
            batch.put(_grave(partition, new.offset), layout.pack_offset(new.appended_ms) + key)


def _bury(database: Database, partition: Partition, until_ms: int, records_max: int) -> int:
    """Remove tombstones that everyone has had the time to see."""
    if not partition.end:
        return 0
    batch = new_batch()
    buried = 0
    graves = database.scan(_grave(partition, 0), _grave(partition, partition.end - 1))
    for grave, value in islice(graves, records_max):
        appended_ms, key = layout.unpack_offset(value[:8]), value[8:]
        if appended_ms > until_ms:
            break
        batch.delete(grave)
        batch.delete(partition.record_key(layout.offset_in(grave)))
        batch.delete(layout.LATEST + partition.key + key)
        buried += 1
    if buried:
        database.write(batch)
    return buried


def _grave(partition: Partition, offset: int) -> bytes:
    return layout.TOMBSTONE + partition.key + layout.pack_offset(offset)
