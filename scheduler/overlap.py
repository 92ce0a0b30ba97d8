"""What happens to an occurrence while runs of its schedule are active.

    allow_all    it has its run
    skip         skipped at once, or a little later: a run that overran by little makes the next one late, not lost
    buffer_one   it waits for the run to end; while one waits, others are skipped
    buffer_all   it waits behind those that wait already; when there are `buffer` of them it is skipped
    cancel_other     as buffer_one, and the run is asked to stop
    terminate_other  as buffer_one, and the run is ended at once, without asking

Under the last two it is the oldest run that has to go, and as many as make room. It waits for the outcome all the same:
a worker that does not listen never has two runs at a time. Who comes to stand first in line asks; who stands behind
others, as `catch_up: all` lets it, wants what waits before it to run and not to be cut short.

"A little" is the schedule's grace, since what starts within its grace is late and not missed; and at most a quarter of
the way to the next occurrence, or `skip` would turn into back-to-back runs on short intervals.

`catch_up: all` promises a run for every occurrence within its window. Together with a policy that forbids overlap that
can only mean one after another: whatever comes in the way of a run waits, in order, up to the window's end.
So does what is caught up after an outage, under any policy: it is late as it is, and bound to no instant any more.

Manual runs and those of backfills neither block nor are blocked.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from scheduler import keys, skipping
from scheduler.context import Context
from scheduler.instants import SECOND_MS, from_millis, from_seconds, text
from scheduler.plan import Plan
from scheduler.state import ScheduleState
from scheduler.timeline import Due
from schemas import codec
from schemas.facts import (
    Cause,
    DeferReason,
    Fact,
    OccurrenceDeferred,
    RunCancelRequested,
    RunCreated,
    SkipReason,
)

ASKED_MAX = 64  # runs to stop for one occurrence: more only run on behind an `allow_all`, and end by themselves
BY = "tidewheel"  # the author of what nobody asked for by name
REPLACING = frozenset({"cancel_other", "terminate_other"})
LATE_SHARE = 4  # the part of an interval, one fourth, that an occurrence may be late by because a run overran


class Room(NamedTuple):
    """How many may wait, and until when this one may."""

    places: int
    until_ms: int | None


def has_room(state: ScheduleState, plan: Plan) -> bool:
    """Whether another run may be active."""
    return not plan.exclusive or state.active < plan.overlap_limit


def blocks(state: ScheduleState, plan: Plan) -> bool:
    """Whether an occurrence has to wait: for a run, or behind those that wait already."""
    return plan.exclusive and (state.active >= plan.overlap_limit or state.waiting_count > 0)


def blocked(
    state: ScheduleState, context: Context, due: Due, plan: Plan, cause: Cause, since_ms: int | None = None
) -> tuple[Fact, ...]:  # fmt: skip
    """What becomes of an occurrence that a run is in the way of: it waits, or it is skipped. The decision is last.

    `since_ms` is from when on it could have had its run, where something else has kept it from that until then.
    """
    room = room_of(plan, due.nominal, cause, since_ms)
    if is_full(state, context, room):
        return (overlapped(state, context, due.nominal, due.phase.version),)
    return (*making_room(state, context, due.nominal, plan), _deferred(state, context, due, room, cause))


def is_full(state: ScheduleState, context: Context, room: Room) -> bool:
    """Whether another one cannot wait: the places are taken, or its time is over already."""
    return state.waiting_count >= room.places or _is_hopeless(state, context, room)


def making_room(state: ScheduleState, context: Context, nominal: int, plan: Plan) -> tuple[Fact, ...]:
    """The first in line asks."""
    if state.waiting_count or state.links.waiting.count:
        return ()
    note = f"overlap {plan.overlap}: makes room for {text(from_seconds(nominal))}"
    return asked(state, context, plan, note)


def asked(state: ScheduleState, context: Context, plan: Plan, note: str) -> tuple[Fact, ...]:
    """The oldest runs are to make room; those whose outcome is known have made it. Nobody is, where none is to go."""
    if plan.overlap not in REPLACING:
        return ()
    needed = min(state.active - plan.overlap_limit + 1, ASKED_MAX)
    over = {held.run_id for held in state.held}
    oldest = islice(_counted(state), needed)
    return tuple(
        RunCancelRequested(
            tenant=run.tenant, schedule=run.schedule, run_id=run.run_id, requested_at=context.now, queue=run.job.queue,
            shard=run.shard, by=BY, note=note, terminate=plan.overlap == "terminate_other",
        )
        for run in oldest
        if run.run_id not in over
    )  # fmt: skip


def _deferred(state: ScheduleState, context: Context, due: Due, room: Room, cause: Cause) -> Fact:
    return OccurrenceDeferred(
        tenant=state.tenant,
        schedule=state.name,
        version=due.phase.version,
        nominal_time=from_seconds(due.nominal),
        reason=DeferReason.BUFFERED,
        decided_at=context.now,
        until=None if room.until_ms is None else from_millis(room.until_ms),
        blocked_by=blocker(state),
        cause=cause,
        rule=state.plans[due.phase.version].rule,
        tz_version=context.tz_version,
        used=state.plans[due.phase.version].used,
    )


def overlapped(state: ScheduleState, context: Context, nominal: int, version: int) -> Fact:
    """Skipped because of a run, which is named."""
    return skipping.one(state, context, nominal, version, SkipReason.OVERLAP, blocked_by=blocker(state))


def blocker(state: ScheduleState) -> str | None:
    """The oldest run that stands in the way."""
    if state.blocker or state.active == 0:
        return state.blocker or None
    return next((run.run_id for run in _counted(state)), None)


def _counted(state: ScheduleState) -> Iterator[RunCreated]:
    """Open runs of occurrences, by their nominal instants; manual ones are named behind them, backfilled ones not."""
    for _, row in state.rows.scan(keys.RUN, keys.end_of(keys.RUN)):
        run = codec.load(RunCreated, codec.parse(row))
        if run.cause is not Cause.BACKFILL:
            yield run


def room_of(plan: Plan, nominal: int, cause: Cause, since_ms: int | None = None) -> Room:
    """The room behind the runs that are active, for one that may have had its run since then."""
    begins_ms = nominal * SECOND_MS if since_ms is None else since_ms
    if plan.catch_up == "all":
        return Room(plan.catch_up_limit, begins_ms + plan.window_ms)
    if cause is Cause.CATCH_UP:
        return Room(plan.buffer, begins_ms + plan.window_ms)
    if plan.overlap != "skip":
        return Room(plan.buffer, None)
    return Room(1, (plan.due_ms(nominal) if since_ms is None else since_ms) + _late_ms(plan, nominal))


def _late_ms(plan: Plan, nominal: int) -> int:
    following = plan.trigger.next_after(nominal)
    if following is None:
        return plan.grace_ms
    return min(plan.grace_ms, (following * SECOND_MS - plan.due_ms(nominal)) // LATE_SHARE)


def _is_hopeless(state: ScheduleState, context: Context, room: Room) -> bool:
    """Whether its time to wait is over already, and no outcome that is known ends the waiting before."""
    if room.until_ms is None or room.until_ms > context.horizon_ms:
        return False
    return not state.held or state.held[0].at_ms > room.until_ms


def any_open(state: ScheduleState) -> str | None:
    """Some open run, for an answer."""
    return next((run.run_id for run in _counted(state)), None)
