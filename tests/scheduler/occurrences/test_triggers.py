"""Triggers at their edges: the seams of a zone, the ends of the calendar, intervals and single instants."""

from itertools import islice

import pytest

from scheduler.occurrences import (
    AtTrigger,
    CronTrigger,
    Dropped,
    EveryTrigger,
    between,
    count_between,
    dropped,
    last_between,
)
from scheduler.occurrences.zones import LAST_INSTANT
from tests.scheduler.occurrences.instants import at, cron, due, written

WEEK = 604_800


# -------------------------------------------------------------------------------------------- cron at the seams


def test_readings_shifted_onto_the_same_instant_are_one_occurrence():
    trigger = cron("0,15,30,45 2 * * *", "America/New_York")
    assert due(trigger, "2024-03-10T00:00Z", "2024-03-11T00:00Z") == ["2024-03-10T07:00Z"]


def test_a_shifted_reading_and_a_regular_one_at_the_same_instant_are_one_occurrence():
    trigger = cron("30,0 2,3 * * *", "America/New_York")
    assert due(trigger, "2024-03-10T00:00Z", "2024-03-11T00:00Z") == ["2024-03-10T07:00Z", "2024-03-10T07:30Z"]
    assert count_between(trigger, at("2024-03-10T00:00Z"), at("2024-03-11T00:00Z"), limit=10) == 2


def test_a_window_that_ends_just_before_the_end_of_a_gap_does_not_hold_the_shifted_occurrence():
    trigger, end_of_gap = cron("30 2 * * *", "America/New_York"), at("2024-03-10T07:00Z")
    assert list(between(trigger, end_of_gap - 60, end_of_gap - 1)) == []
    assert list(between(trigger, end_of_gap - 1, end_of_gap)) == [end_of_gap]
    assert trigger.next_after(end_of_gap - 1) == end_of_gap
    assert written(filter(None, [trigger.next_after(end_of_gap)])) == ["2024-03-11T06:30Z"]


def test_seconds_inside_a_gap_are_one_shifted_occurrence():
    trigger = cron("* 30 2 * * *", "Europe/Berlin")
    assert due(trigger, "2024-03-31T00:00Z", "2024-03-31T12:00Z") == ["2024-03-31T01:00Z"]


def test_a_gap_holds_its_first_second_and_its_last_but_not_its_end():
    for text, shifted in [
        ("0 0 2 * * *", True),
        ("59 59 2 * * *", True),
        ("59 59 1 * * *", False),
        ("0 0 3 * * *", False),
    ]:
        skipping = cron(text, "America/New_York", gap="skip")
        lost = list(dropped(skipping, at("2024-03-10T00:00Z"), at("2024-03-11T00:00Z")))
        assert [d.at for d in lost] == ([at("2024-03-10T07:00Z")] if shifted else []), text
        following = cron(text, "America/New_York").next_after(at("2024-03-10T06:59:59Z"))
        assert (following == at("2024-03-10T07:00Z")) is (shifted or text == "0 0 3 * * *"), text


def test_a_whole_missing_day_is_made_up_at_its_end():
    trigger = cron("0 9 30 12 *", "Pacific/Apia")
    assert due(trigger, "2011-12-01T00:00Z", "2012-01-31T00:00Z") == ["2011-12-30T10:00Z"]


def test_a_permanent_change_folds_like_any_other():
    trigger = cron("30 23 29 2 *", "Asia/Almaty", fold="second")
    assert due(trigger, "2024-02-29T00:00Z", "2024-03-01T00:00Z") == ["2024-02-29T18:30Z"]


# ------------------------------------------------------------------------------------------------- what was dropped


def test_a_reading_skipped_by_a_gap_is_reported_at_the_moment_the_clock_jumped():
    trigger = cron("0,30 2 * * *", "America/New_York", gap="skip")
    assert list(dropped(trigger, at("2024-03-09T12:00Z"), at("2024-03-11T00:00Z"))) == [
        Dropped(at("2024-03-10T02:00"), "gap", at("2024-03-10T07:00Z")),
        Dropped(at("2024-03-10T02:30"), "gap", at("2024-03-10T07:00Z")),
    ]


@pytest.mark.parametrize(("fold", "instant"), [("first", "2024-11-03T06:30Z"), ("second", "2024-11-03T05:30Z")])
def test_the_other_pass_of_a_fold_is_reported(fold, instant):
    trigger = cron("30 1 * * *", "America/New_York", fold=fold)
    assert list(dropped(trigger, at("2024-11-02T12:00Z"), at("2024-11-04T00:00Z"))) == [
        Dropped(at("2024-11-03T01:30"), "fold", at(instant))
    ]


@pytest.mark.parametrize(
    "trigger", [cron("30 2 * * *", "America/New_York", fold="both"), cron("* * * * *", "Europe/Rome")]
)
def test_nothing_is_dropped_under_shift_and_both_or_by_the_real_clock(trigger):
    assert list(dropped(trigger, at("2024-01-01T00:00Z"), at("2025-01-01T00:00Z"))) == []


def test_other_triggers_drop_nothing():
    assert list(dropped(EveryTrigger(60, 0), 0, WEEK)) == []


def test_a_report_holds_what_lies_in_its_window_and_nothing_twice():
    trigger, cut = cron("0-59 1 * * *", "America/New_York"), at("2024-11-03T06:20Z")
    before = list(dropped(trigger, at("2024-11-03T00:00Z"), cut))
    after = list(dropped(trigger, cut, at("2024-11-04T00:00Z")))
    assert (len(before), len(after)) == (21, 39)
    assert {d.at for d in before} | {d.at for d in after} == set(
        range(at("2024-11-03T06:00Z"), at("2024-11-03T07:00Z"), 60)
    )


# -------------------------------------------------------------------------------------------- ends of the calendar


def test_the_rarest_day_comes_after_forty_years():
    fifth_monday = cron("0 0 * 2 MON#5")
    assert fifth_monday.next_after(at("2072-02-29T00:00Z")) == at("2112-02-29T00:00Z")


def test_after_the_end_of_the_calendar_there_is_nothing():
    trigger = cron("* * * * *", "Pacific/Apia")
    assert trigger.next_after(LAST_INSTANT) is None
    assert trigger.next_after(10**30) is None
    assert list(between(trigger, LAST_INSTANT, 10**30)) == []
    assert count_between(trigger, LAST_INSTANT, 10**30, limit=5) == 0


def test_before_the_beginning_of_the_calendar_a_schedule_begins_with_it():
    assert written(filter(None, [cron("0 0 1 1 *").next_after(-(10**30))])) == ["0002-01-01T00:00Z"]
    assert list(islice(between(cron("0 0 1 1 *"), -(10**30), 10**30), 1)) == [at("0002-01-01T00:00Z")]


def test_far_centuries_are_answered_by_the_rule_of_today():
    trigger = cron("30 2 * * *", "Europe/Berlin")
    assert due(trigger, "2999-03-30T00:00Z", "2999-04-02T00:00Z") == [
        "2999-03-30T01:30Z",
        "2999-03-31T01:00Z",
        "2999-04-01T00:30Z",
    ]


def test_an_empty_or_upside_down_window_has_nothing():
    for trigger in (cron("* * * * *"), EveryTrigger(60, 0), AtTrigger((60,))):
        assert list(between(trigger, 60, 60)) == []
        assert list(between(trigger, 600, 60)) == []
        assert count_between(trigger, 600, 60, limit=5) == 0
        assert last_between(trigger, 600, 60) is None
        assert last_between(trigger, 60, 60) is None


# --------------------------------------------------------------------------------------- counting and looking back


def test_a_count_stops_at_its_limit():
    assert count_between(cron("* * * * * *"), 0, 10**9, limit=100) == 100
    assert count_between(EveryTrigger(1, 0), 0, 10**9, limit=100) == 100
    assert count_between(AtTrigger((1, 2, 3)), 0, 10, limit=2) == 2


def test_a_count_knows_the_seams():
    trigger = cron("30 2 * * *", "America/New_York", gap="skip", fold="both")
    year = at("2024-01-01T00:00Z"), at("2025-01-01T00:00Z")
    assert count_between(trigger, *year, limit=1_000) == 365  # 366 days, one reading skipped in March
    assert count_between(cron("30 1 * * *", "America/New_York", fold="both"), *year, limit=1_000) == 367


def test_the_latest_missed_occurrence_is_found_without_walking_the_outage():
    outage = at("2024-01-01T00:00Z"), at("2026-01-01T00:00:30Z")
    assert last_between(cron("* * * * * *"), *outage) == outage[1]
    assert last_between(cron("0 12 * * *"), *outage) == at("2025-12-31T12:00Z")
    assert last_between(cron("0 0 29 2 *"), *outage) == at("2024-02-29T00:00Z")
    assert last_between(cron("0 0 29 2 *"), at("2025-01-01T00:00Z"), outage[1]) is None
    assert last_between(EveryTrigger(7 * 86_400, 0), 0, 100 * 86_400) == 98 * 86_400
    assert last_between(AtTrigger((5, 7)), 4, 6) == 5


# ---------------------------------------------------------------------------------------- intervals and instants


def test_an_interval_is_counted_from_its_anchor_and_not_from_the_question():
    created = at("2025-03-05T09:30Z")
    trigger = EveryTrigger(WEEK, created)
    assert written(between(trigger, created, at("2025-03-26T00:00Z"))) == ["2025-03-12T09:30Z", "2025-03-19T09:30Z"]
    assert trigger.next_after(created - 1) == created
    assert trigger.next_after(created - 10 * WEEK) == created
    assert count_between(trigger, created - 10 * WEEK, created + 2 * WEEK, limit=10) == 3


def test_an_interval_under_a_second_is_refused():
    with pytest.raises(ValueError, match="at least one second"):
        EveryTrigger(0, 0)


def test_instants_are_kept_in_order_and_each_once():
    trigger = AtTrigger((30, 10, 30, 20))
    assert trigger.instants == (10, 20, 30)
    assert list(between(trigger, 10, 30)) == [20, 30]
    assert [trigger.next_after(after) for after in (9, 10, 29, 30)] == [10, 20, 30, None]


def test_a_trigger_of_another_make_is_walked_step_by_step():
    class Primes:
        def next_after(self, after: int) -> int | None:
            return next((prime for prime in (2, 3, 5, 7) if prime > after), None)

    assert list(between(Primes(), 2, 6)) == [3, 5]
    assert count_between(Primes(), 0, 100, limit=3) == 3
    assert last_between(Primes(), 0, 6) == 5


def test_triggers_are_values():
    assert cron("0 2 * * *", "Europe/Rome") == cron("0 2 * * *", "Europe/Rome")
    assert (
        len({cron("0 2 * * *"), cron("0 2 * * *", gap="skip"), EveryTrigger(60, 0), AtTrigger((1, 1)), AtTrigger((1,))})
        == 4
    )
    assert isinstance(cron("0 2 * * *"), CronTrigger)
