"""A trigger in words, for people who do not read cron: every accept and every preview shows this sentence.

The words come from what an expression names, not from how it was written: `0 9 * * 1-5` and `0 9 * * MON-FRI` read the
same, and expressions that name different readings never do. Where no phrase fits, the values are listed.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import pairwise

from scheduler.occurrences.cron import CronExpression
from scheduler.occurrences.dates import Dates
from scheduler.occurrences.days import ALL_DAYS, ALL_MONTHS, ALL_WEEKDAYS, Days, MonthDays, WeekDays
from scheduler.occurrences.rrule import Recurrence
from scheduler.occurrences.triggers import AtTrigger, CronTrigger, EveryTrigger, Trigger, UnionTrigger, WindowTrigger

TIMES_LISTED_MAX = 6  # more clock times than this are described by their pattern
INSTANTS_LISTED_MAX = 3
RUN_MIN = 3  # "1 to 3" is shorter than "1, 2 and 3"; "1 and 2" is shorter than "1 to 2"
PROGRESSION_MIN = 5  # "1, 3, 5 ... 9" needs some members to show its step
WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
ORDINALS = ("first", "second", "third", "fourth", "fifth")
PERIODS = {"YEARLY": "year", "MONTHLY": "month", "WEEKLY": "week", "DAILY": "day"}
UNITS = ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))


def describe(subject: CronExpression | Recurrence | Trigger) -> str:
    """Return what a trigger or an expression means, as one sentence without its full stop."""
    match subject:
        case CronExpression() | Recurrence():
            return _named(subject)
        case CronTrigger(expression=expression, zone=zone):
            return f"{_named(expression)}, {zone.name}"
        case UnionTrigger(parts=parts):
            first, *others = dict.fromkeys(_named(part.expression) for part in parts)
            return "; also ".join([first, *map(_uncapitalised, others)]) + f", {parts[0].zone.name}"
        case WindowTrigger(trigger=inner):
            return describe(inner) + _bounds(subject)
        case EveryTrigger(interval_seconds=interval, anchor=anchor):
            return f"Every {_duration(interval)}, counted from {_instant(anchor)}"
        case AtTrigger(instants=instants):
            return _at(instants)
        case _:
            return "At times of its own"


def _named(e: CronExpression | Recurrence) -> str:
    return _cron(e) if isinstance(e, CronExpression) else _recurrence(e)


def _cron(e: CronExpression) -> str:
    times, days = (_clock_times(e), _days(e.days) or "every day") if _few(e) else (_pattern(e), _days(e.days))
    return " ".join(filter(None, (times, days))) + _months(e.days)


# ----------------------------------------------------------------------------------------------- time of day


def _few(e: CronExpression) -> bool:
    return len(e.hours) * len(e.minutes) * len(e.seconds) <= TIMES_LISTED_MAX


def _clock_times(e: CronExpression) -> str:
    if e.seconds == (0,):
        return "At " + _and(_hm(hour, minute) for hour in e.hours for minute in e.minutes)
    return "At " + _and(f"{_hm(h, m)}:{s:02}" for h in e.hours for m in e.minutes for s in e.seconds)


def _pattern(e: CronExpression) -> str:
    if e.seconds != (0,):
        return _pattern_of_seconds(e)
    hours = _stretch_of_hours(e)
    minutes = _step(e.minutes, 60)
    if minutes and hours:
        return (
            f"Every {_several(minutes, 'minute')} from {_hm(hours[0], e.minutes[0])} to {_hm(hours[1], e.minutes[-1])}"
        )
    if minutes and e.minutes[0] == 0:
        return f"Every {_several(minutes, 'minute')}{_of_hours(e)}"
    if len(e.minutes) == 1:
        return _hourly(e, hours, e.minutes[0])
    return f"At {_listed('minute', e.minutes)}{_of_hours(e) or ' of every hour'}"


def _hourly(e: CronExpression, hours: tuple[int, int] | None, minute: int) -> str:
    if hours:
        return f"Every hour from {_hm(hours[0], minute)} to {_hm(hours[1], minute)}"
    step = _step(e.hours, 24)
    if step and minute == e.hours[0] == 0:
        return f"Every {_several(step, 'hour')}"
    return f"At minute {minute}{_of_hours(e) or ' of every hour'}"


def _pattern_of_seconds(e: CronExpression) -> str:
    hours = _stretch_of_hours(e)
    seconds = _step(e.seconds, 60)
    whole_hours = len(e.minutes) == 60  # noqa: PLR2004  (an hour has sixty)
    if seconds and whole_hours and hours:
        first, last = f"{_hm(hours[0], 0)}:{e.seconds[0]:02}", f"{_hm(hours[1], 59)}:{e.seconds[-1]:02}"
        return f"Every {_several(seconds, 'second')} from {first} to {last}"
    if seconds and whole_hours and e.seconds[0] == 0:
        return f"Every {_several(seconds, 'second')}{_of_hours(e)}"
    minutes = "every minute" if whole_hours else _listed("minute", e.minutes)
    return f"At {_listed('second', e.seconds)} of {minutes}{_of_hours(e)}"


def _stretch_of_hours(e: CronExpression) -> tuple[int, int] | None:
    """Return the first and last hour of a run of hours that is not the whole day.

    A run over midnight counts only when every day is named: `0 22-2 * * FRI` is Friday's small hours, not Saturday's.
    """
    run = (e.hours[0], e.hours[0]) if len(e.hours) == 1 else _run(e.hours, 24)
    return run if run and (run[0] <= run[1] or e.days.always()) else None


def _of_hours(e: CronExpression) -> str:
    return "" if _step(e.hours, 24) == 1 else f" of {_listed('hour', e.hours)}"


def _hm(hour: int, minute: int) -> str:
    return f"{hour:02}:{minute:02}"


# ------------------------------------------------------------------------------------------ recurrence rules


def _recurrence(rule: Recurrence) -> str:
    times = _clock_times(_every_day(rule)) if _few(_every_day(rule)) else _pattern(_every_day(rule))
    words = " ".join(filter(None, (times, _period(rule), _rule_days(rule.dates))))
    return words if rule.count is None else f"{words}, {_count(rule.count, 'time')}"


def _every_day(rule: Recurrence) -> CronExpression:
    """The time half of a rule as an expression."""
    return CronExpression(
        text=rule.text, dialect="unix", day_rule="vixie", seconds=rule.seconds, minutes=rule.minutes, hours=rule.hours,
        days=Days(months=ALL_MONTHS, month_days=MonthDays(numbers=ALL_DAYS),
                  weekdays=WeekDays(numbers=ALL_WEEKDAYS), both=True), fixed_time=rule.fixed_time,
    )  # fmt: skip


def _period(rule: Recurrence) -> str:
    dates = rule.dates
    if dates.frequency == "DAILY" and dates.interval == 1:
        return "" if dates.filtered or not _few(_every_day(rule)) else "every day"
    return f"every {_several(dates.interval, PERIODS[dates.frequency])}"


def _rule_days(dates: Dates) -> str:
    """Which days of its periods a rule names."""
    parts = [
        f"on {_and(_rule_weekday(weekday, nth) for weekday, nth in dates.weekdays)}" if dates.weekdays else "",
        f"on {_and(_counted('day', day) for day in dates.month_days)} of the month" if dates.month_days else "",
        f"on {_and(_counted('day', day) for day in dates.year_days)} of the year" if dates.year_days else "",
        f"in {_listed('week', dates.weeks)} of the year" if dates.weeks else "",
        f"in {_month_names(dates.months)}" if dates.months else "",
        f"with weeks that begin on {_monday_first(dates.week_start)}" if dates.week_start and _by_weeks(dates) else "",
        f"only the {_and(_ordinal(position) for position in dates.positions)} of those" if dates.positions else "",
    ]
    return " ".join(filter(None, parts))


def _by_weeks(dates: Dates) -> bool:
    return bool(dates.weeks) or (dates.frequency == "WEEKLY" and dates.interval > 1)


def _rule_weekday(weekday: int, nth: int) -> str:
    return f"the {_ordinal(nth)} {_monday_first(weekday)}" if nth else _monday_first(weekday)


def _counted(unit: str, number: int) -> str:
    return f"{unit} {number}" if number > 0 else f"the {_ordinal(number)} {unit}"


def _ordinal(number: int) -> str:
    if number < 0:
        return "last" if number == -1 else f"last but {-number - 1}"
    return ORDINALS[number - 1] if number <= len(ORDINALS) else f"{number}th"


def _monday_first(weekday: int) -> str:
    return WEEKDAYS[(weekday + 1) % 7]


# ------------------------------------------------------------------------------------------------------ days


def _days(days: Days) -> str:
    """Return which days of its months an expression names; empty for all of them."""
    if _all_month(days) and _all_week(days):
        return ""
    if not days.both:
        either = f"on {_month_days(days.month_days)} or on {_weekdays(days.weekdays)}"
        return "" if _all_month(days) or _all_week(days) else either
    if _is_date(days):
        return f"on {_compressed(sorted(days.month_days.numbers))} {_month_names(days.months)}"
    if _all_month(days):
        return f"on {_weekdays(days.weekdays)}"
    if _all_week(days):
        return f"on {_month_days(days.month_days)}"
    return f"on {_month_days(days.month_days)}, only if it is also {_weekdays(days.weekdays)}"


def _months(days: Days) -> str:
    if days.months >= ALL_MONTHS or _is_date(days):
        return ""
    comma = "" if _all_month(days) or _all_week(days) else ","  # the months bind both day fields
    return f"{comma} in {_month_names(days.months)}"


def _is_date(days: Days) -> bool:
    """Say whether the days are simply dates, such as 29 February."""
    plain = days.month_days == MonthDays(numbers=days.month_days.numbers)
    return len(days.months) == 1 and plain and days.both and _all_week(days) and not _all_month(days)


def _all_month(days: Days) -> bool:
    return days.month_days.numbers >= ALL_DAYS


def _all_week(days: Days) -> bool:
    return days.weekdays.numbers >= ALL_WEEKDAYS


def _month_days(month_days: MonthDays) -> str:
    parts = [f"{_listed('day', sorted(month_days.numbers))} of the month"] if month_days.numbers else []
    parts += [f"the workday nearest to day {day} of the month" for day in sorted(month_days.nearest)]
    parts += [f"{_before_last(back)} of the month" for back in sorted(month_days.before_last, reverse=True)]
    if month_days.last_workday:
        parts.append("the last workday (Monday to Friday) of the month")
    return _and(parts)


def _before_last(back: int) -> str:
    return "the last day" if back == 0 else f"the last day but {back}"


def _weekdays(weekdays: WeekDays) -> str:
    parts = _weekday_names(weekdays.numbers)
    parts += [f"the {ORDINALS[k - 1]} {WEEKDAYS[day]} of the month" for day, k in sorted(weekdays.nth)]
    parts += [f"the last {WEEKDAYS[day]} of the month" for day in sorted(weekdays.last)]
    return _and(parts)


def _weekday_names(numbers: Iterable[int]) -> list[str]:
    run = _run(sorted(numbers), 7)
    if run:
        return [f"{WEEKDAYS[run[0]]} to {WEEKDAYS[run[1]]}"]
    return [WEEKDAYS[day] for day in sorted(numbers, key=lambda day: (day - 1) % 7)]  # a week begins on Monday here


def _month_names(months: Iterable[int]) -> str:
    run = _run([month - 1 for month in sorted(months)], 12)
    if run:
        return f"{MONTHS[run[0]]} to {MONTHS[run[1]]}"
    return _and(MONTHS[month - 1] for month in sorted(months))


# ---------------------------------------------------------------------------------------------------- phrases


def _step(values: Sequence[int], size: int) -> int | None:
    """Return the step of values that divide a circle of `size` evenly."""
    step = size // len(values)
    evenly = len(values) * step == size and list(values) == list(range(values[0], size, step))
    return step if evenly and len(values) > 1 else None


def _run(values: Sequence[int], size: int) -> tuple[int, int] | None:
    """Return first and last of values that are one run on a circle of `size`, but not all of it."""
    starts = [value for value in values if (value - 1) % size not in values]
    if len(values) < RUN_MIN or len(starts) != 1:
        return None
    return starts[0], (starts[0] + len(values) - 1) % size


def _listed(unit: str, values: Sequence[int]) -> str:
    return f"{unit} {values[0]}" if len(values) == 1 else f"{unit}s {_compressed(values)}"


def _compressed(values: Sequence[int]) -> str:
    """Return numbers in order, with runs as "1 to 5" and progressions as "1, 3, 5 ... 31"."""
    steps = {after - before for before, after in pairwise(values)}
    if len(values) >= PROGRESSION_MIN and len(steps) == 1 and steps != {1}:
        return f"{values[0]}, {values[1]}, {values[2]} ... {values[-1]}"
    return _and(part for run in _runs(values) for part in _run_words(run))


def _runs(values: Sequence[int]) -> list[list[int]]:
    runs: list[list[int]] = []
    for value in values:
        if runs and value == runs[-1][-1] + 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    return runs


def _run_words(run: list[int]) -> list[str]:
    return [f"{run[0]} to {run[-1]}"] if len(run) >= RUN_MIN else [str(value) for value in run]


def _and(words: Iterable[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def _uncapitalised(sentence: str) -> str:
    return sentence[0].lower() + sentence[1:]


def _several(count: int, unit: str) -> str:
    return unit if count == 1 else _count(count, unit)


def _count(count: int, unit: str) -> str:
    return f"{count} {unit}" if count == 1 else f"{count} {unit}s"


def _duration(seconds: int) -> str:
    parts = []
    for size, unit in UNITS:
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(_count(count, unit))
    return parts[0].removeprefix("1 ") if len(parts) == 1 else _and(parts)


def _bounds(window: WindowTrigger) -> str:
    start = "" if window.start is None else f", from {_instant(window.start)} on"
    return start if window.end is None else f"{start}, ending before {_instant(window.end)}"


def _at(instants: tuple[int, ...]) -> str:
    if not instants:
        return "Never"
    if len(instants) <= INSTANTS_LISTED_MAX:
        return f"At {_and(_instant(instant) for instant in instants)}"
    return f"At {len(instants)} instants from {_instant(instants[0])} to {_instant(instants[-1])}"


def _instant(instant: int) -> str:
    return datetime.fromtimestamp(instant, UTC).isoformat().replace("+00:00", "Z")
