"""Which days of a month an expression names.

A month looks one of 28 ways: it has 28, 29, 30 or 31 days and begins on one of seven weekdays. So a day
rule is a function of (length, first weekday), and whether it can ever fire is decided by looking at all of them.
"""

from collections.abc import Iterator
from dataclasses import dataclass

SUNDAY, SATURDAY = 0, 6
FEBRUARY = 2
SHORT_MONTHS = frozenset({4, 6, 9, 11})
ALL_DAYS = frozenset(range(1, 32))
ALL_WEEKDAYS = frozenset(range(7))
ALL_MONTHS = frozenset(range(1, 13))


@dataclass(frozen=True, slots=True, kw_only=True)
class MonthDays:
    """The day-of-month field."""

    numbers: frozenset[int] = frozenset()
    before_last: frozenset[int] = frozenset()  # 0 is `L`, n is `L-n`
    last_workday: bool = False  # `LW`
    nearest: frozenset[int] = frozenset()  # `nW`: the workday nearest to the nth, inside the month

    def in_month(self, length: int, first_weekday: int) -> frozenset[int]:
        """Return the days named in a month of this shape."""
        days = {day for day in self.numbers if day <= length}
        days |= {length - back for back in self.before_last if back < length}
        days |= {_nearest_workday(day, length, first_weekday) for day in self.nearest if day <= length}
        if self.last_workday:
            days.add(_nearest_workday(length, length, first_weekday))
        return frozenset(days)


@dataclass(frozen=True, slots=True, kw_only=True)
class WeekDays:
    """The day-of-week field; Sunday is 0."""

    numbers: frozenset[int] = frozenset()
    nth: frozenset[tuple[int, int]] = frozenset()  # (weekday, k): `5#3` is the third Friday
    last: frozenset[int] = frozenset()  # `5L` is the last Friday

    def in_month(self, length: int, first_weekday: int) -> frozenset[int]:
        """Return the days named in a month of this shape."""
        days = {day for day in range(1, length + 1) if _weekday(day, first_weekday) in self.numbers}
        days |= {1 + (weekday - first_weekday) % 7 + 7 * (k - 1) for weekday, k in self.nth}
        days |= {day for day in range(length - 6, length + 1) if _weekday(day, first_weekday) in self.last}
        return frozenset(day for day in days if day <= length)


@dataclass(frozen=True, slots=True, kw_only=True)
class Days:
    """Both day fields and the months: the date half of an expression."""

    months: frozenset[int]
    month_days: MonthDays
    weekdays: WeekDays
    both: bool  # whether a day needs both fields, or either is enough

    def in_month(self, length: int, first_weekday: int) -> frozenset[int]:
        """Return the days on which the expression fires in one of its months, given the month's shape."""
        by_number = self.month_days.in_month(length, first_weekday)
        by_weekday = self.weekdays.in_month(length, first_weekday)
        return by_number & by_weekday if self.both else by_number | by_weekday

    def ever(self) -> bool:
        """Say whether any day of the calendar is named. All shapes of a month come up within 400 years."""
        return any(self.in_month(*shape) for month in self.months for shape in _shapes(month))

    def always(self) -> bool:
        """Say whether every day is named, which lets most schedules skip the calendar altogether."""
        number, weekday = self.month_days.numbers >= ALL_DAYS, self.weekdays.numbers >= ALL_WEEKDAYS
        return self.months >= ALL_MONTHS and ((number and weekday) if self.both else (number or weekday))


def _shapes(month: int) -> Iterator[tuple[int, int]]:
    lengths = (28, 29) if month == FEBRUARY else (30,) if month in SHORT_MONTHS else (31,)
    return ((length, first) for length in lengths for first in range(7))


def _weekday(day: int, first_weekday: int) -> int:
    return (day - 1 + first_weekday) % 7


def _nearest_workday(day: int, length: int, first_weekday: int) -> int:
    weekday = _weekday(day, first_weekday)
    if weekday == SATURDAY:
        return day - 1 if day > 1 else day + 2
    if weekday == SUNDAY:
        return day + 1 if day < length else day - 2
    return day
