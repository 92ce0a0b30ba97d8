"""What records say, read once for all checkers and with no code of those who wrote them.

Two formats are known here: CloudEvents in JSON, and how a changelog frames a transaction (design §4: decision record
first, in parts; then rows; the footer last). What does not fit is kept aside, never guessed at.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from itertools import pairwise
from operator import attrgetter
from typing import Any, NamedTuple

import orjson

from runtime.record import TopicPartition
from schemas import topics
from simulation.evidence import Committed, Evidence, Partition, Place

SCHEDULER, DISPATCHER = "scheduler", "dispatcher"
ROLES = (SCHEDULER, DISPATCHER)
FOOTER, DECISION, ROW = b"\0footer", b"\0decision-", b"r"
COPY = DECISION + b"copy-"  # of what hung, in case its end is an abort: whoever finds it alone carries it out
ENDED = ROW + b"\0\0\0"  # of no row: an owner has written it to end what hung from the place in its header on
HUNG_AT = "tw-hung-at"
SEQUENCE = "tw-seq"

Data = Mapping[str, Any]
_offset_of = attrgetter("offset")


class Event(NamedTuple):
    """A CloudEvent in a record. `type` is short: `run.created`."""

    place: Place
    type: str
    id: str
    subject: str
    data: Data
    record: Committed
    source: str


class Fact(NamedTuple):
    """A CloudEvent in a decision record; `now` is what the partition took for the time."""

    place: Place
    type: str
    id: str
    data: Data
    now: str


@dataclass(slots=True)
class Written:
    """What one transaction wrote to its changelog, as far as it was seen. Without a footer it was torn.

    `hung`: the brokers had left it without an end (C7), which the next end was, or that of a successor; what it says
    holds, and the rest is not known to have arrived with it.
    """

    at: Place
    parts: list[Data] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)  # of the parts, in bytes
    rows: list[tuple[bytes, bytes | None]] = field(default_factory=list)
    footer: Data | None = None
    footer_at: Place | None = None
    hung: bool = False
    transaction: int | None = None  # the footer's, as the model of Kafka numbers them
    _facts: list[Fact] | None = field(default=None, repr=False, compare=False)  # read once for all checkers

    @property
    def head(self) -> Data | None:
        """What the decision record says besides its facts."""
        return self.parts[0] if self.parts else None

    @property
    def whole(self) -> bool:
        """Whether no part of the decision is missing."""
        return bool(self.parts) and self.parts[-1]["last"] and all(n == p["part"] for n, p in enumerate(self.parts))

    def facts(self) -> Iterator[Fact]:
        """What was decided, in order. Not before all parts are there."""
        if self._facts is None:
            self._facts = [
                Fact(self.at, short(event["type"]), event["id"], event["data"], part["now"])
                for part in self.parts
                for event in part["facts"]
            ]
        return iter(self._facts)


@dataclass(slots=True)
class Changelog:
    """A changelog partition, transaction by transaction; `odd` is where a record fits no format.

    `copied` are the numbers of those that hung and of whose decision there is a copy.
    """

    role: str
    partition: int
    written: list[Written] = field(default_factory=list)
    whole: list[Written] = field(default_factory=list)  # those with a footer: they took effect
    odd: list[Place] = field(default_factory=list)
    copied: set[int] = field(default_factory=set)

    def facts(self) -> Iterator[Fact]:
        """What was decided and took effect, in order."""
        return (fact for written in self.whole for fact in written.facts())


def read_up_to(written: Written, topic: str) -> int:
    """Up to where a topic is read once a transaction is made."""
    assert written.footer is not None, "what is whole has a footer"
    return next((item["offset"] for item in written.footer["positions"] if item["topic"] == topic), 0)


@lru_cache(maxsize=1_024)  # all types there are
def short(type_: str) -> str:
    """The type without what all types have in common."""
    return type_.removeprefix("tidewheel.").removesuffix(".v1")


@lru_cache(maxsize=65_536)  # the instants of a simulated hour, to the millisecond where it is busy
def instant(text: str) -> datetime:
    """An instant as it stands in JSON."""
    return datetime.fromisoformat(text)


class NoJson:
    """Stands where a value is not JSON."""


def documents(evidence: Evidence, place: TopicPartition) -> list[Any]:
    """The parsed values of a partition's records, in order; None for a tombstone, `NoJson` for what is none."""
    return evidence.once(("documents", place), lambda: [_parsed(record.value) for record in evidence.records[place]])


def _parsed(value: bytes | None) -> Any:
    if value is None:
        return None
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError:
        return NoJson


# --- events -------------------------------------------------------------------------------------------------------


def events(evidence: Evidence, topic: str) -> list[Event]:
    """The events of a topic, partition by partition. Tombstones and what is no event are left out."""
    return evidence.once(("events", topic), lambda: [*_events(evidence, topic)])


def _events(evidence: Evidence, topic: str) -> Iterator[Event]:
    for place in evidence.partitions(topic):
        for record, document in zip(evidence.records[place], documents(evidence, place), strict=True):
            event = _event(Place(*place, record.offset), record, document)
            if event is not None:
                yield event


def _event(place: Place, record: Committed, document: Any) -> Event | None:
    if not isinstance(document, dict):
        return None
    type_, id_, data = document.get("type"), document.get("id"), document.get("data")
    if not (isinstance(type_, str) and isinstance(id_, str) and isinstance(data, dict)):
        return None
    subject, source = str(document.get("subject", "")), str(document.get("source", ""))
    return Event(place, short(type_), id_, subject, data, record, source)


def topics_of_events(evidence: Evidence) -> list[str]:
    """Every topic that holds events."""
    changelogs = {topics.changelog_topic(role) for role in ROLES}
    return sorted({place.topic for place in evidence.records} - changelogs)


# --- changelogs ---------------------------------------------------------------------------------------------------


def changelogs(evidence: Evidence, *roles: str) -> list[Changelog]:
    """The changelogs of some roles (of both, when none is named), partition by partition."""
    numbers = [
        (role, place.partition)
        for role in roles or ROLES
        for place in evidence.partitions(topics.changelog_topic(role))
    ]
    return [changelog(evidence, owner) for owner in numbers]


def changelog(evidence: Evidence, owner: Partition) -> Changelog:
    """The changelog of one partition."""
    return evidence.once(("changelog", owner), lambda: _changelog(evidence, *owner))


def _changelog(evidence: Evidence, role: str, number: int) -> Changelog:
    found = Changelog(role, number)
    where = TopicPartition(topics.changelog_topic(role), number)
    current: Written | None = None
    for record in evidence.records[where]:
        place = Place(*where, record.offset)
        if record.key == ENDED:
            began_at = next(int(value) for name, value in record.headers if name == HUNG_AT)
            for written in reversed(found.written):
                if written.at.offset < began_at:
                    break
                written.hung = True
            continue
        if (record.key or b"").startswith(COPY):
            found.copied.add(orjson.loads(record.value or b"")["sequence"])
            continue
        if current is None or (record.key or b"").startswith(DECISION + b"0000"):
            current = Written(place)
            found.written.append(current)
        if not _take(current, place, record):
            found.odd.append(place)
        if current.footer is not None:
            found.whole.append(current)
            current = None
    for written, following in pairwise(found.written):
        written.hung |= written.transaction is not None and written.transaction == following.transaction
    return found


def _take(written: Written, place: Place, record: Committed) -> bool:
    """Add a record to its transaction; whether it fits."""
    key = record.key or b""
    if key.startswith(ROW):
        written.rows.append((key, record.value))
        return True
    document = _parsed(record.value)
    if not isinstance(document, dict):
        return False
    if key == FOOTER:
        written.footer, written.footer_at, written.transaction = document, place, record.transaction
    elif key.startswith(DECISION):
        written.parts.append(document)
        written.sizes.append(len(record.value or b""))
    else:
        return False
    return True


def appended_at(evidence: Evidence, written: Written) -> datetime:
    """When the log took a transaction's footer."""
    place = written.footer_at
    assert place is not None, "what is whole has a footer"
    records = evidence.records[TopicPartition(place.topic, place.partition)]
    return records[bisect_left(records, place.offset, key=_offset_of)].appended_at


def facts(evidence: Evidence, role: str) -> list[Fact]:
    """Everything that a role decided and that took effect, partition by partition in order of deciding."""
    return evidence.once(
        ("facts", role),
        lambda: [fact for log in changelogs(evidence, role) for fact in log.facts()],
    )


# --- what stands in headers ---------------------------------------------------------------------------------------


class Sequence(NamedTuple):
    """Which transaction of which partition wrote a record: its `tw-seq`."""

    role: str
    partition: int
    number: int


def sequence_of(record: Committed) -> Sequence | None:
    """The transaction that a record says it belongs to; None for what was written outside of one."""
    for name, value in record.headers:
        if name == SEQUENCE:
            return _sequence(value)
    return None


@lru_cache(maxsize=65_536)  # the transactions of a simulated hour
def _sequence(text: bytes) -> Sequence | None:
    role, _, rest = text.decode("utf-8", "replace").partition("-")
    partition, _, number = rest.partition("-")
    return Sequence(role, int(partition), int(number)) if partition.isdigit() and number.isdigit() else None
