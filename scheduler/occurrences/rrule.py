"""A recurrence rule of RFC 5545: text in, an immutable value that names wall-clock readings out.

Every rule that is accepted is a set of days times a set of times of day, bounded below by its DTSTART and above by its
COUNT. That makes it as cheap as a cron expression: nothing is walked second by second, whatever a rule asks for. What
does not come apart like that is refused, and so is what readers of the RFC do not agree about.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from itertools import islice

from scheduler.occurrences.dates import DAILY, MONTHLY, WEEKLY, YEARLY, Dates, dates_of
from scheduler.occurrences.errors import RuleError, shown
from scheduler.occurrences.readings import DAY, EPOCH_ORDINAL, HOUR, BoundedReadings, Readings, clock_of

RULE_CHARACTERS_MAX = 256  # the contract's limit, as for an expression
COUNT_MAX = 10_000  # the last reading is looked for once, from DTSTART: some 30 ms for this many days
COUNT_YEARS_MAX = 400  # how far it is looked for: the calendar repeats itself then
MINUTE = 60
HOURLY, MINUTELY, SECONDLY = "HOURLY", "MINUTELY", "SECONDLY"
UNIT_SECONDS = {HOURLY: HOUR, MINUTELY: MINUTE, SECONDLY: 1}
INTERVALS_MAX = {YEARLY: 40, MONTHLY: 480, WEEKLY: 2_087, DAILY: 14_610}  # 40 years: as far as anything looks ahead
WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
PARTS = ("FREQ", "INTERVAL", "COUNT", "UNTIL", "WKST", "BYMONTH", "BYMONTHDAY", "BYYEARDAY", "BYWEEKNO", "BYDAY",
         "BYHOUR", "BYMINUTE", "BYSECOND", "BYSETPOS")  # fmt: skip
# Weeks 52 and 53 and those counted from the end: libraries differ about the days of them that lie in January.
RANGES = {"BYMONTH": (1, 12), "BYMONTHDAY": (1, 31), "BYYEARDAY": (1, 366), "BYWEEKNO": (1, 51), "BYHOUR": (0, 23),
          "BYMINUTE": (0, 59), "BYSECOND": (0, 59), "BYSETPOS": (1, 366)}  # fmt: skip
FROM_THE_END = ("BYMONTHDAY", "BYYEARDAY", "BYSETPOS")  # may be negative
# What the RFC allows a part with, less what says nothing or can be said plainly.
ONLY_WITH: Mapping[str, tuple[Collection[str], str]] = {
    "BYWEEKNO": ((YEARLY,), "Use FREQ=YEARLY."),
    "BYYEARDAY": ((YEARLY, HOURLY, MINUTELY, SECONDLY), "Use FREQ=YEARLY."),
    "BYMONTHDAY": ((YEARLY, MONTHLY, DAILY, HOURLY, MINUTELY, SECONDLY), "Use FREQ=MONTHLY, or BYDAY."),
    "BYSETPOS": ((YEARLY, MONTHLY), "Name the days or times themselves."),
}
NTH_MAX = {MONTHLY: 5, YEARLY: 53}


@dataclass(frozen=True, slots=True, kw_only=True)
class Recurrence:
    """What a rule names. `start` is its DTSTART as a reading, `until` its UNTIL as an instant."""

    text: str
    frequency: str
    interval: int
    start: int
    dates: Dates
    hours: tuple[int, ...]
    minutes: tuple[int, ...]
    seconds: tuple[int, ...]
    count: int | None
    until: int | None
    fixed_time: bool  # it steps by days or more: gap and fold policies apply

    def __str__(self) -> str:
        """Return the rule as it was written."""
        return self.text

    def readings(self) -> BoundedReadings:
        """Return the readings that it names, from DTSTART to the last that COUNT allows."""
        return BoundedReadings(_unbounded(self), self.start, None if self.count is None else _last(self))


def parse_rule(text: str, start: int) -> Recurrence:
    """Read a rule whose DTSTART is the reading `start`, or raise `RuleError`."""
    parts = _parts(text)
    frequency = _frequency(parts)
    numbers = {name: _numbers(name, parts[name]) for name in RANGES if name in parts}
    interval = _whole("INTERVAL", parts.get("INTERVAL", "1"))
    _refuse_strangers(frequency, parts)
    hours, minutes, seconds = _times(frequency, interval, numbers, start)
    if "BYSETPOS" in numbers and len(hours) * len(minutes) * len(seconds) > 1:
        raise RuleError("BYSETPOS", "The rule has several times of day to choose from.", "Name one time of day.")
    rule = Recurrence(
        text=text.upper(),
        frequency=frequency,
        interval=interval,
        start=start,
        dates=_dates(frequency, interval, parts, numbers, start // DAY),
        hours=hours,
        minutes=minutes,
        seconds=seconds,
        count=_count(parts),
        until=_until(parts),
        fixed_time=frequency not in UNIT_SECONDS,
    )
    _refuse_what_never_comes(rule)
    return rule


# ------------------------------------------------------------------------------------------------------ text


def _parts(text: str) -> dict[str, str]:
    if len(text) > RULE_CHARACTERS_MAX:
        raise RuleError("rule", f"The rule has {len(text)} characters.", f"Use at most {RULE_CHARACTERS_MAX}.")
    if ":" in text or "\n" in text:
        problem = "DTSTART, RDATE, EXDATE and RRULE: are lines of a calendar and no parts of a rule."
        raise RuleError("rule", problem, "Write FREQ=… alone; use anchor for DTSTART, exclude for EXDATE.")
    parts: dict[str, str] = {}
    for part in text.upper().split(";"):
        name, equals, value = part.partition("=")
        if name not in PARTS or not equals or not value:
            raise RuleError("rule", f"{shown(part)} is not a part of a rule.", f"Use NAME=value; {', '.join(PARTS)}.")
        if name in parts:
            raise RuleError(name, "It stands there twice.", "Write it once, with a list.")
        parts[name] = value
    return parts


def _frequency(parts: Mapping[str, str]) -> str:
    known = (YEARLY, MONTHLY, WEEKLY, DAILY, HOURLY, MINUTELY, SECONDLY)
    if parts.get("FREQ") not in known:
        problem = "It is missing." if "FREQ" not in parts else f"{shown(parts['FREQ'])} is no frequency."
        raise RuleError("FREQ", problem, f"Use one of {', '.join(known)}.")
    return parts["FREQ"]


def _numbers(name: str, text: str) -> tuple[int, ...]:
    low, high = RANGES[name]
    found = set()
    for item in text.split(","):
        digits = item.removeprefix("-" if item.startswith("-") and name in FROM_THE_END else "+")
        if not (digits.isascii() and digits.isdigit() and len(digits) <= 3 and low <= int(digits) <= high):  # noqa: PLR2004 -- the largest has three
            negative = f", or -{high} to -{low}" if name in FROM_THE_END else ""
            raise RuleError(name, f"{shown(item)} is out of range.", f"Use {low} to {high}{negative}.")
        found.add(-int(digits) if item.startswith("-") else int(digits))
    return tuple(sorted(found))


def _whole(name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 10 and int(text)):  # noqa: PLR2004 -- a billion is enough to be refused
        raise RuleError(name, f"{shown(text)} is not a number from 1 on.", "Use a whole number, or leave it out.")
    return int(text)


def _count(parts: Mapping[str, str]) -> int | None:
    if "COUNT" not in parts:
        return None
    if "UNTIL" in parts:
        raise RuleError("COUNT", "COUNT and UNTIL exclude each other.", "Leave one of them out.")
    count = _whole("COUNT", parts["COUNT"])
    if count > COUNT_MAX:
        raise RuleError("COUNT", f"It is over {COUNT_MAX}.", "Use max_runs or end_at instead.")
    return count


def _until(parts: Mapping[str, str]) -> int | None:
    if "UNTIL" not in parts:
        return None
    text = parts["UNTIL"]
    try:
        if len(text) == len("20261231T000000Z") and text.isascii():
            return int(datetime.strptime(text, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp())
    except ValueError:
        pass
    problem = f"{shown(text)} is not an instant of UTC."
    raise RuleError("UNTIL", problem, "Write 20261231T000000Z, or use end_at instead.")


# ------------------------------------------------------------------------------------------------- what is meant


def _refuse_strangers(frequency: str, parts: Mapping[str, str]) -> None:
    """Refuse parts that cannot go together."""
    for name, (frequencies, remedy) in ONLY_WITH.items():
        if name in parts and frequency not in frequencies:
            raise RuleError(name, f"It does not go with FREQ={frequency}.", remedy)
    if "BYWEEKNO" in parts and "BYDAY" not in parts:
        raise RuleError("BYWEEKNO", "It does not say which days of a week.", "Add BYDAY, such as BYDAY=MO.")
    days = {"BYMONTH", "BYMONTHDAY", "BYYEARDAY", "BYWEEKNO", "BYDAY"}
    if "BYSETPOS" in parts and days.isdisjoint(parts):
        raise RuleError("BYSETPOS", "There is nothing to choose from.", "Add BYDAY or BYMONTHDAY.")


def _times(
    frequency: str, interval: int, numbers: Mapping[str, tuple[int, ...]], start: int
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Return hours, minutes and seconds of a day. A frequency of days has those it names, or else DTSTART's."""
    step = interval * UNIT_SECONDS.get(frequency, DAY)
    if frequency in UNIT_SECONDS and not _divides_a_day(step):
        problem = "It does not divide a day evenly, so a clock change could be meant to move it or not."
        raise RuleError("INTERVAL", problem, f"Use every: PT{step}S instead.")
    minutes_given, hours_given = frequency not in (MINUTELY, SECONDLY), frequency not in UNIT_SECONDS
    return (
        _stepped("BYHOUR", numbers, start // HOUR % 24, 24, max(1, step // HOUR), given=hours_given),
        _stepped("BYMINUTE", numbers, start // MINUTE % 60, 60, max(1, step // MINUTE), given=minutes_given),
        _stepped("BYSECOND", numbers, start % 60, 60, step, given=frequency != SECONDLY),
    )


def _divides_a_day(step: int) -> bool:
    """Whether hours, minutes and seconds each have their own share of a step."""
    if step <= MINUTE:
        return MINUTE % step == 0
    if step <= HOUR:
        return step % MINUTE == 0 and HOUR % step == 0
    return step % HOUR == 0 and DAY % step == 0


def _stepped(
    name: str, numbers: Mapping[str, tuple[int, ...]], first: int, size: int, step: int, *, given: bool
) -> tuple[int, ...]:
    """Values of one unit: `given` ones expand a period, others thin what a step names."""
    if given:
        return numbers.get(name, (first,))
    allowed = numbers.get(name, range(size))
    found = tuple(value for value in range(size) if (value - first) % min(step, size) == 0 and value in allowed)
    if not found:
        raise RuleError(name, "INTERVAL, counted from DTSTART, never meets it.", "Change anchor, or leave it out.")
    return found


def _dates(
    frequency: str, interval: int, parts: Mapping[str, str], numbers: Mapping[str, tuple[int, ...]], start: int
) -> Dates:
    """The day half. What a rule does not say comes from DTSTART."""
    period, count = (DAILY, 1) if frequency in UNIT_SECONDS else (frequency, interval)
    if count > INTERVALS_MAX[period]:
        raise RuleError("INTERVAL", "The periods are over 40 years long.", f"Use at most {INTERVALS_MAX[period]}.")
    months, month_days = numbers.get("BYMONTH", ()), numbers.get("BYMONTHDAY", ())
    year_days, weeks = numbers.get("BYYEARDAY", ()), numbers.get("BYWEEKNO", ())
    weekdays = _weekdays(frequency, parts)
    first = datetime.fromordinal(start + EPOCH_ORDINAL)
    if not (month_days or year_days or weeks or weekdays):
        if period == YEARLY:
            months = months or (first.month,)
        if period in (YEARLY, MONTHLY):
            month_days = (first.day,)
        elif period == WEEKLY:
            weekdays = ((first.weekday(), 0),)
    return Dates(
        frequency=period,
        interval=count,
        start=start if count > 1 else 0,  # without an interval nothing depends on it, and tables are shared
        months=months,
        month_days=month_days,
        year_days=year_days,
        weeks=weeks,
        weekdays=weekdays,
        positions=numbers.get("BYSETPOS", ()),
        week_start=_week_start(parts),
    )


def _week_start(parts: Mapping[str, str]) -> int:
    text = parts.get("WKST", "MO")
    if text not in WEEKDAYS:
        raise RuleError("WKST", f"{shown(text)} is not a weekday.", f"Use one of {', '.join(WEEKDAYS)}.")
    return WEEKDAYS.index(text)


def _weekdays(frequency: str, parts: Mapping[str, str]) -> tuple[tuple[int, int], ...]:
    """Weekdays, Monday is 0, each with which of its period: 0 for all of them."""
    found = {_weekday(frequency, item) for item in parts["BYDAY"].split(",")} if "BYDAY" in parts else set()
    counted = [nth for _, nth in found if nth]
    if counted and "BYWEEKNO" in parts:
        raise RuleError("BYDAY", "A week has each weekday once.", "Leave the numbers out.")
    if counted and len(counted) < len(found):
        raise RuleError("BYDAY", "Some weekdays have a number and some have none.", "Write two schedules.")
    return tuple(sorted(found))


def _weekday(frequency: str, item: str) -> tuple[int, int]:
    number, name = item[:-2], item[-2:]
    if name not in WEEKDAYS:
        raise RuleError("BYDAY", f"{shown(item)} is not a weekday.", f"Use {', '.join(WEEKDAYS)}, or 1FR, or -1FR.")
    if not number:
        return WEEKDAYS.index(name), 0
    if frequency not in NTH_MAX:
        raise RuleError("BYDAY", f"{shown(item)} does not go with FREQ={frequency}.", "Use FREQ=MONTHLY or YEARLY.")
    digits, most = number.lstrip("+-"), NTH_MAX[frequency]
    plain = digits.isascii() and digits.isdigit() and len(digits) <= 2 and len(number) - len(digits) <= 1  # noqa: PLR2004 -- 53 has two
    if not plain or not 1 <= int(digits) <= most:
        raise RuleError("BYDAY", f"{shown(item)} is not a weekday.", f"Use 1 to {most}, or -{most} to -1.")
    return WEEKDAYS.index(name), int(number)


# ------------------------------------------------------------------------------------------------------ bounds


def _refuse_what_never_comes(rule: Recurrence) -> None:
    if not rule.dates.ever(rule.start // DAY):
        problem = "It names no day, so it can never fire."
        raise RuleError("rule", problem, "Choose days that exist together.")
    if rule.dates.too_rare(rule.start // DAY):
        problem = "Its days can be over 40 years apart, which is farther than anything looks ahead."
        raise RuleError("rule", problem, "Use at: with the instants themselves.")
    if rule.count is not None:
        _last(rule)


@lru_cache(maxsize=4_096)
def _last(rule: Recurrence) -> int:
    """The reading at which COUNT is used up."""
    assert rule.count is not None, "only a count has a last one"
    readings, left = _unbounded(rule), rule.count
    first_year = datetime.fromordinal(rule.start // DAY + EPOCH_ORDINAL).year
    for year in range(first_year, min(first_year + COUNT_YEARS_MAX, 9999)):
        opens = max(rule.start, _new_year(year))
        closes = _new_year(year + 1)
        named = readings.count(opens, closes)
        if named >= left:
            return next(islice(readings.instants(opens, closes, 0), left - 1, None))
        left -= named
    problem = f"It is not used up within {COUNT_YEARS_MAX} years."
    raise RuleError("COUNT", problem, "Use a smaller one, or leave it out.")


def _new_year(year: int) -> int:
    return (datetime(year, 1, 1).toordinal() - EPOCH_ORDINAL) * DAY  # noqa: DTZ001 -- a reading has no zone


def _unbounded(rule: Recurrence) -> Readings:
    return Readings(dates_of(rule.dates), clock_of(rule.hours, rule.minutes, rule.seconds))
