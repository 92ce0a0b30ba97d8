"""What is asked of single occurrences and of whole sets of runs is done: a part of I20."""

from typing import Any

from schemas import topics
from simulation.checkers import asked
from tests.simulation.checkers.given import RUN, Given, calm, created, finished, handed_out, of_schedule, told, z

WISH = of_schedule("occurrence.skip_requested", nominal_time=z("12:00:05"))
GO = of_schedule("run.cancel_requested", run_id=RUN, unstarted=True)
SKIPPED = of_schedule("occurrence.skipped", version=1, reason="requested", nominal_time=z("12:00:05"))


def found(given: Given) -> list[str]:
    return told(asked.check(given.evidence()))


def accepted(version: int, on_update: str = "keep", at: str = "12:00:06") -> dict[str, Any]:
    definition = {"on_update": on_update}
    return of_schedule("schedule.accepted", version=version, definition=definition, accepted_at=z(at))


def decided(*facts: dict[str, Any], now: str = "12:00:06") -> Given:
    given = Given()
    given.transaction("scheduler", now, facts)
    return given


def test_a_calm_history_keeps_what_it_grants():
    assert found(calm()) == []


def test_an_occurrence_that_was_to_be_skipped_and_has_a_run_is_found():
    assert found(decided(WISH, accepted(2), created())) == [
        "I20 scheduler-changelog-0@0: acme/s of 2026-03-01T12:00:05Z was to be skipped, and has a run"
    ]


def test_what_is_skipped_as_wanted_and_what_is_another_occurrence_or_run_is_right():
    by_hand = created(cause="manual", run_id="s.m-1")
    assert found(decided(WISH, SKIPPED, created("12:00:10"), by_hand)) == []


def test_a_deletion_forgets_what_was_wanted_before():
    assert found(decided(WISH, of_schedule("schedule.deleted"), accepted(2), created())) == []


def test_a_run_of_an_older_edition_that_is_not_asked_to_go_is_found():
    given = decided(created(), accepted(2, "cancel"))
    assert found(given) == []  # it may be asked as the next thing
    given.transaction("scheduler", "12:00:07")
    assert found(given) == [
        (
            "I20 scheduler-changelog-0@2: acme/s: run s.20260301T120005Z of version 1 is not asked to go, "
            "as the edition since wants it"
        )
    ]


def test_what_is_asked_to_go_or_over_or_of_the_same_edition_and_what_is_to_be_kept_is_right():
    settled = of_schedule("run.settled", run_id=RUN)
    for facts in (
        (created(), accepted(2, "cancel"), GO),
        (created(), accepted(2, "cancel"), settled),
        (created(), settled, accepted(2, "cancel")),
        (created(version=2), accepted(2, "cancel")),
        (created(), accepted(2)),
    ):
        assert found(decided(*facts, now="12:00:07")) == []


def read(request: dict[str, Any], *facts: dict[str, Any], before: tuple[dict[str, Any], ...] = ()) -> Given:
    given = Given()
    given.transaction("dispatcher", "12:00:05", [created(), *before])
    given.append(topics.RUNS, request)
    given.transaction("dispatcher", "12:00:06", facts)
    return given


def test_a_run_that_nobody_has_begun_and_that_stays_though_it_was_to_go_is_found():
    assert found(read(GO)) == [
        (
            "I20 runs-0@0: acme: run s.20260301T120005Z was to be gone before anybody begins it, "
            "that is read, and it is open"
        )
    ]
    assert found(read(GO, finished("cancelled"))) == []
    assert found(read(GO, before=(handed_out(created(), 0),))) == []


def test_a_run_that_was_to_be_ended_at_once_and_goes_on_is_found_begun_or_not():
    end = of_schedule("run.cancel_requested", run_id=RUN, terminate=True)
    begun = (handed_out(created(), 0),)
    assert found(read(end, before=begun)) == [
        "I20 runs-0@0: acme: run s.20260301T120005Z was to be ended at once, that is read, and it is open"
    ]
    assert found(read(end, finished("cancelled"), before=begun)) == []


def test_whoever_asks_politely_may_have_to_wait():
    assert found(read(of_schedule("run.cancel_requested", run_id=RUN))) == []
