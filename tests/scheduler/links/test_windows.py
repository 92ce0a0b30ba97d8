"""Which occurrences of an upstream one waits for, and how marks and exceptions answer for all of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.links import windows
from scheduler.links.windows import ENDED, Exceptions, Fate, Known, Window

DAY, HOUR, MINUTE = 86_400, 3600, 60


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


def fate(known: Known, window: Window, *, condition: str = "succeeded", overdue: bool = False) -> Fate:
    return windows.fate(known, window, condition=condition, overdue=overdue)


def test_a_window_ends_with_the_nominal_instant_and_leaves_its_beginning_to_the_one_before():
    window = windows.of(at("2024-01-02T00:00"), DAY, 0)
    assert window == (at("2024-01-01T00:00"), at("2024-01-02T00:00"))
    assert not window.holds(at("2024-01-01T00:00"))
    assert window.holds(at("2024-01-02T00:00"))


def test_an_offset_moves_it():
    assert windows.of(at("2024-01-03T00:00"), HOUR, -DAY) == (at("2024-01-01T23:00"), at("2024-01-02T00:00"))
    assert windows.of(at("2024-01-03T00:00"), HOUR, HOUR) == (at("2024-01-03T00:00"), at("2024-01-03T01:00"))


def test_it_waits_until_the_mark_is_behind_its_window():
    """The mark's own instant is open."""
    window = windows.of(at("2024-01-02T00:00"), DAY, 0)
    assert fate(Known(settled_until=at("2024-01-01T13:00")), window) is Fate.WAITS
    assert fate(Known(settled_until=at("2024-01-02T00:00")), window) is Fate.WAITS
    assert fate(Known(settled_until=at("2024-01-02T01:00")), window) is Fate.MET


def test_a_window_without_occurrences_is_met():
    """A runs on Mondays, the mark stands at the next one."""
    window = windows.of(at("2024-01-04T00:00"), DAY, 0)
    assert fate(Known(settled_until=at("2024-01-08T00:00")), window) is Fate.MET


def test_what_has_ended_is_waited_for_no_longer():
    assert fate(Known(settled_until=ENDED), windows.of(at("2024-01-04T00:00"), DAY, 0)) is Fate.MET


def test_an_upstream_that_was_never_seen_is_waited_for_to_the_deadline():
    window = windows.of(at("2024-01-04T00:00"), DAY, 0)
    assert fate(Known(), window) is Fate.WAITS
    assert fate(Known(), window, overdue=True) is Fate.OVERDUE


@pytest.mark.parametrize(
    ("failed", "skipped", "succeeded", "finished"),
    [
        ("", "", Fate.MET, Fate.MET),
        ("2024-01-01T12:00", "", Fate.UNMET, Fate.MET),
        ("", "2024-01-01T12:00", Fate.UNMET, Fate.UNMET),
        ("2024-01-01T00:00", "", Fate.MET, Fate.MET),
        ("2024-01-02T00:00", "", Fate.UNMET, Fate.MET),
        ("2024-01-02T01:00", "", Fate.MET, Fate.MET),
    ],
)
def test_only_exceptions_inside_the_window_are_judged(failed, skipped, succeeded, finished):
    exceptions = Exceptions(failed=(at(failed),) if failed else (), skipped=(at(skipped),) if skipped else ())
    known = Known(settled_until=at("2024-01-03T00:00"), exceptions=exceptions)
    window = windows.of(at("2024-01-02T00:00"), DAY, 0)
    assert fate(known, window) is succeeded
    assert fate(known, window, condition="finished") is finished


def test_exceptions_are_judged_once_everything_in_the_window_has_its_fate():
    window = windows.of(at("2024-01-02T00:00"), DAY, 0)
    failed = Exceptions(failed=(at("2024-01-01T05:00"),))
    assert fate(Known(settled_until=at("2024-01-01T13:00"), exceptions=failed), window) is Fate.WAITS
    assert fate(Known(settled_until=ENDED, exceptions=failed), window) is Fate.UNMET


def test_what_is_in_the_way_is_named():
    window = windows.of(at("2024-01-02T00:00"), DAY, 0)
    wrong = Exceptions(failed=(at("2023-12-31T00:00"), at("2024-01-01T05:00")), skipped=(at("2024-01-01T03:00"),))
    known = Known(settled_until=at("2024-01-01T13:00"), exceptions=wrong)
    assert windows.named(known, window, condition="succeeded") == at("2024-01-01T03:00")
    assert windows.named(Known(settled_until=at("2024-01-01T13:00")), window, condition="succeeded") == at(
        "2024-01-01T13:00"
    )
    assert windows.named(Known(settled_until=ENDED), window, condition="succeeded") is None


def test_of_several_upstreams_all_have_to_be_met():
    assert windows.together([]) is Fate.MET
    assert windows.together([Fate.MET, Fate.WAITS]) is Fate.WAITS
    assert windows.together([Fate.WAITS, Fate.UNMET, Fate.MET]) is Fate.UNMET
    assert windows.together([Fate.WAITS, Fate.OVERDUE]) is Fate.OVERDUE


def test_b_o23_seven_runs_of_the_week_before_are_waited_for_and_one_that_is_missing_too():
    """A at midnight of 16 to 22 November, backfilled one after another; B at 01:00 of the 23rd, `P7D` moved by `-P1D`.

    With `offset: -P1D` the window is (15th 01:00, 22nd 01:00]: the seven midnights, and not that of the 23rd.
    """
    nights = [at(f"2019-11-{day}T00:00") for day in range(16, 23)]
    window = windows.of(at("2019-11-23T01:00"), 7 * DAY, -DAY)
    assert [
        night for night in (at("2019-11-15T00:00"), *nights, at("2019-11-23T00:00")) if window.holds(night)
    ] == nights
    known = Known(settled_until=nights[0])
    for night, following in zip(nights, [*nights[1:], at("2019-11-23T00:00")], strict=True):
        assert fate(known, window) is Fate.WAITS
        known = windows.settled(known, night, following, outcome="succeeded")
    assert fate(known, window) is Fate.MET
    missing = windows.mended(known, nights[3], outcome="skipped")
    assert fate(missing, window) is Fate.UNMET
    assert fate(windows.mended(missing, nights[3], outcome="succeeded"), window) is Fate.MET


def test_a_late_success_clears_an_exception():
    known = windows.settled(Known(settled_until=5), 5, 10, outcome="failed")
    assert known == Known(settled_until=10, exceptions=Exceptions(failed=(5,)))
    assert windows.mended(known, 5, outcome="succeeded") == Known(settled_until=10)
    assert windows.mended(known, 5, outcome="failed") == known


def test_exceptions_go_when_no_window_reaches_them():
    known = Known(settled_until=99, exceptions=Exceptions(failed=(1, 5, 9), skipped=(2, 5)))
    assert windows.forgotten(known, 5) == Known(settled_until=99, exceptions=Exceptions(failed=(5, 9), skipped=(5,)))


def test_a_daily_schedule_waits_for_a_hundred_upstreams_of_unlike_periods():
    """Periods of 1 to 100 minutes; the day is met when each mark has passed its end, and not one minute sooner."""
    begin, end = at("2024-01-01T00:00"), at("2024-01-02T00:00")
    window = windows.of(end, DAY, 0)
    marks = {period: Known(settled_until=begin + period * MINUTE) for period in range(1, 101)}
    steps = 0
    while windows.together(fate(known, window) for known in marks.values()) is Fate.WAITS:
        period, known = min(marks.items(), key=lambda item: item[1].settled_until or 0)
        mark = known.settled_until
        assert mark is not None
        marks[period] = windows.settled(known, mark, mark + period * MINUTE, outcome="succeeded")
        steps += 1
    assert steps == sum(1440 // period for period in range(1, 101))
    assert all(known.exceptions == Exceptions() for known in marks.values())


OUTCOMES = st.sampled_from(["succeeded", "failed", "skipped", ""])


@given(st.lists(OUTCOMES, max_size=30), st.integers(1, 12), st.integers(-8, 8), st.integers(0, 40), st.booleans())
def test_mark_and_exceptions_say_what_looking_at_every_occurrence_says(fates, span, offset, nominal, finished):
    """Occurrences at 1, 2, 3 …; '' has no outcome yet. What stands behind the first of these is not looked at."""
    condition = "finished" if finished else "succeeded"
    good = {"succeeded", "failed"} if finished else {"succeeded"}
    first_open = next((place for place, each in enumerate(fates, 1) if not each), len(fates) + 1)
    known = Known(settled_until=1)
    for place in range(1, first_open):
        known = windows.settled(known, place, place + 1, outcome=fates[place - 1])
    inside = [place for place in range(1, first_open) if nominal - span + offset < place <= nominal + offset]
    expected = Fate.MET if all(fates[place - 1] in good for place in inside) else Fate.UNMET
    if first_open <= nominal + offset:
        expected = Fate.WAITS
    assert fate(known, windows.of(nominal, span, offset), condition=condition) is expected


def test_a_span_is_counted_in_seconds_of_the_real_clock():
    assert windows.of(0, int(timedelta(days=7).total_seconds()), 0).after == -604_800
