"""The compiled time zone format (RFC 8536, TZif), as far as clock arithmetic needs it: the changes of the offset.

Names and daylight flags are not read. The footer, a POSIX `TZ` string such as `CET-1CEST,M3.5.0,M10.5.0/3`, gives the
changes after the last one in the table.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

DAY = 86_400
EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
HEADER = struct.Struct(">4sc15x6L")
DECEMBER = 12
MARCH_1 = 60  # day of a common year
LAST_DAY_OF_LEAP_YEAR = 365  # counted from 0
SIGNS = {"-": -1, "+": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """From `at` (seconds since 1970, UTC) on, clocks show UTC plus `offset` seconds."""

    at: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class YearDay:
    """A yearly moment of a footer's rule: a day, and seconds after its midnight (may be negative or above a day)."""

    kind: str  # M month.week.weekday | J day 1 to 365, never 29 February | D day 0 to 365
    numbers: tuple[int, ...]
    seconds: int

    def reading(self, year: int) -> int:
        """Return the moment in a year as a local reading."""
        return (self._ordinal(year) - EPOCH_ORDINAL) * DAY + self.seconds

    def _ordinal(self, year: int) -> int:
        new_year = date(year, 1, 1).toordinal()
        if self.kind == "M":
            return self._nth_weekday(year)
        leap = date(year, 12, 31).toordinal() - new_year == LAST_DAY_OF_LEAP_YEAR
        (day,) = self.numbers
        return new_year + (day if self.kind == "D" else day - 1 + (leap and day >= MARCH_1))

    def _nth_weekday(self, year: int) -> int:
        month, week, weekday = self.numbers
        first = date(year, month, 1).toordinal()
        following = date(year, month + 1, 1).toordinal() if month < DECEMBER else date(year, month, 31).toordinal() + 1
        found = first + (weekday - first) % 7 + 7 * (week - 1)  # ordinal 7 was a Sunday, as POSIX counts
        return found if found < following else found - 7  # week 5 means the last one


@dataclass(frozen=True, slots=True, kw_only=True)
class Footer:
    """What holds after the last change of the table: one offset, or two that take turns every year."""

    standard: int
    daylight: int | None = None
    begins: YearDay | None = None
    ends: YearDay | None = None

    def changes(self, year: int) -> list[Change]:
        """Return the changes that the rule makes in a year, in order."""
        if self.daylight is None or self.begins is None or self.ends is None:
            return []
        begins = Change(at=self.begins.reading(year) - self.standard, offset=self.daylight)
        ends = Change(at=self.ends.reading(year) - self.daylight, offset=self.standard)
        return sorted((begins, ends), key=lambda change: change.at)


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A whole file: the offset before any change, the listed changes, the rule that goes on (`posix`: as written)."""

    first_offset: int
    changes: tuple[Change, ...]
    footer: Footer
    posix: str = ""


def read(data: bytes) -> Table:
    """Read a TZif file of version 2 or later; the first, 32-bit block is stepped over."""
    magic, version, *counts = HEADER.unpack_from(data)
    if magic != b"TZif" or version < b"2":
        raise ValueError("not a TZif file of version 2 or later")
    second = HEADER.size + _block_size(counts, time_size=4)
    _, _, *counts = HEADER.unpack_from(data, second)
    body = second + HEADER.size
    _, _, _, time_count, type_count, _ = counts
    times = struct.unpack_from(f">{time_count}q", data, body)
    kinds = data[body + 8 * time_count : body + 9 * time_count]
    types = data[body + 9 * time_count : body + 9 * time_count + 6 * type_count]
    offsets = [offset for offset, _, _ in struct.iter_unpack(">lBB", types)]
    footer = data[body + _block_size(counts, time_size=8) :].strip(b"\n").decode("ascii")
    return Table(
        first_offset=offsets[0],
        changes=tuple(Change(at=at, offset=offsets[kind]) for at, kind in zip(times, kinds, strict=True)),
        footer=read_footer(footer),
        posix=footer,
    )


def read_footer(text: str) -> Footer:
    """Read a POSIX `TZ` string: `std offset [dst [offset] , start [/time] , end [/time]]`."""
    zone, *rules = text.split(",")
    _, rest = _name(zone)
    behind, rest = _time(rest)
    if not rest:
        return Footer(standard=-behind)
    _, rest = _name(rest)
    daylight = -_time(rest)[0] if rest else 3_600 - behind
    begins, ends = (_year_day(rule) for rule in rules)
    return Footer(standard=-behind, daylight=daylight, begins=begins, ends=ends)


def _block_size(counts: list[int], time_size: int) -> int:
    ut_count, wall_count, leap_count, time_count, type_count, name_bytes = counts
    leaps = leap_count * (time_size + 4)
    return time_count * (time_size + 1) + type_count * 6 + name_bytes + leaps + wall_count + ut_count


def _name(text: str) -> tuple[str, str]:
    if text.startswith("<"):
        name, _, rest = text[1:].partition(">")
        return name, rest
    end = next((index for index, character in enumerate(text) if not character.isalpha()), len(text))
    return text[:end], text[end:]


def _time(text: str) -> tuple[int, str]:
    """Read `[+-]hh[:mm[:ss]]`, and return it in seconds with what follows."""
    end = next((index for index, character in enumerate(text) if character not in "+-:0123456789"), len(text))
    digits = text[:end].lstrip("+-").split(":")
    total = sum(int(part) * unit for part, unit in zip(digits, (3_600, 60, 1), strict=False))
    return SIGNS.get(text[0], 1) * total, text[end:]


def _year_day(text: str) -> YearDay:
    day, _, time = text.partition("/")
    kind = day[0] if day[0] in "MJ" else "D"
    numbers = tuple(int(part) for part in day.removeprefix(kind).split("."))
    return YearDay(kind=kind, numbers=numbers, seconds=_time(time)[0] if time else 7_200)


def yearly(footer: Footer, first_year: int, last_year: int) -> Iterator[Change]:
    """Yield the changes that a rule makes in a run of years."""
    for year in range(first_year, last_year + 1):
        yield from footer.changes(year)
