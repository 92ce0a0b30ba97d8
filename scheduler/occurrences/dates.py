"""The days that a recurrence rule names, by python-dateutil, a year at a time.

dateutil walks from DTSTART, however long ago that is, and looks for a day that never comes until the year 9999. So
each year is asked for by itself, as one of its shape that is nearly the last: DTSTART is moved by whole periods, which
changes nothing, as what a rule takes from it has been written out by then. What a year names is one integer: bit 0 is
the first of January.
"""

from calendar import isleap
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import MAXYEAR, date, datetime
from functools import lru_cache

from dateutil import rrule

from scheduler.occurrences.readings import EPOCH_ORDINAL, TABLES_SHARED_MAX, YEARS_SEARCHED_MAX

YEARLY, MONTHLY, WEEKLY, DAILY = "YEARLY", "MONTHLY", "WEEKLY", "DAILY"
# A year has one of fourteen shapes, and the last 28 years have them all.
LIKE = {(isleap(year), date(year, 1, 1).weekday()): year for year in range(9972, 10_000)}
YEAR_DAYS_MAX = 366
EVERY_WEEKDAY = tuple((weekday, 0) for weekday in range(7))
YEARS_KEPT_MAX = 256  # of one rule, a hundred bytes each
YEARS_JUDGED = 100  # how far ahead a rule is looked at before it is accepted: some milliseconds
DAYS_APART_MAX = 14_610  # 40 years


@dataclass(frozen=True, slots=True, kw_only=True)
class Dates:
    """The day half of a rule, with nothing left to be taken from DTSTART. `start`: what an interval counts from."""

    frequency: str
    interval: int
    start: int
    months: tuple[int, ...]
    month_days: tuple[int, ...]
    year_days: tuple[int, ...]
    weeks: tuple[int, ...]
    weekdays: tuple[tuple[int, int], ...]  # Monday is 0; the second is which of its period, 0 for all
    positions: tuple[int, ...]
    week_start: int

    @property
    def filtered(self) -> bool:
        """Whether anything but the period itself says which days."""
        return bool(self.months or self.month_days or self.year_days or self.weeks or self.weekdays)

    def ever(self, day: int) -> bool:
        """Whether a day is named from `day` on."""
        return dates_of(self).at_or_after(day) is not None

    def too_rare(self, day: int) -> bool:
        """Whether two of its days in the hundred years from `day` on are more than 40 years apart."""
        if self.frequency in (DAILY, WEEKLY) and not (self.months or self.month_days or self.year_days):
            return False  # as far apart as the interval, which is bounded
        return _too_rare(self, _year(day))


class RuleCalendar:
    """Says which days a rule names, as `Calendar` does for an expression."""

    __slots__ = ("_dates", "_years", "every_day")

    def __init__(self, dates: Dates) -> None:
        """Years are asked for when they are first met."""
        self._dates = dates
        self._years: dict[int, int] = {}
        self.every_day = dates.frequency == DAILY and dates.interval == 1 and not dates.filtered

    def at_or_after(self, day: int) -> int | None:
        """Return the first named day from `day` on; None when the next 41 years have none."""
        if self.every_day:
            return day
        year = _year(day)
        for later in range(year, min(year + YEARS_SEARCHED_MAX, MAXYEAR) + 1):
            first = _new_year(later)
            skipped = max(0, day - first)
            named = self.of_year(later) >> skipped
            if named:
                return first + skipped + (named & -named).bit_length() - 1
        return None

    def between(self, first_day: int, last_day: int) -> Iterator[int]:
        """Yield the named days from `first_day` to `last_day`, both included."""
        if self.every_day:
            yield from range(first_day, last_day + 1)
            return
        for begins, named in self._cut(first_day, last_day):
            left = named
            while left:
                lowest = left & -left
                yield begins + lowest.bit_length() - 1
                left ^= lowest

    def count(self, first_day: int, last_day: int) -> int:
        """Count the named days from `first_day` to `last_day`, both included, a year at a time."""
        if self.every_day:
            return max(0, last_day - first_day + 1)
        return sum(named.bit_count() for _, named in self._cut(first_day, last_day))

    def of_year(self, year: int) -> int:
        """Return the named days of a year as a set: bit 0 is its first."""
        found = self._years.get(year)
        if found is None:
            if len(self._years) >= YEARS_KEPT_MAX:
                self._years.clear()
            found = self._years[year] = _of_year(self._dates, year)
        return found

    def _cut(self, first_day: int, last_day: int) -> Iterator[tuple[int, int]]:
        """Yield first days and sets of days, one pair a year."""
        if first_day > last_day:
            return
        for year in range(_year(first_day), _year(last_day) + 1):
            begins = max(first_day, _new_year(year))
            ends = min(last_day, _new_year(year) + 365)
            named = self.of_year(year) >> (begins - _new_year(year))
            yield begins, named & ((1 << (ends - begins + 1)) - 1)


@lru_cache(maxsize=TABLES_SHARED_MAX)
def dates_of(dates: Dates) -> RuleCalendar:
    """Return the shared tables of a day half."""
    return RuleCalendar(dates)


def _of_year(dates: Dates, year: int) -> int:
    """Steps of days and weeks are laid over what the other parts leave of a year; dateutil does months and years."""
    start, interval = date.fromordinal(dates.start + EPOCH_ORDINAL), dates.interval
    new_year = date(year, 1, 1).toordinal()
    match dates.frequency:
        case "YEARLY":
            return 0 if (year - start.year) % interval else _named(dates, _like(year), 1)
        case "MONTHLY":
            behind = (start.year * 12 + start.month - 1 - year * 12) % interval
            return 0 if behind > 11 else _named(dates, _like(year), behind + 1)  # noqa: PLR2004 -- from January
        case "WEEKLY":
            first = start.toordinal() - (start.weekday() - dates.week_start) % 7 - new_year
            return _named(dates, _like(year), 1) & _every(first, 7 * interval, 7)
        case _:
            return _named(dates, _like(year), 1) & _every(start.toordinal() - new_year, interval, 1)


def _every(first: int, step: int, length: int) -> int:
    """Return a year's days of which every step from `first`, back and forth, takes so many."""
    begins = (first + length) % step - length  # one that began last year may reach into this one
    block = (1 << length) - 1
    days = range(begins, YEAR_DAYS_MAX, step)
    return sum(block << day if day >= 0 else block >> -day for day in days) & ((1 << YEAR_DAYS_MAX) - 1)


@lru_cache(maxsize=TABLES_SHARED_MAX)
def _named(dates: Dates, year: int, month: int) -> int:
    """Ask dateutil for one year, from a month on."""
    by_days = dates.frequency in (DAILY, WEEKLY)
    rule = rrule.rrule(
        rrule.MONTHLY if dates.frequency == MONTHLY else rrule.YEARLY,
        dtstart=datetime(year, month, 1),  # noqa: DTZ001 -- a reading has no zone
        until=datetime(year, 12, 31),  # noqa: DTZ001
        interval=dates.interval if dates.frequency == MONTHLY else 1,
        wkst=dates.week_start,
        bymonth=dates.months or None,
        bymonthday=dates.month_days or None,
        byyearday=dates.year_days or None,
        byweekno=dates.weeks or None,
        byweekday=_weekdays(dates.weekdays or (EVERY_WEEKDAY if by_days else ())),
        bysetpos=dates.positions or None,
    )
    first = date(year, 1, 1).toordinal()
    return sum(1 << (found.toordinal() - first) for found in rule)


def _weekdays(weekdays: tuple[tuple[int, int], ...]) -> list[rrule.weekday] | None:
    return [rrule.weekday(weekday, nth or None) for weekday, nth in weekdays] or None


def _like(year: int) -> int:
    """Return the last year with the same days. dateutil looks for a day that never comes until time ends, in 9999."""
    return LIKE[isleap(year), date(year, 1, 1).weekday()]


@lru_cache(maxsize=TABLES_SHARED_MAX)
def _too_rare(dates: Dates, year: int) -> bool:
    calendar, before, first = dates_of(dates), None, 0
    for later in range(year, min(year + YEARS_JUDGED, MAXYEAR) + 1):
        named, first = calendar.of_year(later), _new_year(later)
        if not named:
            continue
        if before is not None and first + (named & -named).bit_length() - 1 - before > DAYS_APART_MAX:
            return True
        before = first + named.bit_length() - 1
    return before is None or first - before > DAYS_APART_MAX


def _year(day: int) -> int:
    return date.fromordinal(day + EPOCH_ORDINAL).year


def _new_year(year: int) -> int:
    return date(year, 1, 1).toordinal() - EPOCH_ORDINAL
