"""I1: at most one run for an occurrence, and one run by one id."""

from schemas import topics
from simulation.checkers import unique
from tests.simulation.checkers.given import calm, created, run_created, told


def found(given) -> list[str]:
    return told(unique.check(given.evidence()))


def test_one_run_on_two_topics_is_one_run():
    given = calm()
    assert found(given) == []
    assert unique.observed(given.evidence()) == 4


def test_a_run_that_was_written_again_word_for_word_is_the_same_run():
    given = calm()
    given.append(topics.RUNS, created())
    assert found(given) == []


def test_a_run_that_is_created_anew_is_another_one_of_that_name():
    given = calm()
    given.append(topics.RUNS, created(created_at="2026-03-01T12:00:06Z"))
    assert found(given) == ["I1 runs-0@2: acme: run s.20260301T120005Z is created as another than at run-events-0@2"]


def test_two_runs_for_one_nominal_time_are_one_too_many():
    given = calm()
    run_created(given, created(run_id="s.m-1", cause="dependency"), "12:00:12")
    assert found(given)[0] == (
        "I1 run-events-0@10: acme: run s.m-1 is for 2026-03-01T12:00:05Z, as is s.20260301T120005Z at run-events-0@2"
    )


def test_the_run_of_an_occurrence_that_goes_by_another_instant_is_found():
    given = calm()
    run_created(given, created("12:00:15", run_id="s.20260301T120016Z", cause="catch_up"), "12:00:16")
    assert found(given)[0] == (
        "I1 run-events-0@10: acme: the run for 2026-03-01T12:00:15Z is called s.20260301T120016Z, "
        "not s.20260301T120015Z"
    )


def test_a_run_of_another_may_have_its_nominal_time():
    given = calm()
    run_created(given, created(run_id="s.r-1", of="s.20260301T120005Z", cause="rerun"), "12:00:12")
    assert found(given) == []


def test_two_tenants_may_have_runs_of_one_name():
    given = calm()
    run_created(given, created(tenant="umbrella"), "12:00:12")
    assert found(given) == []
