"""`schedule.pause`: occurrences are skipped at their time, and do not come back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scheduler import words
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
from schemas.commands import Command, SchedulePause
from schemas.facts import SchedulePaused


def decide(state: ScheduleState, command: Command, request: SchedulePause, context: Context) -> Verdict:
    """Paused from the instant of the command on; a schedule that is paused stays as it is."""
    missing = not_found(state)
    if missing is not None:
        return missing
    if state.paused:
        return Accepted(body=_body(state, state.phases[-1].from_ms, changed=False))
    crowded = too_many_changes(state)
    if crowded is not None:
        return crowded
    at_ms = effective_ms(state, command, context)
    fact = SchedulePaused(
        tenant=state.tenant,
        schedule=state.name,
        version=state.version,
        effective_at=instant(at_ms),
        accepted_at=context.now,
        note=request.note,
        by=request.by,
        command_id=command.id,
        source=command.source,
    )
    return Accepted(facts=(*mark_before(state, at_ms), fact), body=_body(state, at_ms, changed=True))


def _body(state: ScheduleState, at_ms: int, *, changed: bool) -> Mapping[str, Any]:
    return words.answer(state, effective_at=instant(at_ms), version=state.version, status="paused", changed=changed)
