"""Occurrences that wait for a run to end: the first one stands in the state, others in rows behind it."""

from __future__ import annotations

from scheduler import holding, overlap, runs, skipping, timeline
from scheduler.context import Context
from scheduler.state import ScheduleState, Waiting
from schemas.facts import Cause, Fact, SkipReason


def may_go(state: ScheduleState) -> bool:
    """Whether the first one can have its run now."""
    first = state.waiting
    return first is not None and not first.frozen and overlap.has_room(state, state.plans[first.version])


def release_ms(state: ScheduleState) -> int | None:
    """When the first one can have its run, if a freeze has kept it from that; None while a run is in its way."""
    first = state.waiting
    if first is None or not first.frozen or not overlap.has_room(state, state.plans[first.version]):
        return None
    return first.release_ms


def release(state: ScheduleState, context: Context) -> tuple[Fact, ...]:
    """Its run is created; or it turns out that its job is gone, or that a freeze defers it."""
    first = _first(state)
    if (hold := holding.met(state.plans[first.version], context.horizon_ms)) is not None:
        return holding.stays(state, context, first, hold)
    return run_of(state, context, first)


def run_of(state: ScheduleState, context: Context, first: Waiting) -> tuple[Fact, ...]:
    """The run of an occurrence whose wait is over, or that there is no job for it any more."""
    recipe = runs.recipe_of(state.plans[first.version], state.tenant, context.shared)
    if recipe is None:
        return (skipping.one(state, context, first.nominal, first.version, SkipReason.NO_JOB),)
    cause = Cause.CATCH_UP if first.frozen else first.cause  # its deadline must not be over before it begins
    return (runs.of_occurrence(state, context, first.nominal, first.version, recipe, cause),)


def too_late(state: ScheduleState, context: Context, first: Waiting) -> tuple[Fact, ...]:
    """That a missed occurrence has waited as long as it may."""
    detail = "waited for a run to end until its window was over"
    return (skipping.one(state, context, first.nominal, first.version, SkipReason.CATCH_UP, detail=detail),)


def expire(state: ScheduleState, context: Context) -> tuple[Fact, ...]:
    """It has waited as long as it may."""
    first = _first(state)
    if first.cause is not Cause.CATCH_UP:
        return (overlap.overlapped(state, context, first.nominal, first.version),)
    return too_late(state, context, first)


def drop(state: ScheduleState, context: Context) -> tuple[Fact, ...]:
    """The schedule was paused or deleted while it waited: nothing is started any more."""
    first = _first(state)
    reason = SkipReason.ENDED if _is_deletion(state, context.horizon_ms) else SkipReason.PAUSED
    return (skipping.one(state, context, first.nominal, first.version, reason, detail="was waiting for a run to end"),)


def dropped_at_ms(state: ScheduleState, horizon_ms: int | None = None) -> int | None:
    """When a pause or a deletion ends the first one's waiting, if one does."""
    first = state.waiting
    if first is None:
        return None
    if first.cause is Cause.CATCH_UP:
        # It was missed in an outage: what counts is how the schedule stands now, not what happened in between.
        last = state.phases[-1] if horizon_ms is None else timeline.stopped_at(state, horizon_ms)
        return last.from_ms if last is not None and (last.paused or last.deleted) else None
    stop = timeline.stop_behind(state, first.nominal)
    return None if stop is None else stop.from_ms


def _is_deletion(state: ScheduleState, horizon_ms: int) -> bool:
    first = _first(state)
    stop = timeline.stopped_at(state, horizon_ms) or timeline.stop_behind(state, first.nominal)
    return stop is not None and stop.deleted


def _first(state: ScheduleState) -> Waiting:
    assert state.waiting is not None, "only what waits is released, expires or is dropped"
    return state.waiting
