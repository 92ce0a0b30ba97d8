"""Values inside JSON that are more than JSON: instants and durations, and where in the document a misfit stands."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any, NoReturn

from schemas import durations
from schemas.faults import Fault, Refused

# A place is a JSON pointer, or a place and the key below it: pointers are put together only when something is wrong.
Place = Any

_RFC3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
_INSTANT_LENGTH_MAX = 40  # the longest RFC 3339 instant with nanoseconds and an offset has 35 characters

# The same few instants stand in all facts of a batch: looking one up takes a fifth of reading it.
KNOWN_INSTANTS: dict[str, datetime] = {}
KNOWN_INSTANTS_MAX = 4096

_WORDS = {
    dict: "an object",
    list: "a list",
    str: "a string",
    bool: "true or false",
    int: "a number",
    float: "a number",
    type(None): "null",
}


def read_instant(text: str) -> datetime:
    """The UTC instant that an RFC 3339 text names, cut to microseconds; ValueError says what is wrong with it."""
    if len(text) > _INSTANT_LENGTH_MAX or _RFC3339.fullmatch(text) is None:
        raise ValueError("must be an RFC 3339 instant with an offset, such as 2026-03-08T05:15:53Z")
    try:
        return datetime.fromisoformat(text.upper()).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{text} is not on the calendar: {error}") from error


def instant(value: Any, place: Place) -> datetime:
    """The instant that stands at `place`."""
    try:
        # What our own writer makes is read without the pattern; whatever else this accepts still names one instant.
        parsed = datetime.fromisoformat(value)
    except (ValueError, TypeError):
        parsed = _unusual_instant(value, place)
    if parsed.tzinfo is not UTC:
        parsed = _unusual_instant(value, place)
    if len(KNOWN_INSTANTS) >= KNOWN_INSTANTS_MAX:
        KNOWN_INSTANTS.clear()
    KNOWN_INSTANTS[value] = parsed
    return parsed


def _unusual_instant(value: Any, place: Place) -> datetime:
    if not isinstance(value, str):
        raise misfit(value, place, "an RFC 3339 instant with an offset")
    try:
        return read_instant(value)
    except ValueError as error:
        raise Refused(Fault(pointer=pointer(place), code="instant", message=str(error))) from error


def duration(value: Any, place: Place) -> timedelta:
    """The duration that stands at `place`."""
    if not isinstance(value, str):
        raise misfit(value, place, "an ISO 8601 duration")
    try:
        return durations.parse(value)
    except ValueError as error:
        raise Refused(Fault(pointer=pointer(place), code="duration", message=str(error))) from error


def utc(value: datetime) -> datetime:
    """The same instant in UTC: what is written has one form only."""
    assert value.tzinfo is not None, f"{value} names no instant: it has no zone"
    return value.astimezone(UTC)


def misfit(value: Any, place: Place, wanted: str) -> Refused:
    """A refusal of a value that is present but not what is wanted, or null, or absent."""
    return Refused(Fault(pointer=pointer(place), code="type", message=f"must be {wanted}, not {word_for(value)}"))


def word_for(value: Any) -> str:
    """What JSON calls a value of this kind."""
    return _WORDS.get(type(value), type(value).__name__)


def wrong(data: dict[str, Any], place: Place, key: str, wanted: str) -> Refused:
    """A refusal of what stands at `key`, or of its absence."""
    if key in data:
        return misfit(data[key], (place, key), wanted)
    message = f"is required: {wanted}"
    return Refused(Fault(pointer=pointer((place, key)), code="missing", message=message, remedy="add it"))


def absent(data: dict[str, Any], place: Place, key: str) -> NoReturn:
    """Raise the refusal of a required field that is not there."""
    raise wrong(data, place, key, "any JSON, or null")


def pointer(place: Place) -> str:
    """The JSON pointer (RFC 6901) of a place."""
    keys: list[str] = []
    while isinstance(place, tuple):
        place, key = place
        keys.append(escaped(str(key)))
    return "/".join((place, *reversed(keys)))


def escaped(key: str) -> str:
    """A key as a part of a JSON pointer."""
    return key.replace("~", "~0").replace("/", "~1")
