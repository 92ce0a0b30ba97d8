"""What a schedule does when it is woken: the earliest thing that is due, one at a time.

Outcomes, occurrences, ends of waiting and pauses are taken in the order of their own instants, never in the order in
which this process came to read them. So the same log leads to the same decisions, in however many batches it was read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from scheduler import (
    backfills,
    calendars,
    catch_up,
    delays,
    failing,
    fills,
    finishing,
    freezes,
    holding,
    ledger,
    memory,
    overlap,
    pacing,
    reruns,
    runs,
    skipping,
    sweeps,
    timeline,
    versions,
    waiting,
)
from scheduler.context import Context
from scheduler.instants import SECOND_MS, from_millis, from_seconds, millis, seconds
from scheduler.links import awaiting, edges, listeners, triggers
from scheduler.links.state import NO_LINKS
from scheduler.plan import Plan
from scheduler.state import ScheduleState
from scheduler.timeline import Due
from schemas import identity
from schemas.facts import Cause, Fact, Outcome, RecoveryStarted, RunFinished, SkipReason
from schemas.scheduling import HistoryForgotten, MarkMoved, OutcomeHeld, RunSettled

Facts = tuple[Fact, ...]
Step = Callable[[ScheduleState, Context], Facts]

RULE = "inquiries rest"  # how `wakeup_ms` differs from that of versions before: another word when it changes again


def decide(state: ScheduleState, context: Context) -> Facts:
    """The facts of one step; none when nothing is due."""
    if waiting.may_go(state):
        return waiting.release(state, context)
    if triggers.may_go(state):
        return triggers.release(state, context)
    horizon_ms = context.horizon_ms
    instant_ms, step = _earliest(state, horizon_ms)
    if state.cancelling is not None and state.cancelling.at_ms < min(instant_ms, horizon_ms + 1):
        return sweeps.cancel(state, state.cancelling, context)
    if step is not None and instant_ms <= horizon_ms:
        return step(state, context)
    if (inquiry_ms := sweeps.inquiry_ms(state)) is not None and inquiry_ms <= horizon_ms:
        return sweeps.inquire(state, context)
    if state.backfills and (facts := backfills.decide(state, context)):
        return facts
    if state.links.ask_ms is not None and state.links.ask_ms <= horizon_ms:
        return edges.inquire(state, context)
    if state.links.awaits.ask_ms is not None and state.links.awaits.ask_ms <= horizon_ms:
        return awaiting.ask_again(state, context)
    return _forget(state, context)


def wakeup_ms(state: ScheduleState, *, history_seconds: int) -> int | None:
    """The instant of the next step."""
    if waiting.may_go(state) or triggers.may_go(state):
        return 0
    first = timeline.next_event_ms(state)
    if state.cancelling is not None:
        first = _sooner(first, state.cancelling.at_ms)
    if state.held:
        first = _sooner(first, state.held[0].at_ms)
    if state.waiting is not None or state.backlog is not None:
        first = _sooner(first, _lines_ms(state))
    if len(state.phases) > 1:
        first = _sooner(first, failing.turn_ms(state))
    if state.links is not NO_LINKS:
        first = _sooner(first, triggers.next_ms(state))
    if state.inquiry.at_ms is not None:
        first = _sooner(first, sweeps.inquiry_ms(state))
    if state.memory.count:
        first = _sooner(first, memory.forget_at_ms(state.memory))
    if state.delays.count:
        first = _sooner(first, delays.look_at_ms(state.delays))
    if state.backfills:
        first = _sooner(first, backfills.wakeup_ms(state))
    if state.spilled_to is not None or state.ended is not None or state.filled_from is not None or not state.exists:
        history_at = _history_at(state, history_seconds)
        first = _sooner(first, None if history_at is None else history_at * SECOND_MS)
    return first


def _lines_ms(state: ScheduleState) -> int | None:
    """When something becomes of those that wait."""
    first = None if state.backlog is None else pacing.wakeup_ms(state.backlog, state)
    if state.waiting is None:
        return first
    first = _sooner(_sooner(first, state.waiting.until_ms), waiting.dropped_at_ms(state))
    return _sooner(first, waiting.release_ms(state))


def _sooner(one: int | None, other: int | None) -> int | None:
    if one is None or (other is not None and other < one):
        return other
    return one


def outcome_read(state: ScheduleState, finished: RunFinished, appended_at_ms: int) -> Facts:
    """What follows from a run's outcome: it is settled, or held until what was due before it is decided."""
    run_id = finished.run_id
    if not sweeps.is_open(state, run_id) or (state.held and any(held.run_id == run_id for held in state.held)):
        return ()  # settled before, or none of ours
    if finished.cause is Cause.BACKFILL:
        run = sweeps.run_row(state, run_id)
        assert run is not None, "it is open"
        told = listeners.reports(state, run_id, finished.outcome, appended_at_ms)
        return (*told, backfills.settled(state, run, finished, appended_at_ms))
    if finished.cause is Cause.RERUN:
        told = listeners.reports(state, run_id, finished.outcome, appended_at_ms)
        return (*told, reruns.settled(state, finished, appended_at_ms))
    if finished.cause is Cause.MANUAL or _frees_nothing(state, appended_at_ms):
        nominal = None if finished.nominal_time is None else seconds(finished.nominal_time)
        return _settled(state, run_id, finished.outcome, appended_at_ms, nominal)
    return (
        OutcomeHeld(
            tenant=state.tenant,
            schedule=state.name,
            run_id=run_id,
            outcome=finished.outcome,
            appended_at=from_millis(appended_at_ms),
            nominal_time=finished.nominal_time,
            finished_at=finished.finished_at if failing.heeds_outcomes(state) else None,
        ),
    )


def _frees_nothing(state: ScheduleState, instant_ms: int) -> bool:
    """Whether no occurrence up to an instant can have been in the way of a run that ended then, nor it changes more."""
    if state.links.intervals or state.links.awaits.count or failing.heeds_outcomes(state):
        return False
    for plan in state.plans.values():
        if plan.exclusive and (
            state.held or state.waiting or state.backlog or not timeline.quiet_until(state, instant_ms)
        ):
            return False
    return True


# --- the earliest thing -------------------------------------------------------------------------------------------


def _earliest(state: ScheduleState, horizon_ms: int) -> tuple[int, Step | None]:
    """What is due first. Of things at one instant, those that make room come before those that need it.

    A pause comes before the outcome of its instant: it may be the one that this outcome leads to.
    """
    instant_ms: int = horizon_ms + 1
    step: Step | None = None
    if state.held:
        instant_ms, step = state.held[0].at_ms, _settle
    if state.waiting is not None:
        until_ms, dropped_ms = state.waiting.until_ms, waiting.dropped_at_ms(state, horizon_ms)
        release_ms = waiting.release_ms(state)
        if release_ms is not None and release_ms < instant_ms:
            instant_ms, step = release_ms, waiting.release
        if until_ms is not None and until_ms < instant_ms:
            instant_ms, step = until_ms, waiting.expire
        if dropped_ms is not None and dropped_ms <= instant_ms:
            instant_ms, step = dropped_ms, waiting.drop
    if state.backlog is not None:
        instant_ms, step = _of_backlog(state, state.backlog.until_ms, instant_ms, step)
    due, reading, at_ms, _ = timeline.upcoming(state)
    if due is not None and at_ms <= instant_ms and (at_ms < instant_ms or step is pacing.release):
        instant_ms, step = at_ms, _occurrence
    if reading is not None and reading * SECOND_MS < instant_ms:
        instant_ms, step = reading * SECOND_MS, _dropped
    turn_ms = failing.turn_ms(state)
    if turn_ms is not None and turn_ms < instant_ms:
        instant_ms, step = turn_ms, _turn
    return triggers.sooner(state, instant_ms, step)


def _of_backlog(
    state: ScheduleState, until_ms: int | None, instant_ms: int, step: Step | None
) -> tuple[int, Step | None]:  # fmt: skip
    """The same with the backlog: what is due at the instant of a release goes before it."""
    dropped_ms, release_ms = pacing.dropped_at_ms(state), pacing.release_ms(state)
    if until_ms is not None and until_ms < instant_ms:
        instant_ms, step = until_ms, pacing.expire
    if dropped_ms is not None and dropped_ms <= instant_ms:
        instant_ms, step = dropped_ms, pacing.drop
    if release_ms is not None and release_ms < instant_ms:
        instant_ms, step = release_ms, pacing.release
    return instant_ms, step


def _settle(state: ScheduleState, context: Context) -> Facts:
    held = state.held[0]
    failures = failing.counted(state, held) if failing.heeds_outcomes(state) else None
    paused = failing.pause(state, context, held, failures)
    if paused is not None:
        return (paused,)  # in force before the outcome is settled, which comes next
    *told, settled = _settled(state, held.run_id, held.outcome, held.at_ms, held.nominal)
    assert isinstance(settled, RunSettled), "it stands last"
    next_from = finishing.next_from(state, held)
    if failures is not None or next_from is not None:
        settled = replace(settled, failures=failures, next_from=next_from)
    return (*told, settled)


def _turn(state: ScheduleState, _context: Context) -> Facts:
    """All before a change of the schedule is decided and settled."""
    phase = state.phases[1]
    until, passed = from_seconds(max(phase.from_, state.decided_until)), from_millis(phase.from_ms)
    return (MarkMoved(tenant=state.tenant, schedule=state.name, until=until, passed=passed),)


def _settled(state: ScheduleState, run_id: str, outcome: Outcome, at_ms: int, nominal: int | None) -> Facts:
    """The run is not active any more, and whoever follows the schedule is told; that comes last."""
    settled = RunSettled(
        tenant=state.tenant,
        schedule=state.name,
        run_id=run_id,
        outcome=outcome,
        appended_at=from_millis(at_ms),
        counted=nominal is not None or identity.is_dependency(run_id),
        nominal_time=None if nominal is None else from_seconds(nominal),
    )
    return (*listeners.reports(state, run_id, outcome, at_ms), settled)


def _dropped(state: ScheduleState, context: Context) -> Facts:
    """Readings that a policy left out, said when the clock jumps over them."""
    due, at, _, _ = timeline.upcoming(state)
    assert due is not None, "a reading is left out on the way to the next occurrence"
    assert at is not None, "one is left out"
    readings = skipping.dropped(state, context, due.phase, state.decided_until, at)
    return (*readings, _moved(state, at))


# --- an occurrence ------------------------------------------------------------------------------------------------


def _occurrence(state: ScheduleState, context: Context) -> Facts:
    due = timeline.upcoming(state).due
    assert due is not None, "an occurrence is due"
    plan = state.plans[due.phase.version]
    facts = _decided(state, context, due, plan)
    if not facts:
        return ()
    if plan.drops and not isinstance(facts[0], RecoveryStarted):
        readings = skipping.dropped(state, context, due.phase, state.decided_until, _last_of(facts[-1], due))
        facts = (*readings, *facts)
    if len(state.phases) > 1 and not isinstance(facts[0], RecoveryStarted):
        facts = (*facts, *_closed(state, _last_of(facts[-1], due)))
    return facts


def _decided(state: ScheduleState, context: Context, due: Due, plan: Plan) -> Facts:
    """The one decision on the first occurrence that is due, or on a range that begins with it.

    None yet on one that was missed, where a recovery reaches further than the schedule is known: a command that is
    not read yet may be in force at its end.
    """
    taken = timeline.upcoming(state).taken
    if taken is None:
        taken = calendars.taken(context, due, plan)
    if taken is not None:
        return (skipping.excluded(state, context, due, taken),)
    if (frozen := freezes.taken(context, due, plan)) is not None:
        return (skipping.excluded(state, context, due, frozen, SkipReason.FROZEN),)
    if _promised(state, due, plan):
        detail = "those that wait are the last that max_runs allows"
        return (skipping.one(state, context, due.nominal, due.phase.version, SkipReason.ENDED, detail=detail),)
    stop = timeline.stop_before_due(state, due, plan)
    if stop is not None:
        reason, detail = SkipReason.ENDED if stop.deleted else SkipReason.PAUSED, "before its jitter was over"
        return (skipping.one(state, context, due.nominal, due.phase.version, reason, detail=detail),)
    if due.phase.paused:
        until = seconds(context.horizon) if due.ends is None else min(seconds(context.horizon), due.ends)
        return (skipping.stretch(state, context, due.nominal, until, due.phase.version, SkipReason.PAUSED),)
    recovery = context.shared.recovery
    reference_ms = context.horizon_ms if recovery is None else millis(recovery.to)
    if reference_ms - timeline.upcoming(state).at_ms <= plan.grace_ms:
        return _live(state, context, due, plan)
    if recovery is None:
        return (_recovery(due, context),)
    if recovery.to > context.horizon:
        return ()
    return catch_up.decide(state, context, recovery, due, plan)


def _promised(state: ScheduleState, due: Due, plan: Plan) -> bool:
    """Whether all runs that `max_runs` allows are there or waited for."""
    limited = plan.max_runs is not None and not due.phase.paused
    waiting_count = state.waiting_count + state.backlog_count + state.links.awaits.count
    return limited and state.counted_runs + waiting_count >= (plan.max_runs or 0)


def _live(state: ScheduleState, context: Context, due: Due, plan: Plan) -> Facts:
    if state.skips and (asked := skipping.requested(state, context, due)):
        return asked
    version = due.phase.version
    recipe = runs.recipe_of(plan, state.tenant, context.shared)
    if recipe is None:
        detail = f"there is no job {plan.job_name}"
        return (skipping.one(state, context, due.nominal, version, SkipReason.NO_JOB, detail=detail),)
    if plan.intervals:
        return awaiting.begin(state, context, due, Cause.SCHEDULE, timeline.upcoming(state).at_ms)
    due_ms = timeline.upcoming(state).at_ms
    if (hold := holding.met(plan, context.horizon_ms)) is not None:
        return holding.keep(state, context, due.nominal, version, plan, hold, due_ms)
    if overlap.blocks(state, plan):
        return overlap.blocked(state, context, due, plan, Cause.SCHEDULE)
    return (runs.of_occurrence(state, context, due.nominal, version, recipe, Cause.SCHEDULE, due_ms),)


def _recovery(due: Due, context: Context) -> Fact:
    return RecoveryStarted(
        role="scheduler", partition=context.partition, from_=from_seconds(due.nominal), to=context.horizon,
        tenant_rate=context.tenant_rate,
    )  # fmt: skip


def _last_of(fact: Fact, due: Due) -> int:
    """The last nominal instant that a decision is about."""
    span = getattr(fact, "range", None)
    return due.nominal if span is None else seconds(span.to) - 1


def _closed(state: ScheduleState, decided: int) -> Facts:
    """Phases that are over once this occurrence is decided: the mark moves to where the next one begins."""
    if failing.may_change(state):
        return ()  # they end in the order of their instants, with the outcomes: see `_turn`
    following = timeline.first_after(state, decided)
    begun = [p.from_ for p in state.phases if p.from_ > decided and (following is None or p.from_ < following.nominal)]
    return (_moved(state, begun[-1]),) if begun else ()


def _moved(state: ScheduleState, until: int) -> MarkMoved:
    return MarkMoved(tenant=state.tenant, schedule=state.name, until=from_seconds(until))


# --- forgetting ---------------------------------------------------------------------------------------------------


def _forget(state: ScheduleState, context: Context) -> Facts:
    horizon_ms, history_seconds = context.horizon_ms, context.history_seconds
    at_ms = memory.forget_at_ms(state.memory)
    if at_ms is not None and at_ms <= horizon_ms:
        return (memory.forgetting("schedule", state.tenant, state.name, state.rows, horizon_ms),)
    at = _history_at(state, history_seconds)
    if at is None or at * SECOND_MS > horizon_ms:
        return ()
    until = ledger.forget_until(state, horizon_ms // SECOND_MS - history_seconds)
    fact = HistoryForgotten(
        of="schedule", tenant=state.tenant, name=state.name, ledger_until=from_seconds(until),
        versions_up_to=versions.forgettable(state, until),
    )  # fmt: skip
    return (fact,)


def _history_at(state: ScheduleState, history_seconds: int) -> int | None:
    """When the next decision or the next version is to be forgotten."""
    decisions = _sooner(ledger.forget_at(state, history_seconds), fills.forget_at(state.filled_from, history_seconds))
    return _sooner(decisions, versions.forget_at(state, history_seconds))
