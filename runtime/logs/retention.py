"""Trimming: the records of a partition that are older than its retention go, from its beginning."""

from __future__ import annotations

from datetime import datetime, timedelta
from threading import Lock

from runtime.logs import layout
from runtime.logs.keeping import trim_after
from runtime.logs.partition import Partition
from runtime.stores.database import Database, new_batch


def trim(database: Database, partition: Partition, retention: timedelta, now: datetime, lock: Lock) -> None:
    """Forget what is older than the retention. Costs a seek when there is nothing to do, else some twenty."""
    end = partition.end
    oldest = _first_in(database, partition, partition.begin, end)
    if oldest is None or oldest[1] > layout.to_ms(now - trim_after(retention)):
        return
    begin = _first_since(database, partition, end, layout.to_ms(now - retention))
    batch = new_batch()
    batch.put(layout.BEGIN + partition.key, layout.pack_beginning(begin, partition.clock.appended_ms))
    batch.delete_range(partition.record_key(partition.begin), partition.record_key(begin))
    with lock:  # First, so that no reader meets a gap that it is not told of.
        partition.trim(begin)
    database.write(batch)


def _first_since(database: Database, partition: Partition, end: int, since_ms: int) -> int:
    """An offset below which every record is older, and above which none is: append times never decrease."""
    low, high = partition.begin, end
    while low < high:
        middle = (low + high) // 2
        found = _first_in(database, partition, middle, high)
        if found is None or found[1] >= since_ms:
            high = middle
        else:
            low = found[0] + 1
    return low


def _first_in(database: Database, partition: Partition, begin: int, end: int) -> tuple[int, int] | None:
    """Offset and append time of the first record in [begin, end)."""
    row = next(database.scan(partition.record_key(begin), partition.record_key(end)), None)
    return None if row is None else (layout.offset_in(row[0]), layout.appended_ms_of(row[1]))
