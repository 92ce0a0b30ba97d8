"""Expressions of Kubernetes, EventBridge and Quartz: each names the days and times here that it names there."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.occurrences import CronTrigger, between, parse, zone
from tidewheel.importers import times
from tidewheel.importers.expressions import (
    Translated,
    Unreadable,
    Untranslatable,
    eventbridge,
    kubernetes,
    quartz,
    weekdays_from_1,
)

NAMES = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
YEAR = [date(2027, 1, 1) + timedelta(days=n) for n in range(365)]


def days(translated: Translated) -> list[date]:
    """The days of a year on which our own parser has an expression run."""
    expression = parse(translated.cron, day_rule="literal" if translated.literal else "vixie")
    begin, end = (int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) for year in (2027, 2028))
    found = (
        datetime.fromtimestamp(at, UTC).date()
        for at in between(CronTrigger(expression, zone("UTC")), begin - 1, end - 1)
    )
    return sorted(set(found))


# --- weekdays, read independently -----------------------------------------------------------------------------------


def from_1(day: date) -> int:
    """The number of a day as Quartz and EventBridge count: Sunday is 1, Saturday 7."""
    return day.isoweekday() % 7 + 1


def valued(text: str) -> int:
    return NAMES.index(text) + 1 if text in NAMES else int(text)


def named_by(item: str) -> Callable[[date], bool]:
    """Whether a day is named by an item of a weekday field, walked day by day round the week."""
    if item == "L":
        return lambda day: from_1(day) == 7
    if item.endswith("L"):
        return lambda day: from_1(day) == valued(item[:-1]) and day.day + 7 > monthrange(day.year, day.month)[1]
    if "#" in item:
        weekday, nth = item.split("#")
        return lambda day: from_1(day) == valued(weekday) and (day.day - 1) // 7 + 1 == int(nth)
    base, _, step = item.partition("/")
    if base == "*":
        first, last = 1, 7
    elif "-" in base:
        first, last = map(valued, base.split("-"))
    else:
        first, last = valued(base), 7 if step else valued(base)
    walked, number = [first], first
    while number != last:
        number = number % 7 + 1
        walked.append(number)
    return lambda day: from_1(day) in walked[:: int(step or 1)]


DAY = st.sampled_from([*NAMES, *"1234567"])
RANGE = st.tuples(DAY, DAY).map("-".join)
STEP = st.integers(1, 7).map("/{}".format)
ITEMS = (
    DAY | RANGE | st.just("L") | st.just("*") | DAY.map("{}L".format)
    | st.tuples(DAY | RANGE | st.just("*"), STEP).map("".join)
    | st.tuples(DAY, st.integers(1, 5)).map(lambda pair: f"{pair[0]}#{pair[1]}")
)  # fmt: skip


@given(st.lists(ITEMS, min_size=1, max_size=4))
@settings(max_examples=60)
def test_weekdays_that_count_from_1_are_the_same_days_here(items):
    field = ",".join(items)
    wanted = [day for day in YEAR if any(named_by(item)(day) for item in items)]
    assert days(Translated(cron=f"0 12 * * {weekdays_from_1(field)}")) == wanted
    assert days(quartz(f"0 0 12 ? * {field}")) == wanted
    assert days(eventbridge(f"0 12 ? * {field} *")) == wanted


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("1", "0"),
        ("7", "6"),
        ("2-6", "1-5"),
        ("MON-FRI", "MON-FRI"),
        ("6-2", "5-1"),
        ("FRI-MON", "FRI-MON"),
        ("2,4,6", "1,3,5"),
        ("2/2", "1/2"),
        ("*/3", "*/3"),
        ("L", "6"),
        ("6L", "5L"),
        ("FRIL", "FRIL"),
        ("2#1", "1#1"),
        ("mon#5", "MON#5"),
        ("3/8", "2"),
    ],
)
def test_a_weekday_that_counts_from_1_is_one_less_here_and_a_name_stays(theirs, ours):
    assert weekdays_from_1(theirs) == ours


@pytest.mark.parametrize(
    "field", ["0", "8", "2#6", "2#0", "2#", "#1", "XL", "MON-", "-2", "2-3-4", "2/0", "2/x", "1,,2", "٣"]
)
def test_what_is_no_weekday_is_said(field):
    with pytest.raises(Unreadable):
        weekdays_from_1(field)


# --- whole expressions ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("0 0/15 8-18 ? * MON-FRI", "0 0/15 8-18 * * MON-FRI"),
        ("*/10 * * * * ?", "*/10 * * * * *"),
        ("0 0 12 L * ?", "0 0 12 L * *"),
        ("0 0 12 LW * ?", "0 0 12 LW * *"),
        ("0 0 12 L-3 * ?", "0 0 12 L-3 * *"),
        ("0 0 12 L-0 * ?", "0 0 12 L * *"),
        ("0 0 12 15W jan-mar ? *", "0 0 12 15W JAN-MAR *"),
        ("0 0 22-2 * 11-2 ? 1970-2099", "0 0 22-2 * 11-2 *"),
        ("0 /5 * * * ?", "0 */5 * * * *"),
        ("0 5/60 * * * ? */1", "0 5/60 * * * *"),
        ("0 5/61 * * * ?", "0 5 * * * *"),
    ],
)
def test_quartz_has_seconds_and_a_question_mark_and_may_have_a_year(theirs, ours):
    assert quartz(theirs) == Translated(cron=ours)
    parse(ours)


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("0 10 * * ? *", "0 10 * * *"),
        ("15 12 ? * 2-6 *", "15 12 * * 1-5"),
        ("0 8 1 * ? */1", "0 8 1 * *"),
        ("0/5 8-17 ? * 6#3 1970-2199", "0/5 8-17 * * 5#3"),
    ],
)
def test_eventbridge_has_a_year_and_no_seconds(theirs, ours):
    assert eventbridge(theirs) == Translated(cron=ours)
    parse(ours)


@pytest.mark.parametrize(
    ("year", "first", "last"),
    [
        ("2027", 2027, 2027),
        ("2027,2028", 2027, 2028),
        ("2026-2030", 2026, 2030),
        ("2024/1", 2024, None),
        ("2027-2199", 2027, None),
        ("1970-2030", None, 2030),
        ("1970-2199", None, None),
        ("*", None, None),
    ],
)
def test_years_that_follow_each_other_are_a_beginning_and_an_end(year, first, last):
    assert quartz(f"0 0 12 1 1 ? {year}") == Translated(cron="0 0 12 1 1 *", first=first, last=last)


@pytest.mark.parametrize(
    ("theirs", "why"),
    [
        ("0 0 12 1 1 ? */2", "it runs in the years */2 only, and beginning and end cannot say that"),
        ("0 0 12 1 1 ? 2027,2030", "it runs in the years 2027,2030 only, and beginning and end cannot say that"),
        ("0 0 12 L-3W * ?", "the workday nearest to a day before the last (L-3W) has no counterpart"),
        ("0 0 0 30 2 ?", "no month has such a day, so it never runs: start what it is for by hand"),
        ("0 0 0 31W 4,6 ?", "no month has such a day, so it never runs: start what it is for by hand"),
        ("0 0 0 L-29 FEB ?", "no month has such a day, so it never runs: start what it is for by hand"),
    ],
)
def test_what_we_have_no_words_for_is_left_out_with_its_reason(theirs, why):
    with pytest.raises(Untranslatable) as told:
        quartz(theirs)
    assert str(told.value) == why


@pytest.mark.parametrize(
    ("read", "theirs"),
    [
        (quartz, "0 0 12 * * *"),
        (quartz, "0 0 12 ? * ?"),
        (quartz, "0 0 12 1 * MON"),
        (quartz, "0 0 12 * *"),
        (quartz, "60 0 12 * * ?"),
        (quartz, "0 0 24 * * ?"),
        (quartz, "0 0 0 L-31 * ?"),
        (quartz, "0 0 12 * * ? soon"),
        (quartz, "0 0 12 * JAM ?"),
        (eventbridge, "0 12 * * *"),
        (eventbridge, "0 12 * * * *"),
    ],
)
def test_what_their_own_system_cannot_read_is_told_apart(read, theirs):
    with pytest.raises(Unreadable):
        read(theirs)


def walked(field: str, low: int, high: int) -> set[int]:
    """What a field names, walked number by number round its circle."""
    named: set[int] = set()
    for item in field.split(","):
        base, _, step = item.partition("/")
        first, _, last = base.partition("-")
        number, end = (low, high) if base in {"*", ""} else (int(first), int(last or (high if step else first)))
        steps = 0
        while True:
            if steps % int(step or 1) == 0:
                named.add(number)
            if number == end:
                break
            number, steps = low if number == high else number + 1, steps + 1
    return named


def field(low: int, high: int) -> st.SearchStrategy[str]:
    value = st.integers(low, high).map(str)
    base = value | st.tuples(value, value).map("-".join) | st.just("*")
    step = st.integers(1, 99).map("/{}".format)
    return st.lists(base | st.tuples(base | st.just(""), step).map("".join), min_size=1, max_size=3).map(",".join)


@given(field(0, 59), field(0, 59), field(0, 23), field(1, 31), field(1, 12))
@settings(max_examples=100)
def test_the_other_fields_of_quartz_and_eventbridge_name_the_same_numbers_here(second, minute, hour, month_day, month):
    numbers, months = walked(month_day, 1, 31), walked(month, 1, 12)
    longest = max(monthrange(2028, each)[1] for each in months)
    try:
        found = [quartz(f"{second} {minute} {hour} {month_day} {month} ?")]
        found.append(eventbridge(f"{minute} {hour} {month_day} {month} ? *"))
    except Untranslatable:
        assert min(numbers) > longest
        return
    for translated in found:
        expression = parse(translated.cron)
        assert set(expression.minutes) == walked(minute, 0, 59)
        assert set(expression.hours) == walked(hour, 0, 23)
        assert set(expression.days.month_days.numbers) == numbers
        assert set(expression.days.months) == months
    assert set(parse(found[0].cron).seconds) == walked(second, 0, 59)


# --- Kubernetes -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("theirs", "ours", "literal"),
    [
        ("30 2 * * 1-5", "30 2 * * 1-5", False),
        ("@daily", "@daily", False),
        ("? ? ? ? ?", "* * * * *", False),
        ("*/90 * * * *", "0 * * * *", False),
        ("5/20 0 1,15 * SUN", "5/20 0 1,15 * SUN", False),
        ("0 0 1,,15 * *", "0 0 1,15 * *", False),
        ("0 0 *,3 * MON", "0 0 * * MON", False),
        ("0 0 */2 * MON", "0 0 */2 * MON", True),
        ("0 0 */2 * *", "0 0 */2 * *", False),
        ("0 0 */1 * 5", "0 0 * * 5", False),
        ("0 0 13 * */3", "0 0 13 * */3", True),
    ],
)
def test_kubernetes_takes_a_day_field_with_a_step_for_a_restriction(theirs, ours, literal):
    assert kubernetes(theirs) == Translated(cron=ours, literal=literal)


@pytest.mark.parametrize(
    "theirs",
    [
        "0 0 * * 7",
        "0 0 * * L",
        "0 0 5-1 * *",
        "0 0 15W * *",
        "@often",
        "@Daily",
        "* * * *",
        "0 0 * * 1#2",
        "H 0 * * *",
        "/5 * * * *",
    ],
)
def test_kubernetes_has_no_letters_no_seventh_day_and_no_range_that_wraps(theirs):
    with pytest.raises(Unreadable):
        kubernetes(theirs)


def test_what_never_comes_is_left_out():
    with pytest.raises(Untranslatable):
        kubernetes("0 0 31 2 *")
    assert kubernetes("0 0 31 2 1") == Translated(cron="0 0 31 2 1")  # either day is enough, so Mondays of February


def bits(field: str, low: int, high: int) -> tuple[set[int], bool]:
    """What a field of Kubernetes names, and whether it leaves the days to the other field."""
    named: set[int] = set()
    open_ = False
    for item in field.split(","):
        base, _, step = item.partition("/")
        first, _, last = base.partition("-")
        begin = low if base == "*" else int(first)
        end = high if base == "*" or (step and not last) else int(last or first)
        named |= set(range(begin, end + 1, int(step or 1)))
        open_ |= base == "*" and int(step or 1) == 1
    return named, open_


def kubernetes_field(low: int, high: int) -> st.SearchStrategy[str]:
    value = st.integers(low, high).map(str)
    span = st.tuples(st.integers(low, high), st.integers(low, high)).map(lambda pair: f"{min(pair)}-{max(pair)}")
    base = value | span | st.just("*")
    return st.lists(
        base | st.tuples(base, st.integers(1, 40).map("/{}".format)).map("".join), min_size=1, max_size=3
    ).map(",".join)


@given(kubernetes_field(1, 31), kubernetes_field(0, 6))
@settings(max_examples=60)
def test_the_day_fields_of_kubernetes_name_the_same_days_here(month_day, weekday):
    (numbers, every_day), (weekdays, every_weekday) = bits(month_day, 1, 31), bits(weekday, 0, 6)
    join = all if every_day or every_weekday else any
    wanted = [day for day in YEAR if join((day.day in numbers, day.isoweekday() % 7 in weekdays))]
    assert days(kubernetes(f"0 12 {month_day} * {weekday}")) == wanted


# --- durations and instants -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("1h30m", 5400),
        ("90m", 5400),
        ("1.5h", 5400),
        ("500ms", 1),
        ("2m0.9s", 120),
        ("5", None),
        ("", None),
        ("1d", None),
        ("-1h", None),
    ],
)
def test_durations_of_go_are_whole_seconds_and_at_least_one(written, seconds):
    assert times.go_seconds(written) == seconds


@pytest.mark.parametrize(
    ("seconds", "iso"), [(0, "PT0S"), (30, "PT30S"), (5400, "PT1H30M"), (86_400, "P1D"), (90_061, "P1DT1H1M1S")]
)
def test_durations_are_written_in_iso_8601(seconds, iso):
    assert times.duration(seconds) == iso


@pytest.mark.parametrize(
    ("written", "zone_name", "utc"),
    [
        ("2027-03-01T09:00:00", "America/New_York", "2027-03-01T14:00:00Z"),
        ("2027-03-01T09:00:00Z", "America/New_York", "2027-03-01T09:00:00Z"),
        ("2027-03-01T09:00:00.250+01:00", "UTC", "2027-03-01T08:00:00Z"),
        (1_893_456_000.5, "UTC", "2030-01-01T00:00:00Z"),
    ],
)
def test_instants_keep_their_offset_or_take_their_zones(written, zone_name, utc):
    assert times.text(times.instant(written, zone_name, "at")[0]) == utc
