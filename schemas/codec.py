"""Facts to records and back: canonical JSON, event ids, and the CloudEvents 1.0 envelope around them.

Canonical data is what the compiled writer of a class makes: sorted keys, no blanks, fields at their default absent,
instants in UTC with `Z`. Event ids are hashes of it. This is the hottest code there is, ten encodes and eight decodes
a run: `bench/codec.py` measures it against `orjson` alone; `writing`, `reading` and `frozen` say how it is done.

An object given to `dump` or `encode` must not be changed afterwards, nor one that `load` or `decode` returned: job
snapshots are rendered once, and shared.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any, TypeVar

import orjson

from schemas import reading, writing
from schemas.envelope import Envelope, parse, read_envelope, write_envelope
from schemas.facts import FACTS, Fact, RunCreated, RunFinished
from schemas.faults import Fault, Refused
from schemas.identity import event_id
from schemas.internal import PUBLISHED_INTERNALS
from schemas.linking import LINKING
from schemas.operations import OPERATIONS
from schemas.scheduling import SCHEDULER_INTERNALS

__all__ = [
    "CONTENT_TYPE",
    "TYPES",
    "Envelope",
    "beginning",
    "decode",
    "dump",
    "dump_shared",
    "encode",
    "identify",
    "load",
    "parse",
    "plain",
    "read_carried",
    "read_envelope",
    "read_fact",
    "write_envelope",
]

T = TypeVar("T")

UNPUBLISHED = "unpublished"  # the id of what nobody counts
CONTENT_TYPE = b"application/cloudevents+json"

_DATA = b',"data":'  # stands last, behind strings only, in which a quote would be escaped
_UNPUBLISHED_DATA = b',"id":"%b"' % UNPUBLISHED.encode() + _DATA
_BEGINNING = '{"specversion":"1.0","type":"%s","source":"'
_RUN = (_BEGINNING % RunCreated.TYPE).encode()

TYPES: Mapping[str, type[Fact]] = {
    fact.TYPE: fact for fact in FACTS + PUBLISHED_INTERNALS + SCHEDULER_INTERNALS + LINKING + OPERATIONS
}


def encode(fact: Fact, *, source: str, time: datetime) -> tuple[str, bytes]:
    """The event id and the structured CloudEvent of a fact."""
    data = writing.dump(fact)
    subject = fact.subject
    id_ = _known_id(fact) or event_id(fact.TYPE, subject, data)
    _last.fact, _last.data, _last.id = fact, data, id_
    opening = _opening(fact.TYPE, source, time)
    return id_, b"".join((opening, orjson.dumps(subject), b',"id":', orjson.dumps(id_), _DATA, data, b"}"))


def beginning(type_: str) -> str:
    """How each CloudEvent of a type begins, and none of another, whatever stands in its data."""
    return _BEGINNING % type_


def unpublished(fact: Fact, *, source: str, time: datetime) -> bytes:
    """The CloudEvent of a fact that only a decision record holds: nobody counts its id, so it has none of its own."""
    opening = _opening(fact.TYPE, source, time)
    return b"".join((opening, orjson.dumps(fact.subject), _UNPUBLISHED_DATA, writing.dump(fact), b"}"))


def decode(envelope: Envelope) -> Fact:
    """The fact inside an envelope; `Refused` when its type is unknown or its data does not fit."""
    return _fact(envelope.type, envelope.data, envelope.id)


def read_fact(value: bytes) -> Fact:
    """The fact of a record that one of our own processes wrote."""
    try:
        document = orjson.loads(value)
    except orjson.JSONDecodeError:
        document = None
    # Own records are known by their form, and within our limits; anything else is looked at as a stranger's.
    if type(document) is dict and document.get("specversion") == "1.0" and type(document.get("id")) is str:
        return _fact(document.get("type"), document.get("data"), document["id"])
    return decode(read_envelope(value, ()))


def read_carried(value: bytes) -> Fact:
    """`read_fact`; a run in the very form that `encode` gives it is carried on as it is, not rendered again."""
    fact = read_fact(value)
    if type(fact) is RunCreated and value.startswith(_RUN) and value.endswith(b',"version":%d}}' % fact.version):
        writing.keep(fact, value[value.index(_DATA) + len(_DATA) : -1])
    return fact


def identify(fact: Fact) -> str:
    """The event id of a fact: a function of its content."""
    if _last.fact is fact:
        return _last.id
    return _known_id(fact) or event_id(fact.TYPE, fact.subject, writing.dump(fact))


def dump(value: Any) -> bytes:
    """Canonical JSON of a dataclass."""
    return _last.data if _last.fact is value else writing.dump(value)


def dump_shared(value: Any) -> bytes:
    """Canonical JSON of a dataclass that others will carry (`writing.CARRIED`): it is not rendered again for them."""
    return writing.dump_shared(value)


def plain(value: Any) -> dict[str, Any]:
    """The dataclass as dicts, lists, strings and numbers, ready for any JSON writer that knows datetimes."""
    result: dict[str, Any] = writing.plain(type(value))(value)
    return result


def load(cls: type[T], data: Any, pointer: str = "") -> T:
    """A dataclass of type `cls` from parsed JSON; `Refused` names the field that does not fit."""
    result: T = reading.reader(cls)(data, pointer)
    return result


def _fact(type_: Any, data: Any, id_: str) -> Fact:
    cls = TYPES.get(type_) if isinstance(type_, str) else None
    if cls is None:
        message = f"unknown type {str(type_)[:200]!r}"
        raise Refused(Fault(pointer="/type", code="unknown_type", message=message))
    fact: Fact = reading.reader(cls)(data, "/data")
    if type(fact) is RunFinished and id_ != UNPUBLISHED:
        object.__setattr__(fact, "known_id", id_)  # nobody has seen it yet, and `replace` takes as long as reading it
    return fact


def _known_id(fact: Fact) -> str:
    """The id that an outcome has where it was read, and that a repeat goes by. A newer version's content, or what a
    repeat leaves out, would give another, and its consumers know that one.
    """
    return fact.known_id if type(fact) is RunFinished else ""


class _Last(threading.local):
    """What this thread encoded last: whoever evolves from it wants the same bytes or the same id next."""

    fact: Fact | None = None
    data: bytes = b""
    id: str = ""


_last = _Last()


@lru_cache(maxsize=1024)  # types times partitions; within a batch `time` is one
def _opening(type_: str, source: str, time: datetime) -> bytes:
    head = {"specversion": "1.0", "type": type_, "source": source, "time": time, "datacontenttype": "application/json"}
    return orjson.dumps(head, option=orjson.OPT_UTC_Z)[:-1] + b',"subject":'
