"""I8: no run before its time."""

from datetime import timedelta

from simulation.checkers import never_early
from tests.simulation.checkers.given import calm, created, run_created, told, z


def found(given, **fields) -> list[str]:
    return told(never_early.check(given.evidence(**fields)))


def test_in_a_calm_history_runs_come_on_time():
    given = calm()
    assert found(given) == []
    assert never_early.observed(given.evidence()) == 2


def test_a_run_that_is_decided_before_its_time_is_found():
    given = calm()
    run_created(given, created("12:00:15"), "12:00:14.999")
    assert found(given) == [
        (
            "I8 scheduler-changelog-0@10: acme: run s.20260301T120015Z is created at 2026-03-01T12:00:14.999Z on "
            "its partition's clock"
        )
    ]


def test_a_run_that_says_it_was_created_before_its_time_is_found():
    given = calm()
    run_created(given, created("12:00:15", created_at=z("12:00:14")), "12:00:15")
    assert len(found(given)) == 1


def test_a_run_that_reaches_the_log_before_its_time_is_found_though_its_partition_took_it_for_later():
    given = calm()
    run_created(given, created("12:00:35"), "12:00:15")
    assert found(given, clocks_apart_max=timedelta(seconds=20))[1:] == []
    assert found(given)[1:] == ["I8 runs-0@2: acme: run s.20260301T120035Z is 0:00:20 early on the log's clock"]


def test_a_run_without_a_nominal_time_is_never_early():
    given = calm()
    manual = created(run_id="s.m-1", cause="manual")
    del manual["data"]["nominal_time"]
    run_created(given, manual, "12:00:01")
    assert found(given) == []
