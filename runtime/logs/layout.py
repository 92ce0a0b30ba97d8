"""How the embedded log stands in RocksDB: every key and value there is, and nothing else.

    m <name>                               the log's own facts: its id, the version of this layout
    t <topic name>                         JSON: number, id, partitions, and the topic's line of the table
    b <topic><partition>                   where a partition begins, and its latest append time, once it was trimmed
    e <transactional id>                   the epoch of its latest producer
    g <group> NUL <topic><partition>       the next position that a group committed
    r <topic><partition><offset>           a record
    k <topic><partition><key>              compacted topics: where the latest looked-at record of a key stands
    d <topic><partition><offset>           compacted topics: a tombstone that waits for its end -> append time, key
    c <topic><partition>                   compacted topics: the next offset to look at

Numbers are big-endian, so that byte order is their order. A topic has a number of two bytes for the life of the log.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from runtime.record import Headers, Outgoing, Record, TopicPartition

FORMAT = b"1"

CLUSTER_ID_KEY = b"mcluster"
FORMAT_KEY = b"mformat"
TOPIC = b"t"
BEGIN = b"b"
EPOCH = b"e"
GROUP = b"g"
RECORD = b"r"
LATEST = b"k"
TOMBSTONE = b"d"
CLEANED = b"c"

_HAS_KEY, _HAS_VALUE = 1, 2
_PLACE = struct.Struct(">HH")
_HEAD = struct.Struct(">QBIH")  # append time in ms, flags, length of the key, number of headers
_HEADER = struct.Struct(">HI")  # lengths of a header's name and value
_OFFSET = struct.Struct(">Q")
_BEGINNING = struct.Struct(">QQ")
_LATEST = struct.Struct(">QB")

EPOCH_START = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)

_pack_head = _HEAD.pack
pack_offset = _OFFSET.pack


def unpack_offset(data: bytes) -> int:
    """An offset, position or epoch."""
    number: int = _OFFSET.unpack(data)[0]
    return number


def offset_in(key: bytes) -> int:
    """The offset at the end of a record's key."""
    return unpack_offset(key[-8:])


def place(topic_number: int, partition: int) -> bytes:
    """The bytes that stand for a partition in every key."""
    return _PLACE.pack(topic_number, partition)


def group_key(group: str, partition: bytes) -> bytes:
    """Where a group's position in a partition stands."""
    return GROUP + group.encode() + b"\0" + partition


def unpack_group_key(key: bytes) -> tuple[str, bytes]:
    """The group, and the bytes of the partition."""
    return key[len(GROUP) : -_PLACE.size - 1].decode(), key[-_PLACE.size :]


def after(prefix: bytes) -> bytes:
    """The first key beyond all that begin with `prefix`; the letter in front never overflows."""
    return (int.from_bytes(prefix, "big") + 1).to_bytes(len(prefix), "big")


def pack_beginning(begin: int, appended_ms: int) -> bytes:
    """Where a trimmed partition begins, and the append time below which it may not fall."""
    return _BEGINNING.pack(begin, appended_ms)


def unpack_beginning(data: bytes) -> tuple[int, int]:
    """See `pack_beginning`."""
    begin, appended_ms = _BEGINNING.unpack(data)
    return begin, appended_ms


def pack_latest(offset: int, *, tombstone: bool) -> bytes:
    """Where the latest record of a key stands, and whether it is a tombstone."""
    return _LATEST.pack(offset, tombstone)


def unpack_latest(data: bytes) -> tuple[int, bool]:
    """See `pack_latest`."""
    offset, tombstone = _LATEST.unpack(data)
    return offset, bool(tombstone)


def to_ms(instant: datetime) -> int:
    """Milliseconds since 1970."""
    return (instant - EPOCH_START) // MILLISECOND


def from_ms(ms: int) -> datetime:
    """The instant, UTC."""
    return EPOCH_START + timedelta(milliseconds=ms)


def encode(records: Iterable[Outgoing], appended_ms: int) -> list[bytes]:
    """The bytes of records that were appended together; their topic, partition and offset are in their keys."""
    encoded = []
    known: Headers = ()
    packed = b""  # The records of a transaction mostly share one tuple of headers.
    for _, _, key, value, headers in records:
        if headers is not known:
            known, packed = headers, b"".join(map(_encode_header, headers))
        flags = (0 if key is None else _HAS_KEY) | (0 if value is None else _HAS_VALUE)
        head = _pack_head(appended_ms, flags, len(key or b""), len(headers))
        encoded.append(b"".join((head, key or b"", packed, value or b"")))
    return encoded


def _encode_header(header: tuple[str, bytes]) -> bytes:
    name, value = header[0].encode(), header[1]
    return _HEADER.pack(len(name), len(value)) + name + value


def decode(partition: TopicPartition, offset: int, data: bytes, appended_at: datetime) -> Record:
    """The record; `appended_at` is what `appended_ms_of` said, as an instant."""
    _, flags, key_length, header_count = _HEAD.unpack_from(data)
    at = _HEAD.size + key_length
    key = data[_HEAD.size : at] if flags & _HAS_KEY else None
    headers, at = _decode_headers(data, at, header_count) if header_count else ((), at)
    value = data[at:] if flags & _HAS_VALUE else None
    return Record(partition.topic, partition.partition, offset, key, value, headers, appended_at)


def _decode_headers(data: bytes, at: int, count: int) -> tuple[Headers, int]:
    headers = []
    for _ in range(count):
        name_length, value_length = _HEADER.unpack_from(data, at)
        at += _HEADER.size
        middle, end = at + name_length, at + name_length + value_length
        headers.append((data[at:middle].decode(), data[middle:end]))
        at = end
    return tuple(headers), at


def appended_ms_of(data: bytes) -> int:
    """A record's append time, without reading the rest."""
    return unpack_offset(data[:8])


def key_of(data: bytes) -> tuple[bytes | None, bool]:
    """A record's key, and whether the record is a tombstone, without reading the rest."""
    _, flags, key_length, _ = _HEAD.unpack_from(data)
    key = data[_HEAD.size : _HEAD.size + key_length] if flags & _HAS_KEY else None
    return key, not flags & _HAS_VALUE
