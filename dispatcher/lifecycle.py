"""The lifecycles of a run and of an attempt, as tables: what is not in a table cannot happen.

The tables are asked at every fact; a missing edge is an error of ours and stops the partition.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeVar

from schemas.facts import AttemptOutcome, Outcome


class RunState(StrEnum):
    """Where a run stands. The last six are terminal, and are called as its outcome is."""

    QUEUED = "queued"  # never handed out
    HANDED_OUT = "handed_out"
    RUNNING = "running"
    BETWEEN = "between"  # an attempt ended; the next fact of the same decision says what follows
    REQUEUED = "requeued"  # handed out before, to be handed out again at once
    RETRY_WAIT = "retry_wait"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    DEAD_LETTERED = "dead_lettered"
    EXPIRED = "expired"


class AttemptState(StrEnum):
    """Where an attempt stands. All but the first two are terminal, and are called as its outcome is."""

    HANDED_OUT = "handed_out"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    LEASE_EXPIRED = "lease_expired"
    INTERRUPTED = "interrupted"
    LOST = "lost"


class Step(StrEnum):
    """What happens to a run. The last six end it, and are called as its outcome is."""

    CREATED = "created"
    HANDED_OUT = "handed_out"
    STARTED = "started"
    CANCEL_REQUESTED = "cancel_requested"
    ATTEMPT_USED = "attempt_used"  # the attempt ended and counts
    ATTEMPT_SPARED = "attempt_spared"  # the attempt ended and burns none
    RETRY_SCHEDULED = "retry_scheduled"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    DEAD_LETTERED = "dead_lettered"
    EXPIRED = "expired"


class AttemptStep(StrEnum):
    """What happens to an attempt before it ends; it ends by an `AttemptOutcome`."""

    HANDED_OUT = "handed_out"
    STARTED = "started"


WAITING = frozenset({RunState.QUEUED, RunState.REQUEUED, RunState.RETRY_WAIT})  # may be handed out, some only later
LEASED = frozenset({RunState.HANDED_OUT, RunState.RUNNING})  # a worker has the right to it
TERMINAL = frozenset(RunState(outcome) for outcome in Outcome)

END: Mapping[Outcome, Step] = {outcome: Step(outcome.value) for outcome in Outcome}

RUN: Mapping[tuple[RunState | None, Step], RunState] = {
    (None, Step.CREATED): RunState.QUEUED,
    (None, Step.EXPIRED): RunState.EXPIRED,  # asked about long after it was forgotten: never started
    (RunState.QUEUED, Step.HANDED_OUT): RunState.HANDED_OUT,
    (RunState.QUEUED, Step.CANCELLED): RunState.CANCELLED,
    (RunState.QUEUED, Step.EXPIRED): RunState.EXPIRED,
    (RunState.HANDED_OUT, Step.STARTED): RunState.RUNNING,
    (RunState.HANDED_OUT, Step.CANCEL_REQUESTED): RunState.HANDED_OUT,
    (RunState.HANDED_OUT, Step.ATTEMPT_USED): RunState.BETWEEN,
    (RunState.HANDED_OUT, Step.ATTEMPT_SPARED): RunState.REQUEUED,
    (RunState.RUNNING, Step.CANCEL_REQUESTED): RunState.RUNNING,
    (RunState.RUNNING, Step.ATTEMPT_USED): RunState.BETWEEN,
    (RunState.RUNNING, Step.ATTEMPT_SPARED): RunState.REQUEUED,
    (RunState.BETWEEN, Step.RETRY_SCHEDULED): RunState.RETRY_WAIT,
    (RunState.BETWEEN, Step.SUCCEEDED): RunState.SUCCEEDED,
    (RunState.BETWEEN, Step.FAILED): RunState.FAILED,
    (RunState.BETWEEN, Step.TIMED_OUT): RunState.TIMED_OUT,
    (RunState.BETWEEN, Step.CANCELLED): RunState.CANCELLED,
    (RunState.BETWEEN, Step.DEAD_LETTERED): RunState.DEAD_LETTERED,
    (RunState.BETWEEN, Step.EXPIRED): RunState.EXPIRED,
    (RunState.REQUEUED, Step.HANDED_OUT): RunState.HANDED_OUT,
    (RunState.REQUEUED, Step.SUCCEEDED): RunState.SUCCEEDED,  # the success of an attempt given up was late, not lost
    (RunState.REQUEUED, Step.CANCELLED): RunState.CANCELLED,
    (RunState.REQUEUED, Step.DEAD_LETTERED): RunState.DEAD_LETTERED,  # quarantined: its workers died of it
    (RunState.REQUEUED, Step.EXPIRED): RunState.EXPIRED,
    (RunState.RETRY_WAIT, Step.HANDED_OUT): RunState.HANDED_OUT,
    (RunState.RETRY_WAIT, Step.SUCCEEDED): RunState.SUCCEEDED,
    (RunState.RETRY_WAIT, Step.CANCELLED): RunState.CANCELLED,
    (RunState.RETRY_WAIT, Step.EXPIRED): RunState.EXPIRED,
}

ATTEMPT: Mapping[tuple[AttemptState | None, AttemptStep | AttemptOutcome], AttemptState] = {
    (None, AttemptStep.HANDED_OUT): AttemptState.HANDED_OUT,
    (AttemptState.HANDED_OUT, AttemptStep.STARTED): AttemptState.RUNNING,
    # Nothing succeeds or fails before it started; what only ever was handed out can end in these ways.
    (AttemptState.HANDED_OUT, AttemptOutcome.TIMED_OUT): AttemptState.TIMED_OUT,
    (AttemptState.HANDED_OUT, AttemptOutcome.CANCELLED): AttemptState.CANCELLED,
    (AttemptState.HANDED_OUT, AttemptOutcome.LEASE_EXPIRED): AttemptState.LEASE_EXPIRED,
    (AttemptState.HANDED_OUT, AttemptOutcome.INTERRUPTED): AttemptState.INTERRUPTED,
    (AttemptState.HANDED_OUT, AttemptOutcome.LOST): AttemptState.LOST,
    (AttemptState.RUNNING, AttemptOutcome.SUCCEEDED): AttemptState.SUCCEEDED,
    (AttemptState.RUNNING, AttemptOutcome.FAILED): AttemptState.FAILED,
    (AttemptState.RUNNING, AttemptOutcome.TIMED_OUT): AttemptState.TIMED_OUT,
    (AttemptState.RUNNING, AttemptOutcome.CANCELLED): AttemptState.CANCELLED,
    (AttemptState.RUNNING, AttemptOutcome.LEASE_EXPIRED): AttemptState.LEASE_EXPIRED,
    (AttemptState.RUNNING, AttemptOutcome.INTERRUPTED): AttemptState.INTERRUPTED,
    (AttemptState.RUNNING, AttemptOutcome.LOST): AttemptState.LOST,
}


class ImpossibleStep(AssertionError):
    """A fact asked for an edge that no table has."""


def advance(state: RunState | None, step: Step) -> RunState:
    """Where a run stands after a step."""
    try:
        return RUN[state, step]
    except KeyError:
        raise ImpossibleStep(f"a run that is {_name(state)} cannot be {step.value}") from None


def advance_attempt(state: RunState, step: AttemptStep | AttemptOutcome) -> AttemptState:
    """Where the attempt of a leased run stands after a step; a leased run is where its attempt is."""
    before = _ATTEMPT_OF.get(state)
    try:
        return ATTEMPT[before, step]
    except KeyError:
        raise ImpossibleStep(f"an attempt that is {_name(before)} cannot be {step.value}") from None


_ATTEMPT_OF = {RunState.HANDED_OUT: AttemptState.HANDED_OUT, RunState.RUNNING: AttemptState.RUNNING}

S = TypeVar("S", bound=StrEnum)
E = TypeVar("E", bound=StrEnum)


def diagram(table: Mapping[tuple[S | None, E], S]) -> str:
    """The table as a Mermaid state diagram: one line an edge, in the order of the table."""
    lines = [f"    {_node(before)} --> {after.value}: {step.value}" for (before, step), after in table.items()]
    left = {before for before, _ in table}
    ends = [f"    {state.value} --> [*]" for state in dict.fromkeys(table.values()) if state not in left]
    return "\n".join(["stateDiagram-v2", *lines, *ends]) + "\n"


def _node(state: StrEnum | None) -> str:
    return "[*]" if state is None else state.value


def _name(state: StrEnum | None) -> str:
    return "unknown" if state is None else state.value
