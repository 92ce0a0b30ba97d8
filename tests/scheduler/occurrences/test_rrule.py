"""What recurrence rules name, on which clocks, and which are refused."""

from datetime import UTC, datetime, timedelta
from itertools import islice

import pytest
from dateutil import rrule as dateutil_rrule
from hypothesis import given, settings
from hypothesis import strategies as st

from node.audit.due import due as audited
from scheduler.occurrences import (
    CronTrigger,
    RuleError,
    WindowTrigger,
    between,
    count_between,
    describe,
    parse_rule,
    zone,
)
from scheduler.occurrences.triggers import bits

EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 -- readings have no zone
DAY = 86_400


def seconds(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


def trigger(rule: str, start: str = "2026-01-01T00:00:00", where: str = "UTC", **policies: str) -> CronTrigger:
    return CronTrigger(parse_rule(rule, seconds(start)), zone(where), **policies)  # type: ignore[arg-type]


def first(count: int, subject: CronTrigger, after: str = "2025-12-31T00:00:00") -> list[str]:
    found = islice(between(subject, seconds(after), seconds("2200-01-01T00:00:00")), count)
    return [datetime.fromtimestamp(due, UTC).strftime("%Y-%m-%d %H:%M:%S") for due in found]


@pytest.mark.parametrize(
    ("rule", "instants"),
    [
        ("FREQ=DAILY", ["2026-01-01 00:00:00", "2026-01-02 00:00:00", "2026-01-03 00:00:00"]),
        ("FREQ=DAILY;INTERVAL=10", ["2026-01-01 00:00:00", "2026-01-11 00:00:00", "2026-01-21 00:00:00"]),
        ("FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,TH", ["2026-01-01 00:00:00", "2026-01-12 00:00:00", "2026-01-15 00:00:00"]),
        ("FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=9", ["2026-01-30 09:00:00", "2026-02-27 09:00:00", "2026-03-27 09:00:00"]),
        ("FREQ=MONTHLY;BYMONTHDAY=31", ["2026-01-31 00:00:00", "2026-03-31 00:00:00", "2026-05-31 00:00:00"]),
        (
            "FREQ=MONTHLY;INTERVAL=3;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1",
            ["2026-01-30 00:00:00", "2026-04-30 00:00:00", "2026-07-31 00:00:00"],
        ),
        ("FREQ=YEARLY", ["2026-01-01 00:00:00", "2027-01-01 00:00:00", "2028-01-01 00:00:00"]),
        ("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29", ["2028-02-29 00:00:00", "2032-02-29 00:00:00", "2036-02-29 00:00:00"]),
        ("FREQ=YEARLY;BYWEEKNO=1;BYDAY=MO", ["2027-01-04 00:00:00", "2028-01-03 00:00:00", "2029-01-01 00:00:00"]),
        ("FREQ=HOURLY;INTERVAL=6", ["2026-01-01 00:00:00", "2026-01-01 06:00:00", "2026-01-01 12:00:00"]),
        ("FREQ=MINUTELY;INTERVAL=20;BYHOUR=9", ["2026-01-01 09:00:00", "2026-01-01 09:20:00", "2026-01-01 09:40:00"]),
        ("FREQ=DAILY;COUNT=2", ["2026-01-01 00:00:00", "2026-01-02 00:00:00"]),
    ],
)
def test_a_rule_is_due_where_its_parts_say(rule, instants):
    assert first(3, trigger(rule)) == instants


def test_what_a_rule_does_not_say_comes_from_its_beginning():
    assert first(2, trigger("FREQ=WEEKLY", "2026-03-04T10:20:30")) == ["2026-03-04 10:20:30", "2026-03-11 10:20:30"]
    assert first(2, trigger("FREQ=HOURLY", "2026-03-04T10:20:30")) == ["2026-03-04 10:20:30", "2026-03-04 11:20:30"]


@pytest.mark.parametrize(
    ("rule", "policies", "instants"),
    [
        ("FREQ=DAILY;BYHOUR=1;BYMINUTE=30", {}, ["2026-03-29 01:00:00", "2026-03-30 00:30:00"]),
        ("FREQ=DAILY;BYHOUR=1;BYMINUTE=30", {"gap_policy": "skip"}, ["2026-03-30 00:30:00", "2026-03-31 00:30:00"]),
        ("FREQ=HOURLY;INTERVAL=1;BYMINUTE=30;BYHOUR=0,1,2", {}, ["2026-03-29 00:30:00", "2026-03-29 01:30:00"]),
    ],
)
def test_in_the_hour_that_london_leaves_out_fixed_times_are_made_up_and_hourly_ones_are_not(rule, policies, instants):
    """Clocks go from 00:59:59 to 02:00:00 at 01:00 UTC."""
    assert first(2, trigger(rule, where="Europe/London", **policies), "2026-03-28T12:00:00") == instants


@pytest.mark.parametrize(
    ("rule", "policies", "instants"),
    [
        ("FREQ=DAILY;BYHOUR=1;BYMINUTE=30", {}, ["2026-10-25 00:30:00", "2026-10-26 01:30:00"]),
        ("FREQ=DAILY;BYHOUR=1;BYMINUTE=30", {"fold_policy": "second"}, ["2026-10-25 01:30:00", "2026-10-26 01:30:00"]),
        ("FREQ=DAILY;BYHOUR=1;BYMINUTE=30", {"fold_policy": "both"}, ["2026-10-25 00:30:00", "2026-10-25 01:30:00"]),
        ("FREQ=HOURLY;BYMINUTE=30", {}, ["2026-10-25 00:30:00", "2026-10-25 01:30:00"]),
    ],
)
def test_in_the_hour_that_london_shows_twice_fixed_times_follow_the_policy(rule, policies, instants):
    assert first(2, trigger(rule, where="Europe/London", **policies), "2026-10-24T23:45:00") == instants


@pytest.mark.parametrize(
    ("rule", "field"),
    [
        ("FREQ=SECONDLY;BYMONTH=2;BYMONTHDAY=31", "rule"),
        ("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30", "rule"),
        ("FREQ=DAILY;INTERVAL=2;BYMONTH=2;BYMONTHDAY=31", "rule"),
        ("FREQ=MONTHLY;INTERVAL=12;BYMONTH=2", "rule"),
        ("FREQ=YEARLY;INTERVAL=3;BYMONTH=2;BYMONTHDAY=29;BYDAY=MO", "rule"),
        ("FREQ=YEARLY;INTERVAL=1000000000", "INTERVAL"),
        ("FREQ=SECONDLY;INTERVAL=999999999", "INTERVAL"),
        ("FREQ=HOURLY;INTERVAL=5", "INTERVAL"),
        ("FREQ=MINUTELY;INTERVAL=90", "INTERVAL"),
        ("FREQ=DAILY;INTERVAL=0", "INTERVAL"),
        ("FREQ=HOURLY;INTERVAL=2;BYHOUR=9", "BYHOUR"),
        ("FREQ=DAILY;COUNT=1000000000", "COUNT"),
        ("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29;COUNT=9999", "COUNT"),
        ("FREQ=DAILY;COUNT=3;UNTIL=20270101T000000Z", "COUNT"),
        ("FREQ=DAILY;UNTIL=20270101", "UNTIL"),
        ("FREQ=DAILY;UNTIL=20270101T000000", "UNTIL"),
        ("FREQ=MONTHLY;BYDAY=MO;BYHOUR=1,2;BYSETPOS=1", "BYSETPOS"),
        ("FREQ=MONTHLY;BYSETPOS=1", "BYSETPOS"),
        ("FREQ=WEEKLY;BYDAY=MO,TU;BYSETPOS=1", "BYSETPOS"),
        ("FREQ=WEEKLY;BYMONTHDAY=1", "BYMONTHDAY"),
        ("FREQ=WEEKLY;BYDAY=1MO", "BYDAY"),
        ("FREQ=MONTHLY;BYDAY=1MO,TU", "BYDAY"),
        ("FREQ=MONTHLY;BYDAY=6MO", "BYDAY"),
        ("FREQ=YEARLY;BYWEEKNO=53;BYDAY=MO", "BYWEEKNO"),
        ("FREQ=YEARLY;BYWEEKNO=20", "BYWEEKNO"),
        ("FREQ=DAILY;BYSECOND=60", "BYSECOND"),
        ("FREQ=DAILY;BYHOUR=-1", "BYHOUR"),
        ("FREQ=DAILY;BYHOUR=\uff11", "BYHOUR"),
        ("FREQ=DAILY;FREQ=DAILY", "FREQ"),
        ("FREQ=DAILY;BYEASTER=1", "rule"),
        ("FREQ=DAILY;", "rule"),
        ("RRULE:FREQ=DAILY", "rule"),
        ("DTSTART:20260101T000000Z\nRRULE:FREQ=DAILY", "rule"),
        ("BYDAY=MO", "FREQ"),
        ("FREQ=FORTNIGHTLY", "FREQ"),
        ("FREQ=DAILY;BYMONTHDAY=" + ",".join(["1"] * 200), "rule"),
    ],
)
def test_a_rule_that_cannot_be_meant_is_refused_with_its_part(rule, field):
    with pytest.raises(RuleError) as refused:
        parse_rule(rule, seconds("2026-01-01T00:00:00"))
    assert refused.value.field == field
    assert refused.value.remedy


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("FREQ=DAILY;BYHOUR=9", "At 09:00 every day, UTC"),
        ("FREQ=DAILY;INTERVAL=3;COUNT=5", "At 00:00 every 3 days, 5 times, UTC"),
        ("FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,TH", "At 00:00 every 2 weeks on Monday and Thursday, UTC"),
        ("FREQ=MONTHLY;BYDAY=-1FR", "At 00:00 every month on the last Friday, UTC"),
        ("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29", "At 00:00 every year on day 29 of the month in February, UTC"),
        (
            "FREQ=MONTHLY;BYDAY=MO,TU;BYSETPOS=-1",
            "At 00:00 every month on Monday and Tuesday only the last of those, UTC",
        ),
        ("FREQ=MINUTELY;INTERVAL=15;BYDAY=MO", "Every 15 minutes on Monday, UTC"),
    ],
)
def test_a_rule_is_said_in_words(rule, words):
    assert describe(trigger(rule)) == words


RULES = st.sampled_from(
    [
        "FREQ=YEARLY",
        "FREQ=YEARLY;INTERVAL=3;BYDAY=20MO",
        "FREQ=YEARLY;BYMONTH=3,7;BYDAY=-2WE",
        "FREQ=YEARLY;BYYEARDAY=1,-1,100",
        "FREQ=YEARLY;BYWEEKNO=1,20,51;BYDAY=SU,MO;WKST=SU",
        "FREQ=YEARLY;INTERVAL=2;BYMONTHDAY=-1",
        "FREQ=YEARLY;BYDAY=MO,TU,WE;BYSETPOS=1,-3",
        "FREQ=MONTHLY;INTERVAL=5;BYMONTHDAY=-1,13",
        "FREQ=MONTHLY",
        "FREQ=MONTHLY;INTERVAL=17;BYDAY=FR;BYMONTHDAY=1,2,3,4,5,6,7",
        "FREQ=MONTHLY;BYDAY=1SA,-1SU;BYHOUR=1,2",
        "FREQ=MONTHLY;BYMONTHDAY=1,15,31;BYSETPOS=2",
        "FREQ=WEEKLY;INTERVAL=3;BYDAY=SU,MO",
        "FREQ=WEEKLY;INTERVAL=3;WKST=SU;BYDAY=SU,MO",
        "FREQ=WEEKLY;INTERVAL=60",
        "FREQ=WEEKLY;BYMONTH=12,1;BYDAY=TU,TH,SA",
        "FREQ=DAILY;INTERVAL=11;BYMONTH=1,6,12",
        "FREQ=DAILY;INTERVAL=400",
        "FREQ=DAILY;BYDAY=MO;BYMONTHDAY=1,2,3;BYHOUR=4,20;BYMINUTE=0,30",
        "FREQ=DAILY;COUNT=100",
        "FREQ=HOURLY;INTERVAL=8;BYDAY=SA;BYMONTH=5",
        "FREQ=HOURLY;INTERVAL=24;BYYEARDAY=60",
        "FREQ=MINUTELY;INTERVAL=120;BYMONTHDAY=-1",
        "FREQ=SECONDLY;INTERVAL=30;BYHOUR=3;BYMINUTE=7;BYDAY=WE",
        "FREQ=SECONDLY;INTERVAL=7200;BYMONTHDAY=9",
        "FREQ=MONTHLY;INTERVAL=2;COUNT=31;BYHOUR=9,17",
    ]
)
STARTS = st.integers(seconds("1999-01-01T00:00:00"), seconds("2033-01-01T00:00:00")).map(
    lambda at: EPOCH + timedelta(seconds=at)
)


@settings(max_examples=40, deadline=None)
@given(rule=RULES, start=STARTS)
def test_a_rule_names_what_dateutil_names_when_it_walks_from_the_beginning(rule, start):
    expected = [
        (at - EPOCH) // timedelta(seconds=1)
        for at in islice(dateutil_rrule.rrulestr(rule, dtstart=start), 120)
        if at.year < 2100
    ]
    subject = CronTrigger(parse_rule(rule, (start - EPOCH) // timedelta(seconds=1)), zone("UTC"))
    assert list(islice(between(subject, 0, seconds("2100-01-01T00:00:00") - 1), 120)) == expected


@settings(max_examples=30, deadline=None)
@given(
    rule=RULES,
    where=st.sampled_from(["UTC", "Europe/London", "America/New_York", "Australia/Lord_Howe", "Africa/Cairo"]),
    gap=st.sampled_from(["shift", "skip"]),
    fold=st.sampled_from(["first", "second", "both"]),
    begins=st.integers(seconds("2024-01-01T00:00:00"), seconds("2027-01-01T00:00:00")),
    days=st.integers(1, 200),
    cut=st.floats(0, 1),
)
def test_cutting_a_window_of_a_rule_loses_and_doubles_nothing(rule, where, gap, fold, begins, days, cut):
    subject = trigger(rule, "2020-03-29T01:30:00", where, gap_policy=gap, fold_policy=fold)
    ends = begins + days * DAY
    middle = begins + int(cut * (ends - begins))
    whole = list(between(subject, begins, ends))
    assert [*between(subject, begins, middle), *between(subject, middle, ends)] == whole
    assert count_between(subject, begins, ends, 10**9) == len(whole)
    named = bits(subject, begins, begins + DAY)
    assert [begins + 1 + bit for bit in range(DAY) if named >> bit & 1] == [at for at in whole if at <= begins + DAY]
    steps: list[int] = []
    after = begins
    while len(steps) < 20 and (due := subject.next_after(after)) is not None and due <= ends:
        steps.append(due)
        after = due
    assert steps == whole[:20]


@settings(max_examples=30, deadline=None)
@given(
    rule=RULES,
    where=st.sampled_from(["UTC", "Europe/London", "America/New_York", "Australia/Lord_Howe", "Africa/Cairo"]),
    gap=st.sampled_from(["shift", "skip"]),
    fold=st.sampled_from(["first", "second", "both"]),
    begins=st.integers(seconds("2024-01-01T00:00:00"), seconds("2026-01-01T00:00:00")),
)
def test_the_audit_counts_a_rule_alike(rule, where, gap, fold, begins):
    anchor = seconds("2022-03-29T00:30:00")
    words = {"rrule": rule, "timezone": where, "gap_policy": gap, "fold_policy": fold, "anchor": "2022-03-29T00:30:00Z"}
    named = parse_rule(rule, anchor + zone(where).offset(anchor))
    subject = WindowTrigger(CronTrigger(named, zone(where), gap, fold), anchor)
    ends = begins + 120 * DAY
    assert list(audited({"trigger": words}, "t/s", begins, ends)) == list(between(subject, begins, ends))
