"""I6: one live lease a run, and only its newest one changes it."""

from dataclasses import replace

import pytest

from schemas import topics
from simulation.checkers import fenced_attempts
from tests.simulation.checkers.given import (
    NEXT,
    Given,
    at,
    calm,
    created,
    ended,
    execution,
    finished,
    handed_out,
    rested,
    run_taken,
    started,
    told,
    word,
)


def found(given, **fields) -> list[str]:
    return told(fenced_attempts.check(given.evidence(**fields)))


@pytest.fixture
def taken() -> Given:
    """The first run is handed out under lease 0."""
    given = Given()
    given.append(topics.ATTEMPTS, word(0, 1))
    given.append(topics.ATTEMPTS, word(0, 1, outcome="failed"))
    run_taken(given, created(), 0, "12:00:05")
    return given


def again(offset: int, **other):
    return handed_out(created(), offset, attempt=2, **other)


def test_in_a_calm_history_each_lease_ends_before_its_run():
    assert [*fenced_attempts.check(rested(calm()))] == []
    assert fenced_attempts.observed(rested(calm())) == 4


def test_a_run_that_is_handed_out_again_when_its_attempt_has_ended_has_one_lease(taken):
    taken.transaction("dispatcher", "12:00:36", [ended(0, "lease_expired"), again(1)])
    taken.transaction("dispatcher", "12:00:37", [started(1), ended(1), finished()])
    assert found(taken) == []


def test_a_second_live_lease_is_found(taken):
    taken.transaction("dispatcher", "12:00:36", [again(1)])
    assert found(taken) == [
        "I6 dispatcher-changelog-0@2: acme: run s.20260301T120005Z is handed out as 1 while lease 0 is live"
    ]


def test_a_hand_out_that_is_used_again_is_found(taken):
    taken.transaction("dispatcher", "12:00:36", [ended(0, "lost"), again(0)])
    assert found(taken) == ["I6 dispatcher-changelog-0@2: hand-out 0 of the shard after 0"]


@pytest.mark.parametrize("fact", [started(0), ended(0)])
def test_an_old_lease_that_starts_or_ends_an_attempt_is_found(taken, fact):
    taken.transaction("dispatcher", "12:00:36", [ended(0, "lease_expired"), again(1), fact])
    kind = fact["type"].removeprefix("tidewheel.").removesuffix(".v1")
    assert found(taken) == [
        f"I6 dispatcher-changelog-0@2: {kind} of acme: run s.20260301T120005Z under lease 0, when 1 is live"
    ]


def test_a_late_success_counts_while_nobody_else_has_the_run(taken):
    taken.transaction("dispatcher", "12:00:36", [ended(0, "lease_expired"), finished(reason="late_report")])
    assert found(taken) == []


def test_a_late_success_that_counts_while_another_has_the_run_is_found(taken):
    taken.transaction("dispatcher", "12:00:36", [ended(0, "lease_expired"), again(1), finished(reason="late_report")])
    assert found(taken) == [
        "I6 dispatcher-changelog-0@2: acme: run s.20260301T120005Z ends succeeded while lease 1 is live"
    ]


def test_a_run_that_ends_with_the_result_of_an_old_lease_is_found(taken):
    taken.transaction("dispatcher", "12:00:36", [ended(0, "lost"), again(1), started(1), ended(1)])
    taken.transaction("dispatcher", "12:00:37", [finished(result={"by": 0})])
    ran = (
        execution(result={"by": 0}),
        execution(1, "12:00:36.5", attempt=2, may_have_run=True, result={"by": 1}),
    )
    assert found(taken, executions=ran) == [
        (
            "I6 dispatcher-changelog-0@4: acme: run s.20260301T120005Z ends with the result of lease "
            "default.0.0.key, and was handed out again since"
        )
    ]


def test_what_a_torn_transaction_decided_did_not_happen(taken):
    taken.transaction("dispatcher", "12:00:36", [ended(0, "lost"), again(1)], torn=True)
    taken.transaction("dispatcher", "12:00:36", [ended(0, "lost"), again(1)], epoch=2)
    assert found(taken) == []


def test_user_code_that_runs_twice_under_one_lease_is_found(taken):
    twice = (execution(), replace(execution(), started_at=at("12:00:07"), worker="worker-2"))
    assert found(taken, executions=twice) == [
        "I6 worker-2 at 12:00:07.000000: runs s.20260301T120005Z under lease default.0.0.key again: worker-1 did"
    ]


@pytest.mark.parametrize(
    ("other", "what"),
    [
        ({"lease": 9}, "runs s.20260301T120005Z under lease default.0.9.key, which nobody gave it"),
        (
            {"incarnation": "incarnation-9"},
            "runs s.20260301T120005Z attempt 1 as incarnation-9; attempt 1 was given to incarnation-1",
        ),
        (
            {"attempt": 2},
            "runs s.20260301T120005Z attempt 2 as incarnation-1; attempt 1 was given to incarnation-1",
        ),
        (
            {"run_id": NEXT},
            "runs s.20260301T120010Z under lease default.0.0.key, which nobody gave it",
        ),
    ],
)
def test_user_code_that_runs_otherwise_than_handed_out_is_found(taken, other, what):
    assert found(taken, executions=(execution(**other),)) == [f"I6 worker-1 at 12:00:05.500000: {what}"]


def test_a_second_execution_that_is_not_told_of_the_first_is_found(taken):
    taken.transaction("dispatcher", "12:00:36", [ended(0, "lost"), again(1)])
    ran = (execution(), execution(1, "12:00:36.5", attempt=2))
    assert found(taken, executions=ran) == [
        "I6 worker-1 at 12:00:36.500000: runs s.20260301T120005Z attempt 2 and is not told that it may have run before"
    ]


def test_a_fencing_token_that_does_not_grow_is_found(taken):
    taken.transaction("dispatcher", "12:00:36", [ended(0, "lost"), again(1)])
    ran = (
        execution(fencing_token="1-5"),
        execution(1, "12:00:36.5", attempt=2, may_have_run=True, fencing_token="1-4"),
    )
    assert found(taken, executions=ran) == [
        "I6 worker-1 at 12:00:36.500000: fencing token 1-4 of s.20260301T120005Z is not above 1-5"
    ]
