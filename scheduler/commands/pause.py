"""`schedule.pause`: occurrences are skipped at their time and do not come back. `schedule.resume`: they run again.

Two words for one switch: each takes effect from its instant on, and changes nothing where the schedule is so already.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scheduler import failing, words
from scheduler.commands import backfill
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
from scheduler.state import ScheduleState
from schemas.commands import Command, SchedulePause, ScheduleResume
from schemas.facts import SchedulePaused, ScheduleResumed


def pause(state: ScheduleState, command: Command, _request: SchedulePause, context: Context) -> Verdict:
    """Paused from the instant of the command on."""
    return _switched(state, command, context, SchedulePaused, "paused")


def resume(state: ScheduleState, command: Command, request: ScheduleResume, context: Context) -> Verdict:
    """Active from the instant of the command on; what the pause skipped stays skipped, or is backfilled from now on."""
    resumed = _switched(state, command, context, ScheduleResumed, "active")
    if not request.backfill or not isinstance(resumed, Accepted):
        return resumed
    return backfill.of_pause(state, command, resumed, context)


def _switched(
    state: ScheduleState,
    command: Command,
    context: Context,
    fact: type[SchedulePaused | ScheduleResumed],
    wanted: str,
) -> Verdict:
    missing = not_found(state)
    if missing is not None:
        return missing
    as_wanted = state.paused == (wanted == "paused")
    if as_wanted and (wanted == "paused" or not failing.may_change(state)):
        return Accepted(body=_body(state, state.phases[-1].from_ms, wanted, changed=False))
    # An outcome before it may still pause the schedule: then this is what resumes it.
    crowded = too_many_changes(state)
    if crowded is not None:
        return crowded
    at_ms = effective_ms(state, command, context)
    switched = fact(
        tenant=state.tenant,
        schedule=state.name,
        version=state.version,
        effective_at=instant(at_ms),
        accepted_at=context.now,
        note=command.request.note,
        by=command.request.by,
        command_id=command.id,
        source=command.source,
    )
    return Accepted(
        facts=(*mark_before(state, at_ms), switched), body=_body(state, at_ms, wanted, changed=not as_wanted)
    )


def _body(state: ScheduleState, at_ms: int, status: str, *, changed: bool) -> Mapping[str, Any]:
    return words.answer(state, effective_at=instant(at_ms), version=state.version, status=status, changed=changed)
