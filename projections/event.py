"""A record as the folds see it: parsed once, never validated again, for we wrote it ourselves."""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from runtime.record import SEQUENCE_HEADER
from schemas import topics

if TYPE_CHECKING:
    from runtime.record import Record

# Compacted topics say "gone" with a record that has no value. It becomes an event of this type about its key.
REMOVED = {
    topics.SCHEDULES: "removed: schedule",
    topics.VERSIONS: "removed: version",
    topics.CATALOG: "removed: catalog entry",
    topics.WORKERS: "removed: worker",
}


class Event(NamedTuple):
    """One fact with where it stood. A tuple, because ten thousand a second are made.

    `sequence` is that of the owner's transaction: of two records about one key the newer has the larger one. It is
    read where topics hold one record for a key, and 0 elsewhere.
    """

    type: str
    id: str
    data: dict[str, Any]
    appended_at: int
    offset: int
    sequence: int
    raw: bytes


class Unreadable(Exception):
    """A record that is no event. It costs itself, never the partition."""


def read(record: Record) -> Event | None:
    """The event in a record; None for a tombstone that removes nothing we keep."""
    if record.value is None:
        return _removal(record)
    try:
        document = orjson.loads(record.value)
        type_, id_, data = document["type"], document["id"], document["data"]
    except (orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise Unreadable(f"{record.topic}[{record.partition}]@{record.offset} is no CloudEvent") from error
    return Event(type_, id_, data, _millis(record.appended_at), record.offset, _sequence(record), record.value)


@lru_cache(maxsize=8_192)  # the facts of a transaction share their instants
def instant(text: str | None) -> int | None:
    """Milliseconds since 1970 of an RFC 3339 instant."""
    return None if text is None else _millis(datetime.fromisoformat(text))


def _removal(record: Record) -> Event | None:
    type_ = REMOVED.get(record.topic)
    if type_ is None or record.key is None:
        return None
    key = record.key.decode("utf-8", "replace")
    at = _millis(record.appended_at)
    return Event(type_, f"{key}@{record.offset}", {"key": key.split("/")}, at, record.offset, _sequence(record), b"")


def _sequence(record: Record) -> int:
    if record.topic not in REMOVED:
        return 0
    for name, text in record.headers:
        if name == SEQUENCE_HEADER:
            return int(text.rpartition(b"-")[2])
    return 0


@lru_cache(maxsize=64)  # neighbours in the log share their append time
def _millis(at: datetime) -> int:
    return round(at.timestamp() * 1000)
