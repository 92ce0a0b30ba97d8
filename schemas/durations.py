"""ISO 8601 durations, and the short forms people type."""

from __future__ import annotations

from datetime import timedelta
from functools import lru_cache

from pydantic import TypeAdapter

_ISO = TypeAdapter(timedelta)
_SHORT = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


@lru_cache(maxsize=4096)  # durations of definitions: a few hundred distinct ones in any real deployment
def parse(text: str) -> timedelta:
    """`PT30S`, `P7D`, or short: `30s`, `15m`, `24h`, `7d`. ValueError otherwise."""
    number, unit = text[:-1], text[-1:]
    if unit in _SHORT and number.isascii() and number.isdigit() and len(number) <= 9:  # noqa: PLR2004 -- 9 digits of weeks overflow nothing
        return timedelta(**{_SHORT[unit]: int(number)})
    if not text.startswith("P") or not text.isascii():
        msg = f"{text!r} is not a duration: write PT30S, PT15M, P7D, or 30s, 15m, 24h, 7d"
        raise ValueError(msg)
    return _ISO.validate_python(text)


@lru_cache(maxsize=4096)
def render(duration: timedelta) -> str:
    """The ISO 8601 form, whole and without weeks, months or years."""
    days, seconds = duration.days, duration.seconds
    hours, seconds = divmod(seconds, 3600)
    minutes, seconds = divmod(seconds, 60)
    fraction = f"{duration.microseconds:06d}".rstrip("0")
    clock = "".join(
        (
            f"{hours}H" if hours else "",
            f"{minutes}M" if minutes else "",
            f"{seconds}{'.' + fraction if fraction else ''}S" if seconds or fraction else "",
        )
    )
    date = f"{days}D" if days else ""
    if not date and not clock:
        return "PT0S"
    return f"P{date}{'T' + clock if clock else ''}"
