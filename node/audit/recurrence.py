"""Readings of a recurrence rule, by dateutil's own walk: the audit's reading of `rrule`.

dateutil walks from DTSTART. Rules that step by weeks or less are walked from a start that is moved by whole steps to
shortly before what is asked about; the others have few days, and a count must be counted from its beginning.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from dateutil import rrule

EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 -- readings have no zone
SECOND = timedelta(seconds=1)
DAY = 86_400
DAYS = {"WEEKLY": 7, "DAILY": 1}
UNITS = {"HOURLY": 3600, "MINUTELY": 60, "SECONDLY": 1}


def is_fixed(text: str) -> bool:
    """Whether policies for clock changes bind a rule: it steps by days or more."""
    return parts(text)["FREQ"] not in UNITS


def readings(text: str, dtstart: int, start: int, end: int) -> Iterator[int]:
    """Local readings in [start, end) that a rule names, as if they were seconds of UTC since 1970."""
    given = parts(text)
    given.pop("UNTIL", None)  # an instant: the caller knows it
    first = dtstart
    if "COUNT" not in given and given["FREQ"] not in ("YEARLY", "MONTHLY"):
        step = DAYS.get(given["FREQ"], 1) * DAY * (int(given.get("INTERVAL", "1")) if given["FREQ"] in DAYS else 1)
        first += max(0, start - dtstart - step) // step * step
    rule = rrule.rrulestr(";".join(f"{name}={value}" for name, value in given.items()), dtstart=EPOCH + first * SECOND)
    for found in rule.xafter(EPOCH + max(start, dtstart) * SECOND, inc=True):
        reading = (found - EPOCH) // SECOND
        if reading >= end:
            return
        yield reading


def until(text: str) -> int | None:
    """The last instant that counts."""
    found = parts(text).get("UNTIL")
    return None if found is None else int(datetime.strptime(found + "+0000", "%Y%m%dT%H%M%SZ%z").timestamp())


def parts(text: str) -> dict[str, str]:
    """A rule's parts by name."""
    return dict(part.split("=", 1) for part in text.upper().split(";"))
