"""Someone asks for a run to end, and is told what was true.

state of the run                     what happens               the answer
never handed out                     finished, cancelled        cancelled_before_dispatch: no attempt ever starts
between two attempts                 finished, cancelled        cancelled_between_attempts: it has run before
handed out or running                its worker is asked        cancel_requested
the same, and it asks to terminate   finished, cancelled        none: only the scheduler asks so
begun, and only unstarted are meant  nothing                    none: only the scheduler asks so
over                                 nothing                    already_finished, with the outcome
never seen, or long forgotten        nothing                    unknown
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dispatcher import endings
from dispatcher.endings import Ending
from dispatcher.lifecycle import RunState
from dispatcher.run import OpenRun, key_of
from dispatcher.shard import Shard
from runtime.machine import Moment
from schemas.facts import AttemptOutcome, Fact, Outcome, RunCancelRequested
from schemas.faults import Fault
from schemas.internal import CommandAnswered, LeaseNotice

_OK = 200
_NOT_FOUND = 404


def decide(shard: Shard, request: RunCancelRequested, moment: Moment) -> Sequence[Fact]:
    """The facts that follow from a request, its answer last."""
    run = shard.runs.get(key_of(request))
    if run is None:
        return _answer_closed(shard, request)
    if request.unstarted and run.state is not RunState.QUEUED:
        return ()
    if run.is_leased and request.terminate:
        return _terminate(shard, run, request, moment)
    if run.is_leased:
        return [*_ask(shard, run, request), *_answer(request, "cancel_requested", attempt=run.attempts)]
    ending = Ending(outcome=AttemptOutcome.CANCELLED, at=moment.now)
    finished = endings.finish(shard, run, Outcome.CANCELLED, ending, reason="requested")
    state = "cancelled_before_dispatch" if run.state is RunState.QUEUED else "cancelled_between_attempts"
    return [finished, *_answer(request, state, attempts=run.attempts)]


def _ask(shard: Shard, run: OpenRun, request: RunCancelRequested) -> list[Fact]:
    """Ask the worker, once; what it still lists it is told again in answer to its reports."""
    if run.cancel_requested:
        return []
    record = shard.workforce.of(run).record
    notice = LeaseNotice(queue=shard.queue, incarnation=run.incarnation, inbox=record.inbox, cancelled=(run.lease,))
    return [request, notice]


def _terminate(shard: Shard, run: OpenRun, request: RunCancelRequested, moment: Moment) -> list[Fact]:
    """End the run under its worker, which is told to drop the lease."""
    record = shard.workforce.of(run).record
    ending = Ending(outcome=AttemptOutcome.CANCELLED, at=moment.now)
    notice = LeaseNotice(queue=shard.queue, incarnation=run.incarnation, inbox=record.inbox, ended=(run.lease,))
    return [request, *endings.attempt_ended(shard, run, ending), notice]


def _answer_closed(shard: Shard, request: RunCancelRequested) -> list[Fact]:
    remembered = shard.memory.recall(key_of(request))
    if remembered is not None:
        return _answer(request, "already_finished", outcome=remembered.outcome.value, attempts=remembered.attempts)
    if request.reply_to is None:
        return []
    fault = Fault(
        pointer="/data/run_id", code="not_found", message=f"no run {request.run_id} is open, or ended lately",
        remedy="list the runs there are",
    )  # fmt: skip
    body = _body(request, "unknown")
    return [
        CommandAnswered(
            command_id=request.command_id, reply_to=request.reply_to, status=_NOT_FOUND, body=body, faults=(fault,)
        )
    ]


def _answer(request: RunCancelRequested, state: str, **more: Any) -> list[Fact]:
    """The answer, when one was asked for."""
    if request.reply_to is None:
        return []
    body = {**_body(request, state), **more}
    return [CommandAnswered(command_id=request.command_id, reply_to=request.reply_to, status=_OK, body=body)]


def _body(request: RunCancelRequested, state: str) -> dict[str, Any]:
    return {"tenant": request.tenant, "name": request.schedule, "run_id": request.run_id, "state": state}
