"""A backlog comes by its rate, and what is due now goes first: a part of I20."""

from typing import Any

from simulation.checkers import paced
from tests.simulation.checkers.given import Given, calm, created, of_schedule, told, z


def accepted(rate: str | None = "12/m") -> dict[str, Any]:
    catch_up = {} if rate is None else {"rate": rate}
    return of_schedule("schedule.accepted", version=1, definition={"catch_up": catch_up})


def turn(at: str) -> dict[str, Any]:
    return of_schedule("occurrence.paced", release_at=z(at))


def deferred(nominal: str, release_at: str | None, *, reason: str = "paced") -> dict[str, Any]:
    more = {"cause": "catch_up", "release_at": z(release_at)} if release_at else {"cause": "schedule"}
    return of_schedule("occurrence.deferred", version=1, nominal_time=z(nominal), reason=reason, **more)


def caught_up(nominal: str, at: str) -> dict[str, Any]:
    return created(nominal, cause="catch_up", created_at=z(at))


def found(*facts: dict[str, Any]) -> list[str]:
    given = Given()
    given.transaction("scheduler", "12:01:00", facts)
    return [line.removeprefix("I20 scheduler-changelog-0@0: ") for line in told(paced.check(given.evidence()))]


FIRST = accepted(), turn("12:00:30"), caught_up("12:00:05", "12:00:30.1")
SECOND = turn("12:00:35"), deferred("12:00:10", "12:00:35")


def test_a_calm_history_has_no_backlog():
    assert told(paced.check(calm().evidence())) == []


def test_one_after_another_by_the_rate_is_right():
    assert found(*FIRST, *SECOND, caught_up("12:00:10", "12:00:35")) == []


def test_a_turn_less_than_a_step_behind_the_one_before_is_found():
    assert found(*FIRST, turn("12:00:34"), deferred("12:00:10", "12:00:34")) == [
        "acme/s of 2026-03-01T12:00:10Z has its turn at 12:00:34.000000, 0:00:05 behind 12:00:30.000000 at the earliest"
    ]
    usual = accepted(None), *FIRST[1:], turn("12:00:30.1"), deferred("12:00:10", "12:00:30.1")
    assert found(*usual) == []  # ten a second where nothing is said


def test_a_run_before_its_turn_is_found():
    assert found(*FIRST, *SECOND, caught_up("12:00:10", "12:00:34.9")) == [
        "acme/s of 2026-03-01T12:00:10Z is caught up at 2026-03-01T12:00:34.9Z, and has its turn at 12:00:35.000000"
    ]


def test_a_run_without_a_turn_is_found():
    assert found(*FIRST, caught_up("12:00:10", "12:00:30.1")) == [
        "acme/s of 2026-03-01T12:00:10Z is caught up without a turn of its own"
    ]


def test_a_run_that_is_caught_up_in_front_of_what_is_due_now_is_found():
    live = deferred("12:00:40", None, reason="buffered")
    facts = *FIRST, *SECOND, live
    assert found(*facts, caught_up("12:00:10", "12:00:41")) == [
        "acme/s of 2026-03-01T12:00:10Z is caught up, and 2026-03-01T12:00:40Z of its schedule is due now and waits"
    ]
    assert found(*facts, created("12:00:40"), caught_up("12:00:10", "12:00:41")) == []
    skipped = of_schedule("occurrence.skipped", reason="overlap", nominal_time=z("12:00:40"))
    assert found(*facts, skipped, caught_up("12:00:10", "12:00:41")) == []


def test_what_a_freeze_holds_has_its_turn_behind_it_and_is_in_nobodys_way():
    frozen = deferred("12:00:40", "12:00:50", reason="frozen")
    facts = *FIRST, *SECOND, deferred("12:00:40", None, reason="buffered"), frozen
    assert found(*facts, caught_up("12:00:10", "12:00:41"), turn("12:00:50"), caught_up("12:00:40", "12:00:50")) == []


def test_what_waited_in_the_line_when_a_freeze_deferred_it_needs_no_turn_and_what_was_due_then_does():
    frozen = deferred("12:00:10", "12:00:40", reason="frozen")
    late = caught_up("12:00:10", "12:00:40")
    assert found(*FIRST, deferred("12:00:10", None, reason="buffered"), frozen, late) == []
    assert found(*FIRST, frozen, late) == ["acme/s of 2026-03-01T12:00:10Z is caught up without a turn of its own"]


def test_a_freeze_moves_the_turns_behind_what_it_holds_and_each_is_a_step_behind_the_one_before():
    third = turn("12:00:40"), deferred("12:00:15", "12:00:40")
    held = *FIRST, *SECOND, *third, deferred("12:00:10", "12:00:37", reason="frozen")
    come = *held, turn("12:00:37"), caught_up("12:00:10", "12:00:37")
    assert found(*come, turn("12:00:42"), deferred("12:00:15", "12:00:42"), caught_up("12:00:15", "12:00:42")) == []
    assert found(*come, turn("12:00:40"), caught_up("12:00:15", "12:00:40")) == [
        "acme/s of 2026-03-01T12:00:15Z has its turn at 12:00:40.000000, 0:00:05 behind 12:00:37.000000 at the earliest"
    ]


def test_who_comes_to_stand_behind_what_a_freeze_holds_has_a_turn_when_it_is_first_and_not_before():
    held = (
        *FIRST,
        deferred("12:00:10", "12:00:40", reason="frozen"),
        deferred("12:00:15", "12:00:50", reason="buffered"),
    )
    come = *held, turn("12:00:50"), caught_up("12:00:10", "12:00:50")
    assert found(*come, turn("12:00:55"), caught_up("12:00:15", "12:00:55")) == []
    assert found(*held, caught_up("12:00:15", "12:00:55")) == [
        "acme/s of 2026-03-01T12:00:15Z is caught up without a turn of its own"
    ]


def test_what_waited_for_other_schedules_comes_when_these_are_done_and_has_no_turn():
    more = {"nominal_time": z("12:00:10"), "reason": "waiting", "cause": "catch_up"}
    waits = of_schedule("occurrence.deferred", version=1, **more)
    frozen = deferred("12:00:10", "12:00:40", reason="frozen")
    assert found(*FIRST, waits, caught_up("12:00:10", "12:00:30.1")) == []
    assert found(*FIRST, waits, frozen, caught_up("12:00:10", "12:00:40")) == []
