"""The lifecycles are tables: what is not in them cannot happen."""

from itertools import product

import pytest

from dispatcher import lifecycle
from dispatcher.lifecycle import (
    ATTEMPT,
    LEASED,
    RUN,
    TERMINAL,
    WAITING,
    AttemptState,
    AttemptStep,
    ImpossibleStep,
    RunState,
    Step,
)
from schemas.facts import AttemptOutcome, Outcome


def test_a_run_ends_in_one_of_the_six_outcomes_and_never_leaves_it():
    assert {state.value for state in TERMINAL} == {outcome.value for outcome in Outcome}
    left = {before for before, _ in RUN}
    assert left & TERMINAL == set()
    assert set(RunState) - left - TERMINAL == set()


def test_every_state_of_a_run_can_be_reached_and_is_either_waiting_leased_between_or_terminal():
    assert set(RUN.values()) == set(RunState)
    assert set(RunState) == WAITING | LEASED | TERMINAL | {RunState.BETWEEN}


def test_only_a_leased_run_has_attempts_to_end_and_no_leased_run_is_finished():
    enders = {Step.ATTEMPT_USED, Step.ATTEMPT_SPARED}
    assert {before for before, step in RUN if step in enders} == LEASED
    outcomes = {Step(outcome.value) for outcome in Outcome}
    assert {before for before, step in RUN if step in outcomes} & LEASED == set()


def test_a_run_never_handed_out_can_only_be_handed_out_cancelled_or_expired():
    assert {step for before, step in RUN if before is RunState.QUEUED} == {
        Step.HANDED_OUT,
        Step.CANCELLED,
        Step.EXPIRED,
    }


def test_an_edge_that_is_missing_is_an_error():
    for state, step in product([None, *RunState], Step):
        if (state, step) in RUN:
            assert lifecycle.advance(state, step) is RUN[state, step]
        else:
            with pytest.raises(ImpossibleStep):
                lifecycle.advance(state, step)


def test_an_attempt_succeeds_or_fails_only_after_it_started():
    assert (AttemptState.HANDED_OUT, AttemptOutcome.SUCCEEDED) not in ATTEMPT
    assert (AttemptState.HANDED_OUT, AttemptOutcome.FAILED) not in ATTEMPT
    with pytest.raises(ImpossibleStep, match="an attempt that is handed_out cannot be succeeded"):
        lifecycle.advance_attempt(RunState.HANDED_OUT, AttemptOutcome.SUCCEEDED)
    assert lifecycle.advance_attempt(RunState.QUEUED, AttemptStep.HANDED_OUT) is AttemptState.HANDED_OUT


def test_the_diagram_of_a_table_shows_every_edge_and_every_end():
    assert lifecycle.diagram(ATTEMPT).splitlines() == [
        "stateDiagram-v2",
        "    [*] --> handed_out: handed_out",
        "    handed_out --> running: started",
        "    handed_out --> timed_out: timed_out",
        "    handed_out --> cancelled: cancelled",
        "    handed_out --> lease_expired: lease_expired",
        "    handed_out --> interrupted: interrupted",
        "    handed_out --> lost: lost",
        "    running --> succeeded: succeeded",
        "    running --> failed: failed",
        "    running --> timed_out: timed_out",
        "    running --> cancelled: cancelled",
        "    running --> lease_expired: lease_expired",
        "    running --> interrupted: interrupted",
        "    running --> lost: lost",
        "    timed_out --> [*]",
        "    cancelled --> [*]",
        "    lease_expired --> [*]",
        "    interrupted --> [*]",
        "    lost --> [*]",
        "    succeeded --> [*]",
        "    failed --> [*]",
    ]
    assert len(lifecycle.diagram(RUN).splitlines()) == 1 + len(RUN) + len(TERMINAL)
