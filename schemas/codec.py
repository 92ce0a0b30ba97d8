"""Dataclasses to JSON and back, and the CloudEvents 1.0 envelope around them.

The reader and the writer of each dataclass are compiled from its annotations once, at first use: the hot path
neither reflects nor validates twice. Canonical data is what the writer makes: sorted keys, no blanks, fields at
their default absent, instants in UTC with `Z`. Event ids are hashes of it.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from functools import lru_cache
from typing import Any, TypeVar

import orjson

from schemas import durations
from schemas.facts import FACTS, Fact
from schemas.faults import Fault, Refused
from schemas.identity import event_id
from schemas.internal import PUBLISHED_INTERNALS

T = TypeVar("T")
Reader = Callable[[Any, str], Any]
Writer = Callable[[Any], Any]

CONTENT_TYPE = b"application/cloudevents+json"
_DUMP = orjson.OPT_SORT_KEYS | orjson.OPT_UTC_Z
DEPTH_MAX = 16  # contract: JSON depth

TYPES: Mapping[str, type[Fact]] = {fact.TYPE: fact for fact in FACTS + PUBLISHED_INTERNALS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """The attributes of a CloudEvent with its data still as parsed JSON."""

    id: str
    source: str
    type: str
    subject: str
    data: Any
    time: datetime | None = None


def dump(value: Any) -> bytes:
    """Canonical JSON of a dataclass."""
    return orjson.dumps(_writer(type(value))(value), option=_DUMP)


def plain(value: Any) -> dict[str, Any]:
    """The dataclass as dicts, lists, strings and numbers, ready for any JSON writer that knows datetimes."""
    result = _writer(type(value))(value)
    assert isinstance(result, dict)
    return result


def load(cls: type[T], data: Any, pointer: str = "") -> T:
    """A dataclass of type `cls` from parsed JSON; `Refused` names the field that does not fit."""
    result: T = _reader(cls)(data, pointer)
    return result


def parse(raw: bytes) -> Any:
    """Parsed JSON, or `Refused`."""
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise Refused(Fault(pointer="", code="not_json", message=f"not JSON: {error}")) from error


def identify(fact: Fact) -> str:
    """The event id of a fact: a function of its content."""
    return getattr(fact, "known_id", "") or event_id(fact.TYPE, fact.subject, dump(fact))


def encode(fact: Fact, *, source: str, time: datetime) -> tuple[str, bytes]:
    """The event id and the structured CloudEvent of a fact."""
    data = dump(fact)
    id_ = getattr(fact, "known_id", "") or event_id(fact.TYPE, fact.subject, data)
    head = {"id": id_, "source": source, "type": fact.TYPE, "subject": fact.subject, "time": time}
    opening = orjson.dumps(head, option=orjson.OPT_UTC_Z)[:-1]
    return id_, b"".join((opening, _MIDDLE, data, b"}"))


_MIDDLE = b',"specversion":"1.0","datacontenttype":"application/json","data":'


def decode(envelope: Envelope) -> Fact:
    """The fact inside an envelope; `Refused` when its type is unknown or its data does not fit."""
    cls = TYPES.get(envelope.type)
    if cls is None:
        raise Refused(Fault(pointer="/type", code="unknown_type", message=f"unknown type {envelope.type!r}"))
    fact: Fact = load(cls, envelope.data, "/data")
    if envelope.data.get("repeat"):
        fact = dataclasses.replace(fact, known_id=envelope.id)  # type: ignore[call-arg]
    return fact


def read_fact(value: bytes) -> Fact:
    """The fact of a record that one of our own processes wrote."""
    return decode(read_envelope(value, ()))


def read_envelope(value: bytes | None, headers: tuple[tuple[str, bytes], ...]) -> Envelope:
    """The CloudEvent in a record: structured JSON, or binary mode when a `ce_type` header stands there."""
    binary = {name.lower(): text for name, text in headers if name.lower().startswith("ce_")} if headers else {}
    if "ce_type" in binary:
        attributes = {name[3:]: text.decode("utf-8", "replace") for name, text in binary.items()}
        return _envelope({**attributes, "data": parse(value or b"null")})
    document = parse(value or b"")
    if not isinstance(document, dict):
        raise Refused(Fault(pointer="", code="not_an_event", message="a CloudEvent is a JSON object"))
    return _envelope(document)


def _envelope(document: dict[str, Any]) -> Envelope:
    if document.get("specversion") != "1.0":
        raise Refused(Fault(pointer="/specversion", code="not_an_event", message="specversion must be \"1.0\""))
    for name in ("id", "source", "type"):
        if not isinstance(document.get(name), str) or not document[name]:
            raise Refused(Fault(pointer=f"/{name}", code="missing", message=f"{name} must be a non-empty string"))
    subject = document.get("subject", "")
    if not isinstance(subject, str):
        raise Refused(Fault(pointer="/subject", code="type", message="subject must be a string"))
    time = document.get("time")
    return Envelope(
        id=document["id"],
        source=document["source"],
        type=document["type"],
        subject=subject,
        data=document.get("data"),
        time=None if time is None else _read_instant(time, "/time"),
    )


# --- compiled readers and writers ---------------------------------------------------------------------------------


@lru_cache(maxsize=None)  # one entry per dataclass of this package
def _writer(cls: type) -> Writer:
    rows = tuple(
        (field.name, field.name.rstrip("_"), _default(field), _value_writer(hint))
        for field, hint in _fields(cls)
        if field.metadata.get("wire", True)
    )

    def write(value: Any) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for attribute, key, default, convert in rows:
            item = getattr(value, attribute)
            if item is default or item == default:
                continue
            result[key] = item if convert is None else convert(item)
        return result

    return write


def _value_writer(hint: Any) -> Writer | None:
    """How a value of this type is written, or None when orjson writes it as it is."""
    inner = _unwrap_optional(hint)
    if dataclasses.is_dataclass(inner):
        return _lazy(lambda: _writer(inner))
    if inner is timedelta:
        return durations.render
    if typing.get_origin(inner) is tuple:
        item = _value_writer(typing.get_args(inner)[0])
        return None if item is None else lambda values: [item(value) for value in values]
    return None


@lru_cache(maxsize=None)
def _reader(cls: type) -> Reader:
    rows = tuple(
        (field.name.rstrip("_"), field.name, _default(field) is MISSING, _value_reader(hint))
        for field, hint in _fields(cls)
        if field.metadata.get("wire", True)
    )

    def read(data: Any, pointer: str) -> Any:
        if not isinstance(data, dict):
            raise _misfit(pointer, "an object", data)
        values: dict[str, Any] = {}
        for key, attribute, required, convert in rows:
            item = data.get(key)
            if item is not None:
                values[attribute] = convert(item, f"{pointer}/{key}")
            elif required and key not in data:
                raise Refused(Fault(pointer=f"{pointer}/{key}", code="missing", message="is required"))
            elif required:
                values[attribute] = None
        return cls(**values)

    return read


def _value_reader(hint: Any) -> Reader:
    inner = _unwrap_optional(hint)
    origin = typing.get_origin(inner)
    if dataclasses.is_dataclass(inner):
        return _lazy_reader(lambda: _reader(typing.cast("type", inner)))
    if origin is tuple:
        return _tuple_reader(_value_reader(typing.get_args(inner)[0]))
    if origin in (Mapping, dict):
        return _exact(dict, "an object")
    if inner is datetime:
        return _read_instant
    if inner is timedelta:
        return _read_duration
    if isinstance(inner, type) and issubclass(inner, Enum):
        return _enum_reader(inner)
    if inner is Any:
        return lambda value, _pointer: value
    if inner is float:
        return _exact((int, float), "a number")
    return _exact(inner, {str: "a string", int: "an integer", bool: "true or false"}[inner])


def _exact(kind: type | tuple[type, ...], words: str) -> Reader:
    refuses_bool = kind is int or (isinstance(kind, tuple) and int in kind)

    def read(value: Any, pointer: str) -> Any:
        if not isinstance(value, kind) or (refuses_bool and isinstance(value, bool)):
            raise _misfit(pointer, words, value)
        return value

    return read


def _tuple_reader(item: Reader) -> Reader:
    def read(value: Any, pointer: str) -> Any:
        if not isinstance(value, list):
            raise _misfit(pointer, "a list", value)
        return tuple(item(entry, f"{pointer}/{index}") for index, entry in enumerate(value))

    return read


def _enum_reader(kind: type[Enum]) -> Reader:
    members = {member.value: member for member in kind}

    def read(value: Any, pointer: str) -> Any:
        member = members.get(value) if isinstance(value, str) else None
        if member is None:
            raise _misfit(pointer, "one of " + ", ".join(sorted(members)), value)
        return member

    return read


def _read_instant(value: Any, pointer: str) -> datetime:
    try:
        instant = datetime.fromisoformat(value)
        if instant.tzinfo is None:
            raise ValueError
        return instant if instant.tzinfo is UTC else instant.astimezone(UTC)
    except (ValueError, TypeError, OverflowError) as error:
        raise _misfit(pointer, "an RFC 3339 instant with an offset", value) from error


def _read_duration(value: Any, pointer: str) -> timedelta:
    try:
        return durations.parse(value)
    except (ValueError, TypeError, AttributeError) as error:
        raise _misfit(pointer, "an ISO 8601 duration", value) from error


def _misfit(pointer: str, wanted: str, value: Any) -> Refused:
    return Refused(Fault(pointer=pointer, code="type", message=f"must be {wanted}, not {type(value).__name__}"))


def _fields(cls: type) -> list[tuple[dataclasses.Field[Any], Any]]:
    hints = typing.get_type_hints(cls)
    return [(field, hints[field.name]) for field in dataclasses.fields(cls)]


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not MISSING:
        return field.default_factory()
    return field.default


def _unwrap_optional(hint: Any) -> Any:
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        inner = [part for part in typing.get_args(hint) if part is not type(None)]
        assert len(inner) == 1, f"only X | None is supported, not {hint}"
        return inner[0]
    return hint


def _lazy(make: Callable[[], Writer]) -> Writer:
    made: list[Writer] = []

    def write(value: Any) -> Any:
        if not made:
            made.append(make())
        return made[0](value)

    return write


def _lazy_reader(make: Callable[[], Reader]) -> Reader:
    made: list[Reader] = []

    def read(value: Any, pointer: str) -> Any:
        if not made:
            made.append(make())
        return made[0](value, pointer)

    return read
