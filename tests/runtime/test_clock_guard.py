"""When the wall clock is believed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from runtime.clock_guard import ClockGuard

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def guard_at_noon() -> ClockGuard:
    return ClockGuard(accept_after=MINUTE).look(mark=NOON, wall=NOON, boot=100.0)


def test_clocks_that_agree_are_believed() -> None:
    guard = guard_at_noon().look(mark=NOON, wall=NOON + timedelta(hours=8), boot=100.0 + 8 * 3600)
    assert guard.held == ""


def test_a_slew_of_up_to_five_seconds_is_believed() -> None:
    """What a time daemon corrects between two looks."""
    guard = guard_at_noon().look(mark=NOON, wall=NOON + timedelta(seconds=65), boot=160.0)
    assert guard.held == ""


def test_a_jump_forward_is_held() -> None:
    guard = guard_at_noon().look(mark=NOON, wall=NOON + timedelta(hours=2), boot=101.0)
    assert guard.held == "the wall clock jumped forward by 7199 s against the time since boot"


def test_a_jump_back_is_held() -> None:
    guard = guard_at_noon().look(mark=NOON, wall=NOON - timedelta(hours=1), boot=110.0)
    assert guard.held == "the wall clock jumped back by 3610 s against the time since boot"


def test_a_hold_ends_when_the_clocks_agree_again() -> None:
    held = guard_at_noon().look(mark=NOON, wall=NOON + timedelta(hours=2), boot=101.0)
    assert held.look(mark=NOON, wall=NOON + timedelta(seconds=20), boot=120.0).held == ""


def test_a_hold_ends_after_accept_after() -> None:
    """One minute here: until then held, then the new time is believed."""
    held = guard_at_noon().look(mark=NOON, wall=NOON + timedelta(hours=2), boot=101.0)
    still = held.look(mark=NOON, wall=NOON + timedelta(hours=2, seconds=59), boot=160.0)
    over = still.look(mark=NOON, wall=NOON + timedelta(hours=2, seconds=60), boot=161.0)
    assert still.held
    assert over.held == ""
    assert over.look(mark=NOON, wall=NOON + timedelta(hours=2, seconds=61), boot=162.0).held == ""


def test_without_accept_after_a_hold_lasts_until_someone_accepts() -> None:
    held = (
        ClockGuard(accept_after=None).look(mark=NOON, wall=NOON, boot=0.0).look(mark=NOON, wall=NOON + MINUTE, boot=1.0)
    )
    later = held.look(mark=NOON, wall=NOON + MINUTE * 600, boot=36_000.0 - 120)
    assert later.held
    assert later.accepted(NOON + MINUTE * 600, 36_000.0).held == ""


def test_a_wall_clock_behind_the_mark_at_the_start_is_held() -> None:
    guard = ClockGuard(accept_after=MINUTE).look(mark=NOON, wall=NOON - timedelta(hours=1), boot=5.0)
    assert guard.held == "the wall clock is 3600 s behind the clock mark"


def test_a_wall_clock_years_ahead_at_the_start_is_held() -> None:
    guard = ClockGuard(accept_after=MINUTE).look(mark=NOON, wall=NOON + timedelta(days=3650), boot=5.0)
    assert guard.held == "the wall clock is 3650 days ahead of the clock mark"


def test_a_machine_that_was_off_for_a_month_is_believed() -> None:
    assert ClockGuard(accept_after=MINUTE).look(mark=NOON, wall=NOON + timedelta(days=30), boot=5.0).held == ""


# --- the log's clock ----------------------------------------------------------------------------------------------


def told(ahead: timedelta, *, seconds: float = 0.1) -> ClockGuard:
    """A partition that is opened at noon by its own clock, which is ahead of the log's."""
    return ClockGuard(accept_after=None).told(NOON - ahead, wall=NOON, boot=5.0, seconds=seconds)


def test_a_wall_clock_that_is_ahead_of_the_logs_is_held_at_its_first_look() -> None:
    guard = told(timedelta(minutes=10)).look(mark=NOON - MINUTE * 10, wall=NOON, boot=5.0)
    assert guard.held == "the wall clock is 600 s ahead of the log's clock"


def test_a_wall_clock_that_is_behind_the_logs_is_held() -> None:
    guard = told(-timedelta(minutes=10)).look(mark=NOON - MINUTE * 10, wall=NOON, boot=5.0)
    assert guard.held == "the wall clock is 600 s behind the log's clock"


def test_clocks_that_differ_by_five_seconds_agree() -> None:
    for seconds in (-5, 5):
        assert told(timedelta(seconds=seconds), seconds=0).look(mark=NOON, wall=NOON, boot=5.0).held == ""


def test_the_log_may_have_told_its_time_at_any_instant_of_a_commit() -> None:
    """Eight seconds long here: a wall clock that is then 12 s ahead may have been right to four."""
    assert told(timedelta(seconds=12), seconds=8).look(mark=NOON, wall=NOON, boot=5.0).held == ""
    assert told(timedelta(seconds=14), seconds=8).look(mark=NOON, wall=NOON, boot=5.0).held


def test_a_hold_ends_when_the_log_has_told_the_time_that_the_wall_shows() -> None:
    held = told(timedelta(hours=1)).look(mark=NOON, wall=NOON, boot=5.0)
    mended = held.look(mark=NOON, wall=NOON - timedelta(hours=1) + MINUTE, boot=65.0)
    assert mended.held
    eleven = NOON - timedelta(hours=1)
    again = mended.told(eleven + MINUTE, wall=eleven + MINUTE, boot=65.0, seconds=0.1)
    assert again.look(mark=eleven, wall=eleven + MINUTE, boot=65.0).held == ""


def test_a_wall_clock_that_an_operator_accepts_is_believed_against_the_log() -> None:
    """It is the log's clock that is an hour behind. By another hour is another matter."""
    accepted = told(timedelta(hours=1)).look(mark=NOON, wall=NOON, boot=5.0).accepted(NOON, 5.0)
    later = accepted.told(NOON - timedelta(hours=1), wall=NOON, boot=5.0, seconds=0.1)
    assert later.look(mark=NOON, wall=NOON, boot=5.0).held == ""
    assert (
        later.told(NOON - timedelta(hours=2), wall=NOON, boot=5.0, seconds=0.1)
        .look(mark=NOON, wall=NOON, boot=5.0)
        .held
    )


def test_a_partition_that_is_opened_knows_the_clock_from_its_neighbours() -> None:
    opened = guard_at_noon().of_another_partition(None)
    jumped = opened.look(mark=NOON, wall=NOON + timedelta(hours=2), boot=101.0)
    assert jumped.held == "the wall clock jumped forward by 7199 s against the time since boot"
    assert opened.look(mark=NOON, wall=NOON + MINUTE, boot=160.0).held == ""


def test_a_partition_that_is_opened_has_a_mark_of_its_own() -> None:
    opened = guard_at_noon().of_another_partition(None)
    assert opened.look(mark=NOON + MINUTE, wall=NOON, boot=100.0).held == (
        "the wall clock is 60 s behind the clock mark"
    )
