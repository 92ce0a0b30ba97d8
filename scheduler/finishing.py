"""`every: PT15M` with `from: finish`: so long after the end of the run before, not by the clock.

The first occurrence comes one interval behind the anchor, or the first acceptance. Each later one is counted from the
second in which the run of the one before ended, whatever its outcome; from the nominal instant of one that was
skipped; and never from before the change of the schedule in force when the outcome was read, so that nothing is due
in front of a decision. While a run is open, or an occurrence waits, nothing is due: one at a time, and a catch-up has
one run at most.

A state's plans are bound to where their interval counts from, so whoever asks a trigger need not know of this.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from scheduler import failing, occurrences
from scheduler.instants import from_seconds, seconds, text
from scheduler.state import Chain, Held, ScheduleState
from schemas import durations

if TYPE_CHECKING:
    from datetime import datetime

    from scheduler.plan import Plan

NOTHING = occurrences.AtTrigger(())


def bound(plan: Plan, chain: Chain | None) -> Plan:
    """The plan as it stands behind the last occurrence; others are as they were."""
    if plan.after_finish is None or chain is None:
        return plan
    named = NOTHING if chain.since is None else _counted(plan.after_finish, max(plan.anchor, chain.since))
    window = plan.trigger
    within = replace(window, trigger=named) if isinstance(window, occurrences.WindowTrigger) else named
    return replace(plan, trigger=within)


def link(new: Any, nominal: int, since: int | None) -> None:
    """The draft's last occurrence, and what the next one counts from; an older one changes nothing."""
    if new.chain is not None and nominal < new.chain.nominal:
        return
    new.chain = Chain(nominal=nominal, since=since)
    new.plans = {version: bound(plan, new.chain) for version, plan in new.plans.items()}
    new.due = None


def next_from(state: ScheduleState, held: Held) -> datetime | None:
    """What the next occurrence counts from now that the run of the last one has ended."""
    chain = state.chain
    if chain is None or chain.since is not None or held.nominal != chain.nominal:
        return None
    phase = failing.in_force(state, held.at_ms)
    floors = [chain.nominal, held.finished or 0, 0 if phase is None else phase.from_]
    return from_seconds(max(floors))


def counted_from(plan: Plan, since: datetime) -> Plan:
    """The plan as it stands when the run before ended in this second."""
    return bound(plan, Chain(nominal=seconds(since), since=seconds(since)))


def note(plan: Plan) -> str:
    """What is said beside an occurrence that others follow."""
    if plan.after_finish is None:
        return ""
    return f"later ones depend on outcomes: each {_interval(plan.after_finish)} after the end of the run before"


def words(plan: Plan) -> str:
    """When it is due, in words."""
    assert plan.after_finish is not None, "asked of those only"
    interval = _interval(plan.after_finish)
    return f"{interval} after the end of the run before, the first one {interval} after {_text(plan.anchor)}"


def _interval(number: int) -> str:
    return durations.render(timedelta(seconds=number))


def _text(instant: int) -> str:
    return text(from_seconds(instant))


def _counted(interval: int, since: int) -> occurrences.EveryTrigger:
    return occurrences.EveryTrigger(interval, since + interval)
