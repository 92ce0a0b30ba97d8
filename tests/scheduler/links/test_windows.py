"""Windows of `mode: interval`, and where what is known of the upstreams leads."""

from scheduler.links import windows
from scheduler.links.windows import Way, Window

HOUR = 3600
DEADLINE_MS = 100_000


def way(fate: str, at_ms: int, on_unmet: str) -> Way:
    return windows.way("load", fate, at_ms, on_unmet=on_unmet, deadline_ms=DEADLINE_MS)


def test_a_window_reaches_back_a_span_and_is_moved_by_the_offset():
    assert windows.of(10 * HOUR, 2 * HOUR, 0) == Window(8 * HOUR, 10 * HOUR)
    assert windows.of(10 * HOUR, 2 * HOUR, -HOUR) == Window(7 * HOUR, 9 * HOUR)


def test_a_window_does_not_begin_before_all_time():
    assert windows.of(HOUR, 2 * HOUR, 0) == Window(0, HOUR)


def test_what_is_met_goes_at_the_instant_of_the_answer():
    assert way("met", 5_000, "wait") == Way(5_000, True, "load")


def test_what_is_unmet_waits_for_the_deadline_or_is_decided_at_once():
    assert way("unmet", 5_000, "wait") == Way(100_000, False, "load", is_late=True)
    assert way("unmet", 5_000, "skip") == Way(5_000, False, "load")
    assert way("unmet", 5_000, "run_anyway") == Way(5_000, True, "load")


def test_what_nobody_knows_of_by_the_deadline_is_skipped_or_run_anyway():
    assert way("open", 5_000, "skip") == Way(100_000, False, "load", is_late=True)
    assert way("", 0, "run_anyway") == Way(100_000, True, "load", is_late=True)


def test_an_answer_behind_the_deadline_comes_too_late():
    assert way("met", 100_000, "wait") == Way(100_000, True, "load")
    assert way("met", 100_001, "wait") == Way(100_000, False, "load", is_late=True)


def test_of_several_upstreams_all_have_to_be_met_and_the_first_skip_counts():
    one, other = Way(5_000, True, "a"), Way(7_000, True, "b")
    assert windows.together([one, other]) == Way(7_000, True, "b")
    assert windows.together([one, Way(9_000, False, "c"), Way(8_000, False, "d")]) == Way(8_000, False, "d")
