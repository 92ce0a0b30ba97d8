"""A cron expression: text in, an immutable value that names wall-clock readings out.

Five fields (minute, hour, day of the month, month, weekday) or six with seconds in front; names, lists, ranges that may
wrap, steps, `?`, `L`, `L-n`, `LW`, `nW`, `n#k`, `nL`, `H` and the usual macros. Whatever cannot be meant is refused.
"""

from dataclasses import dataclass
from typing import Literal

from scheduler.occurrences import fields
from scheduler.occurrences.days import ALL_DAYS, ALL_WEEKDAYS, SATURDAY, Days, MonthDays, WeekDays
from scheduler.occurrences.errors import CronError, shown
from scheduler.occurrences.fields import Circle
from scheduler.occurrences.readings import Readings, calendar_of, clock_of

Dialect = Literal["unix", "quartz"]
DayRule = Literal["vixie", "literal"]

FIELDS, FIELDS_WITH_SECONDS, FIELDS_WITH_YEAR = 5, 6, 7
EXPRESSION_CHARACTERS_MAX = 256  # the contract's limit; no written schedule comes near it
MACROS = {
    "@YEARLY": "0 0 1 1 *",
    "@ANNUALLY": "0 0 1 1 *",
    "@MONTHLY": "0 0 1 * *",
    "@WEEKLY": "0 0 * * 0",
    "@DAILY": "0 0 * * *",
    "@MIDNIGHT": "0 0 * * *",
    "@HOURLY": "0 * * * *",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CronExpression:
    """What an expression names. Equal texts under equal rules are equal; the value can be hashed and shared."""

    text: str
    dialect: Dialect
    day_rule: DayRule
    seconds: tuple[int, ...]
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: Days
    fixed_time: bool  # neither the minute nor the hour begins with `*`: gap and fold policies apply

    def __str__(self) -> str:
        """Return the expression as it was written."""
        return self.text

    def readings(self) -> Readings:
        """Return the readings that it names."""
        return Readings(calendar_of(self.days), clock_of(self.hours, self.minutes, self.seconds))


def parse(
    expression: str,
    *,
    dialect: Dialect | None = None,
    day_rule: DayRule = "vixie",
    hash_key: str | None = None,
) -> CronExpression:
    """Read an expression or raise `CronError`.

    Without a `dialect` weekdays are numbered as in Unix, unless the text looks like Quartz: then it must be said.
    `hash_key` is what `H` takes its place from, such as tenant and schedule name.
    """
    text = _cleaned(expression)
    parts = _expanded(text)
    with_seconds = len(parts) == FIELDS_WITH_SECONDS
    second, minute, hour, month_day, month, weekday = parts if with_seconds else ["0", *parts]
    if with_seconds and dialect is None:
        _refuse_unclear_numbering(month_day, weekday)
    week = fields.WEEKDAY_QUARTZ if dialect == "quartz" else fields.WEEKDAY_UNIX
    parsed = CronExpression(
        text=text,
        dialect=dialect or "unix",
        day_rule=day_rule,
        seconds=_values(second, fields.SECOND, hash_key),
        minutes=_values(minute, fields.MINUTE, hash_key),
        hours=_values(hour, fields.HOUR, hash_key),
        days=Days(
            months=frozenset(_values(month, fields.MONTH, hash_key)),
            month_days=_month_days(month_day, hash_key),
            weekdays=_weekdays(weekday, week, hash_key),
            both=_unrestricted(month_day, day_rule) or _unrestricted(weekday, day_rule),
        ),
        fixed_time=not (minute.startswith("*") or hour.startswith("*")),
    )
    if not parsed.days.ever():
        raise CronError(
            "day_of_month",
            "No month of this expression has such a day, so it can never fire.",
            "Choose a day that exists, or L for the last day of the month.",
        )
    return parsed


def _cleaned(expression: str) -> str:
    """Return the expression in capitals with single blanks, or refuse what could hide something."""
    if len(expression) > EXPRESSION_CHARACTERS_MAX:
        problem = f"The expression has {len(expression)} characters."
        raise CronError("expression", problem, f"Use at most {EXPRESSION_CHARACTERS_MAX}.")
    if not all(" " <= character <= "~" or character == "\t" for character in expression):
        problem = f"{shown(expression)} has a character that is not plain ASCII."
        raise CronError("expression", problem, "Use ASCII letters, digits, signs, blanks and tabs.")
    return " ".join(expression.upper().split())


def _expanded(text: str) -> list[str]:
    """Return the fields of an expression or of a macro."""
    if text.startswith("@"):
        return _macro(text).split()
    if text.startswith(("TZ=", "CRON_TZ=")):
        raise CronError("expression", "A zone prefix is not part of an expression.", "Name the zone in `timezone`.")
    parts = text.split()
    if len(parts) == FIELDS_WITH_YEAR:
        raise CronError("expression", "A year field is not supported.", "Use `start_at` and `end_at` instead.")
    if len(parts) not in (FIELDS, FIELDS_WITH_SECONDS):
        problem = f"There are {len(parts)} fields."
        raise CronError("expression", problem, "Write minute, hour, day, month, weekday; seconds may come first.")
    return parts


def _macro(text: str) -> str:
    if text == "@REBOOT":
        problem = "@reboot has no time of its own: a schedule outlives the machines that run it."
        raise CronError("expression", problem, "Name a time, or trigger the schedule when a machine starts.")
    if text not in MACROS:
        known = ", ".join(name.lower() for name in MACROS)
        raise CronError(
            "expression", f"{shown(text.lower())} is not a known macro.", f"Use one of {known}, or `every`."
        )
    return MACROS[text]


def _refuse_unclear_numbering(month_day: str, weekday: str) -> None:
    """Refuse what was probably copied from Quartz: there 2 is Monday, in Unix it is Tuesday."""
    if "?" in (month_day, weekday) and fields.weekday_is_numeric(weekday):
        problem = f"It is not clear which days {shown(weekday)} means: this looks like Quartz, where 1 is Sunday."
        raise CronError("day_of_week", problem, "Say `dialect: quartz` or `dialect: unix`, or use names such as MON.")


def _unrestricted(day_field: str, day_rule: DayRule) -> bool:
    # Debian's cron joins the day fields with AND when either *begins* with a star, so `*/2` counts too.
    return day_field.startswith(("*", "?")) if day_rule == "vixie" else day_field in ("*", "?")


def _values(text: str, circle: Circle, hash_key: str | None) -> tuple[int, ...]:
    return tuple(sorted(position + circle.low for position in fields.positions(text, circle, hash_key)))


def _month_days(text: str, hash_key: str | None) -> MonthDays:
    if text == "?":
        return MonthDays(numbers=ALL_DAYS)
    numbers: set[int] = set()
    before_last: set[int] = set()
    nearest: set[int] = set()
    last_workday = False
    for item in fields.items(text, fields.DAY_OF_MONTH):
        if item == "LW":
            last_workday = True
        elif item.startswith("L"):
            before_last.add(_days_before_last(item))
        elif item.endswith("W"):
            nearest.add(_plain_day(item.removesuffix("W"), item))
        else:
            numbers.update(position + 1 for position in fields.item_positions(item, fields.DAY_OF_MONTH, hash_key))
    return MonthDays(
        numbers=frozenset(numbers),
        before_last=frozenset(before_last),
        nearest=frozenset(nearest),
        last_workday=last_workday,
    )


def _days_before_last(item: str) -> int:
    if item == "L":
        return 0
    count = fields.number(item.removeprefix("L-"), fields.DAY_OF_MONTH)
    if count is None or count not in range(1, 31):
        raise CronError("day_of_month", f"{shown(item)} is not a day.", "Write L, LW, or L-1 to L-30.")
    return count


def _plain_day(text: str, item: str) -> int:
    day = fields.number(text, fields.DAY_OF_MONTH)
    if day is None or day not in range(1, 32):
        raise CronError("day_of_month", f"{shown(item)} is not a day.", "Write one day and W, such as 15W, or LW.")
    return day


def _weekdays(text: str, week: Circle, hash_key: str | None) -> WeekDays:
    if text == "?":
        return WeekDays(numbers=ALL_WEEKDAYS)
    numbers: set[int] = set()
    nth: set[tuple[int, int]] = set()
    last: set[int] = set()
    for item in fields.items(text, week):
        if "#" in item:
            nth.add(_nth_weekday(item, week))
        elif item == "L":
            numbers.add(_end_of_week(week))
        elif item.endswith("L"):
            last.add(fields.one_position(item.removesuffix("L"), week))
        else:
            numbers.update(fields.item_positions(item, week, hash_key))
    return WeekDays(numbers=frozenset(numbers), nth=frozenset(nth), last=frozenset(last))


def _nth_weekday(item: str, week: Circle) -> tuple[int, int]:
    weekday, _, count_text = item.partition("#")
    count = fields.number(count_text, week)
    if count is None or count not in range(1, 6):
        raise CronError("day_of_week", f"No month has the weekday {shown(item)}.", "Write #1 to #5, or L for the last.")
    return fields.one_position(weekday, week), count


def _end_of_week(week: Circle) -> int:
    if week is fields.WEEKDAY_QUARTZ:
        return SATURDAY  # Quartz reads a bare L as its day 7
    raise CronError("day_of_week", "L stands alone.", "Write the day it belongs to: 5L is the last Friday, 6 Saturday.")
