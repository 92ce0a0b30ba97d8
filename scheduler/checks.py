"""What is wrong with a definition beyond its shape; every fault is found, and each names its field and the remedy.

A definition is read strictly at the door (an unknown field is a fault) and leniently on the topic (a warning). What is
checked here is the same for both, for a put and for a preview.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic import ValidationError

from scheduler import bounds, freezes, occurrences, plan, templates
from scheduler.instants import from_seconds, seconds, text
from scheduler.links import awaiting
from scheduler.plan import Plan
from scheduler.timeline import LAST_INSTANT
from schemas import definitions, references
from schemas.faults import Fault, Refused
from schemas.frozen import frozen

SECOND = timedelta(seconds=1)
EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)  # before it nothing was ever accepted
LENIENT = timedelta.max  # a grace for a trigger whose schedule has none that can be read


@frozen
class Checked:
    """A definition that can be accepted: as given, normalised, compiled; and what its author should know."""

    schedule: definitions.Schedule
    definition: Mapping[str, Any]
    plan: Plan
    warnings: tuple[str, ...]


def schedule(
    data: Any,
    *,
    hash_key: str,
    now: datetime,
    anchor: int | None = None,
    strict: bool = False,
    accepted: bool = False,
    history: timedelta | None = None,
    pointer: str = "",
) -> Checked:
    """The definition ready for use, or `Refused` with every fault in it.

    `anchor` is what an interval without an anchor of its own is counted from; without it, `now`. A definition that was
    `accepted` some time ago may be over by now. `history` is for how long decisions are kept, where that is known.
    """
    try:
        model, unknown = definitions.read_schedule(data, strict=strict, pointer=pointer)
    except Refused as refusal:
        raise Refused(*_with_others(refusal.faults, data, hash_key, now, pointer)) from None
    asked_at = EARLIEST if accepted else now
    given = model.trigger
    faults = [
        *(() if given is None else _trigger(given, model.grace, hash_key, asked_at, f"{pointer}/trigger")),
        *_itself(model.after or (), hash_key, f"{pointer}/after"),
        *_payload(model.job, f"{pointer}/job/payload"),
    ]
    if faults:
        raise Refused(*faults)
    anchor = seconds(now) if anchor is None else anchor
    compiled = plan.of_schedule(model, hash_key, anchor=anchor)
    if history is not None and not accepted:
        _refuse(awaiting.beyond(compiled, seconds(now), history, f"{pointer}/after"))
    document = definitions.normal_form(model)
    nothing_left: tuple[str, ...] = ()
    if given is not None:
        if compiled.trigger.next_after(seconds(EARLIEST)) is None:
            raise Refused(_empty(given, f"{pointer}/trigger"))
        document["trigger"] |= _anchored(given, anchor)
        nothing_left = (*_over(given, compiled, seconds(now)), *_nothing_left(compiled, seconds(now)))
    warnings = bounds.warnings((*unknown, *_warnings(model, now), *nothing_left))
    return Checked(schedule=model, definition=document, plan=compiled, warnings=warnings)


def _refuse(faults: Iterator[Fault]) -> None:
    found = tuple(faults)
    if found:
        raise Refused(*found)


def _anchored(trigger: definitions.Trigger, anchor: int) -> dict[str, str]:
    """What an interval or a rule is counted from, said where it was not."""
    if trigger.every is not None and trigger.anchor is None:
        return {"anchor": text(from_seconds(anchor))}
    if trigger.rrule is not None:
        return {"anchor": text(from_seconds(plan.dtstart(trigger, anchor)))}
    return {}


def reference(
    kind: str, data: Any, *, strict: bool = False, pointer: str = ""
) -> tuple[definitions.Model, tuple[str, ...]]:
    """The definition of a job, calendar, queue or tenant and its warnings, or `Refused` with every fault in it."""
    model, warnings = definitions.read_as(references.KINDS[kind], data, strict=strict, pointer=pointer)
    faults = (*_payload(model, f"{pointer}/payload"), *_freezes(model, pointer))
    if faults:
        raise Refused(*faults)
    return model, bounds.warnings(warnings)


def _freezes(model: definitions.Model, pointer: str) -> Iterator[Fault]:
    if isinstance(model, references.Queue | references.Tenant):
        yield from freezes.faults(model.freezes, pointer)


def _with_others(found: tuple[Fault, ...], data: Any, hash_key: str, now: datetime, pointer: str) -> tuple[Fault, ...]:
    """The faults of the shape, and those of a trigger that has its shape: whoever mends a file wants them all."""
    if not isinstance(data, Mapping) or any(fault.pointer.startswith(f"{pointer}/trigger") for fault in found):
        return found
    try:
        trigger = definitions.Trigger.model_validate(data.get("trigger"))
    except ValidationError:
        return found
    return (*found, *_trigger(trigger, LENIENT, hash_key, now, f"{pointer}/trigger"))


# --- the trigger --------------------------------------------------------------------------------------------------


def _trigger(
    trigger: definitions.Trigger, grace: timedelta, hash_key: str, now: datetime, pointer: str
) -> Iterator[Fault]:
    yield from _zone(trigger.timezone, pointer)
    if isinstance(trigger.cron, str):
        yield from _cron(trigger, trigger.cron, hash_key, now, f"{pointer}/cron")
    elif trigger.cron is not None:
        for index, text_ in enumerate(trigger.cron):
            yield from _cron(trigger, text_, hash_key, now, f"{pointer}/cron/{index}")
    elif trigger.rrule is not None:
        yield from _rrule(trigger, seconds(now), f"{pointer}/rrule")
    elif trigger.at is not None:
        yield from _at(trigger.at, max(grace, SECOND), now, pointer)
    yield from _window(trigger, pointer)
    for index, text_ in enumerate(() if trigger.exclude is None else trigger.exclude.cron):
        yield from _excluded(trigger, text_, hash_key, f"{pointer}/exclude/cron/{index}")


def _itself(after: tuple[definitions.After, ...], hash_key: str, pointer: str) -> Iterator[Fault]:
    """A schedule that follows itself would never end, or never begin."""
    for index, each in enumerate(after):
        if hash_key.endswith(f"/{each.schedule}"):
            where = f"{pointer}/{index}/schedule"
            yield Fault(pointer=where, code="cycle", message="is this schedule itself", remedy="name another one")


def _window(trigger: definitions.Trigger, pointer: str) -> Iterator[Fault]:
    """Bounds that no instant lies between."""
    start, end = trigger.start_at, trigger.end_at
    if start is not None and end is not None and start >= end:
        remedy = "name a later one: the range is [start_at, end_at)"
        yield Fault(pointer=f"{pointer}/end_at", code="range", message="is not after start_at", remedy=remedy)


def _empty(trigger: definitions.Trigger, pointer: str) -> Fault:
    """Bounds that no occurrence lies between."""
    if trigger.start_at is None and trigger.end_at is None:
        message = "nothing is ever due between its DTSTART, which is the anchor, and its UNTIL"
        return Fault(pointer=f"{pointer}/rrule", code="never_fires", message=message, remedy="move anchor or UNTIL")
    name = "start_at" if trigger.end_at is None else "end_at"
    remedy = "move start_at or end_at, or leave them out"
    message = "nothing is ever due between start_at and end_at"
    return Fault(pointer=f"{pointer}/{name}", code="never_fires", message=message, remedy=remedy)


def _zone(name: str, pointer: str) -> Iterator[Fault]:
    try:
        occurrences.zone(name)
    except occurrences.ZoneError as error:
        yield Fault(pointer=f"{pointer}/timezone", code="timezone", message=error.problem, remedy=error.remedy)


def _cron(trigger: definitions.Trigger, expression: str, hash_key: str, now: datetime, where: str) -> Iterator[Fault]:
    try:
        compiled = plan.cron_of(trigger, expression, hash_key)
    except occurrences.CronError as error:
        yield _unreadable(error, where)
    except occurrences.ZoneError:
        return  # said already
    else:
        if compiled.next_after(seconds(now)) is None:
            yield Fault(pointer=where, code="never_fires", message="it never fires again", remedy="name a day to come")


def _rrule(trigger: definitions.Trigger, now: int, where: str) -> Iterator[Fault]:
    try:
        rule = plan.rule_of(trigger, now).expression
    except occurrences.RuleError as error:
        yield _unreadable(error, where)
    except occurrences.ZoneError:
        return  # said already
    else:
        assert isinstance(rule, occurrences.Recurrence), "a rule was read"
        if rule.count is not None and trigger.anchor is None:
            message, remedy = "COUNT counts from an instant that is not given", "give anchor, or use max_runs"
            yield Fault(pointer=where, code="rrule", message=message, remedy=remedy)


def _excluded(trigger: definitions.Trigger, expression: str, hash_key: str, where: str) -> Iterator[Fault]:
    try:
        plan.excluded_cron(trigger, expression, hash_key)
    except occurrences.CronError as error:
        yield _unreadable(error, where)


def _unreadable(error: occurrences.CronError | occurrences.RuleError, where: str) -> Fault:
    message = error.problem if error.field in ("expression", "rule") else f"{error.field}: {error.problem}"
    code = "cron" if isinstance(error, occurrences.CronError) else "rrule"
    return Fault(pointer=where, code=code, message=message, remedy=error.remedy)


def _at(instants: tuple[datetime, ...], grace: timedelta, now: datetime, pointer: str) -> Iterator[Fault]:
    for index, instant in enumerate(instants):
        if now - instant > grace:
            yield Fault(
                pointer=f"{pointer}/at/{index}",
                code="in_the_past",
                message=f"{text(instant)} is past and older than the grace",
                remedy="leave it out, or name an instant to come",
            )
        elif seconds(instant) >= LAST_INSTANT:
            message = f"{text(instant)} is too far away"
            yield Fault(
                pointer=f"{pointer}/at/{index}", code="never_fires", message=message, remedy="name a nearer one"
            )


# --- payload and policies -----------------------------------------------------------------------------------------


def _payload(model: definitions.Model | str, pointer: str) -> Iterator[Fault]:
    if isinstance(model, definitions.Job):
        yield from templates.faults(model.payload, pointer)


def _over(trigger: definitions.Trigger, compiled: Plan, now: int) -> Iterator[str]:
    if trigger.rrule is not None and compiled.trigger.next_after(now) is None:
        yield "/trigger/rrule: is over, so nothing is due any more"


def _nothing_left(compiled: Plan, now: int) -> Iterator[str]:
    if compiled.exclusions is not None and compiled.next_after(now) is None and compiled.trigger.next_after(now):
        yield "/trigger/exclude: takes out everything that is due in the years to come"


def _warnings(model: definitions.Schedule, now: datetime) -> Iterator[str]:
    if model.trigger is not None and model.trigger.end_at is not None and model.trigger.end_at <= now:
        yield "/trigger/end_at: is past, so nothing is due any more"
    if model.grace < SECOND:
        yield "/grace: a decision comes some milliseconds after its instant, so less than PT1S counts as PT1S"
    if model.catch_up.policy != "skip" and model.catch_up.window < model.grace:
        yield "/catch_up/window: is shorter than the grace, so nothing is ever caught up"
