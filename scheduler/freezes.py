"""Freezes: windows in which nothing that is due becomes a run, for all schedules of a tenant or of a queue.

They stand in the definitions of tenants and queues and are looked at when an occurrence is due, like calendars: a
freeze that is put, changed or lifted counts for everything that is not decided yet. Runs that were created before the
window go on, as do those that people ask for.

    skip    what counts is the nominal instant: an occurrence in the window is skipped, whenever it is decided
    defer   what counts is the instant of decision: while the window lasts nothing begins that the clock leads to, see
            `holding`. Where both are written, `skip` goes first
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from functools import lru_cache
from typing import Any

from scheduler import calendars, occurrences, runs
from scheduler.calendars import Lookup
from scheduler.context import Context
from scheduler.instants import seconds
from scheduler.plan import Adopted, Plan
from scheduler.state import ScheduleState, changed
from scheduler.timeline import Due
from schemas import codec
from schemas.commands import EVERYONE
from schemas.faults import Fault
from schemas.references import Freeze

FREEZE = "freeze"  # what a rule of ours begins with
READ_MAX = 4_096  # versions of tenants and queues at hand
SECOND = timedelta(seconds=1)


def bind(state: ScheduleState, context: Context) -> ScheduleState:
    """The schedule with the freezes that hold for it now; for one decision only."""
    if not context.shared.freezes or not state.plans:
        return state
    look = calendars.adopted_by(context.shared)
    plans = {}
    for version, plan in state.plans.items():
        recipe = runs.recipe_of(plan, state.tenant, context.shared)
        plans[version] = bound(plan, state.tenant, None if recipe is None else recipe.snapshot.queue, look)
    return changed(state, plans=plans)


def bound(plan: Plan, tenant: str, queue: str | None, look: Lookup) -> Plan:
    """A plan with the freezes of its tenant and its queue."""
    used = dict(plan.used)
    skips: list[occurrences.Exclusion] = []
    defers: list[occurrences.Exclusion] = []
    for kind, owner, name in (("tenant", tenant, EVERYONE), ("queue", EVERYONE, queue)):
        row = None if name is None else look(kind, owner, name)
        if row is None:
            continue
        version, found = _read(row, tenant if kind == "tenant" else str(name), kind)
        if found:
            used[f"{kind}/{owner}/{name}"] = version
        skips += [rule for action, rule in found if action == "skip"]
        defers += [rule for action, rule in found if action == "defer"]
    deferred = occurrences.Exclusions(plan.zone, tuple(defers)) if defers else None
    if not skips:
        return plan if deferred is None else replace(plan, deferred=deferred, used=used)
    before = () if plan.out is None else plan.out.rules
    closed, frozen = (occurrences.Exclusions(plan.zone, tuple(each)) for each in ((*before, *skips), skips))
    return replace(plan, closed=closed, frozen=frozen, deferred=deferred, used=used)


def taken(context: Context, due: Due, plan: Plan) -> occurrences.Taken | None:
    """An occurrence in a freeze, with those behind it that are due already; None for one outside."""
    return calendars.taken_by(plan.frozen, context, due, plan)


def change(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> bool:
    """Whether a definition of a tenant or a queue has others than the one before it."""
    one, other = ((definition or {}).get("freezes", []) for definition in (before, after))
    return bool(one != other)


def are_in(definition: Mapping[str, Any] | None) -> bool:
    """Whether a definition of a tenant or a queue has any."""
    return bool(definition is not None and definition.get("freezes"))


def faults(given: tuple[Freeze, ...], pointer: str) -> Iterator[Fault]:
    """What is wrong with their expressions and zones."""
    for index, freeze in enumerate(given):
        where = f"{pointer}/freezes/{index}"
        try:
            if freeze.cron is not None:
                _trigger(freeze)
                if len(freeze.cron.split()) > MINUTE_FIELDS:
                    remedy = "leave out the field of seconds"
                    yield Fault(pointer=f"{where}/cron", code="cron", message="begins at seconds", remedy=remedy)
            else:
                occurrences.zone(freeze.timezone)
        except occurrences.CronError as error:
            yield Fault(pointer=f"{where}/cron", code="cron", message=error.problem, remedy=error.remedy)
        except occurrences.ZoneError as error:
            yield Fault(pointer=f"{where}/timezone", code="timezone", message=error.problem, remedy=error.remedy)


MINUTE_FIELDS = 5


@lru_cache(maxsize=READ_MAX)
def _read(row: bytes, name: str, kind: str) -> tuple[int, tuple[tuple[str, occurrences.Exclusion], ...]]:
    """A version, and its freezes: what each does, and when, as a rule."""
    adopted = codec.load(Adopted, codec.parse(row))
    found = [Freeze.model_validate(each) for each in adopted.definition.get("freezes") or ()]
    said = f"{FREEZE} of {kind} {name} (version {adopted.version})"
    return adopted.version, tuple((each.action, _rule(each, said)) for each in found)


def _rule(freeze: Freeze, said: str) -> occurrences.Exclusion:
    return occurrences.Exclusion(f"{said}: {freeze.note}" if freeze.note else said, _windows(freeze))


def _windows(freeze: Freeze) -> occurrences.Windows:
    if freeze.from_ is not None and freeze.to is not None:
        return occurrences.Windows(spans=((seconds(freeze.from_), seconds(freeze.to)),))
    assert freeze.duration is not None, "a window that comes again has its length"
    return occurrences.Windows(again=((_trigger(freeze), freeze.duration // SECOND),))


def _trigger(freeze: Freeze) -> occurrences.CronTrigger:
    assert freeze.cron is not None, "asked of one that comes again"
    expression = occurrences.parse(freeze.cron, dialect=None, day_rule="vixie", hash_key=FREEZE)
    return occurrences.CronTrigger(expression, occurrences.zone(freeze.timezone), "shift", "first")
