"""`run.cancel`: the wish is written behind the run, into the same partition, so that it cannot overtake it.

The dispatcher answers what was true when it read it. A run that has its outcome is answered here.
"""

from __future__ import annotations

from datetime import UTC, datetime

from scheduler import fills, ledger, memory, sweeps
from scheduler.commands.verdict import Accepted, Forwarded, Rejected, Verdict, rejected
from scheduler.context import Context
from scheduler.instants import seconds
from scheduler.state import ScheduleState
from schemas.commands import Command, RunCancel
from schemas.facts import RunCancelRequested

_NOMINAL = "%Y%m%dT%H%M%SZ"


def decide(state: ScheduleState, command: Command, request: RunCancel, context: Context) -> Verdict:
    """Pass it on, or say that it comes too late, or that there is no such run."""
    run = sweeps.run_row(state, request.run_id)
    if run is None:
        return _finished(state, request.run_id) if _was(state, request.run_id, context) else _unknown(request.run_id)
    return Forwarded(
        facts=(
            RunCancelRequested(
                tenant=state.tenant,
                schedule=state.name,
                run_id=run.run_id,
                requested_at=context.now,
                queue=run.job.queue,
                shard=run.shard,
                by=request.by,
                note=request.note,
                command_id=command.id,
                source=command.source,
                reply_to=command.reply_to,
            ),
        )
    )


def _was(state: ScheduleState, run_id: str, context: Context) -> bool:
    """Whether there was such a run: the ledger says it; of what it has forgotten, the decided mark must be enough."""
    last = run_id.rpartition(".")[2]
    if last.startswith("m-"):
        trigger = memory.recall(state.rows, last[2:], context.now)
        return trigger is not None and trigger.body.get("run_id") == run_id
    nominal = _nominal(last)
    if nominal is not None and fills.look_up(state.rows, nominal) is not None:
        return True
    if nominal is None or nominal > state.decided_until or not state.version:
        return False
    segment = ledger.look_up(state, nominal)
    if segment is None:
        return nominal < seconds(context.now) - context.history_seconds
    return segment.decision == ledger.CREATED and ledger.names(state, segment, nominal)


def _nominal(last: str) -> int | None:
    try:
        return seconds(datetime.strptime(last, _NOMINAL).replace(tzinfo=UTC))
    except ValueError:
        return None


def _finished(state: ScheduleState, run_id: str) -> Accepted:
    body = {"tenant": state.tenant, "name": state.name, "run_id": run_id, "state": "already_finished"}
    return Accepted(body=body)


def _unknown(run_id: str) -> Rejected:
    # How runs ended that have no instant is not kept here, only by the read model.
    message, remedy = f"no run {run_id} is open, and none is known to have ended", "list the runs there are"
    return rejected("not_found", 404, message, remedy, pointer="/data/run_id", body={"run_id": run_id})
