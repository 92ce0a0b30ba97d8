"""What a failed attempt says of another one is heeded: a part of I20."""

from typing import Any

import pytest

from schemas import topics
from simulation.checkers import later
from tests.simulation.checkers.given import (
    JOB,
    RUN,
    Given,
    calm,
    created,
    ended,
    event,
    finished,
    handed_out,
    of_schedule,
    told,
    z,
)

LEASE = "default.0.1.key"


def found(*facts: dict[str, Any], retry_after: str | None = None, never_on: tuple[str, ...] = ()) -> list[str]:
    given = Given()
    entry = {"lease": LEASE, "outcome": "failed"} | ({"retry_after": retry_after} if retry_after else {})
    given.append(topics.ATTEMPTS, event("worker.report", incarnation="incarnation-1", finished=[entry]))
    run = created(job=JOB | {"retry": {"max_attempts": 3, "never_on": list(never_on)}})
    given.transaction("dispatcher", "12:00:06", [run, handed_out(run, 1), *facts])
    return told(later.check(given.evidence()))


def failed(kind: str) -> dict[str, Any]:
    return ended(1, "failed", error={"type": kind}, finished_at=z("12:00:06"))


def again(at: str) -> dict[str, Any]:
    return of_schedule("run.retry_scheduled", run_id=RUN, attempt=2, retry_at=z(at), decided_at=z("12:00:06"))


def test_a_calm_history_heeds_what_is_said():
    assert told(later.check(calm().evidence())) == []


def test_a_run_that_is_tried_before_it_asked_to_be_is_found():
    assert found(failed("http:503"), again("12:00:15"), retry_after="PT10S") == [
        (
            "I20 dispatcher-changelog-0@0: acme: run s.20260301T120005Z is tried again at 2026-03-01T12:00:15Z, "
            "and asked for 12:00:16.000000"
        )
    ]
    assert found(failed("http:503"), again("12:00:16"), retry_after="PT10S") == []
    assert found(failed("http:503"), again("12:00:07")) == []


@pytest.mark.parametrize("kind", ["http:404", "http:410", "ValueError", "http:502"])
def test_a_run_that_is_tried_again_though_its_error_is_refused_is_found(kind: str):
    assert found(failed(kind), again("12:00:16"), never_on=("ValueError", "http:502")) == [
        f"I20 dispatcher-changelog-0@0: acme: run s.20260301T120005Z is tried again after {kind}, which is refused"
    ]


@pytest.mark.parametrize("kind", ["http:408", "http:429", "http:503", "exit:2", "http:timeout"])
def test_a_run_that_is_given_up_for_an_error_that_nobody_refuses_is_found(kind: str):
    given_up = finished("failed", reason="never_on", error={"type": kind})
    assert found(failed(kind), given_up) == [
        f"I20 dispatcher-changelog-0@0: acme: run s.20260301T120005Z is given up for {kind}, which nobody refuses"
    ]
    assert found(failed(kind), given_up, never_on=(kind,)) == []


def test_a_run_whose_error_is_refused_may_be_given_up():
    assert found(failed("http:404"), finished("failed", reason="never_on", error={"type": "http:404"})) == []
