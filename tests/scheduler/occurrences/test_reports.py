"""Complaints about the arithmetic of other schedulers, with the right answers written out (B-O02 to B-O09, B-O24).

Each test is named for what a user may rely on. All instants are UTC.
"""

from itertools import pairwise

import pytest

from scheduler.occurrences import CronError, CronTrigger, between, count_between, parse, tz_version, zone
from tests.scheduler.occurrences.instants import at, cron, due, written

EVERY_POLICY = [(gap, fold) for gap in ("shift", "skip") for fold in ("first", "second", "both")]


@pytest.mark.parametrize(("gap", "fold"), EVERY_POLICY)
def test_o02_six_o_clock_is_six_o_clock_on_the_day_the_clocks_go_forward(gap, fold):
    trigger = cron("0 6 * * *", "America/New_York", gap, fold)
    right = ["2024-03-08T11:00Z", "2024-03-09T11:00Z", "2024-03-10T10:00Z", "2024-03-11T10:00Z"]
    assert due(trigger, "2024-03-08T00:00Z", "2024-03-12T00:00Z") == right
    asked_afresh = [trigger.next_after(at(earlier)) for earlier in right[:-1]]
    assert written(filter(None, asked_afresh)) == right[1:]


def test_o03_a_time_inside_the_missing_hour_runs_at_the_end_of_the_gap_or_is_visibly_skipped():
    window = "2024-03-09T00:00Z", "2024-03-12T12:00Z"
    assert due(cron("30 2 * * *", "America/New_York", "skip"), *window) == [
        "2024-03-09T07:30Z",
        "2024-03-11T06:30Z",
        "2024-03-12T06:30Z",
    ]
    assert due(cron("30 2 * * *", "America/New_York", "shift"), *window) == [
        "2024-03-09T07:30Z",
        "2024-03-10T07:00Z",
        "2024-03-11T06:30Z",
        "2024-03-12T06:30Z",
    ]


@pytest.mark.parametrize(("gap", "fold"), EVERY_POLICY)
def test_o03_an_hourly_schedule_makes_nothing_up_in_the_gap(gap, fold):
    trigger = cron("30 * * * *", "America/New_York", gap, fold)
    assert due(trigger, "2024-03-10T05:00Z", "2024-03-10T09:00Z") == [
        "2024-03-10T05:30Z",
        "2024-03-10T06:30Z",
        "2024-03-10T07:30Z",
        "2024-03-10T08:30Z",
    ]


def test_o04_the_repeated_hour_is_passed_and_never_returned_to():
    assert due(cron("0 */2 * * *", "Europe/London"), "2024-10-26T22:00Z", "2024-10-27T08:00Z") == [
        "2024-10-26T23:00Z",
        "2024-10-27T02:00Z",
        "2024-10-27T04:00Z",
        "2024-10-27T06:00Z",
    ]


@pytest.mark.parametrize(
    ("fold", "right"),
    [
        ("first", ["2022-10-29T00:30Z", "2022-10-30T00:30Z", "2022-10-31T01:30Z"]),
        ("second", ["2022-10-29T00:30Z", "2022-10-30T01:30Z", "2022-10-31T01:30Z"]),
        ("both", ["2022-10-29T00:30Z", "2022-10-30T00:30Z", "2022-10-30T01:30Z", "2022-10-31T01:30Z"]),
    ],
)
def test_o04_a_time_shown_twice_runs_as_often_as_its_policy_says(fold, right):
    assert due(cron("30 1 * * *", "Europe/London", fold=fold), "2022-10-29T00:00Z", "2022-11-01T00:00Z") == right


def test_o04_a_fold_that_begins_inside_an_hour_does_not_hold_the_walk():
    trigger = cron("*/15 */3 * * *", "Pacific/Chatham")
    answers = [at("2025-04-05T13:30Z")]
    for _ in range(12):
        following = trigger.next_after(answers[-1])
        assert following is not None
        answers.append(following)
    assert all(earlier < later for earlier, later in pairwise(answers))
    assert written(answers)[:4] == ["2025-04-05T13:30Z", "2025-04-05T13:45Z", "2025-04-05T14:15Z", "2025-04-05T14:30Z"]


def test_o05_the_zone_database_is_the_pinned_one_and_says_its_version():
    trigger = cron("0 12 * * *", "America/Chihuahua")
    right = ["2023-04-01T18:00Z", "2023-04-02T18:00Z", "2023-04-03T18:00Z"]
    assert due(trigger, "2023-04-01T00:00Z", "2023-04-04T00:00Z") == right
    assert trigger.zone.version == tz_version() >= "2026f"


def test_o06_two_restricted_day_fields_mean_either():
    assert due(cron("0 16 1,2,3 * FRI"), "2023-05-01T00:00Z", "2023-06-05T00:00Z") == [
        "2023-05-01T16:00Z",
        "2023-05-02T16:00Z",
        "2023-05-03T16:00Z",
        "2023-05-05T16:00Z",
        "2023-05-12T16:00Z",
        "2023-05-19T16:00Z",
        "2023-05-26T16:00Z",
        "2023-06-01T16:00Z",
        "2023-06-02T16:00Z",
        "2023-06-03T16:00Z",
    ]


def test_o06_a_day_field_that_begins_with_a_star_makes_both_necessary_under_the_vixie_rule_only():
    january = "2024-01-01T00:00Z", "2024-02-01T00:00Z"
    assert due(cron("0 0 */2 * MON"), *january) == ["2024-01-01T00:00Z", "2024-01-15T00:00Z", "2024-01-29T00:00Z"]
    literal = parse("0 0 */2 * MON", day_rule="literal")
    odd_or_monday = [1, 3, 5, 7, 8, 9, 11, 13, 15, 17, 19, 21, 22, 23, 25, 27, 29, 31]
    assert due(CronTrigger(literal, zone("UTC")), *january) == [f"2024-01-{day:02}T00:00Z" for day in odd_or_monday]


def test_o07_the_29th_of_february_comes_every_four_years():
    assert due(cron("0 0 29 2 *"), "2024-03-01T00:00Z", "2032-03-01T00:00Z") == [
        "2028-02-29T00:00Z",
        "2032-02-29T00:00Z",
    ]
    following = cron("0 9 29 2 *").next_after(at("2016-02-29T09:01Z"))
    assert following == at("2020-02-29T09:00Z")


def test_o07_and_after_eight_years_where_a_century_is_not_a_leap_year():
    assert cron("0 0 29 2 *").next_after(at("2096-02-29T00:00Z")) == at("2104-02-29T00:00Z")


def test_o08_5l_is_the_last_friday_and_not_every_friday():
    right = [f"2024-{day}T{hour:02}:00Z" for day in ("07-26", "08-30") for hour in range(24)]
    assert due(cron("0 * * * 5L"), "2024-07-11T00:00Z", "2024-08-31T00:00Z") == right
    assert len(right) == 48


def test_o08_in_quartz_numbering_5l_is_the_last_thursday():
    quartz = parse("0 0 0 ? * 5L", dialect="quartz")
    assert due(CronTrigger(quartz, zone("UTC")), "2024-07-01T00:00Z", "2024-08-01T00:00Z") == ["2024-07-25T00:00Z"]


def test_o09_a_schedule_of_seconds_does_not_pause_when_the_clocks_go_back():
    trigger = cron("*/20 * * * * *", "Europe/Berlin")
    assert due(trigger, "2025-10-26T00:59:00Z", "2025-10-26T01:01:00Z") == [
        "2025-10-26T00:59Z",
        "2025-10-26T00:59:20Z",
        "2025-10-26T00:59:40Z",
        "2025-10-26T01:00Z",
        "2025-10-26T01:00:20Z",
        "2025-10-26T01:00:40Z",
    ]
    night = at("2025-10-26T00:00Z") - 1, at("2025-10-26T03:00Z") - 1
    assert len(list(between(trigger, *night))) == count_between(trigger, *night, limit=10_000) == 540


@pytest.mark.parametrize("text", ["0 0 31 2 *", "0 0 31 4,6,9,11 *"])
def test_o24_an_expression_that_can_never_fire_is_refused(text):
    with pytest.raises(CronError, match="never fire") as refusal:
        parse(text)
    assert refusal.value.field == "day_of_month"


def test_o24_an_impossible_date_or_a_weekday_is_the_weekday():
    assert due(cron("0 0 31 2 1-5"), "2024-01-31T00:00Z", "2024-02-08T00:00Z") == [
        "2024-02-01T00:00Z",
        "2024-02-02T00:00Z",
        "2024-02-05T00:00Z",
        "2024-02-06T00:00Z",
        "2024-02-07T00:00Z",
    ]
