"""After a takeover every lease has one fresh period: a part of I22."""

from typing import Any

import pytest

from schemas import topics
from simulation.checkers import fresh_period
from tests.simulation.checkers.given import Given, at, calm, created, ended, event, handed_out, told, z


def found(given: Given, *restored: str) -> list[str]:
    """Somebody has restored the partition at 12:00:24, or when it is said."""
    instants = tuple(map(at, restored or ("12:00:24",)))
    return told(fresh_period.check(given.evidence(restored={("dispatcher", 0): instants})))


def taken_over(handed_out_at: str = "12:00:05", since: str = "12:00:25") -> Given:
    """A lease of 30 s, whose owner is followed by another one."""
    given = Given()
    handout = handed_out(created(), 0, handed_out_at=z(handed_out_at), lease_duration="PT30S")
    given.transaction("dispatcher", handed_out_at, [created(), handout])
    given.transaction("dispatcher", since, epoch=2)
    return given


def ends(given: Given, when: str, outcome: str = "lease_expired", **other: Any) -> Given:
    fact = ended(0, outcome, incarnation="incarnation-1", finished_at=z(when))
    given.transaction("dispatcher", when, [fact], epoch=2, **other)
    return given


def test_a_calm_history_takes_nothing_over():
    assert found(calm()) == []


def test_a_lease_that_ends_within_its_length_after_a_takeover_is_found():
    assert found(ends(taken_over(), "12:00:36")) == [
        (
            "I22 dispatcher-changelog-0@3: the lease default.0.0.key ended at 2026-03-01T12:00:36Z, and its owner, "
            "there since 12:00:25.000000, had to wait until 12:00:55.000000"
        )
    ]


def test_a_lease_that_ends_a_whole_length_after_the_takeover_had_its_period():
    assert found(ends(taken_over(), "12:00:55")) == []


def test_an_owner_that_goes_on_with_another_producer_has_listened_all_the_time():
    assert found(ends(taken_over(), "12:00:36"), "12:00:01") == []


def test_what_a_worker_says_itself_and_what_is_timed_out_has_no_period():
    for outcome in ("succeeded", "lost", "timed_out"):
        assert found(ends(taken_over(), "12:00:36", outcome)) == []


def test_a_lease_whose_holder_has_been_heard_since_has_the_length_that_its_reports_give_it():
    given = taken_over()
    reported = event("worker.reported", subject="incarnation-1", incarnation="incarnation-1")
    given.transaction("dispatcher", "12:00:26", [reported], epoch=2)
    assert found(ends(given, "12:00:40")) == []


def test_a_lease_that_the_new_owner_gave_itself_has_its_own_length():
    given = Given()
    given.transaction("dispatcher", "12:00:00")
    given.transaction("dispatcher", "12:00:04", epoch=2)  # since 12:00:03
    handout = handed_out(created(), 0, handed_out_at=z("12:00:05"), lease_duration="PT30S")
    given.transaction("dispatcher", "12:00:05", [created(), handout], epoch=2)
    assert found(ends(given, "12:00:35"), "12:00:03") == []


@pytest.mark.parametrize("torn", [True, False], ids=["torn", "gone but for its copy"])
def test_what_the_predecessor_had_decided_and_its_successor_only_completes_is_the_predecessors_word(torn):
    given = Given()
    handout = handed_out(created(), 0, handed_out_at=z("12:00:05"), lease_duration="PT30S")
    given.transaction("dispatcher", "12:00:05", [created(), handout])
    over = [ended(0, "lease_expired", incarnation="incarnation-1", finished_at=z("12:00:36"))]
    if torn:
        given.transaction("dispatcher", "12:00:36", over, torn=True)
    else:
        given.append(topics.changelog_topic("dispatcher"), {"sequence": 2}, key=b"\0decision-copy-0000")
    given.transaction("dispatcher", "12:00:36", over, epoch=2)
    given.transaction("dispatcher", "12:00:50", epoch=2)
    assert found(given, "12:00:36") == []
