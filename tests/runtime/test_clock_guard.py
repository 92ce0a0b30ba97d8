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
