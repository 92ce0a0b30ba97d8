"""What people write in fields of definitions, read one value at a time; `Misfit` for what cannot be meant."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

from schemas import rates, values
from schemas.refusals import Misfit


def instant(value: Any) -> datetime:
    """A whole second, with its offset."""
    if isinstance(value, str):
        try:
            value = values.read_instant(value)
        except ValueError as error:
            raise Misfit("instant", str(error)) from error
    if not isinstance(value, datetime):
        raise Misfit("instant", f"must be an instant, not {values.word_for(value)}", "write 2026-03-08T05:15:53Z")
    if value.tzinfo is None:
        raise Misfit("instant", f"{value} has no offset", "add Z, or an offset such as +02:00")
    if value.microsecond:
        raise Misfit("instant", "must be a whole second")
    return value.astimezone(UTC)


def day(value: Any) -> date:
    """A day of the calendar. YAML reads one as a date, JSON has it as text."""
    if isinstance(value, str) and len(value) == len("2026-12-31"):
        try:
            return date.fromisoformat(value)
        except ValueError as error:
            raise Misfit("date", f"{value!r} is not a date: {error}", "write 2026-12-31") from error
    if not isinstance(value, date) or isinstance(value, datetime):
        raise Misfit("date", f"must be a date, not {values.word_for(value)}", "write 2026-12-31")
    return value


def rate(value: Any) -> str | None:
    """So many a time, as it was written."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise Misfit("rate", f"must be a rate, not {values.word_for(value)}", "write 10/s")
    try:
        rates.parse(value)
    except ValueError as error:
        raise Misfit("rate", str(error)) from error
    return value
