"""I2: every due occurrence has exactly one live decision."""

from schemas import topics
from simulation.checkers import conservation
from tests.simulation.checkers.given import calm, created, of_schedule, run_created, told, z


def found(given) -> list[str]:
    return told(conservation.check(given.evidence()))


def skipped(nominal: str, reason: str = "overlap"):
    return of_schedule(
        "occurrence.skipped",
        version=1,
        reason=reason,
        nominal_time=z(nominal),
        tz_version="2026a",
        decided_at=z(nominal),
    )


def test_two_occurrences_were_due_and_have_their_runs():
    given = calm()
    assert found(given) == []
    assert conservation.observed(given.evidence()) == 2


def test_an_occurrence_up_to_the_mark_without_a_decision_is_missing():
    given = calm()
    given.transaction("scheduler", "12:00:17")
    assert found(given) == ["I2 acme/s: missing: 2026-03-01T12:00:15Z due by version 1"]


def test_an_occurrence_that_waits_is_pending_and_not_missing():
    given = calm()
    waits = of_schedule("occurrence.deferred", version=1, reason="buffered", nominal_time=z("12:00:15"))
    given.transaction("scheduler", "12:00:17", [waits], [(topics.RUN_EVENTS, waits)])
    assert found(given) == []
    assert conservation.report(given.evidence()).pending == {"buffered": 1}


def test_an_occurrence_that_is_created_and_skipped_has_two_decisions():
    given = calm()
    skip = skipped("12:00:10")
    given.transaction("scheduler", "12:00:14", [skip], [(topics.RUN_EVENTS, skip)])
    assert found(given) == ["I2 acme/s: duplicated: 2026-03-01T12:00:10Z run s.20260301T120010Z, skipped overlap"]


def test_a_run_that_was_not_due_is_unexpected():
    given = calm()
    run_created(given, created("12:00:07"), "12:00:13")
    assert found(given) == ["I2 acme/s: unexpected: 2026-03-01T12:00:07Z run s.20260301T120007Z by version 1"]


def test_a_run_that_does_not_stand_on_runs_is_undelivered():
    given = calm()
    run = created("12:00:15")
    given.transaction("scheduler", "12:00:15", [run], [(topics.RUN_EVENTS, run)])
    assert found(given) == ["I2 acme/s: undelivered: s.20260301T120015Z"]
