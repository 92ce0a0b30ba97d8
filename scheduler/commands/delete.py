"""`schedule.delete`: no occurrence any more, and no backfill; open runs finish, unless they are asked to stop."""

from __future__ import annotations

from scheduler import backfills, words
from scheduler.commands.verdict import (
    Accepted,
    Verdict,
    effective_ms,
    instant,
    mark_before,
    not_found,
    too_many_changes,
)
from scheduler.context import Context
from scheduler.links import edges
from scheduler.state import ScheduleState
from schemas.commands import Command, ScheduleDelete
from schemas.facts import ScheduleDeleted


def decide(state: ScheduleState, command: Command, request: ScheduleDelete, context: Context) -> Verdict:
    """Deleted from the instant of the command on."""
    refused = not_found(state) or too_many_changes(state)
    if refused is not None:
        return refused
    at_ms = effective_ms(state, command, context)
    fact = ScheduleDeleted(
        tenant=state.tenant,
        schedule=state.name,
        version=state.version,
        effective_at=instant(at_ms),
        accepted_at=context.now,
        runs=request.runs,
        by=request.by,
        command_id=command.id,
        source=command.source,
        note=request.note,
    )
    body = words.answer(
        state,
        effective_at=instant(at_ms),
        version=state.version,
        status="deleted",
        changed=True,
        open_runs=state.open_runs,
    )
    stopped = backfills.stopped(state, context, "its schedule was deleted")
    withdrawn = edges.changes(state, None, state.version, at_ms, context)
    return Accepted(facts=(*mark_before(state, at_ms), fact, *stopped, *withdrawn), body=body)
