"""I14: the answer to a cancel is true."""

from typing import Any

import pytest

from simulation.checkers import cancel_honest
from simulation.history import OK, Call
from tests.simulation.checkers.given import (
    RUN,
    Given,
    at,
    calm,
    created,
    ended,
    event,
    execution,
    finished,
    handed_out,
    run_created,
    run_taken,
    told,
)


def found(given, **fields) -> list[str]:
    return told(cancel_honest.check(given.evidence(**fields)))


def answer(
    state: str, *, run: str = RUN, status: int = 200, command_id: str = "cancel-1", **body: str
) -> dict[str, Any]:
    said = {"tenant": "acme", "name": "s", "run_id": run, "state": state} | body
    return event("command.answered", subject=command_id, command_id=command_id, reply_to=0, status=status, body=said)


@pytest.fixture
def queued() -> Given:
    given = Given()
    given.transaction("dispatcher", "12:00:05", [created()])
    return given


@pytest.fixture
def taken() -> Given:
    given = Given()
    run_taken(given, created(), 0, "12:00:05")
    return given


CANCELLED = finished("cancelled")


def test_a_run_that_never_began_was_cancelled_before_dispatch(queued):
    queued.transaction("dispatcher", "12:00:06", [CANCELLED, answer("cancelled_before_dispatch")])
    assert found(queued) == []
    assert cancel_honest.observed(queued.evidence()) == 1


def test_a_run_that_was_handed_out_was_not_cancelled_before_dispatch(taken):
    taken.transaction("dispatcher", "12:00:06", [ended(0, "lost"), CANCELLED, answer("cancelled_before_dispatch")])
    assert found(taken) == [
        (
            "I14 dispatcher-changelog-0@2: acme: run s.20260301T120005Z: told cancelled_before_dispatch, with 1 "
            "hand-outs and the outcome cancelled"
        )
    ]


@pytest.mark.parametrize("state", ["cancelled_before_dispatch", "cancelled_between_attempts", "cancel_requested"])
def test_a_hand_out_behind_the_answer_is_found(taken, state):
    taken.transaction("dispatcher", "12:00:06", [answer(state)])
    taken.transaction("dispatcher", "12:00:07", [handed_out(created(), 1), CANCELLED])
    assert (
        f"I14 dispatcher-changelog-0@4: run s.20260301T120005Z is handed out, and its canceller was told {state}"
    ) in found(taken)


def test_user_code_that_ran_though_it_was_cancelled_before_dispatch_is_found(queued):
    queued.transaction("dispatcher", "12:00:06", [CANCELLED, answer("cancelled_before_dispatch")])
    assert found(queued, executions=(execution(),)) == [
        (
            "I14 dispatcher-changelog-0@2: acme: run s.20260301T120005Z ran on worker-1, and was told to be cancelled "
            "before its hand-out"
        )
    ]


def test_a_run_that_was_told_to_be_cancelled_and_ends_otherwise_is_found(queued):
    queued.transaction("dispatcher", "12:00:06", [answer("cancelled_before_dispatch"), finished()])
    assert found(queued) == [
        (
            "I14 dispatcher-changelog-0@2: acme: run s.20260301T120005Z: told cancelled_before_dispatch, and its "
            "outcome is succeeded"
        )
    ]


def test_a_run_that_was_asked_to_stop_may_end_as_it_likes(taken):
    taken.transaction("dispatcher", "12:00:06", [answer("cancel_requested")])
    taken.transaction("dispatcher", "12:00:07", [ended(0), finished()])
    assert found(taken) == []


def test_a_run_that_is_over_cannot_be_asked_to_stop():
    given = calm()
    given.transaction("dispatcher", "12:00:15", [answer("cancel_requested")])
    assert found(given) == [
        (
            "I14 dispatcher-changelog-0@12: acme: run s.20260301T120005Z: told cancel_requested, with 1 "
            "hand-outs and the outcome succeeded"
        )
    ]


def test_already_finished_needs_an_outcome_and_the_right_one(taken):
    given = calm()
    given.transaction("dispatcher", "12:00:15", [answer("already_finished", outcome="succeeded")])
    assert found(given) == []
    given.transaction("dispatcher", "12:00:16", [answer("already_finished", outcome="failed")])
    assert len(found(given)) == 1
    taken.transaction("dispatcher", "12:00:16", [answer("already_finished")])
    assert len(found(taken)) == 1


def test_a_scheduler_that_says_already_finished_has_read_an_outcome():
    given = calm()
    given.transaction("scheduler", "12:00:15", [answer("already_finished"), answer("already_finished", run="s.other")])
    assert found(given) == [
        "I14 scheduler-changelog-0@10: acme: run s.other: told already_finished, and there is no outcome"
    ]


def test_a_scheduler_that_knows_no_such_run_has_created_none():
    given = calm()
    none: dict[str, Any] = {"run": "s.20260301T120015Z", "status": 404, "reason": "not_found"}
    given.transaction("scheduler", "12:00:15", [answer("", **none)])
    run_created(given, created("12:00:15"), "12:00:15")
    assert found(given) == []
    given.transaction("scheduler", "12:00:16", [answer("", command_id="cancel-2", **none)])
    assert found(given) == [
        "I14 scheduler-changelog-0@14: acme: run s.20260301T120015Z: told that there is none, and there is"
    ]


def test_a_cancel_that_comes_again_is_told_what_it_was_told_before_its_run_was_created():
    given = calm()
    none: dict[str, Any] = {"run": "s.20260301T120015Z", "status": 404, "reason": "not_found"}
    given.transaction("scheduler", "12:00:14", [answer("", **none)])
    run_created(given, created("12:00:15"), "12:00:15")
    given.transaction("scheduler", "12:00:16", [answer("", **none)])
    assert found(given) == []


def test_a_caller_is_told_what_the_log_says(queued):
    queued.transaction("dispatcher", "12:00:06", [CANCELLED, answer("cancelled_before_dispatch")])

    def call(state: str) -> Call:
        return Call(
            number=3, kind="run.cancel", tenant="acme", name="s", started_at=at("12:00:05"), command_id="cancel-1",
            result=OK, answer={"state": state},
        )  # fmt: skip

    assert found(queued, history=(call("cancelled_before_dispatch"),)) == []
    assert found(queued, history=(call("already_finished"),)) == [
        "I14 call 3, run.cancel: was told already_finished; the log says ['cancelled_before_dispatch']"
    ]
