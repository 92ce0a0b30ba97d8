"""The records between workers and the owner of a queue, and where they stand. Pure.

`attempts` takes a worker's reports, `logs` what its runs write, `dispatch.<queue>` brings its post. Which partition
follows from names.
"""

from __future__ import annotations

from datetime import datetime
from struct import Struct
from typing import TYPE_CHECKING

from tidewheel import jsontext
from tidewheel.holdings import Report
from tidewheel.logs.capture import Chunk
from tidewheel.wire import Answer, HandOut, Layout

if TYPE_CHECKING:
    from tidewheel import _wire

ATTEMPTS = "tidewheel.attempts"
LOGS = "tidewheel.logs"
INBOXES = 8  # partitions of each dispatch topic: several workers share one

_REPORT = "tidewheel.worker.report.v1"
_HAND_OUT = "tidewheel.run.handed_out.v1"
_LOGGED = "tidewheel.run.logged.v1"
_NOTICE = "tidewheel.lease.notice.v1"
_LAYOUT = "tidewheel.queue.layout.v1"
_WORD = Struct("<I")


def dispatch(queue: str) -> str:
    """The topic whose partitions are the inboxes of a queue's workers."""
    return f"tidewheel.dispatch.{queue}"


def inbox_of(incarnation: str) -> int:
    """The inbox that an incarnation reads."""
    return partition_of(incarnation, INBOXES)


def shard_of(queue: str, partitions: int, shard: int = 0) -> int:
    """The partition of `attempts` that the owner of a shard of the queue reads, of so many."""
    return (partition_of(queue, partitions) + shard) % partitions


def report(report: Report, queue: str, now: datetime, shard: int = 0) -> bytes:
    """A report as the shard's owner reads it: a CloudEvent. Its body is put in as it is."""
    opening = _opening(_REPORT, report.incarnation, f"{report.incarnation}.{report.number}", now)
    address = {"queue": queue, "shard": shard, "inbox": inbox_of(report.incarnation), "transport": "kafka"}
    return b'%b,"data":%b,%b}' % (opening[:-1], jsontext.dumps(address)[:-1], report.body[1:])


def logged(chunk: Chunk, now: datetime) -> bytes:
    """Lines of an attempt as they stand in the log: with a proof of its lease, and without the lease."""
    kept = {} if chunk.retention is None else {"retention": chunk.retention}
    event = _opening(_LOGGED, chunk.run_id, f"{chunk.proof}.{chunk.first}", now)
    data = jsontext.dumps({"run_id": chunk.run_id, "proof": chunk.proof, **kept})
    return b'%b,"data":%b,"lines":[%b]}}' % (event[:-1], data[:-1], b",".join(chunk.lines))


def post(value: bytes) -> Answer | None:
    """What a record of an inbox says to its worker; None for what this version has no use for.

    KeyError or ValueError when it is not what this version understands.
    """
    event = jsontext.loads(value)
    if event["type"] == _HAND_OUT:
        return Answer(leases=(HandOut.read(event["data"]),))
    if event["type"] == _LAYOUT:
        return Answer(layouts=(Layout.read(event["data"]),))
    return _notice(event["data"]) if event["type"] == _NOTICE else None


def is_of_all(key: bytes | None, queue: str) -> bool:
    """Whether a record of an inbox is for each of its readers, by its key: a shard of the queue says how it stands."""
    return key is not None and key.startswith(b"%b/" % queue.encode())


def _notice(data: _wire.LeaseNotice) -> Answer:
    return Answer(
        cancelled=tuple(data.get("cancelled") or ()),
        lost=tuple(data.get("ended") or ()),
        incarnation_ended=bool(data.get("incarnation_ended")),
        ended_by=data.get("ended_by") or "",
    )


def _opening(type_: str, subject: str, id_: str, now: datetime) -> bytes:
    opening = {
        "specversion": "1.0",
        "type": type_,
        "source": "tidewheel/worker",
        "time": now.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "datacontenttype": "application/json",
        "subject": subject,
        "id": id_,
    }
    return jsontext.dumps(opening)


def partition_of(key: str, partitions: int) -> int:
    """The partition that Java's default partitioner gives a key."""
    return (murmur2(key.encode()) & 0x7FFFFFFF) % partitions


def murmur2(data: bytes) -> int:
    """MurmurHash2 of 32 bits with the seed of Apache Kafka's Java producer, 0x9747B28C."""
    factor, mask = 0x5BD1E995, 0xFFFFFFFF
    hashed = 0x9747B28C ^ len(data)
    whole = len(data) - len(data) % 4
    for (word,) in _WORD.iter_unpack(data[:whole]):
        mixed = word * factor & mask
        mixed = (mixed ^ mixed >> 24) * factor & mask
        hashed = hashed * factor & mask ^ mixed
    if whole < len(data):
        hashed = (hashed ^ int.from_bytes(data[whole:], "little")) * factor & mask
    hashed = (hashed ^ hashed >> 13) * factor & mask
    return hashed ^ hashed >> 15
