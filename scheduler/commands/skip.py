"""`schedule.skip_occurrence`: one occurrence to come has no run, and the schedule goes on behind it.

The wish waits with the schedule until the occurrence is due, over edits and pauses; it goes when the schedule is
deleted before that. What is due already is too late, and the answer says what became of it.
"""

from __future__ import annotations

from typing import Any

from scheduler import calendars, ledger, skipping, words
from scheduler.commands.verdict import Accepted, Rejected, Verdict, effective_ms, instant, not_found, rejected
from scheduler.context import Context
from scheduler.instants import SECOND_MS, from_seconds, seconds, text
from scheduler.state import SKIPS_MAX, ScheduleState
from schemas import identity
from schemas.commands import Command, ScheduleSkipOccurrence
from schemas.scheduling import SkipRequested


def decide(state: ScheduleState, command: Command, request: ScheduleSkipOccurrence, context: Context) -> Verdict:
    """Noted, if it is an occurrence of the schedule as it stands, and not due before the command was published."""
    missing = not_found(state)
    if missing is not None:
        return missing
    nominal, at_ms = seconds(request.nominal_time), effective_ms(state, command, context)
    if nominal * SECOND_MS <= at_ms:
        return _too_late(state, nominal, at_ms)
    if skipping.request(state, nominal) is not None:
        return Accepted(body=_body(state, nominal, at_ms, changed=False))
    look = calendars.adopted_by(context.shared)
    plan = calendars.bound(state.plans[state.phases[-1].version], state.tenant, look)
    known = plan.next_after(state.decided_until if plan.after_finish is not None else nominal - 1)
    if known != nominal:
        return _no_occurrence(nominal, words.following(plan, nominal, 1))
    if state.skips >= SKIPS_MAX:
        message = f"{SKIPS_MAX} occurrences to come are to be skipped already"
        return rejected("too_many_skips", 429, message, "pause the schedule, or write trigger.exclude")
    wish = SkipRequested(
        tenant=state.tenant, schedule=state.name, nominal_time=request.nominal_time, requested_at=context.now,
        by=request.by, note=request.note,
    )  # fmt: skip
    return Accepted(facts=(wish,), body=_body(state, nominal, at_ms, changed=True))


def _too_late(state: ScheduleState, nominal: int, at_ms: int) -> Verdict:
    segment = ledger.look_up(state, nominal)
    if segment is not None and not ledger.names(state, segment, nominal):
        segment = None
    if segment is not None and segment.decision == ledger.SKIPPED:
        return Accepted(body=_body(state, nominal, at_ms, changed=False, reason=segment.reason))
    became: dict[str, Any] = {"decision": "none" if segment is None else segment.decision}
    remedy = "nothing: no run of it is known"
    if segment is not None and segment.decision == ledger.CREATED:
        became["run_id"] = identity.occurrence_run_id(state.name, from_seconds(nominal))
        remedy = "cancel its run"
    elif segment is not None:
        remedy = "cancel its run when it has one, or pause the schedule now"
    message = f"{text(from_seconds(nominal))} was due before this was published"
    return rejected("too_late", 409, message, remedy, pointer="/data/nominal_time", body=became)


def _no_occurrence(nominal: int, following: tuple[Any, ...]) -> Rejected:
    message = f"nothing is due at {text(from_seconds(nominal))}"
    remedy = f"the one behind it is {text(following[0])}" if following else "nothing is due behind it either"
    return rejected("no_occurrence", 422, message, remedy, pointer="/data/nominal_time")


def _body(state: ScheduleState, nominal: int, at_ms: int, *, changed: bool, reason: str = "requested") -> Any:
    status = "paused" if state.paused else "active"
    more = {"nominal_time": text(from_seconds(nominal)), "reason": reason}
    return words.answer(
        state, effective_at=instant(at_ms), version=state.version, status=status, changed=changed, **more
    )  # fmt: skip
