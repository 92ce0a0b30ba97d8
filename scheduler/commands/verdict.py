"""How a command is judged, and when it takes effect."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from typing import Any

from scheduler import failing, timeline
from scheduler.context import Context
from scheduler.instants import SECOND_MS, from_millis, from_seconds, millis, text
from scheduler.state import PHASES_MAX, ScheduleState
from schemas.commands import Command
from schemas.facts import Fact, RunCreated
from schemas.faults import Fault
from schemas.frozen import frozen
from schemas.scheduling import MarkMoved


@frozen
class Accepted:
    """The command holds; `facts` are what it made true, none when it was true already."""

    body: Mapping[str, Any]
    facts: tuple[Fact, ...] = ()
    status: int = 200


@frozen
class Rejected:
    """Nothing of the command took effect."""

    reason: str
    status: int
    faults: tuple[Fault, ...]
    body: Mapping[str, Any] = field(default_factory=dict)


@frozen
class Forwarded:
    """Someone else answers."""

    facts: tuple[Fact, ...]


Verdict = Accepted | Rejected | Forwarded
CREATED = 201


def created(run: RunCreated, name: str, **more: Any) -> Accepted:
    """A command made a run: of what was named, with more that only this command says."""
    body = {
        "tenant": run.tenant,
        "name": name,
        "version": run.version,
        "run_id": run.run_id,
        "cause": run.cause.value,
        "created_at": text(run.created_at),
        "deadline_at": text(run.deadline_at),
        **({} if run.start_by_at is None else {"start_by_at": text(run.start_by_at)}),
        **more,
    }
    return Accepted(facts=(run,), status=CREATED, body=body)


def effective_ms(state: ScheduleState, command: Command, context: Context) -> int:
    """When the command takes effect: when it was published, however late it is read; never in front of a decision."""
    published_ms = min(millis(command.appended_at), millis(context.now))
    return max(state.decided_until * SECOND_MS, state.effective_ms, published_ms)


def mark_before(state: ScheduleState, at_ms: int) -> tuple[Fact, ...]:
    """The mark moves to where a change takes effect, when nothing is due before it: then no phase has to be kept."""
    until = at_ms // SECOND_MS
    if failing.may_change(state):
        return ()  # an outcome before it may still pause the schedule, and a run before it lead to one
    if not state.phases or until <= state.decided_until or not timeline.quiet_until(state, at_ms):
        return ()
    return (MarkMoved(tenant=state.tenant, schedule=state.name, until=from_seconds(until)),)


def rejected(
    code: str, status: int, message: str, remedy: str, *,
    pointer: str = "", reason: str = "", body: Mapping[str, Any] | None = None,
) -> Rejected:  # fmt: skip
    """One fault, and the refusal that it is; its code is the reason too, where no other is given."""
    fault = Fault(pointer=pointer, code=code, message=message, remedy=remedy)
    return Rejected(reason=reason or code, status=status, faults=(fault,), body=body or {})


def too_many_changes(state: ScheduleState) -> Rejected | None:
    """A bound on changes between two decisions."""
    if len(state.phases) < PHASES_MAX:
        return None
    message = f"{PHASES_MAX} changes wait for occurrences before them to be decided"
    return rejected("too_many_changes", 429, message, "send it again in a few seconds")


def not_found(state: ScheduleState) -> Rejected | None:
    """There is no such schedule."""
    if state.exists:
        return None
    message = f"there is no schedule {state.tenant}/{state.name}"
    return rejected("not_found", 404, message, "put it first", pointer="/data/name")


def instant(at_ms: int) -> datetime:
    """For facts."""
    return from_millis(at_ms)
