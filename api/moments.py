"""Instants as people read them: in UTC, in the schedule's own zone, and how far from now. Each says its zone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

_STEPS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
_CLOSE_SECONDS = 1.0


def utc(at: datetime) -> str:
    """`2026-03-01 02:00:00 UTC`."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def local(at: datetime, zone: str | None) -> str:
    """`03:00:00 CET`, with its date where that is another one; nothing for UTC, which stands beside it anyway."""
    where = _zone(zone) if zone and zone != "UTC" else None
    if where is None:
        return ""
    there = at.astimezone(where)
    date = "" if there.date() == at.astimezone(UTC).date() else f"{there:%Y-%m-%d} "
    return f"{date}{there:%H:%M:%S %Z}"


def on_clocks(at: datetime, zone: str) -> str | None:
    """`2026-03-01T03:00:00+01:00`; None for a zone that is not known here."""
    where = _zone(zone)
    return None if where is None else at.astimezone(where).isoformat()


def distance(at: datetime, now: datetime) -> str:
    """`in 3 h 12 min`, `5 s ago`."""
    seconds = (at - now).total_seconds()
    if abs(seconds) < _CLOSE_SECONDS:
        return "now"
    return f"in {span(timedelta(seconds=seconds))}" if seconds > 0 else f"{span(timedelta(seconds=-seconds))} ago"


def span(length: timedelta) -> str:
    """The two largest units of a length of time: `3 h 12 min`, `850 ms`."""
    seconds = length.total_seconds()
    if seconds < _CLOSE_SECONDS:
        return f"{round(seconds * 1000)} ms"
    if seconds < 10:  # noqa: PLR2004 -- below that, tenths are worth reading
        return f"{seconds:.1f} s"
    whole, parts = int(seconds), []
    for size, unit in _STEPS:
        count, whole = divmod(whole, size)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2])


@lru_cache(maxsize=512)  # zones that schedules name: there are not many more in all
def _zone(name: str) -> ZoneInfo | None:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None
