"""Which of the occurrences that an outage made late get a run after all.

An occurrence older than its grace is missed. Of the missed ones, `catch_up` keeps none, the latest, or all, within a
window and up to a limit; the others are skipped, a day of them in one record. An occurrence that is only late counts
as the latest one too: after two hours without power, a schedule of every minute has one run by `latest`, not two.

Age is measured against the end of the recovery (`recovery.to`), so it does not matter how long the deciding takes.
"""

from __future__ import annotations

from scheduler import holding, occurrences, pacing, runs, skipping, timeline
from scheduler.context import Context
from scheduler.instants import SECOND_MS, millis
from scheduler.links import awaiting
from scheduler.plan import Plan
from scheduler.state import Recovery, ScheduleState
from scheduler.timeline import Due
from schemas.facts import Cause, Fact, SkipReason


def decide(state: ScheduleState, context: Context, recovery: Recovery, due: Due, plan: Plan) -> tuple[Fact, ...]:
    """One missed occurrence that is caught up, or a range of them that is not."""
    to_ms = millis(recovery.to)
    stop = timeline.stopped_at(state, to_ms)
    if stop is not None:
        reason = SkipReason.ENDED if stop.deleted else SkipReason.PAUSED
        return (_skip(state, context, due, _last_missed(plan, to_ms), reason, "was missed before that"),)
    if plan.catch_up == "skip":
        return (_skip(state, context, due, _last_missed(plan, to_ms), SkipReason.CATCH_UP, "catch_up is skip"),)
    opens = -((plan.window_ms - to_ms) // SECOND_MS)  # the first whole second within the window
    if due.nominal < opens:
        return (_skip(state, context, due, _over(plan, opens - 1), SkipReason.CATCH_UP, "is older than the window"),)
    kept = 1 if plan.catch_up == "latest" else plan.catch_up_limit
    to = to_ms // SECOND_MS
    if plan.after_finish is None and timeline.count(state, due.nominal, to, kept) >= kept:
        behind = holding.before_kept(lambda after: timeline.count(state, after, to, kept), due.nominal, to, kept)
        until = min(behind, _last_missed(plan, to_ms))
        return (_skip(state, context, due, until, SkipReason.CATCH_UP, _beyond(kept)),)
    return _keep(state, context, recovery, due, plan)


def _keep(state: ScheduleState, context: Context, recovery: Recovery, due: Due, plan: Plan) -> tuple[Fact, ...]:
    if state.skips and (asked := skipping.requested(state, context, due)):
        return asked
    version = due.phase.version
    recipe = runs.recipe_of(plan, state.tenant, context.shared)
    if recipe is None:
        return (skipping.one(state, context, due.nominal, version, SkipReason.NO_JOB),)
    if plan.intervals:
        return awaiting.begin(state, context, due, Cause.CATCH_UP, millis(recovery.to))
    return pacing.keep(state, context, recovery, due, plan, recipe)


def _skip(state: ScheduleState, context: Context, due: Due, until: int, reason: SkipReason, detail: str) -> Fact:
    ends = until if due.ends is None else min(until, due.ends)
    return skipping.stretch(state, context, due.nominal, max(ends, due.nominal), due.phase.version, reason, detail)


def _last_missed(plan: Plan, to_ms: int) -> int:
    """The last second that is older than the grace."""
    return _over(plan, (to_ms - plan.grace_ms - 1) // SECOND_MS)


def _over(plan: Plan, until: int) -> int:
    """The last second up to `until` whose occurrences are all due by then: the last may still wait for its jitter."""
    if not plan.jitter_ms:
        return until
    last = occurrences.last_between(plan.trigger, until - plan.jitter_ms // SECOND_MS, until)
    return until if last is None or plan.due_ms(last) <= until * SECOND_MS else last - 1


def _beyond(kept: int) -> str:
    return "a later one is due" if kept == 1 else f"there are {kept} later ones, which is the limit"
