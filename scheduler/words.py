"""What is said about a schedule to the people who own it: a sentence, the next instants, the shape of answers."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from scheduler import finishing, occurrences, timeline
from scheduler.instants import from_seconds, text
from scheduler.plan import NEVER, Plan
from scheduler.state import ScheduleState
from schemas import durations
from schemas.after import After

NEXT_SHOWN = 3
EXCLUSIONS_SHOWN_MAX = 3
UPSTREAMS_SHOWN_MAX = 3


def sentence(plan: Plan) -> str:
    """When the schedule is due, in words."""
    if plan.after_finish is not None:
        words = finishing.words(plan)
    else:
        words = "" if plan.trigger is NEVER else occurrences.describe(plan.trigger)
    if plan.jitter_ms:
        words += f", each up to {durations.render(timedelta(milliseconds=plan.jitter_ms))} later"
    if excluded := _excluded(plan):
        words += f", except {excluded}"
    if plan.max_runs is not None:
        words = f"{words}, {plan.max_runs} run{'s' * (plan.max_runs > 1)} at most"
    if plan.intervals:
        words += f"; each waits until {_awaited(plan)}"
    if plan.recipe is not None and (within := plan.recipe.snapshot.start_within) is not None:
        words += f"; begun within {durations.render(within)} or not at all"
    followed = _followed(plan)
    return f"{words}; also {followed}" if words and followed else words or followed[:1].upper() + followed[1:]


def _awaited(plan: Plan) -> str:
    """What an occurrence waits for, and how long at most."""
    shown = [_window(each) for each in plan.intervals[:UPSTREAMS_SHOWN_MAX]]
    more = len(plan.intervals) - len(shown)
    deadline = max(each.deadline or timedelta() for each in plan.intervals)
    words = " and ".join([*shown, *([f"{more} more schedules have"] if more else [])])
    return f"{words}, at most {durations.render(deadline)}"


def _window(each: After) -> str:
    """`load has succeeded in the P1D before it`."""
    where = "since the one before" if each.span is None else f"in the {durations.render(each.span)} before it"
    offset = each.offset or timedelta()
    if offset:
        where += f", moved {durations.render(abs(offset))} {'back' if offset < timedelta() else 'ahead'}"
    return f"{each.schedule} has {each.condition} {where}"


def _followed(plan: Plan) -> str:
    """Whose runs lead to runs."""
    runs = [f"each {each.condition} run of {each.schedule}" for each in plan.after if each.mode == "run"]
    shown = runs[:UPSTREAMS_SHOWN_MAX]
    more = [f"of {len(runs) - len(shown)} more schedules"] if len(runs) > len(shown) else []
    return f"after {' and '.join([*shown, *more])}" if runs else ""


def _excluded(plan: Plan) -> str:
    fixed = () if plan.exclusions is None else plan.exclusions.rules
    rules = [*(each.rule for each in fixed), *(f"calendar {name}" for name in plan.calendars)]
    shown = rules[:EXCLUSIONS_SHOWN_MAX]
    more = [f"{len(rules) - len(shown)} more rules"] if len(rules) > len(shown) else []
    return " and ".join([*shown, *more])


def following(plan: Plan, after: int, count: int = NEXT_SHOWN) -> tuple[datetime, ...]:
    """The next occurrences after an instant."""
    found: list[datetime] = []
    nominal = plan.next_after(after)
    if plan.after_finish is not None:
        count = min(count, 1)  # those behind it depend on when its run ends
    while nominal is not None and nominal < timeline.LAST_INSTANT and len(found) < count:
        found.append(from_seconds(nominal))
        nominal = plan.next_after(nominal)
    return tuple(found)


def answer(
    state: ScheduleState, *, effective_at: datetime, version: int, status: str, changed: bool, **more: Any
) -> Mapping[str, Any]:
    """The body of the answer to a change of a schedule."""
    return {
        "tenant": state.tenant,
        "name": state.name,
        "version": version,
        "state": status,
        "changed": changed,
        "effective_at": text(effective_at),
        **more,
    }
