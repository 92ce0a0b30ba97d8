"""What people and systems ask for: one file a command.

A command is judged once. What was answered is remembered with it, so the same command again, from whichever retry,
changes nothing and hears the same answer. A refusal is a fact: it says which field, and what to do instead.

One that wants to see a record of the catalog first (`after_catalog`) waits for it, and those behind it wait too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from scheduler import bounds, delays, keys, memory, partition
from scheduler.commands import backfill, breaker, cancel, delete, job_run, pause, put, references, rerun, skip, trigger
from scheduler.commands.verdict import Accepted, Forwarded, Rejected, Verdict, rejected
from scheduler.context import Context
from scheduler.instants import from_millis
from scheduler.memory import Remembered
from scheduler.state import ReferenceState, ScheduleState
from schemas import commands
from schemas.commands import Command, Request
from schemas.facts import CommandRejected, Fact
from schemas.faults import Fault
from schemas.internal import CommandAnswered
from schemas.scheduling import CatalogAwaited, CommandDelayed, CommandRemembered, CommandTaken

Owner = ScheduleState | ReferenceState
Handler = Callable[[Any, Command, Any, Context], Verdict]

HANDLERS: Mapping[type[Request], Handler] = {
    commands.SchedulePut: put.decide,
    commands.SchedulePause: pause.pause,
    commands.ScheduleResume: pause.resume,
    commands.ScheduleDelete: delete.decide,
    commands.ScheduleTrigger: trigger.decide,
    commands.ScheduleSkipOccurrence: skip.decide,
    commands.BackfillStart: backfill.start,
    commands.BackfillPause: backfill.pause,
    commands.BackfillResume: backfill.resume,
    commands.BackfillCancel: backfill.cancel,
    commands.BreakerReset: breaker.reset,
    commands.RunCancel: cancel.decide,
    commands.RunRerun: rerun.rerun,
    commands.RunRedrive: rerun.redrive,
    commands.JobPut: references.put,
    commands.JobDelete: references.delete,
    commands.JobRun: job_run.decide,
    commands.CalendarPut: references.put,
    commands.CalendarDelete: references.delete,
    commands.QueuePut: references.put,
    commands.QueueDelete: references.delete,
    commands.TenantPut: references.put,
    commands.TenantDelete: references.delete,
}


def decide(state: Owner, command: Command, context: Context) -> tuple[Fact, ...]:
    """The facts that follow from a command, its answer among them unless it waits."""
    known = _known(state, command, context)
    if known is not None:
        return _answer(command, known.status, known.body, known.faults)
    if state.delays.count or not partition.has_adopted(context.shared, command.request.after_catalog):
        return _delayed(state, command, context)
    return _judged(state, command, context)


def look(state: Owner, context: Context) -> tuple[Fact, ...]:
    """What becomes of the first command that waits: its turn has come, or its time is over, or it waits on."""
    delayed = delays.first(state.delays, state.rows)
    command = delays.command(delayed)
    taken = CommandTaken(of=_of(command), tenant=command.tenant, name=command.name)
    known = _known(state, command, context)
    if known is not None:
        return (taken, *_answer(command, known.status, known.body, known.faults))
    if partition.has_adopted(context.shared, command.request.after_catalog):
        return (taken, *_judged(state, command, context))
    until_ms = delays.until_ms(delayed)
    if context.horizon_ms >= until_ms:
        return (taken, *_rejected(command, context, _not_adopted(command)))
    look_ms = min(until_ms, context.horizon_ms + delays.LOOK_EVERY_MS)
    return (CatalogAwaited(of=taken.of, tenant=taken.tenant, name=taken.name, look_at=from_millis(look_ms)),)


def _known(state: Owner, command: Command, context: Context) -> Remembered | None:
    known_by = memory.digest(command.tenant, command.name, command.source, command.id)
    return memory.recall(state.rows, known_by, context.now)


def _judged(state: Owner, command: Command, context: Context) -> tuple[Fact, ...]:
    verdict = _unmet(state, command) or HANDLERS[type(command.request)](state, command, command.request, context)
    match verdict:
        case Accepted(facts=facts, status=status, body=body):
            return (*facts, *_conclude(command, context, status, body, (), command.request.source_version))
        case Rejected():
            return _rejected(command, context, verdict)
        case Forwarded(facts=facts):
            return facts


def key_of(command: Command) -> bytes:
    """The key of the state that a command is for."""
    return key_for(type(command.request), command.tenant, command.request.name)


def key_for(kind: type[Request], tenant: str, name: str) -> bytes:
    """The key of the state that a command of this kind is for."""
    return keys.of(_kind_of(kind), tenant, kind.owner_of(name))


def _unmet(state: Owner, command: Command) -> Rejected | None:
    """What the command itself makes a condition and does not hold."""
    request = command.request
    current = _current_version(state)
    if request.expected_version is not None and request.expected_version != current:
        message = f"version {request.expected_version} was expected, {current or 'none'} is in force"
        remedy, body = "read it again and decide whether the change still fits", {"version": current}
        return rejected("version_mismatch", 412, message, remedy, pointer="/data/expected_version", body=body)
    known = state.source_version
    if request.source_version is not None and known is not None and request.source_version <= known:
        message, remedy = (
            f"version {known} of the source was read before",
            "nothing: a newer word of the same source stands",
        )
        return rejected("stale", 409, message, remedy, pointer="/data/source_version")
    return None


def _current_version(state: Owner) -> int:
    exists = state.exists if isinstance(state, ScheduleState) else state.definition is not None
    return state.version if exists else 0


def _delayed(state: Owner, command: Command, context: Context) -> tuple[Fact, ...]:
    if state.delays.count >= delays.DELAYED_MAX:
        return _rejected(command, context, _too_many_wait())
    fact = CommandDelayed(
        of=_of(command),
        tenant=command.tenant,
        name=command.name,
        source=command.source,
        command_id=command.id,
        command_type=command.type,
        data=command.request.model_dump(mode="json", exclude_unset=True),
        position=command.position,
        appended_at=command.appended_at,
        delayed_at=context.now,
        reply_to=command.reply_to,
    )
    return (fact,)


def _not_adopted(command: Command) -> Rejected:
    message = f"no record of {command.request.after_catalog} was read from the catalog within 5 s"
    remedy = "name the position of an answer that says `changed: true`, or leave it out"
    return rejected("not_adopted", 409, message, remedy, pointer="/data/after_catalog", reason="catalog_not_adopted")


def _too_many_wait() -> Rejected:
    message = f"{delays.DELAYED_MAX} commands wait for the catalog before this one"
    return rejected("too_many_delayed", 429, message, "send it again in a few seconds")


def _of(command: Command) -> str:
    return _kind_of(type(command.request))


def _kind_of(kind: type[Request]) -> str:
    """Of what the commands of a kind are."""
    return commands.REFERENCES.get(kind, "schedule")


def _rejected(command: Command, context: Context, verdict: Rejected) -> tuple[Fact, ...]:
    faults = bounds.faults(verdict.faults)
    fact = CommandRejected(
        tenant=command.tenant,
        name=command.request.name,
        reason=verdict.reason,
        faults=faults,
        position=command.position,
        rejected_at=context.now,
        command_id=command.id,
        command_type=command.type,
        source=command.source,
    )
    said = {"reason": verdict.reason, "detail": bounds.detail(verdict.faults)}
    body = {"tenant": command.tenant, "name": command.request.name, **said, **verdict.body}
    # Something that is gone already stays gone: an older word of its source must not bring it back.
    ordered = command.request.source_version if verdict.reason == "not_found" else None
    return (fact, *_conclude(command, context, verdict.status, body, faults, ordered))


def _conclude(
    command: Command,
    context: Context,
    status: int,
    body: Mapping[str, Any],
    faults: tuple[Fault, ...],
    source_version: int | None,
) -> tuple[Fact, ...]:
    remembered = CommandRemembered(
        of=_of(command),
        tenant=command.tenant,
        name=command.name,
        source=command.source,
        command_id=command.id,
        status=status,
        body=body,
        remembered_at=context.now,
        faults=faults,
        source_version=source_version,
    )
    return (remembered, *_answer(command, status, body, faults))


def _answer(command: Command, status: int, body: Mapping[str, Any], faults: tuple[Fault, ...]) -> tuple[Fact, ...]:
    if command.reply_to is None:
        return ()
    return (CommandAnswered(command_id=command.id, reply_to=command.reply_to, status=status, body=body, faults=faults),)
