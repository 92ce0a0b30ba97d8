"""The wall-clock readings that an expression names, with no zone in sight.

A reading is the number of seconds from 1970-01-01T00:00:00 to a date and time of day as a wall clock shows them; local
days all have 86,400 of them. What a zone skips or shows twice is the business of `triggers`.

    calendar   which days: one short table for each shape of a month
    clock      which seconds of a day: named hours x named seconds within an hour

Tables are shared between equal expressions, so 100,000 schedules at 02:00 cost one.
"""

from bisect import bisect_left
from collections.abc import Iterator
from datetime import MAXYEAR, date
from functools import lru_cache
from itertools import takewhile
from typing import NamedTuple, Protocol

from scheduler.occurrences.days import FEBRUARY, SHORT_MONTHS, Days

DAY = 86_400
HOUR = 3_600
HOURS = 24
EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
YEARS_SEARCHED_MAX = 41  # the rarest days there are, such as a fifth Monday of February, come within 40 years
TABLES_SHARED_MAX = 4_096  # distinct date halves, and distinct times, kept at once: at most some 10 and 30 kB each


class Shape(NamedTuple):
    """The days named in a month of one length and first weekday."""

    days: tuple[int, ...]
    at_or_after: tuple[int, ...]  # by day of the month, 0 to 32: the first named day from there on, 0 when none


class DaySet(Protocol):
    """Says which days are named."""

    every_day: bool

    def at_or_after(self, day: int) -> int | None:
        """Return the first named day from `day` on; None when the next 41 years have none."""
        ...

    def between(self, first_day: int, last_day: int) -> Iterator[int]:
        """Yield the named days from `first_day` to `last_day`, both included."""
        ...

    def count(self, first_day: int, last_day: int) -> int:
        """Count the named days from `first_day` to `last_day`, both included."""
        ...


class Calendar:
    """The days that a date half names. Day numbers count from 1970-01-01."""

    __slots__ = ("_days", "_months", "_shapes", "every_day")

    def __init__(self, days: Days) -> None:
        """Tables are filled when a month of their shape is first met: at most 28."""
        self._days = days
        self._months = tuple(sorted(days.months))
        self._shapes: dict[tuple[int, int], Shape] = {}
        self.every_day = days.always()

    def at_or_after(self, day: int) -> int | None:
        """Return the first named day from `day` on; None when the next 41 years have none."""
        if self.every_day:
            return day
        year, month, number = _civil(day)
        first = day - number + 1
        found = self._shape(year, month, first).at_or_after[number] if month in self._days.months else 0
        if found:
            return first + found - 1
        following = self._named_months(year, month + 1, year + YEARS_SEARCHED_MAX)
        return next((first + shape.days[0] - 1 for first, shape in following if shape.days), None)

    def between(self, first_day: int, last_day: int) -> Iterator[int]:
        """Yield the named days from `first_day` to `last_day`, both included."""
        if self.every_day:
            yield from range(first_day, last_day + 1)
            return
        for first, shape in self._months_between(first_day, last_day):
            for number in shape.days:
                if first_day <= first + number - 1 <= last_day:
                    yield first + number - 1

    def count(self, first_day: int, last_day: int) -> int:
        """Count the named days from `first_day` to `last_day`, both included, a month at a time."""
        if self.every_day:
            return max(0, last_day - first_day + 1)
        return sum(
            bisect_left(shape.days, last_day - first + 2) - bisect_left(shape.days, first_day - first + 1)
            for first, shape in self._months_between(first_day, last_day)
        )

    def _months_between(self, first_day: int, last_day: int) -> Iterator[tuple[int, Shape]]:
        if first_day > last_day:
            return iter(())
        year, month, _ = _civil(first_day)
        months = self._named_months(year, month, _civil(last_day)[0])
        return takewhile(lambda named: named[0] <= last_day, months)

    def _named_months(self, year: int, month: int, last_year: int) -> Iterator[tuple[int, Shape]]:
        """Yield first day and shape of the named months, from a month of `year` to the end of `last_year`."""
        for named in self._months[bisect_left(self._months, month) :]:
            first = _first_day(year, named)
            yield first, self._shape(year, named, first)
        for later in range(year + 1, min(last_year, MAXYEAR) + 1):
            for named in self._months:
                first = _first_day(later, named)
                yield first, self._shape(later, named, first)

    def _shape(self, year: int, month: int, first: int) -> Shape:
        key = _length(year, month), (first + 4) % 7  # 1970-01-01 was a Thursday
        shape = self._shapes.get(key)
        if shape is None:
            shape = self._shapes[key] = _shape_of(self._days.in_month(*key))
        return shape


class Clock(NamedTuple):
    """The seconds of a day that a time half names."""

    hours: tuple[int, ...]  # starts of the named hours, in seconds of the day
    marks: tuple[int, ...]  # named seconds within an hour
    hour_at_or_after: tuple[int, ...]  # by hour, 0 to 24: the first named hour from there on, 24 when none

    def at_or_after(self, second: int) -> int:
        """Return the first named second of the day from `second` on; the day must have one."""
        hour, within = divmod(second, HOUR)
        named = self.hour_at_or_after[hour]
        if named == hour:
            index = bisect_left(self.marks, within)
            if index < len(self.marks):
                return hour * HOUR + self.marks[index]
            named = self.hour_at_or_after[hour + 1]
        return named * HOUR + self.marks[0]

    def before(self, second: int) -> int:
        """Count the named seconds of the day before `second`."""
        hour, within = divmod(min(second, DAY), HOUR)
        full = bisect_left(self.hours, hour * HOUR) * len(self.marks)
        return full + (bisect_left(self.marks, within) if self.hour_at_or_after[hour] == hour < HOURS else 0)

    @property
    def per_day(self) -> int:
        """How many seconds of a day are named."""
        return len(self.hours) * len(self.marks)


class Readings:
    """Both halves together."""

    __slots__ = ("_calendar", "_clock", "_day_bits", "_every_day", "_first", "_last")

    def __init__(self, calendar: DaySet, clock: Clock) -> None:
        """Take the shared tables of both halves."""
        self._calendar = calendar
        self._clock = clock
        self._day_bits: int | None = None
        self._every_day = self._calendar.every_day
        self._first = self._clock.hours[0] + self._clock.marks[0]
        self._last = self._clock.hours[-1] + self._clock.marks[-1]

    def at_or_after(self, reading: int) -> int | None:
        """Return the first named reading from `reading` on; None when the next 41 years have none."""
        day, second = divmod(reading, DAY)
        if second > self._last:
            day, second = day + 1, 0
        named = day if self._every_day else self._calendar.at_or_after(day)
        if named is None:
            return None
        if named > day or second <= self._first:
            return named * DAY + self._first
        return day * DAY + self._clock.at_or_after(second)

    def holds(self, reading: int) -> bool:
        """Say whether a reading is named."""
        return self.at_or_after(reading) == reading

    def instants(self, opens: int, closes: int, offset: int) -> Iterator[int]:
        """Yield `reading - offset` for the named readings in [opens, closes): the inner loop of every walk."""
        hours, marks, _ = self._clock
        for day in self._calendar.between(opens // DAY, (closes - 1) // DAY):
            midnight = day * DAY
            if opens <= midnight and midnight + DAY <= closes:
                for hour in hours:
                    start = midnight - offset + hour
                    for mark in marks:
                        yield start + mark
            else:
                yield from _part_of_day(self._clock, midnight, opens, closes, offset)

    def count(self, opens: int, closes: int) -> int:
        """Count the named readings in [opens, closes) without visiting them."""
        if opens >= closes:
            return 0
        first_day, last_day = opens // DAY, (closes - 1) // DAY
        whole = self._calendar.count(first_day, last_day) * self._clock.per_day
        missed = self._calendar.count(first_day, first_day) * self._clock.before(opens - first_day * DAY)
        later = self._clock.per_day - self._clock.before(closes - last_day * DAY)
        return whole - missed - self._calendar.count(last_day, last_day) * later

    def bits(self, opens: int, closes: int) -> int:
        """Return the named readings in [opens, closes) as a set: bit n is the reading `opens + n`."""
        if self._day_bits is None:
            self._day_bits = _bits(self._clock)
        found = 0
        for day in self._calendar.between(opens // DAY, (closes - 1) // DAY):
            begins = day * DAY - opens
            found |= self._day_bits << begins if begins >= 0 else self._day_bits >> -begins
        return found & ((1 << (closes - opens)) - 1)


class BoundedReadings:
    """Those of others from `first` to `last`; without a last one they have no end."""

    __slots__ = ("_closes", "_first", "_readings")

    def __init__(self, readings: Readings, first: int, last: int | None) -> None:
        """Both bounds are included."""
        self._readings = readings
        self._first = first
        self._closes = None if last is None else last + 1

    def at_or_after(self, reading: int) -> int | None:
        """Return the first named reading from `reading` on; None when there is none."""
        found = self._readings.at_or_after(max(reading, self._first))
        return found if found is not None and (self._closes is None or found < self._closes) else None

    def holds(self, reading: int) -> bool:
        """Say whether a reading is named."""
        return self.at_or_after(reading) == reading

    def instants(self, opens: int, closes: int, offset: int) -> Iterator[int]:
        """Yield `reading - offset` for the named readings in [opens, closes)."""
        opens, closes = self._clip(opens, closes)
        return self._readings.instants(opens, closes, offset) if opens < closes else iter(())

    def count(self, opens: int, closes: int) -> int:
        """Count the named readings in [opens, closes)."""
        return self._readings.count(*self._clip(opens, closes))

    def bits(self, opens: int, closes: int) -> int:
        """Return the named readings in [opens, closes) as a set: bit n is the reading `opens + n`."""
        first, end = self._clip(opens, closes)
        return self._readings.bits(first, end) << (first - opens) if first < end else 0

    def _clip(self, opens: int, closes: int) -> tuple[int, int]:
        return max(opens, self._first), closes if self._closes is None else min(closes, self._closes)


def _part_of_day(clock: Clock, midnight: int, opens: int, closes: int, offset: int) -> Iterator[int]:
    for hour in clock.hours:
        start = midnight + hour
        marks = clock.marks[bisect_left(clock.marks, opens - start) : bisect_left(clock.marks, closes - start)]
        for mark in marks:
            yield start + mark - offset


@lru_cache(maxsize=TABLES_SHARED_MAX)
def calendar_of(days: Days) -> Calendar:
    """Return the shared tables of a date half."""
    return Calendar(days)


@lru_cache(maxsize=TABLES_SHARED_MAX)
def clock_of(hours: tuple[int, ...], minutes: tuple[int, ...], seconds: tuple[int, ...]) -> Clock:
    """Return the shared tables of a time half."""
    return Clock(
        hours=tuple(hour * HOUR for hour in hours),
        marks=tuple(minute * 60 + second for minute in minutes for second in seconds),
        hour_at_or_after=tuple(next((hour for hour in hours if hour >= start), HOURS) for start in range(HOURS + 1)),
    )


def _bits(clock: Clock) -> int:
    of_an_hour = sum(1 << mark for mark in clock.marks)
    return sum(of_an_hour << hour for hour in clock.hours)


def _shape_of(named: frozenset[int]) -> Shape:
    days = tuple(sorted(named))
    return Shape(days, tuple(next((day for day in days if day >= start), 0) for start in range(33)))


def _civil(day: int) -> tuple[int, int, int]:
    found = date.fromordinal(day + EPOCH_ORDINAL)
    return found.year, found.month, found.day


def _first_day(year: int, month: int) -> int:
    return date(year, month, 1).toordinal() - EPOCH_ORDINAL


def _length(year: int, month: int) -> int:
    if month == FEBRUARY:
        return 29 if year % 4 == 0 and (year % 100 or year % 400 == 0) else 28
    return 30 if month in SHORT_MONTHS else 31
