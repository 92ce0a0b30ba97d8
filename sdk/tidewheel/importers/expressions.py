"""Cron expressions of Kubernetes, EventBridge and Quartz in our words: pure functions from text to text.

The three differ from us in what counts weekdays (Quartz and EventBridge: 1 is Sunday), in `?`, in the year behind, and
in what a range or a step may be. What is translated names the same readings of the clock; what cannot be is refused,
with the reason. What their own system would not read is told apart from what we have no words for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

CHARACTERS_MAX = 256  # of an expression in a definition
DIGITS_MAX = 4
YEARS_BEGIN, YEARS_END = 1970, 2099  # who writes years up to here, or further, means no end
YEARS_MAX = 300  # that a field may name: both systems end before 2300
MACROS = frozenset({"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"})
MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
LENGTHS = dict(zip(range(1, 13), (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31), strict=True))


class Unreadable(Exception):
    """Its own system can't read an expression."""


class Untranslatable(Exception):
    """It has a meaning there and no words here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """What one field counts. `shift` makes its numbers ours."""

    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()
    shift: int = 0

    @property
    def size(self) -> int:
        return self.high - self.low + 1


SECOND = Field(name="second", low=0, high=59)
MINUTE = Field(name="minute", low=0, high=59)
HOUR = Field(name="hour", low=0, high=23)
DAY = Field(name="day of month", low=1, high=31)
MONTH = Field(name="month", low=1, high=12, names=MONTHS)
WEEKDAY_FROM_0 = Field(name="day of week", low=0, high=6, names=WEEKDAYS)
WEEKDAY_FROM_1 = Field(name="day of week", low=1, high=7, names=WEEKDAYS, shift=-1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Translated:
    """An expression of ours. `literal`: its day fields are joined with "and" only where one is a bare `*`.

    It holds for the years from `first` to `last`; None: from ever, for ever.
    """

    cron: str
    literal: bool = False
    first: int | None = None
    last: int | None = None


def kubernetes(text: str) -> Translated:
    """Five fields or a macro, as the library reads them that Kubernetes uses: no wrapping, no letters, days from 0."""
    if text.startswith("@"):
        if text not in MACROS:
            raise Unreadable(f"{text[:40]!r} is no time that Kubernetes knows")
        return Translated(cron=text)
    written = _parts(text, 5)
    minute, hour, day, month, weekday = (
        _starred(part, field) for part, field in zip(written, (MINUTE, HOUR, DAY, MONTH, WEEKDAY_FROM_0), strict=True)
    )
    # That library takes a field with a step for a restricted one: then either day field is enough.
    literal = "*" not in (day, weekday) and (day.startswith("*") or weekday.startswith("*"))
    return _checked([minute, hour, day, month, weekday], literal=literal)


def eventbridge(text: str) -> Translated:
    """Minute, hour, day, month, weekday from 1, year."""
    *written, year = _parts(text, 6)
    return _with_letters(written, (MINUTE, HOUR), year)


def quartz(text: str) -> Translated:
    """Second, minute, hour, day, month, weekday from 1, and a year or none."""
    written = text.split()
    year = written.pop() if len(written) == 7 else "*"  # noqa: PLR2004 -- the fields with the year
    return _with_letters(_parts(" ".join(written), 6), (SECOND, MINUTE, HOUR), year)


def weekdays_from_1(text: str) -> str:
    """A weekday field that counts from Sunday as 1, in our numbers."""
    return ",".join(_weekday(item) for item in _items(text.upper(), WEEKDAY_FROM_1))


# --- whole expressions ----------------------------------------------------------------------------------------------


def _parts(text: str, count: int) -> list[str]:
    if not text.isascii() or not text.isprintable():
        raise Unreadable(f"{text[:60]!r} has a character that no expression has")
    parts = text.split()
    if len(parts) != count:
        raise Unreadable(f"{text[:60]!r} has {len(parts)} fields, not {count}")
    return [part.upper() for part in parts]


def _with_letters(written: list[str], clock: tuple[Field, ...], year: str) -> Translated:
    *times, day, month, weekday = written
    if (day == "?") is (weekday == "?"):
        raise Unreadable("exactly one of day of month and day of week must be ?")
    parts = [
        *(_plain(part, field) for part, field in zip(times, clock, strict=True)),
        "*" if day == "?" else ",".join(_day(item) for item in _items(day, DAY)),
        _plain(month, MONTH),
        "*" if weekday == "?" else weekdays_from_1(weekday),
    ]
    first, last = _years(year)
    return replace(_checked(parts, literal=False), first=first, last=last)


def _checked(parts: list[str], *, literal: bool) -> Translated:
    cron = " ".join(parts)
    if len(cron) > CHARACTERS_MAX:
        raise Untranslatable(f"it has {len(cron)} characters, and at most {CHARACTERS_MAX} are taken")
    *_, day, month, weekday = parts
    if weekday == "*" and not _ever(day, month):
        raise Untranslatable("no month has such a day, so it never runs: start what it is for by hand")
    return Translated(cron=cron, literal=literal)


def _years(text: str) -> tuple[int | None, int | None]:
    """The first and the last year that a field names; None where it names all before or behind."""
    named: set[int] = set()
    for item in text.split(","):
        match = re.fullmatch(r"(?:\*|(\d{4})(?:-(\d{4}))?)(?:/(\d{1,3}))?", item, re.ASCII)
        if match is None or match[3] == "0" * len(match[3] or "x"):
            raise Unreadable(f"{text[:40]!r} is no year")
        first, last, step = match.groups()
        begin = int(first or YEARS_BEGIN)
        end = int(last) if last else begin if first and not step else YEARS_END
        named.update(range(begin, min(end, begin + YEARS_MAX) + 1, int(step or 1)))
    if not named or max(named) - min(named) + 1 > len(named):
        raise Untranslatable(f"it runs in the years {text[:40]} only, and beginning and end cannot say that")
    return min(named) if min(named) > YEARS_BEGIN else None, max(named) if max(named) < YEARS_END else None


def _ever(day: str, month: str) -> bool:
    """Whether any of the months has any of the days, with every weekday allowed. Both fields are ours already."""
    months = {number for item in month.split(",") for number in _numbers(item, MONTH)}
    return any(_in_month(item, LENGTHS[number]) for number in months for item in day.split(","))


def _in_month(item: str, length: int) -> bool:
    if item in {"L", "LW"}:
        return True
    if item.startswith("L-"):
        return int(item[2:]) < length
    return any(number <= length for number in _numbers(item.removesuffix("W"), DAY))


# --- fields and items -----------------------------------------------------------------------------------------------


def _starred(text: str, field: Field) -> str:
    """A field for Kubernetes: `?` is a star, a star beside others is all of them, and empty items count for nothing."""
    items = [item.replace("?", "*", 1) if item.startswith("?") else item for item in text.split(",") if item]
    if not items:
        raise Unreadable(f"{text[:40]!r} is no {field.name}")
    found = [_item(item, field, wraps=False) for item in items]
    return "*" if {"*", "*/1"} & set(found) else ",".join(found)


def _plain(text: str, field: Field) -> str:
    return ",".join(_item(item, field) for item in _items(text, field))


def _items(text: str, field: Field) -> list[str]:
    items = text.split(",")
    if not all(items):
        raise Unreadable(f"{text[:40]!r} is no {field.name}")
    return items


def _day(item: str) -> str:
    if item in {"L", "LW"}:
        return item
    if re.fullmatch(r"L-\d{1,2}W", item):
        raise Untranslatable(f"the workday nearest to a day before the last ({item}) has no counterpart")
    if match := re.fullmatch(r"L-(\d{1,2})", item):
        if not 0 <= int(match[1]) <= DAY.high - 1:
            raise Unreadable(f"{item!r} is no day of month")
        return f"L-{int(match[1])}" if int(match[1]) else "L"
    if item.endswith("W"):
        return f"{_value(item[:-1], DAY, item)}W"
    return _item(item, DAY)


def _weekday(item: str) -> str:
    """One item of a weekday field that counts from 1, counted from 0."""
    if item == "L":
        return "6"  # a bare L is Saturday, the seventh day
    if item.endswith("L"):
        return f"{_ours(item[:-1], WEEKDAY_FROM_1, item)}L"
    day, sharp, count = item.partition("#")
    if sharp:
        if count not in {"1", "2", "3", "4", "5"}:
            raise Unreadable(f"{item[:40]!r}: no month has that weekday")
        return f"{_ours(day, WEEKDAY_FROM_1, item)}#{count}"
    return _item(item, WEEKDAY_FROM_1)


def _item(item: str, field: Field, *, wraps: bool = True) -> str:
    """`*`, a value or a range, each with a step or without: the same in our numbers."""
    base, slash, step_text = item.partition("/")
    step = _step(step_text, field, item) if slash else 0
    if base == "*" or (wraps and slash and not base):  # Quartz takes /5 for */5
        return "*" if not slash else f"*/{step}" if step <= field.size else str(field.low + field.shift)
    first, dash, last = base.partition("-")
    low = _value(first, field, item)
    if dash and _value(last, field, item) < low and not wraps:
        raise Unreadable(f"{item[:40]!r} is no {field.name}: it begins behind its end")
    if step > field.size:
        return _ours(first, field, item)  # a step beyond the field's end is never taken
    ours = f"{_ours(first, field, item)}-{_ours(last, field, item)}" if dash else _ours(first, field, item)
    return f"{ours}/{step}" if slash else ours


def _step(text: str, field: Field, item: str) -> int:
    step = _digits(text)
    if not step:
        raise Unreadable(f"{item[:40]!r} is no {field.name}: its step is no number from 1")
    return step


def _ours(text: str, field: Field, item: str) -> str:
    """A value as we write it: a name as it is, a number shifted."""
    value = _value(text, field, item)
    return text if text in field.names else str(value + field.shift)


def _value(text: str, field: Field, item: str) -> int:
    value = field.low + field.names.index(text) if text in field.names else _digits(text)
    if value is None or not field.low <= value <= field.high:
        raise Unreadable(f"{item[:40]!r} is no {field.name}")
    return value


def _digits(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= DIGITS_MAX else None


def _numbers(item: str, field: Field) -> Iterator[int]:
    """What an item names, of a field whose numbers are ours already."""
    base, _, step = item.partition("/")
    first, dash, last = base.partition("-")
    begin = field.low if base == "*" else _value(first, field, item)
    end = _value(last, field, item) if dash else field.high if base == "*" or step else begin
    for number in range(begin, end + (field.size if end < begin else 0) + 1, int(step or 1)):
        yield (number - field.low) % field.size + field.low
