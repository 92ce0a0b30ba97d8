"""What a stream of events is made of: which records are wanted, and where a reader stands, as one text.

A cursor holds the next offset of every partition that events stand in, so that a stream that ended anywhere goes on
exactly there. It is of one log: of another, or of topics that were made anew, it is refused. It grows with partitions,
which are fixed, and not with what happens: seven bits of an offset are a byte. A tenant's has the offsets of
partitions that it shares with others, and so tells how many records these hold, never what they say: whoever may not
know that much must not be given the stream, whose pace says it too.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from runtime.record import TopicPartition
from schemas import identity, refusals, topics
from schemas.facts import FACTS, CatalogEntry, CommandRejected, DeadLetter
from schemas.faults import Fault, Refused

if TYPE_CHECKING:
    from runtime.log import Log
    from runtime.record import Record

TOPICS = (topics.RUN_EVENTS, topics.REJECTIONS, topics.CATALOG)
CURSOR_LENGTH_MAX = 16_384  # 2,049 partitions, as many as there may be, of each 34 billion records; and some
SOURCE_BYTES = 6


def short(type_: str) -> str:
    """A type as it is said in filters: `run.finished` of `tidewheel.run.finished.v1`."""
    return type_.removeprefix("tidewheel.").rpartition(".v")[0]


ELSEWHERE = {CommandRejected.TYPE: topics.REJECTIONS, CatalogEntry.TYPE: topics.CATALOG}
TYPES: Mapping[str, str] = {short(fact.TYPE): fact.TYPE for fact in FACTS if fact is not DeadLetter}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which events: of one tenant, one schedule, one run, of some types; None or empty: of all.

    Those of partitions and of queues are no tenant's: whoever asks for one does not see them.
    """

    tenant: str | None = None
    schedule: str | None = None
    run_id: str | None = None
    types: frozenset[str] = frozenset()

    def places(self, counts: Mapping[str, int]) -> list[TopicPartition]:
        """The partitions in which such events can stand."""
        found = [TopicPartition(topic, n) for topic in TOPICS if self._is_on(topic) for n in range(counts[topic])]
        schedule = self._schedule
        if self.tenant is None or schedule is None:
            return found
        key = f"{self.tenant}/{schedule}"
        return [place for place in found if place.partition == identity.partition_of(key, counts[place.topic])]

    def event(self, record: Record) -> tuple[str, bytes] | None:
        """Type and JSON of a record that is wanted, on one line; what is no event of ours is nobody's."""
        if record.value is None:
            return None
        try:
            document = orjson.loads(record.value)
            type_, data = document["type"], document["data"]
            wanted = type_.isprintable() and self._covers(type_, data)  # it becomes a line of its own
        except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError):
            return None
        if not wanted:
            return None
        one_line = b"\n" not in record.value and b"\r" not in record.value
        return type_, record.value if one_line else orjson.dumps(document)

    @property
    def _schedule(self) -> str | None:
        return self.schedule or (identity.schedule_of(self.run_id) if self.run_id else None)

    def _is_on(self, topic: str) -> bool:
        if self._schedule is not None and topic == topics.CATALOG:
            return False
        if self.run_id is not None and topic != topics.RUN_EVENTS:
            return False
        return not self.types or any(ELSEWHERE.get(type_, topics.RUN_EVENTS) == topic for type_ in self.types)

    def _covers(self, type_: str, data: Mapping[str, Any]) -> bool:
        return (
            (not self.types or type_ in self.types)
            and (self.tenant is None or self.tenant == data.get("tenant"))
            and (self.schedule is None or self.schedule == (data.get("schedule") or data.get("name")))
            and (self.run_id is None or self.run_id == data.get("run_id"))
        )


def read_types(texts: Sequence[str]) -> frozenset[str]:
    """The types that a filter names, short or in full; `Refused` with the nearest one for any other."""
    found, faults = set(), []
    for text in texts:
        name = short(text) if text.startswith("tidewheel.") else text
        if name in TYPES:
            found.add(TYPES[name])
        else:
            faults.append(refusals.unknown_word(name[:100], list(TYPES), "/type"))
    if faults:
        raise Refused(*faults)
    return frozenset(found)


@dataclass(frozen=True, slots=True)
class Places:
    """Every partition in which events stand, in one order, and what tells this log from others."""

    all: tuple[TopicPartition, ...]
    source: bytes

    def write(self, positions: Mapping[TopicPartition, int]) -> str:
        """The cursor of a reader that stands there."""
        raw = b"".join(_varint(positions[place]) for place in self.all)
        return base64.urlsafe_b64encode(self.source + raw).decode().rstrip("=")

    def read(self, cursor: str) -> dict[TopicPartition, int]:
        """Where the reader of a cursor stood; `Refused` for one that is none, or of another log."""
        if len(cursor) > CURSOR_LENGTH_MAX:
            raise _no_cursor("is too long for a cursor")
        try:
            raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        except ValueError as error:
            raise _no_cursor("is no cursor") from error
        if raw[:SOURCE_BYTES] != self.source:
            raise _no_cursor("is no cursor of this log: its topics are others now")
        offsets = _varints(raw[SOURCE_BYTES:])
        if len(offsets) != len(self.all):
            raise _no_cursor("is no cursor")
        return dict(zip(self.all, offsets, strict=True))


def places_of(log: Log) -> Places:
    """Of a log; asks it."""
    counts = {topic: log.partitions(topic) for topic in TOPICS}
    named = [log.cluster_id, *(f"{topic} {log.topic_id(topic)} {counts[topic]}" for topic in TOPICS)]
    source = hashlib.sha256("\n".join(named).encode()).digest()[:SOURCE_BYTES]
    return Places(tuple(TopicPartition(topic, n) for topic in TOPICS for n in range(counts[topic])), source)


def _no_cursor(message: str) -> Refused:
    remedy = "leave it out, and begin at `from` or `last`"
    return Refused(Fault(pointer="/cursor", code="cursor", message=message, remedy=remedy))


def _varint(number: int) -> bytes:
    """Seven bits a byte, the lowest first; all but the last have the eighth set."""
    found = bytearray()
    while number > 0x7F:  # noqa: PLR2004 -- seven bits
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)


def _varints(raw: bytes) -> list[int]:
    found, number, shift = [], 0, 0
    for byte in raw:
        number |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            found.append(number)
            number, shift = 0, 0
    return found if not shift else []
