"""Cron as its manual describes it, minute by minute: what a crontab runs when, worked out in the plainest way.

Each minute the local reading is looked at and every entry is asked whether it is named. When clocks jump forward,
entries of a fixed time whose reading was jumped over run at once (as Debian's cron does); those whose minute or hour
begins with a star only follow the clock. Clocks that go back do not occur in what these tests live through.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

MINUTE = timedelta(minutes=1)
MACROS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
}
LOW_AND_HIGH = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))


@dataclass(frozen=True, slots=True)
class Entry:
    """The numbers of the five fields; Sunday is both 0 and 7."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    both_days: bool
    fixed_time: bool

    def names(self, local: datetime) -> bool:
        """Whether a local reading is one of those that the entry names."""
        if local.minute not in self.minutes or local.hour not in self.hours or local.month not in self.months:
            return False
        by_day = local.day in self.days
        by_weekday = local.isoweekday() in self.weekdays or (local.isoweekday() == 7 and 0 in self.weekdays)
        return (by_day and by_weekday) if self.both_days else (by_day or by_weekday)


def read(text: str) -> Entry:
    """An entry's time: stars, numbers, ranges, steps and lists of them."""
    fields = MACROS.get(text, text).split()
    minutes, hours, days, months, weekdays = (numbers(f, *b) for f, b in zip(fields, LOW_AND_HIGH, strict=True))
    minute, hour, day, _, weekday = (field.startswith("*") for field in fields)
    both, fixed = day or weekday, not (minute or hour)
    return Entry(minutes, hours, days, months, weekdays, both_days=both, fixed_time=fixed)


def numbers(field: str, low: int, high: int) -> frozenset[int]:
    found: set[int] = set()
    for item in field.split(","):
        base, _, step = item.partition("/")
        first, _, last = (f"{low}-{high}" if base == "*" else base).partition("-")
        found.update(range(int(first), int(last or first) + 1, int(step or 1)))
    return frozenset(found)


def walk(entries: Mapping[str, Entry], zone: str, start: datetime, end: datetime) -> Iterator[tuple[str, datetime]]:
    """Which entry runs when, in (start, end]."""
    wall = ZoneInfo(zone)
    instant, before = start, start.astimezone(wall).replace(tzinfo=None)
    while instant < end:
        instant += MINUTE
        local = instant.astimezone(wall).replace(tzinfo=None)
        assert local > before, "clocks went back: this walk does not know what to do then"
        jumped_over = [before + n * MINUTE for n in range(1, int((local - before) / MINUTE))]
        for name, entry in entries.items():
            if entry.names(local) or (entry.fixed_time and any(map(entry.names, jumped_over))):
                yield name, instant.astimezone(UTC)
        before = local
