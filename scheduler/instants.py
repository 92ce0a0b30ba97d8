"""Instants as numbers, and back.

Nominal instants are whole seconds since 1970, because that is what a trigger counts in; everything else (marks of
commands, outcomes, expiries) is in milliseconds, the precision of the log. A name ends in `_ms` where it is.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache

SECOND_MS = 1000
DAY_SECONDS = 86_400


@lru_cache(maxsize=4096)  # the same few instants stand in all facts of a batch
def millis(instant: datetime) -> int:
    """Milliseconds since 1970."""
    return round(instant.timestamp() * SECOND_MS)


@lru_cache(maxsize=4096)
def seconds(instant: datetime) -> int:
    """Whole seconds since 1970, cut down."""
    return millis(instant) // SECOND_MS


@lru_cache(maxsize=4096)  # thousands of schedules are due in the same second
def from_seconds(number: int) -> datetime:
    """The instant of so many seconds since 1970."""
    return datetime.fromtimestamp(number, UTC)


@lru_cache(maxsize=4096)
def from_millis(number: int) -> datetime:
    """The instant of so many milliseconds since 1970."""
    whole, rest = divmod(number, SECOND_MS)
    return datetime.fromtimestamp(whole, UTC).replace(microsecond=rest * 1000)


def text(instant: datetime) -> str:
    """RFC 3339 in UTC: whole seconds without a fraction, others with milliseconds."""
    spec = "milliseconds" if instant.microsecond else "seconds"
    return instant.astimezone(UTC).isoformat(timespec=spec).replace("+00:00", "Z")
