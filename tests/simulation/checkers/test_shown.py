"""What the read model shows is what happened: a part of I13."""

from typing import Any

from schemas import topics
from simulation.checkers import shown
from tests.simulation.checkers.given import Given, finished, of_schedule, told, z

SCHEDULE = {"tenant": "acme", "name": "s", "version": 1, "state": "active"}
RUN = {"tenant": "acme", "run_id": "s.20260301T120005Z", "outcome": "succeeded", "attempts": 1}


def found(*facts: dict[str, Any], rows: tuple[dict[str, Any], ...] = (SCHEDULE,), runs: Any = (RUN,)) -> list[str]:
    given = Given()
    accepted = of_schedule("schedule.accepted", version=1, created=True, definition={}, effective_at=z("12:00:00"))
    given.transaction("scheduler", "12:00:00", [accepted, *facts])
    for _ in range(2):  # a torn transaction that is made whole says it twice
        given.append(topics.RUN_EVENTS, finished())
    return told(shown.check(given.evidence(read_model={"schedules": rows, "runs": runs})))


def change(verb: str, **other: Any) -> dict[str, Any]:
    return of_schedule(f"schedule.{verb}", version=1, effective_at=z("12:00:01"), **other)


def test_rows_that_say_what_happened_are_right():
    assert found() == []
    assert found(change("paused"), rows=({**SCHEDULE, "state": "paused"},)) == []
    assert found(change("paused"), change("resumed")) == []
    assert found(change("deleted"), rows=({**SCHEDULE, "state": "deleted"},)) == []


def test_without_a_read_model_nothing_is_compared():
    assert told(shown.check(Given().evidence())) == []


def test_a_schedule_that_is_shown_as_it_was_is_found():
    assert found(change("deleted")) == ["I13 read model, schedules: acme/s is active, and should be deleted"]
    assert found(change("paused")) == ["I13 read model, schedules: acme/s is active, and should be paused"]
    second = of_schedule("schedule.accepted", version=2, definition={}, effective_at=z("12:00:01"))
    assert found(second) == ["I13 read model, schedules: acme/s has version 1, and 2 is its last"]
    assert found(rows=()) == ["I13 read model, schedules: acme/s is not there"]


def test_a_pause_of_its_own_may_lie_before_a_resumption():
    assert found(change("paused", reason="failures")) == []


def test_a_run_with_another_outcome_or_number_of_attempts_is_found():
    assert found(runs=({**RUN, "outcome": None},)) == [
        "I13 read model, runs: acme: run s.20260301T120005Z has the outcome None, and was succeeded"
    ]
    assert found(runs=({**RUN, "attempts": 2},)) == [
        "I13 read model, runs: acme: run s.20260301T120005Z has 2 attempts, and took 1"
    ]
    assert found(runs=()) == ["I13 read model, runs: acme: run s.20260301T120005Z is not there"]
