"""Instants, durations and zones as others write them, as definitions do."""

from __future__ import annotations

import re
import zoneinfo
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import Any

from tidewheel.importers.report import LeftOut

LONGEST_SECONDS = 3660 * 86_400  # what a definition may say at most
LAST_YEAR = 9998  # schedules end on the last days of 9999
ZONE_LENGTH_MAX = 64
_INSTANT = re.compile(
    r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d(?::\d\d)?)(?:\.\d{1,9})?\s*(Z|[+-]\d\d:?\d\d)?", re.ASCII | re.IGNORECASE
)
_NOT_OF_IANA = {"Factory", "localtime", "posixrules"}  # what a machine's database has besides
_GO_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "h": 3600}
_GO = re.compile(r"(\d{1,9}(?:\.\d{0,9})?|\.\d{1,9})(ns|us|µs|μs|ms|s|m|h)", re.ASCII)


def duration(seconds: int) -> str:
    """A number of seconds in ISO 8601."""
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    clock = "".join(f"{count}{unit}" for count, unit in ((hour, "H"), (minute, "M"), (second, "S")) if count)
    text = f"P{days}D" if days else "P"
    return text + (f"T{clock}" if clock else "") if days or clock else "PT0S"


def go_seconds(text: str) -> int | None:
    """The whole seconds of a duration as Go writes it (`1h30m`), at least one; None when it is none."""
    parts = _GO.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return None
    return max(1, int(sum(float(number) * _GO_UNITS[unit] for number, unit in parts)))


def instant(value: object, zone: str, field: str) -> tuple[datetime, bool]:
    """An instant, and whether it said its offset; without one it is a reading of clocks in `zone`.

    Raises `LeftOut`. A number counts seconds since 1970, as older command lines print them.
    """
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            return datetime.fromtimestamp(value, UTC).replace(microsecond=0), True
        except (ValueError, OverflowError, OSError) as error:
            raise LeftOut(f"{value!r} is no instant", field=field, broken=True) from error
    match = _INSTANT.fullmatch(str(value).strip())
    if match is None:
        raise LeftOut(f"{str(value)[:60]!r} is no instant", field=field, broken=True)
    date, clock, offset = match.groups()
    try:
        reading = datetime.fromisoformat(f"{date}T{clock}")
        place = _offset(offset) if offset else named(zone, field)
        found = reading.replace(tzinfo=place).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise LeftOut(f"{str(value)[:60]!r} is no instant: {error}", field=field, broken=True) from error
    if found.year > LAST_YEAR:
        raise LeftOut(f"{str(value)[:60]!r} is too far away", field=field)
    return found, bool(offset)


def text(at: datetime) -> str:
    """An instant as definitions write it."""
    return at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def bounded(years: tuple[int | None, int | None], zone: str, edges: dict[str, Any], now: datetime, field: str) -> None:
    """Beginning and end of the years that an expression holds for, by the clocks of its zone; closer ones stay.

    Raises `LeftOut` when they are over, or outside of the edges given.
    """
    first, last = years
    if first is not None:
        start = instant(f"{first:04}-01-01T00:00:00", zone, field)[0]
        if start > now:
            edges["start_at"] = max(text(start), edges.get("start_at", ""))
    if last is not None:
        end = instant(f"{last + 1:04}-01-01T00:00:00", zone, field)[0]
        if end <= now:
            raise LeftOut(f"runs until the year {last} only, which is past", field=field)
        edges["end_at"] = min(text(end), edges.get("end_at", "9999"))
    if edges.get("end_at", "9999") <= edges.get("start_at", ""):
        raise LeftOut("ends before it starts", field=field)


def is_zone(name: str) -> bool:
    """Whether IANA's database has a zone of this name; a machine without the database lets every name pass."""
    names = _names()
    return bool(re.fullmatch(r"[A-Za-z0-9_+/-]+", name, re.ASCII)) and (not names or name in names)


def named(name: str, field: str) -> tzinfo:
    """The zone of a name; `LeftOut` where it is none."""
    if name in {"UTC", "Etc/UTC"}:
        return UTC
    if not is_zone(name):
        raise LeftOut(f"{name[:ZONE_LENGTH_MAX]!r} is no zone of IANA's database", field=field)
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        text_ = f"this machine has no database of time zones to look {name[:ZONE_LENGTH_MAX]!r} up: install tzdata"
        raise LeftOut(text_, field=field) from error


@lru_cache(maxsize=1)
def _names() -> frozenset[str]:
    return frozenset(zoneinfo.available_timezones()) - _NOT_OF_IANA


def _offset(written: str) -> tzinfo:
    if written in {"Z", "z"}:
        return UTC
    hours, minutes = int(written[1:3]), int(written[-2:])
    span = timedelta(hours=hours, minutes=minutes)
    return timezone(-span if written[0] == "-" else span)
