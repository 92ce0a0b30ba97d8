"""Calendars that schedules exclude by name: what the partition has adopted of them takes part in every decision.

A calendar may change at any time, and nobody tells the schedules that name it. So nothing follows from it beforehand:
a schedule wakes at each of its occurrences, and only then is looked at what its calendars say of it. What they take
out is skipped one by one, or, where several are due at once, in stretches of a day at most. Fixed dates and
expressions (`Plan.exclusions`) stand in the version itself and can wait for their neighbours.

Decisions name the versions of all calendars that were asked. One that is not there has version 0 and takes out nothing:
a schedule that runs on a holiday is noticed, one that never runs may not be.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

from scheduler import keys, occurrences
from scheduler.context import Context
from scheduler.instants import SECOND_MS
from scheduler.plan import Adopted, Plan
from scheduler.state import PartitionState, ScheduleState, changed
from scheduler.timeline import Due
from schemas import codec, references

KIND = "calendar"
CALENDARS_MAX = 1_024  # versions at hand: of the largest ones some 100 MB, of usual ones a few

Lookup = Callable[[str, str, str], bytes | None]  # kind, tenant, name: the row of what is adopted


def bind(state: ScheduleState, context: Context) -> ScheduleState:
    """The schedule with what its calendars say now; for one decision only."""
    if not any(plan.calendars for plan in state.plans.values()):
        return state
    look = adopted_by(context.shared)
    return changed(state, plans={v: bound(plan, state.tenant, look) for v, plan in state.plans.items()})


def bound(plan: Plan, tenant: str, look: Lookup) -> Plan:
    """A plan with what its calendars say."""
    if not plan.calendars:
        return plan
    used, rules = dict(plan.used), []
    for name in plan.calendars:
        row = look(KIND, tenant, name)
        version, days = (0, None) if row is None else _read(row)
        used[f"{KIND}/{tenant}/{name}"] = version
        if days is not None:
            rules.append(replace(days, rule=f"calendar {name} (version {version})"))
    static = () if plan.exclusions is None else plan.exclusions.rules
    shut = occurrences.Exclusions(plan.zone, (*static, *rules)) if rules else None
    return replace(plan, closed=shut, shut=shut, used=used)


def whole(plan: Plan) -> Plan:
    """A bound plan whose calendars are like rules of its own: to look ahead, not to decide."""
    return replace(plan, exclusions=plan.out)


def taken(context: Context, due: Due, plan: Plan) -> occurrences.Taken | None:
    """An occurrence that a calendar takes out, with those behind it that are due already; None for one that is left."""
    return taken_by(plan.shut, context, due, plan)


def taken_by(
    out: occurrences.Exclusions | None, context: Context, due: Due, plan: Plan
) -> occurrences.Taken | None:  # fmt: skip
    """The same by any rules."""
    if out is None or due.phase.paused or out.naming(due.nominal) is None:
        return None
    until = max(context.horizon_ms // SECOND_MS, due.nominal)
    return out.taken(plan.trigger, due.nominal, until if due.ends is None else min(until, due.ends))


def adopted_by(shared: PartitionState) -> Lookup:
    """What a partition has adopted."""
    return lambda kind, tenant, name: shared.rows.get(keys.adopted(kind, tenant, name))


@lru_cache(maxsize=CALENDARS_MAX)
def _read(row: bytes) -> tuple[int, occurrences.Exclusion]:
    """A calendar's version and its days."""
    adopted = codec.load(Adopted, codec.parse(row))
    days = references.Calendar.model_validate(adopted.definition).dates
    return adopted.version, occurrences.Exclusion.of_dates(days)
