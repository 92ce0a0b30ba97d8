"""`schedule.put`: create or replace a schedule. What is the same already is accepted and changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from scheduler import calendars, checks, finishing, missing, timeline, versions, words
from scheduler.checks import Checked
from scheduler.commands.verdict import Accepted, Rejected, Verdict, effective_ms, mark_before, too_many_changes
from scheduler.context import Context
from scheduler.instants import SECOND_MS, from_millis, from_seconds, millis, seconds, text
from scheduler.links import edges
from scheduler.plan import Plan, Version
from scheduler.state import ScheduleState
from schemas import codec
from schemas.commands import Command, SchedulePut
from schemas.facts import ScheduleAccepted
from schemas.faults import Refused

POINTER = "/data/definition"
CREATED, REPLACED = 201, 200


def decide(state: ScheduleState, command: Command, request: SchedulePut, context: Context) -> Verdict:
    """A version more, the same version again, or what is wrong with the definition."""
    current = _current(state)
    at_ms = effective_ms(state, command, context)
    try:
        checked = _checked(state, request.definition, current, at_ms, context)
        checked = replace(checked, plan=finishing.bound(checked.plan, state.chain))
    except Refused as refusal:
        return Rejected(reason="invalid", status=422, faults=refusal.faults)
    look = calendars.adopted_by(context.shared)
    checked = replace(checked, plan=calendars.bound(checked.plan, state.tenant, look))
    warnings = (*checked.warnings, *missing.warnings(checked.plan, state.tenant, look))
    if current is not None and current.definition == checked.definition:
        said = {"effective_at": current.effective_at, "version": state.version, "changed": False}
        return Accepted(body=_body(state, checked.plan, context, warnings, **said))
    crowded = too_many_changes(state)
    if crowded is not None:
        return crowded
    at_ms, late = _reaching_back(state, checked.plan, at_ms, context)
    return _accepted(state, command, context, checked, at_ms, (*warnings, *late))


def _accepted(
    state: ScheduleState, command: Command, context: Context, checked: Checked, at_ms: int, warnings: tuple[str, ...]
) -> Accepted:
    version, effective_at = state.version + 1, from_millis(at_ms)
    fact = ScheduleAccepted(
        tenant=state.tenant,
        schedule=state.name,
        version=version,
        definition=checked.definition,
        effective_at=effective_at,
        accepted_at=context.now,
        created=not state.exists,
        words=words.sentence(checked.plan),
        next=words.following(checked.plan, seconds(effective_at)),
        tz_version=context.tz_version,
        source_version=command.request.source_version,
        warnings=warnings,
        command_id=command.id,
        source=command.source,
        by=command.request.by,
        note=command.request.note,
    )
    return Accepted(
        facts=(*mark_before(state, at_ms), fact, *edges.changes(state, checked.definition, version, at_ms, context)),
        status=REPLACED if state.exists else CREATED,
        body=_body(state, checked.plan, context, warnings, effective_at=effective_at, version=version, changed=True),
    )


def _body(
    state: ScheduleState, plan: Plan, context: Context, warnings: tuple[str, ...], **said: Any
) -> Mapping[str, Any]:
    return words.answer(
        state,
        status="paused" if state.paused else "active",
        words=words.sentence(plan),
        next=[text(instant) for instant in words.following(plan, seconds(context.now))],
        warnings=list(warnings),
        **said,
    )


def _current(state: ScheduleState) -> Version | None:
    if not state.exists:
        return None
    row = state.rows.get(versions.row(state.version))
    assert row is not None, "the version in force is kept"
    return codec.load(Version, codec.parse(row))


def _checked(state: ScheduleState, definition: Any, current: Version | None, at_ms: int, context: Context) -> Checked:
    """An interval keeps the anchor that its first acceptance gave it, whatever else is changed about it."""
    known = None if current is None else (current.definition.get("trigger") or {}).get("anchor")
    anchor = at_ms // SECOND_MS if known is None else seconds(datetime.fromisoformat(known))
    return checks.schedule(
        definition, hash_key=f"{state.tenant}/{state.name}", now=context.now, anchor=anchor,
        history=timedelta(seconds=context.history_seconds), pointer=POINTER,
    )  # fmt: skip


def _reaching_back(state: ScheduleState, plan: Plan, at_ms: int, context: Context) -> tuple[int, tuple[str, ...]]:
    """When the version takes effect, and what of it comes too late.

    An `at` within its grace still runs, so a version with one reaches back to before it, but never over a decision
    or an occurrence that the version before would have had.
    """
    first = plan.trigger.next_after((millis(context.now) - plan.grace_ms) // SECOND_MS - 1)
    if not _is_at(plan) or first is None or first * SECOND_MS > at_ms:
        return at_ms, ()
    back_ms = first * SECOND_MS - 1
    floor_ms = max(state.decided_until * SECOND_MS, state.effective_ms)
    if back_ms >= floor_ms and timeline.quiet_until(state, at_ms):
        return back_ms, ()
    return at_ms, (f"/trigger/at: {text(from_seconds(first))} was before this change and will not run",)


def _is_at(plan: Plan) -> bool:
    return plan.rule == "at"
