"""ISO 8601 durations, and the short forms people type."""

from __future__ import annotations

import re
from datetime import timedelta
from functools import lru_cache

LONGEST = timedelta(days=3660)  # ten years: instants a duration away stay on the calendar, whatever people write
_ISO = re.compile(
    r"P(?!\Z)(?:(?P<weeks>\d{1,9})W)?(?:(?P<days>\d{1,9})D)?"
    r"(?:T(?!\Z)(?:(?P<hours>\d{1,9})H)?(?:(?P<minutes>\d{1,9})M)?(?:(?P<seconds>\d{1,9}(?:\.\d{1,6})?)S)?)?",
    re.ASCII,
)
_SHORT = re.compile(r"(\d{1,9})([smhdw])", re.ASCII)
_SECONDS = {"seconds": 1, "minutes": 60, "hours": 3600, "days": 86_400, "weeks": 604_800}
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


@lru_cache(maxsize=4096)  # durations of definitions: a few hundred distinct ones in any real deployment
def parse(text: str) -> timedelta:
    """`PT30S`, `P7D`, or short: `30s`, `15m`, `24h`, `7d`. ValueError otherwise, and beyond `LONGEST`."""
    parts = _parts(text)
    if sum(_SECONDS[unit] * number for unit, number in parts.items()) > LONGEST.total_seconds():
        raise ValueError(f"{text} is longer than ten years: give at most P{LONGEST.days}D")
    return timedelta(**parts)


def _parts(text: str) -> dict[str, float]:
    if short := _SHORT.fullmatch(text):
        return {_UNITS[short[2]]: int(short[1])}
    if iso := _ISO.fullmatch(text):
        return {unit: float(number) for unit, number in iso.groupdict().items() if number}
    hint = ""
    if text.isascii() and re.fullmatch(r"P[\dYMWD]+(T.*)?", text):
        hint = "; years and months have no fixed length: count in days"
    raise ValueError(f"{text[:40]!r} is not a duration: write PT30S, PT15M, P7D, or 30s, 15m, 24h, 7d{hint}")


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
