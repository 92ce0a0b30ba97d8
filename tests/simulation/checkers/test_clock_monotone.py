"""I19: the clock of a partition never goes back."""

from simulation.checkers import clock_monotone
from tests.simulation.checkers.given import calm, created, told, z


def found(given) -> list[str]:
    return told(clock_monotone.check(given.evidence()))


def test_a_clock_that_goes_forward_or_stands_is_right():
    given = calm()
    given.transaction("scheduler", "12:00:12")
    assert found(given) == []
    assert clock_monotone.observed(given.evidence()) == 11


def test_a_mark_that_goes_back_is_found():
    given = calm()
    given.transaction("scheduler", "12:00:13", clock_mark=z("12:00:11"), decided_until=z("12:00:12"))
    assert found(given) == [
        "I19 scheduler-changelog-0@10: clock_mark goes from 2026-03-01T12:00:12Z back to 2026-03-01T12:00:11Z",
        "I19 scheduler-changelog-0@10: decided until 2026-03-01T12:00:12Z, beyond the mark 2026-03-01T12:00:11Z",
    ]


def test_what_was_decided_does_not_become_undecided():
    given = calm()
    given.transaction("scheduler", "12:00:13", decided_until=z("12:00:05"))
    assert found(given) == [
        "I19 scheduler-changelog-0@10: decided_until goes from 2026-03-01T12:00:12Z back to 2026-03-01T12:00:05Z"
    ]


def test_a_decision_behind_an_earlier_instant_is_found():
    given = calm()
    given.transaction("scheduler", "12:00:10", [created()], clock_mark=z("12:00:12"), decided_until=z("12:00:12"))
    assert found(given) == [
        "I19 scheduler-changelog-0@11: now goes from 2026-03-01T12:00:12Z back to 2026-03-01T12:00:10Z"
    ]
