"""`from: finish` counts from the end of the run before, and there is one at a time: a part of I20."""

from typing import Any

from schemas import topics
from simulation.checkers import finishes
from tests.simulation.checkers.given import RUN, Given, calm, created, finished, of_schedule, told, z

SETTLED = of_schedule("run.settled", run_id=RUN, outcome="succeeded")


def accepted(trigger: dict[str, Any] | None = None) -> dict[str, Any]:
    definition = {"trigger": trigger or {"every": "PT10S", "from": "finish"}}
    return of_schedule("schedule.accepted", version=1, definition=definition)


def found(*facts: dict[str, Any], ended_at: str = "12:00:08.700") -> list[str]:
    given = Given()
    given.append(topics.RUN_OUTCOMES, finished(finished_at=z(ended_at)))
    given.transaction("scheduler", "12:00:40", facts)
    return told(finishes.check(given.evidence()))


def test_a_calm_history_counts_by_the_clock():
    assert told(finishes.check(calm().evidence())) == []


def test_a_run_an_interval_behind_the_second_in_which_the_one_before_ended_is_right():
    assert found(accepted(), created(), SETTLED, created("12:00:18")) == []


def test_a_run_sooner_or_later_than_that_is_found():
    for nominal in ("12:00:15", "12:00:17", "12:00:19"):
        assert found(accepted(), created(), SETTLED, created(nominal)) == [
            (
                f"I20 scheduler-changelog-0@0: acme/s of 2026-03-01T{nominal}Z is due at 12:00:18, "
                f"counted from the end of {RUN}"
            )
        ]


def test_a_run_beside_an_open_one_is_found():
    assert found(accepted(), created(), created("12:00:18")) == [
        f"I20 scheduler-changelog-0@0: acme/s of 2026-03-01T12:00:18Z has a run while {RUN} is open"
    ]
    by_hand = created("12:00:18", cause="manual", run_id="s.m-1")
    assert found(accepted(), created(), by_hand) == []


def test_what_is_changed_or_skipped_meanwhile_may_make_it_later_and_not_sooner():
    skipped = of_schedule("occurrence.skipped", reason="requested", nominal_time=z("12:00:18"))
    assert found(accepted(), created(), SETTLED, skipped, created("12:00:28")) == []
    assert len(found(accepted(), created(), SETTLED, skipped, created("12:00:17"))) == 1


def test_a_schedule_by_the_clock_is_another_matter():
    assert found(accepted({"every": "PT5S"}), created(), created("12:00:10")) == []
