"""Reading a part of a partition's changelog."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from runtime.log import Log
    from runtime.record import Record, TopicPartition

READ_RECORDS = 5_000  # of one read
READ_BYTES = 16 * 1024 * 1024
READ_SECONDS = 0.1  # how long one read may wait: only where a partition ends with a gap that holds no record


def read(log: Log, changelog: TopicPartition, start: int, end: int) -> Iterator[list[Record]]:
    """The records in [start, end), in batches; none of those that are written behind `end` meanwhile."""
    reader = log.open_reader({changelog: start})
    try:
        while reader.position(changelog) < end:
            records = reader.poll(records_max=READ_RECORDS, bytes_max=READ_BYTES, timeout=READ_SECONDS)
            if wanted := [record for record in records if record.offset < end]:
                yield wanted
    finally:
        reader.close()
