"""Cron expressions as sets of numbers and one plain test of a date: the audit's own reading of the contract.

It reads only what was accepted, so it refuses little; what it does not understand, it says. Nothing here is shared
with the scheduler: two readings of one contract that agree on every run of a month are evidence, one is not.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from functools import lru_cache
from hashlib import sha256

MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
WEEKDAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]
FIELDS = 5
DAY = 86_400
ONE_DAY = timedelta(days=1)
SATURDAY, SUNDAY = 6, 0


class NotUnderstood(ValueError):
    """The audit cannot read an expression that the scheduler accepted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """The numbers of one field: `low` to `high`, by number or by name."""

    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()
    hashed: int = 0  # how many numbers `H` may choose from

    def number(self, text: str) -> int:
        """A value by number or name."""
        if text in self.names:
            return self.low + self.names.index(text)
        if not text.isascii() or not text.isdigit():
            raise NotUnderstood(f"{text!r} in the field {self.name}")
        return int(text)


SECOND = Field(name="second", low=0, high=59, hashed=60)
MINUTE = Field(name="minute", low=0, high=59, hashed=60)
HOUR = Field(name="hour", low=0, high=23, hashed=24)
MONTH_DAY = Field(name="day_of_month", low=1, high=31, hashed=28)
MONTH = Field(name="month", low=1, high=12, names=tuple(MONTHS), hashed=12)
WEEKDAY = Field(name="day_of_week", low=0, high=6, names=tuple(WEEKDAYS), hashed=7)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)  # compared by identity: `read` makes each one once
class Expression:
    """What an expression names: times of day, in order, and days."""

    times: tuple[int, ...]  # seconds after midnight
    months: frozenset[int]
    month_day: str
    weekday: str
    both_days: bool  # a day needs both fields, not either
    fixed_time: bool  # gap and fold policies apply
    quartz: bool
    hash_key: str

    def names_day(self, day: date) -> bool:
        """Whether it fires on a date at all."""
        if day.month not in self.months:
            return False
        by_number = any(_is_month_day(item, day, self.hash_key) for item in self.month_day.split(","))
        by_weekday = any(self._is_weekday(item, day) for item in self.weekday.split(","))
        return (by_number and by_weekday) if self.both_days else (by_number or by_weekday)

    def readings(self, start: int, end: int) -> Iterator[int]:
        """Local readings in [start, end), as if they were seconds of UTC since 1970."""
        for number in range(start // DAY, (end - 1) // DAY + 1):
            if _day_counts(self, number):
                midnight = number * DAY
                first, behind = bisect_left(self.times, start - midnight), bisect_left(self.times, end - midnight)
                yield from (midnight + time for time in self.times[first:behind])

    def _is_weekday(self, item: str, day: date) -> bool:
        if item in ("*", "?"):
            return True
        weekday = day.isoweekday() % 7  # Sunday is 0
        if "#" in item:
            name, _, nth = item.partition("#")
            return weekday == self._weekday(name) and (day.day - 1) // 7 + 1 == int(nth)
        if item == "L" and self.quartz:
            return weekday == SATURDAY  # Quartz reads a bare L as its day 7
        if item.endswith("L"):
            return weekday == self._weekday(item[:-1]) and (day + 7 * ONE_DAY).month != day.month
        return weekday in _weekday_numbers(item, quartz=self.quartz, hash_key=self.hash_key)

    def _weekday(self, text: str) -> int:
        return _weekday_number(text, quartz=self.quartz) % 7


@lru_cache(maxsize=65_536)  # expressions times days: the same days are asked about for every schedule of an expression
def _day_counts(expression: Expression, number: int) -> bool:
    return expression.names_day(date(1970, 1, 1) + number * ONE_DAY)


def read(text: str, *, dialect: str | None, day_rule: str, hash_key: str) -> Expression:
    """The expression of an accepted definition. `H` takes its place from `hash_key`: tenant/name."""
    named = re.search(r"(^|[\s,])H", text.upper()) is not None  # the others are shared by all schedules that have them
    return _read(text, dialect, day_rule, hash_key if named else "")


@lru_cache(maxsize=1024)  # an expression of every second holds its 86,400 times, three megabytes
def _read(text: str, dialect: str | None, day_rule: str, hash_key: str) -> Expression:
    fields = MACROS.get(text.strip().lower(), text).upper().split()
    if len(fields) not in (FIELDS, FIELDS + 1):
        raise NotUnderstood(f"{text!r} has {len(fields)} fields")
    if len(fields) == FIELDS:
        fields = ["0", *fields]  # seconds may be left out
    second, minute, hour, month_day, month, weekday = fields
    stars = ("*", "?")
    open_day = [(field.startswith(stars) if day_rule == "vixie" else field in stars) for field in (month_day, weekday)]
    seconds, minutes, hours = (_numbers(t, f, hash_key) for t, f in ((second, SECOND), (minute, MINUTE), (hour, HOUR)))
    return Expression(
        times=tuple(h * 3600 + m * 60 + s for h in sorted(hours) for m in sorted(minutes) for s in sorted(seconds)),
        months=_numbers(month, MONTH, hash_key),
        month_day=month_day,
        weekday=weekday,
        both_days=any(open_day),
        fixed_time=not minute.startswith("*") and not hour.startswith("*"),
        quartz=dialect == "quartz",
        hash_key=hash_key,
    )


def _numbers(text: str, field: Field, hash_key: str) -> frozenset[int]:
    return frozenset(number for item in text.split(",") for number in _item_numbers(item, field, hash_key))


@lru_cache(maxsize=4096)
def _item_numbers(item: str, field: Field, hash_key: str) -> frozenset[int]:
    """The numbers of `*`, `n`, `a-b`, each with `/step`, and `H`."""
    base, slash, step = item.partition("/")
    if base.startswith("H"):
        within = [field.number(end) for end in base[2:-1].split("-")] if base != "H" else []
        return _hashed(field, within, int(step) if slash else None, hash_key)
    size = field.high - field.low + 1
    if base == "*":
        first, last = field.low, field.high
    elif "-" in base:
        first, last = (field.number(end) for end in base.split("-"))
        last += size if last < first else 0  # over the end: 22-2, FRI-MON
    else:
        first = field.number(base)
        last = field.high if slash else first
    numbers = range(first, last + 1, int(step) if slash else 1)
    return frozenset((number - field.low) % size + field.low for number in numbers)


def _hashed(field: Field, within: list[int], step: int | None, hash_key: str) -> frozenset[int]:
    """`H`, `H/n`, `H(a-b)`, `H(a-b)/n`: a place that follows from the schedule's name."""
    first, last = within or (field.low, field.low + field.hashed - 1)
    draw = int.from_bytes(sha256(f"{field.name}:{hash_key}".encode("utf-8", "surrogatepass")).digest()[:8], "big")
    if step is None:
        return frozenset({first + draw % (last - first + 1)})
    return frozenset(range(first + draw % min(step, last - first + 1), last + 1, step))


def _is_month_day(item: str, day: date, hash_key: str) -> bool:
    if item in ("*", "?"):
        return True
    last = _last_of_month(day)
    if item == "LW":
        return day == _nearest_workday(last)
    if item == "L":
        return day == last
    if item.startswith("L-"):
        return last.day - day.day == int(item[2:])
    if item.endswith("W"):
        number = int(item[:-1])
        return number <= last.day and day == _nearest_workday(day.replace(day=number))
    return day.day in _item_numbers(item, MONTH_DAY, hash_key)


def _last_of_month(day: date) -> date:
    return (day.replace(day=28) + 4 * ONE_DAY).replace(day=1) - ONE_DAY


def _nearest_workday(day: date) -> date:
    """The workday nearest to a date, without leaving its month."""
    weekday = day.isoweekday() % 7
    if weekday == SATURDAY:
        return day - ONE_DAY if day.day > 1 else day + 2 * ONE_DAY
    if weekday == SUNDAY:
        return day + ONE_DAY if (day + ONE_DAY).month == day.month else day - 2 * ONE_DAY
    return day


def _weekday_number(text: str, *, quartz: bool) -> int:
    """A weekday with Sunday as 0, or as 7 where it was written so. Quartz counts from Sunday as 1."""
    number = WEEKDAY.number(text)
    return number - 1 if quartz and text not in WEEKDAYS else number


def _weekday_numbers(item: str, *, quartz: bool, hash_key: str) -> frozenset[int]:
    base, slash, step = item.partition("/")
    count = int(step) if slash else 1
    if base in ("*", "H"):
        return _item_numbers(item, WEEKDAY, hash_key)
    if base.startswith("H"):
        within = [_weekday_number(end, quartz=quartz) for end in base[2:-1].split("-")]
        return _hashed(WEEKDAY, within, count if slash else None, hash_key)
    first, *rest = (_weekday_number(end, quartz=quartz) for end in base.split("-"))
    if not rest:
        return frozenset(range(first % 7, 7 if slash else first % 7 + 1, count))
    last = rest[0] + 7 if rest[0] < first else rest[0]
    return frozenset(number % 7 for number in range(first, last + 1, count))
