"""What is to wait for other schedules waits: a part of I20."""

from typing import Any

from schemas import topics
from simulation.checkers import windows
from tests.simulation.checkers.given import Given, calm, created, finished, of_schedule, told, z

ENTRY = {
    "schedule": "load", "mode": "interval", "condition": "succeeded", "span": "PT10S", "offset": "PT0S",
    "on_unmet": "wait", "deadline": "PT1M",
}  # fmt: skip
LOADED = "load.20260301T120005Z"
EARLY = (
    "I20 run-events-0@3: s.20260301T120010Z is created, and load of 12:00:05, run, had not come right"
)  # fmt: skip


def accepted(**more: Any) -> dict[str, Any]:
    definition = {"after": [{**ENTRY, **more}]}
    return of_schedule("schedule.accepted", version=1, definition=definition, effective_at=z("12:00:00"))


def load(nominal: str = "12:00:05") -> dict[str, Any]:
    return created(nominal, schedule="load", run_id=LOADED)


def ended(outcome: str = "succeeded", **more: Any) -> dict[str, Any]:
    return finished(outcome, run=LOADED, schedule="load", nominal_time=z("12:00:05"), cause="schedule", **more)


def found(*told_: tuple[str, dict[str, Any]]) -> list[str]:
    """Events of `run-events`, each with the time at which it was appended."""
    given = Given()
    for now, event in told_:
        given.append(topics.RUN_EVENTS, event, now=now)
    return told(windows.check(given.evidence()))


BEGUN = ("12:00:00", accepted()), ("12:00:05", load())
OWN = created("12:00:10")


def test_a_calm_history_waits_for_nothing():
    assert told(windows.check(calm().evidence())) == []


def test_a_run_whose_window_had_come_right_has_waited():
    assert found(*BEGUN, ("12:00:08", ended()), ("12:00:10", OWN)) == []


def test_a_run_before_the_outcome_or_after_a_failure_or_without_any_is_found():
    assert found(*BEGUN, ("12:00:09", ended("failed")), ("12:00:10", OWN)) == [EARLY]
    assert found(*BEGUN, ("12:00:10", OWN), ("12:00:11", ended())) == [EARLY.replace("@3", "@2")]
    assert found(*BEGUN, ("12:00:10", OWN)) == [EARLY.replace("@3", "@2")]


def test_a_run_in_spite_of_a_skipped_occurrence_is_found_unless_rules_took_that_out():
    def skipped(reason: str) -> dict[str, Any]:
        return of_schedule("occurrence.skipped", schedule="load", nominal_time=z("12:00:05"), reason=reason, version=1)

    of_paused = EARLY.replace("@3", "@2").replace("run, had", "skipped paused, had")
    assert found(BEGUN[0], ("12:00:05", skipped("paused")), ("12:00:10", OWN)) == [of_paused]
    assert found(BEGUN[0], ("12:00:05", skipped("excluded")), ("12:00:10", OWN)) == []


def test_a_late_success_mends_a_failure():
    mended = ended("succeeded", cause_="rerun", attempts=2)
    assert found(*BEGUN, ("12:00:07", ended("failed")), ("12:00:09", mended), ("12:00:10", OWN)) == []


def test_finished_is_enough_where_that_is_the_condition_and_run_anyway_where_that_is_said():
    failed = ("12:00:08", ended("failed"))
    for more, wrong in (({"condition": "finished"}, []), ({"on_unmet": "run_anyway"}, []), ({}, [EARLY])):
        assert found(("12:00:00", accepted(**more)), BEGUN[1], failed, ("12:00:10", OWN)) == wrong


def test_what_lies_outside_of_the_window_is_not_waited_for():
    for more in ({"span": "PT5S"}, {"offset": "-PT6S"}):
        assert found(("12:00:00", accepted(**more)), BEGUN[1], ("12:00:10", OWN)) == []


def test_whoever_was_edited_meanwhile_is_not_judged():
    later = of_schedule("schedule.accepted", version=2, definition={}, effective_at=z("12:00:11"))
    assert found(*BEGUN, ("12:00:11", later), ("12:00:12", OWN)) == []
