"""The backlog of an outage: what is caught up has its runs one after another, and what is due now goes first.

Each missed occurrence that is kept gets an instant of release when it is decided: the end of the recovery, then one
step of `catch_up.rate` after the other, and no sooner than the tenant's turn in this partition, which has a rate of its
own (`recovery.started.tenant_rate`). They follow from the log, not from when somebody looked. The first one whose
instant is the recovery's end needs no record; every other one is `deferred{paced}` until its instant: together they
are the plan, and the last one is when it is through, unless runs have to wait for each other.

A backlog stands beside the line of those that wait for a run to end: where runs of a schedule exclude each other, what
is due now and what waits from then has the next free place. A pause or a deletion behind the outage empties it.

Where a freeze holds the first one, the turns of all behind it move: each has its own when it has come to stand first,
one step after the one before it, and none is given away meanwhile. Who looks late, because of an outage over the end of
the window, does not make them come together: the turn of the first one is then the instant at which somebody looked.
"""

from __future__ import annotations

from dataclasses import replace

from scheduler import holding, keys, overlap, runs, skipping, waiting
from scheduler import plan as plan_
from scheduler.context import Context
from scheduler.instants import SECOND_MS, from_millis, from_seconds, millis
from scheduler.plan import JobRecipe, Plan
from scheduler.state import PartitionState, Phase, Recovery, ScheduleState, Waiting
from scheduler.timeline import Due
from schemas import codec
from schemas.facts import Cause, DeferReason, Fact, OccurrenceDeferred, SkipReason
from schemas.scheduling import OccurrencePaced, TenantPaced

TENANT_RATE = "100/s"  # of a tenant in one partition, where the settings say nothing else


# --- deciding -----------------------------------------------------------------------------------------------------


def keep(
    state: ScheduleState, context: Context, recovery: Recovery, due: Due, plan: Plan, recipe: JobRecipe
) -> tuple[Fact, ...]:  # fmt: skip
    """A missed occurrence that has a run after all: at once, or when its turn comes. The decision is last."""
    to_ms = millis(recovery.to)
    if (hold := holding.met(plan, context.horizon_ms)) is not None:
        return holding.keep(state, context, due.nominal, due.phase.version, plan, hold, to_ms)
    blocked = overlap.blocks(state, plan)
    if blocked and overlap.is_full(state, context, overlap.room_of(plan, due.nominal, Cause.CATCH_UP)):
        return (overlap.overlapped(state, context, due.nominal, due.phase.version),)
    if state.backlog is not None and state.backlog.moves_others:
        return (_deferred(state, context, recovery, due, plan, to_ms),)
    release_ms, paced = _turn(state, context, plan, to_ms, recovery.tenant_rate)
    if release_ms <= to_ms and not blocked and state.backlog is None:
        return (*paced, runs.of_occurrence(state, context, due.nominal, due.phase.version, recipe, Cause.CATCH_UP))
    asked = overlap.making_room(state, context, due.nominal, plan) if blocked and state.backlog is None else ()
    return (*paced, *asked, _deferred(state, context, recovery, due, plan, release_ms))


def _turn(
    state: ScheduleState, context: Context, plan: Plan, since_ms: int, tenant_rate: str
) -> tuple[int, tuple[Fact, ...]]:  # fmt: skip
    """When its turn is, from an instant on, and that the turn is taken."""
    tenant_ms = max(since_ms, tenant_next_ms(context.shared, state.tenant))
    own_ms = since_ms if state.paced_ms is None else max(since_ms, state.paced_ms + plan.pace_ms)
    release_ms = max(own_ms, tenant_ms)
    return release_ms, (_paced(state, release_ms), *_tenant_paced(state, context, tenant_rate, tenant_ms))


def _deferred(
    state: ScheduleState, context: Context, recovery: Recovery, due: Due, plan: Plan, release_ms: int
) -> Fact:  # fmt: skip
    # What waits for its turn may start late as everything may: its grace, if its window is over by then.
    expires_ms = max(due.nominal * SECOND_MS + plan.window_ms, release_ms + plan.grace_ms)
    is_paced = release_ms > millis(recovery.to)
    return OccurrenceDeferred(
        tenant=state.tenant, schedule=state.name, version=due.phase.version, nominal_time=from_seconds(due.nominal),
        reason=DeferReason.PACED if is_paced else DeferReason.BUFFERED, decided_at=context.now,
        until=from_millis(release_ms if is_paced else expires_ms), blocked_by=overlap.blocker(state),
        cause=Cause.CATCH_UP, used=state.plans[due.phase.version].used, release_at=from_millis(release_ms),
        expires_at=from_millis(expires_ms), missed_until=recovery.to,
    )  # fmt: skip


def _paced(state: ScheduleState, release_ms: int) -> Fact:
    return OccurrencePaced(tenant=state.tenant, schedule=state.name, release_at=from_millis(release_ms))


def _tenant_paced(
    state: ScheduleState, context: Context, tenant_rate: str, tenant_ms: int
) -> tuple[Fact, ...]:  # fmt: skip
    if not tenant_rate:
        return ()  # of a recovery that began before there was such a rate
    next_at = from_millis(tenant_ms + plan_.pace_ms(tenant_rate))
    return (TenantPaced(role="scheduler", partition=context.partition, tenant=state.tenant, next_at=next_at),)


# --- the line -----------------------------------------------------------------------------------------------------


def wakeup_ms(first: Waiting, state: ScheduleState) -> int | None:
    """When something becomes of the first one."""
    instants = (first.until_ms, dropped_at_ms(state), release_ms(state))
    return min((at_ms for at_ms in instants if at_ms is not None), default=None)


def release_ms(state: ScheduleState) -> int | None:
    """When the first one can have its run; None while one that is due now, or a run, is in its way.

    What a freeze has held is looked at when that is over, whatever is in its way: it may have to ask for room.
    """
    first = state.backlog
    if first is None or state.waiting is not None:
        return None
    has_room = first.frozen or overlap.has_room(state, state.plans[first.version])
    return first.release_ms if has_room else None


def release(state: ScheduleState, context: Context) -> tuple[Fact, ...]:
    """Its run is created; or it turns out that its job is gone, or that a freeze defers it.

    What a freeze has held until now has its turn as what an outage has left: the first one at once.
    """
    first = _first(state)
    plan = state.plans[first.version]
    if (hold := holding.met(plan, context.horizon_ms)) is not None:
        return holding.stays(state, context, first, hold)
    if not first.frozen:
        return waiting.run_of(state, context, first)
    is_late = context.horizon_ms - first.release_ms > plan.grace_ms
    since_ms = context.horizon_ms if is_late else first.release_ms
    turn_ms, paced = _turn(state, context, plan, since_ms, context.tenant_rate)
    blocked = not overlap.has_room(state, plan)
    if turn_ms <= since_ms and not blocked:
        return (*paced, *waiting.run_of(state, context, first))
    is_first = state.paced_ms is None or state.paced_ms < first.release_ms  # of those that this freeze has held
    asked = overlap.making_room(state, context, first.nominal, plan) if blocked and is_first else ()
    return (*paced, *asked, _behind(state, context, first, turn_ms, since_ms))


def _behind(state: ScheduleState, context: Context, first: Waiting, turn_ms: int, since_ms: int) -> Fact:
    """What a freeze held waits for its turn, or for a run to end."""
    plan = state.plans[first.version]
    expires_ms, is_paced = max(first.until_ms or 0, turn_ms + plan.grace_ms), turn_ms > since_ms
    return OccurrenceDeferred(
        tenant=state.tenant, schedule=state.name, version=first.version, nominal_time=from_seconds(first.nominal),
        reason=DeferReason.PACED if is_paced else DeferReason.BUFFERED, decided_at=context.now,
        until=from_millis(turn_ms if is_paced else expires_ms), blocked_by=overlap.blocker(state), cause=first.cause,
        used=plan.used, release_at=from_millis(turn_ms), expires_at=from_millis(expires_ms),
        missed_until=from_millis(first.since_ms),
    )  # fmt: skip


def expire(state: ScheduleState, context: Context) -> tuple[Fact, ...]:
    """It has waited as long as it may."""
    return waiting.too_late(state, context, _first(state))


def drop(state: ScheduleState, context: Context) -> tuple[Fact, ...]:
    """The schedule was paused or deleted before its turn came."""
    first, stop = _first(state), _stop(state)
    reason = SkipReason.ENDED if stop is not None and stop.deleted else SkipReason.PAUSED
    return (skipping.one(state, context, first.nominal, first.version, reason, detail="before its turn came"),)


def dropped_at_ms(state: ScheduleState) -> int | None:
    """When a pause or a deletion behind the outage empties the backlog, if one does."""
    stop = _stop(state)
    return None if stop is None else stop.from_ms


def _stop(state: ScheduleState) -> Phase | None:
    first = state.backlog
    if first is None:
        return None
    stops = (each for each in state.phases if each.paused or each.deleted)
    return next((stop for stop in stops if stop.from_ms >= first.since_ms), None)


def _first(state: ScheduleState) -> Waiting:
    assert state.backlog is not None, "only what stands in the backlog is released, expires or is dropped"
    return state.backlog


# --- what facts make of it ----------------------------------------------------------------------------------------


def entered(fact: OccurrenceDeferred, nominal: int) -> Waiting:
    """The place of an occurrence in the line."""
    assert fact.release_at is not None, "asked of those only"
    assert fact.expires_at is not None, "each has its end"
    assert fact.missed_until is not None, "and the outage that it comes from"
    return Waiting(
        nominal=nominal, version=fact.version, cause=fact.cause, until_ms=millis(fact.expires_at),
        release_ms=millis(fact.release_at), since_ms=millis(fact.missed_until),
        frozen=fact.reason is DeferReason.FROZEN,
    )  # fmt: skip


def tenant_next_ms(shared: PartitionState, tenant: str) -> int:
    """When the tenant has its next turn; long ago for one that has had none."""
    row = shared.rows.get(keys.PACE + tenant.encode())
    return 0 if row is None else int(row)


def tenant_paced(shared: PartitionState, fact: TenantPaced) -> None:
    """Its turn is taken."""
    shared.rows.put(keys.PACE + fact.tenant.encode(), str(millis(fact.next_at)).encode())


def forget_turns(shared: PartitionState, to_ms: int) -> None:
    """Turns that were over when a recovery began say nothing any more."""
    for row, value in list(shared.rows.scan(keys.PACE, keys.end_of(keys.PACE))):
        if int(value) <= to_ms:
            shared.rows.delete(row)


def next_in_line(state: ScheduleState) -> Waiting | None:
    """The one behind the first, taken out of its row.

    Held by a freeze, it is looked at when the one before it was: that may have ended sooner than was known. One behind
    such a one has another turn than it was told.
    """
    found = next(iter(state.rows.scan(keys.PACED, keys.end_of(keys.PACED))), None)
    if found is None:
        return None
    state.rows.delete(found[0])
    following, before = codec.load(Waiting, codec.parse(found[1])), _first(state)
    if following.frozen or before.moves_others or following.release_ms < before.release_ms:
        at_ms = min(following.release_ms, before.release_ms) if following.frozen else before.release_ms
        return replace(following, frozen=True, release_ms=at_ms)
    return following
