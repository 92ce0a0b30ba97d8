"""A run carries the job as its partition had adopted it when it was decided: a part of I20."""

from typing import Any

from simulation.checkers import adopted
from tests.simulation.checkers.given import JOB, Given, calm, created, event, of_schedule, told, z


def found(given: Given) -> list[str]:
    return told(adopted.check(given.evidence()))


def catalog(version: int, *, definition: dict[str, Any] | None = JOB, name: str = "report") -> dict[str, Any]:
    entry = {"kind": "job", "tenant": "acme", "name": name, "version": version, "definition": definition}
    return event("catalog.adopted", subject="_/scheduler-0", entries=[entry])


def run(version: int | None, **other: Any) -> dict[str, Any]:
    return created(job=JOB | {"name": "report", "version": version}, **other)


def given_facts(*facts: dict[str, Any]) -> Given:
    given = Given()
    given.transaction("scheduler", "12:00:05", facts)
    return given


def test_runs_whose_job_is_their_schedules_own_are_let_be():
    assert found(calm()) == []


def test_a_run_of_the_version_that_was_adopted_last_is_right():
    assert found(given_facts(catalog(1), run(1), catalog(2), run(2))) == []


def test_a_run_of_an_older_version_is_found():
    assert found(given_facts(catalog(1), catalog(2), run(1))) == [
        "I20 scheduler-changelog-0@0: acme: run s.20260301T120005Z has version 1 of report, where version 2 is used"
    ]


def test_a_run_of_a_job_that_is_deleted_or_was_never_adopted_is_found():
    said = "I20 scheduler-changelog-0@0: acme: run s.20260301T120005Z has version 1 of report, where there is none"
    assert found(given_facts(catalog(1), catalog(1, definition=None), run(1))) == [said]
    assert found(given_facts(catalog(1, name="another"), run(1))) == [said]


def test_a_rerun_may_have_the_job_of_the_run_before_it():
    assert found(given_facts(catalog(1), catalog(2), run(1, cause="rerun"))) == []


def test_an_occurrence_that_is_skipped_for_want_of_a_job_that_is_there_is_found():
    accepted = of_schedule("schedule.accepted", version=1, definition={"job": "report"})
    skipped = of_schedule("occurrence.skipped", reason="no_job", version=1, nominal_time=z("12:00:05"))
    assert found(given_facts(accepted, catalog(1), skipped)) == [
        "I20 scheduler-changelog-0@0: acme/s is skipped for want of report, which is used here"
    ]
    assert found(given_facts(accepted, skipped)) == []
    assert found(given_facts(accepted, catalog(1), catalog(1, definition=None), skipped)) == []
