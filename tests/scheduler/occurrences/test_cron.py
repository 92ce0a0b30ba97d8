"""What an expression may say, what it then names, and how a refusal helps."""

import pickle
from datetime import date
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.occurrences import CronError, CronExpression, CronTrigger, between, parse, zone
from scheduler.occurrences.cron import Dialect
from tests.scheduler.occurrences.instants import cron, due

FIELDS = {"expression", "second", "minute", "hour", "day_of_month", "month", "day_of_week"}


def days_of(text: str, year: int, month: int) -> list[int]:
    """The days of one month on which `text`, a date half such as `L * *`, fires."""
    start, end = date(year, month, 1), date(year + month // 12, month % 12 + 1, 1)
    return [int(instant[8:10]) for instant in due(cron(f"0 0 {text}"), f"{start}T00:00Z", f"{end}T00:00Z")]


def refusal(text: str, dialect: Dialect | None = None) -> CronError:
    with pytest.raises(CronError) as refused:
        parse(text, dialect=dialect)
    return refused.value


# ------------------------------------------------------------------------------------------- what can be said


@pytest.mark.parametrize(
    ("text", "minutes"),
    [
        ("*", list(range(60))),
        ("5", [5]),
        ("05", [5]),
        ("1,3,2,3", [1, 2, 3]),
        ("10-13", [10, 11, 12, 13]),
        ("50-10/5", [0, 5, 10, 50, 55]),
        ("*/25", [0, 25, 50]),
        ("*/60", [0]),
        ("10-50/20", [10, 30, 50]),
        ("50/4", [50, 54, 58]),
        ("7-7", [7]),
        ("7-7/5", [7]),
    ],
)
def test_numbers_lists_ranges_and_steps(text, minutes):
    assert list(parse(f"{text} * * * *").minutes) == minutes


def test_hours_wrap_over_midnight():
    assert parse("0 22-2 * * *").hours == (0, 1, 2, 22, 23)


@pytest.mark.parametrize("text", ["nov-FEB", "11-2", "JAN,feb,11,Dec"])
def test_months_have_names_and_wrap_over_new_year(text):
    assert parse(f"0 0 1 {text} *").days.months == {11, 12, 1, 2}


@pytest.mark.parametrize(
    ("text", "weekdays"),
    [
        ("0", {0}),
        ("7", {0}),
        ("sun", {0}),
        ("1-5", {1, 2, 3, 4, 5}),
        ("FRI-MON", {5, 6, 0, 1}),
        ("MON-SUN", {0, 1, 2, 3, 4, 5, 6}),
        ("0-7", {0, 1, 2, 3, 4, 5, 6}),
        ("5-7", {5, 6, 0}),
        ("7-2", {0, 1, 2}),
        ("1-7/2", {1, 3, 5, 0}),
        ("*/2", {0, 2, 4, 6}),
        ("1/2", {1, 3, 5}),
        ("7/3", {0, 3, 6}),
    ],
)
def test_weekdays_are_a_circle_on_which_sunday_is_0_and_7(text, weekdays):
    assert parse(f"0 0 * * {text}").days.weekdays.numbers == weekdays


@pytest.mark.parametrize(
    ("text", "weekdays"),
    [("1", {0}), ("7", {6}), ("2-6", {1, 2, 3, 4, 5}), ("MON", {1}), ("L", {6}), ("6-1", {5, 6, 0})],
)
def test_in_quartz_weekday_1_is_sunday(text, weekdays):
    assert parse(f"0 0 0 ? * {text}", dialect="quartz").days.weekdays.numbers == weekdays


@pytest.mark.parametrize(
    ("text", "month", "days"),
    [
        ("L * *", 2, [29]),
        ("L-3 * *", 2, [26]),
        ("L-30 * *", 1, [1]),
        ("L-30 * *", 4, []),
        ("LW * *", 3, [29]),  # 31 March 2024 is a Sunday
        ("LW * *", 6, [28]),  # 30 June 2024 is a Sunday
        ("15W * *", 6, [14]),  # a Saturday: the day before
        ("15W * *", 9, [16]),  # a Sunday: the day after
        ("1W * *", 6, [3]),  # Saturday the 1st: the Monday after, not a day of May
        ("30W * *", 6, [28]),  # Sunday the 30th: the Friday before, not a day of July
        ("31W * *", 6, []),  # June has no 31st
        ("1,LW,15W,L-2 * *", 6, [1, 14, 28]),
        ("* * 5L", 8, [30]),
        ("* * FRIL", 8, [30]),
        ("* * 7L", 3, [31]),
        ("* * 5#3", 3, [15]),
        ("* * SAT#5", 3, [30]),
        ("* * SAT#5", 4, []),
        ("* * MON#1,FRI#2,0", 1, [1, 7, 12, 14, 21, 28]),
        ("13 * FRI", 9, [6, 13, 20, 27]),
        ("? * FRI", 9, [6, 13, 20, 27]),
        ("13 * ?", 9, [13]),
        ("*/10 * FRI", 5, [31]),
        ("L * 5#1", 5, [3, 31]),
    ],
)
def test_days_of_2024(text, month, days):
    assert days_of(text, 2024, month) == days


def test_six_fields_have_seconds_first():
    assert parse("15,45 30 6 * * *").seconds == (15, 45)
    assert parse("30 6 * * *").seconds == (0,)


@pytest.mark.parametrize(
    ("macro", "same"),
    [
        ("@yearly", "0 0 1 1 *"),
        ("@annually", "0 0 1 1 *"),
        ("@monthly", "0 0 1 * *"),
        ("@weekly", "0 0 * * 0"),
        ("@daily", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        ("@HOURLY", "0 * * * *"),
    ],
)
def test_macros_stand_for_their_fields(macro, same):
    assert parse(macro).days == parse(same).days
    assert (parse(macro).hours, parse(macro).minutes) == (parse(same).hours, parse(same).minutes)


@pytest.mark.parametrize(
    ("text", "fixed"),
    [
        ("0 2 * * *", True),
        ("0 0-23 * * *", True),
        ("* 2 * * *", False),
        ("*/15 2 * * *", False),
        ("0 * * * *", False),
        ("* 0 2 * * *", True),
        ("0 * 2 * * *", False),
        ("@hourly", False),
    ],
)
def test_an_expression_has_a_fixed_time_unless_minute_or_hour_begins_with_a_star(text, fixed):
    assert parse(text).fixed_time is fixed


def test_an_expression_is_a_value():
    assert parse("0 2 * * mon") == parse(" 0  2 *\t* MON ")
    assert len({parse("0 2 * * 1"), parse("0 2 * * 1"), parse("0 2 * * 2")}) == 2
    assert str(parse("0 2  * * mon")) == "0 2 * * MON"


# ------------------------------------------------------------------------------------------------------- hash


def test_a_hash_gives_a_schedule_its_own_place_for_good():
    here = parse("H H * * *", hash_key="acme/nightly")
    assert (here.minutes, here.hours) == ((39,), (5,))  # for ever: a change would move every hashed schedule
    assert here == parse("H H * * *", hash_key="acme/nightly")


def test_hashes_spread_over_the_field():
    minutes = [parse("H * * * *", hash_key=f"acme/{number}").minutes[0] for number in range(600)]
    assert len(set(minutes)) == 60


def test_a_hash_with_a_step_moves_its_start_and_keeps_the_step():
    minutes = parse("H/15 * * * *", hash_key="acme/nightly").minutes
    assert len(minutes) == 4
    assert {later - earlier for earlier, later in pairwise(minutes)} == {15}


@given(key=st.text(max_size=40))
def test_a_hash_stays_inside_its_range_and_every_month_has_its_day(key):
    expression = parse("H(10-20) H(0-5)/2 H * H", hash_key=key)
    assert 10 <= expression.minutes[0] <= 20
    assert set(expression.hours) in ({0, 2, 4}, {1, 3, 5})
    assert max(expression.days.month_days.numbers) <= 28


# --------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("", "expression"),
        (" \t ", "expression"),
        ("* * * *", "expression"),
        ("0 0 0 1 1 ? 2026", "expression"),
        ("TZ=UTC", "expression"),
        ("CRON_TZ=UTC 0 0 * * *", "expression"),
        ("@reboot", "expression"),
        ("@every 5m", "expression"),
        ("0 12 * * *\n", "expression"),
        ("0\xa012 * * *", "expression"),
        ("\N{ARABIC-INDIC DIGIT FIVE} * * * *", "expression"),
        ("0 0 * * *" + " " * 256, "expression"),
        ("60 * * * *", "minute"),
        ("1_0 * * * *", "minute"),
        ("+5 * * * *", "minute"),
        ("-5 * * * *", "minute"),
        ("5- * * * *", "minute"),
        ("1-2-3 * * * *", "minute"),
        ("1,,2 * * * *", "minute"),
        (", * * * *", "minute"),
        ("*/0 * * * *", "minute"),
        ("*/61 * * * *", "minute"),
        ("*/90 * * * *", "minute"),
        ("*/ * * * *", "minute"),
        ("/5 * * * *", "minute"),
        ("1-2/3/4 * * * *", "minute"),
        ("** * * * *", "minute"),
        ("*-5 * * * *", "minute"),
        ("? * * * *", "minute"),
        ("L * * * *", "minute"),
        ("H * * * *", "minute"),
        ("99999 * * * *", "minute"),
        ("60 * * * * *", "second"),
        ("0 24 * * *", "hour"),
        ("0 */25 * * *", "hour"),
        ("0 MON * * *", "hour"),
        ("0 0 0 * *", "day_of_month"),
        ("0 0 32 * *", "day_of_month"),
        ("0 0 L-0 * *", "day_of_month"),
        ("0 0 L-31 * *", "day_of_month"),
        ("0 0 L3 * *", "day_of_month"),
        ("0 0 L/2 * *", "day_of_month"),
        ("0 0 W * *", "day_of_month"),
        ("0 0 32W * *", "day_of_month"),
        ("0 0 1-5W * *", "day_of_month"),
        ("0 0 ?,1 * *", "day_of_month"),
        ("0 0 ?/2 * *", "day_of_month"),
        ("0 0 1 0 *", "month"),
        ("0 0 1 13 *", "month"),
        ("0 0 1 FOO *", "month"),
        ("0 0 1 JANUARY *", "month"),
        ("0 0 * * 8", "day_of_week"),
        ("0 0 * * JAN", "day_of_week"),
        ("0 0 * * L", "day_of_week"),
        ("0 0 * * 8L", "day_of_week"),
        ("0 0 * * 1-5L", "day_of_week"),
        ("0 0 * * 1#0", "day_of_week"),
        ("0 0 * * 1#6", "day_of_week"),
        ("0 0 * * 1#", "day_of_week"),
        ("0 0 * * #1", "day_of_week"),
        ("0 0 * * 1#2#3", "day_of_week"),
        ("0 0 * * */8", "day_of_week"),
        ("0 0 31 2 *", "day_of_month"),
        ("0 0 30 2 ?", "day_of_month"),
        ("0 0 L-29 2 *", "day_of_month"),
        ("0 0 31W 4 *", "day_of_month"),
        ("0 0 */30 * MON#2", "day_of_month"),
    ],
)
def test_a_refusal_names_the_field(text, field):
    assert refusal(text).field == field


def test_a_refusal_says_what_is_wrong_and_what_to_write_instead():
    refused = refusal("0 0 * * 8")
    assert refused.problem == "8 is out of range."
    assert refused.remedy == "Use 0 to 7 or SUN to SAT."
    assert str(refused) == "day_of_week: 8 is out of range. Use 0 to 7 or SUN to SAT."


def test_a_refusal_survives_a_process_boundary():
    refused = pickle.loads(pickle.dumps(refusal("0 0 * * 8")))
    assert (type(refused), refused.field, refused.remedy) == (CronError, "day_of_week", "Use 0 to 7 or SUN to SAT.")


def test_a_refusal_never_repeats_raw_or_long_input():
    assert str(refusal("\x1b[31m<b> * * * *")).isprintable()
    assert len(str(refusal("<" * 250 + " * * * *"))) < 200


def test_a_quartz_looking_expression_with_a_numeric_weekday_must_say_its_dialect():
    refused = refusal("0 0 12 ? * 2-6")
    assert refused.field == "day_of_week"
    assert "quartz" in refused.remedy
    assert parse("0 0 12 ? * 2-6", dialect="quartz").days.weekdays.numbers == {1, 2, 3, 4, 5}
    assert parse("0 0 12 ? * 2-6", dialect="unix").days.weekdays.numbers == {2, 3, 4, 5, 6}


@pytest.mark.parametrize(
    "text", ["0 0 12 ? * MON-FRI", "0 0 12 ? * MON#2", "0 0 12 1 * ?", "0 0 12 ? * *", "0 12 ? * 2-6"]
)
def test_without_a_numeric_weekday_or_with_five_fields_nothing_is_unclear(text):
    assert isinstance(parse(text), CronExpression)


def test_quartz_has_no_weekday_0():
    assert refusal("0 0 0 ? * 0", dialect="quartz").field == "day_of_week"


# ------------------------------------------------------------------------------------------------------- fuzz

TOKENS = [*"0123456789*/-,#?LWH() \t@", "MON", "SUN", "JAN", "DEC", "LW", "@daily", "H(1-5)", "99999", "é", "٣", "\x00"]


def read(text: str, dialect: Dialect | None = None) -> CronExpression | CronError:
    try:
        return parse(text, dialect=dialect, hash_key="acme/nightly")
    except CronError as refused:
        return refused


@given(text=st.one_of(st.text(max_size=300), st.lists(st.sampled_from(TOKENS), max_size=60).map("".join)))
def test_any_text_is_read_or_refused_with_field_problem_and_remedy(text):
    answer = read(text)
    if isinstance(answer, CronError):
        assert answer.field in FIELDS
        assert answer.problem
        assert answer.remedy


@given(
    parts=st.lists(st.lists(st.sampled_from(TOKENS), min_size=1, max_size=4).map("".join), min_size=5, max_size=6),
    dialect=st.sampled_from(["unix", "quartz"]),
)
def test_whatever_is_read_fires(parts, dialect):
    answer = read(" ".join(parts), dialect)
    if isinstance(answer, CronExpression):
        trigger = CronTrigger(answer, zone("UTC"))
        following = trigger.next_after(1_700_000_000)
        assert following is not None
        assert list(between(trigger, 1_700_000_000, following)) == [following]
