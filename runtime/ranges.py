"""Reading a part of a partition: what stands between two offsets."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from runtime.log import LogError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from runtime.log import Log
    from runtime.record import Record, TopicPartition

READ_RECORDS = 5_000  # of one read
READ_BYTES = 16 * 1024 * 1024
READ_SECONDS = 0.1  # how long one read may wait: only where a partition ends with a gap that holds no record
QUIET_MAX = 600  # reads without a record before the end: a minute finds a leader and ends a transaction


def read(
    log: Log, place: TopicPartition, start: int, end: int, *, undecided: bool = False
) -> Iterator[list[Record]]:  # fmt: skip
    """The records in [start, end), in batches; none of those that are written behind `end` meanwhile.

    `undecided`: those of transactions that are not committed as well.
    LogError when nothing comes for a minute although `end` is not reached.
    """
    quiet = 0
    opened = log.open_undecided if undecided else log.open_reader
    with closing(opened({place: start})) as reader:
        while reader.position(place) < end:
            records = reader.poll(records_max=READ_RECORDS, bytes_max=READ_BYTES, timeout=READ_SECONDS)
            quiet = 0 if records else quiet + 1
            if quiet > QUIET_MAX:
                raise LogError(f"{place.topic}/{place.partition}: nothing comes from {reader.position(place)} on")
            if wanted := [record for record in records if record.offset < end]:
                yield wanted
