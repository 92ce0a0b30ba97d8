"""Sentences: right for every expression, and different whenever what is named differs."""

from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.occurrences import AtTrigger, CronError, CronTrigger, EveryTrigger, describe, parse, zone
from tests.scheduler.occurrences.instants import at, cron


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("0 2 * * *", "At 02:00 every day"),
        ("0 9 * * 1-5", "At 09:00 on Monday to Friday"),
        ("0,30 9 * * MON,WED", "At 09:00 and 09:30 on Monday and Wednesday"),
        ("0 0 * * 0,6", "At 00:00 on Saturday and Sunday"),
        ("0 0 * * FRI-MON", "At 00:00 on Friday to Monday"),
        ("* * * * *", "Every minute"),
        ("*/15 * * * *", "Every 15 minutes"),
        ("0 * * * *", "Every hour"),
        ("30 * * * *", "At minute 30 of every hour"),
        ("0 */2 * * *", "Every 2 hours"),
        ("15 */2 * * *", "At minute 15 of hours 0, 2, 4 ... 22"),
        ("*/25 * * * *", "At minutes 0, 25 and 50 of every hour"),
        ("5/15 * * * *", "At minutes 5, 20, 35 and 50 of every hour"),
        ("*/15 9-17 * * 1-5", "Every 15 minutes from 09:00 to 17:45 on Monday to Friday"),
        ("5/15 9-17 * * *", "Every 15 minutes from 09:05 to 17:50"),
        ("* 1 * * *", "Every minute from 01:00 to 01:59"),
        ("* 1,5 * * *", "Every minute of hours 1 and 5"),
        ("0 8-18 * * *", "Every hour from 08:00 to 18:00"),
        ("0 20-4 * * *", "Every hour from 20:00 to 04:00"),
        ("0 20-4 * * FRI", "At minute 0 of hours 0 to 4 and 20 to 23 on Friday"),
        ("* * * * * *", "Every second"),
        ("*/20 * * * * *", "Every 20 seconds"),
        ("30 * * * * *", "At second 30 of every minute"),
        ("*/20 * 9-17 * * *", "Every 20 seconds from 09:00:00 to 17:59:40"),
        ("15,45 30 6 * * *", "At 06:30:15 and 06:30:45 every day"),
        ("10 */20 9-17 * * *", "At second 10 of minutes 0, 20 and 40 of hours 9 to 17"),
        ("@yearly", "At 00:00 on 1 January"),
        ("0 0 29 2 *", "At 00:00 on 29 February"),
        ("0 0 1,15 JUN *", "At 00:00 on 1 and 15 June"),
        ("@monthly", "At 00:00 on day 1 of the month"),
        ("0 0 1-7,20 * *", "At 00:00 on days 1 to 7 and 20 of the month"),
        ("0 0 1 */3 *", "At 00:00 on day 1 of the month in January, April, July and October"),
        ("0 0 * NOV-FEB *", "At 00:00 every day in November to February"),
        ("* * * 5 *", "Every minute in May"),
        ("0 0 L * *", "At 00:00 on the last day of the month"),
        ("0 0 L-3 * *", "At 00:00 on the last day but 3 of the month"),
        ("0 0 LW * *", "At 00:00 on the last workday (Monday to Friday) of the month"),
        ("0 0 15W * *", "At 00:00 on the workday nearest to day 15 of the month"),
        ("0 0 * * 5L", "At 00:00 on the last Friday of the month"),
        ("0 0 * * 5#3", "At 00:00 on the third Friday of the month"),
        ("0 0 1,15 * FRI", "At 00:00 on days 1 and 15 of the month or on Friday"),
        ("0 0 */2 * MON", "At 00:00 on days 1, 3, 5 ... 31 of the month, only if it is also Monday"),
        ("0 0 31 JUN SUN", "At 00:00 on day 31 of the month or on Sunday, in June"),
        ("0 0 1-31 * FRI", "At 00:00 every day"),
    ],
)
def test_an_expression_in_words(text, sentence):
    assert describe(parse(text)) == sentence


def test_a_trigger_names_its_zone():
    assert describe(cron("0 2 * * *", "Europe/London")) == "At 02:00 every day, Europe/London"
    assert describe(cron("*/15 * * * *")) == "Every 15 minutes, UTC"


def test_a_hash_is_described_by_where_it_fell():
    assert describe(parse("H H * * *", hash_key="acme/nightly")) == "At 05:39 every day"


def test_quartz_weekdays_are_called_by_their_names():
    assert describe(parse("0 0 12 ? * 2-6", dialect="quartz")) == "At 12:00 on Monday to Friday"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (1, "Every second"),
        (900, "Every 15 minutes"),
        (3_600, "Every hour"),
        (90_000, "Every 1 day and 1 hour"),
        (604_800, "Every 7 days"),
    ],
)
def test_an_interval_in_words(seconds, words):
    assert describe(EveryTrigger(seconds, at("2026-01-01T00:00Z"))) == f"{words}, counted from 2026-01-01T00:00:00Z"


def test_instants_in_words():
    assert describe(AtTrigger(())) == "Never"
    assert describe(AtTrigger((0, 60))) == "At 1970-01-01T00:00:00Z and 1970-01-01T00:01:00Z"
    many = AtTrigger(tuple(range(0, 600, 60)))
    assert describe(many) == "At 10 instants from 1970-01-01T00:00:00Z to 1970-01-01T00:09:00Z"


FIELDS = {
    "second": ["0", "*", "*/20", "5/20", "30", "0-58", "1,2,3,40"],
    "minute": ["0", "*", "*/15", "5/15", "30", "0-58", "*/25", "1,2,3,40", "10-50/10"],
    "hour": ["*", "2", "*/2", "1/2", "9-17", "22-2", "1,5,6,7,20", "0-23/5"],
    "day": ["*", "1", "1,15", "*/2", "2/2", "L", "L-1", "LW", "15W", "1-7,L", "1-31"],
    "month": ["*", "2", "1,3", "NOV-FEB", "*/3"],
    "weekday": ["*", "1-5", "FRI-MON", "0", "5L", "5#3", "5#3,1", "0-6"],
}


def test_expressions_that_say_the_same_name_the_same():
    """All pairs of two fields' samples: equal sentences mean equal readings, whatever the text was."""
    named: dict[str, tuple[object, ...]] = {}
    plain = {name: samples[0] for name, samples in FIELDS.items()}
    for first, second in combinations(FIELDS, 2):
        for here, there in product(FIELDS[first], FIELDS[second]):
            e = parse(" ".join({**plain, first: here, second: there}.values()))
            shapes = [e.days.in_month(length, weekday) for length in (28, 29, 30, 31) for weekday in range(7)]
            readings = (e.seconds, e.minutes, e.hours, e.days.months, tuple(shapes))
            assert named.setdefault(describe(e), readings) == readings, (e.text, describe(e))
    assert len(named) > 500


@given(parts=st.tuples(*(st.sampled_from(samples) for samples in FIELDS.values())))
def test_every_expression_has_a_sentence(parts):
    try:
        trigger = CronTrigger(parse(" ".join(parts)), zone("Europe/London"))
    except CronError:
        return
    sentence = describe(trigger)
    assert sentence.startswith(("At ", "Every "))
    assert sentence.endswith(", Europe/London")
