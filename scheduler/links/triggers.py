"""What becomes of a trigger, the report of an upstream's run: a run, a reason for none, or a while of waiting.

It is decided at the instant at which it was known here, after what was due before. Overlap counts its runs and those
of occurrences together; a policy that buffers lets it wait for room, in its own line, behind occurrences that wait.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from scheduler import keys, overlap, runs, timeline
from scheduler.context import Context
from scheduler.instants import from_millis, millis
from scheduler.links import awaiting, edges, judging, lines
from scheduler.links.state import NO_LINKS, Links, Trigger, meets
from schemas.facts import Fact, OccurrenceSkipped, SkipReason, Upstream
from schemas.linking import TriggerDeferred, TriggerNoted, TriggerTaken, UpstreamFinished

if TYPE_CHECKING:
    from scheduler.plan import Plan
    from scheduler.state import Phase, ScheduleState

Step = Callable[["ScheduleState", Context], tuple[Fact, ...]]

CHAIN_MAX = 32  # schedules one behind the other: more is a circle that somebody has not drawn yet


def reported(state: ScheduleState, report: UpstreamFinished, appended_ms: int) -> tuple[Fact, ...]:
    """A report is noted, once, while it is one of an edge that there is."""
    edge = edges.find(state, report.schedule)
    place = (report.sequence, report.number)
    if edge is None or report.sequence < edge.since or place <= (edge.seen_sequence, edge.seen_number):
        return ()
    if edge.mode != "run" or not meets(edge.condition, report.outcome):
        return ()  # what the edge was before it was changed
    upstream = Upstream(
        schedule=report.schedule, run_id=report.run_id, outcome=report.outcome, finished_at=report.finished_at,
        nominal_time=report.nominal_time,
    )  # fmt: skip
    return (
        TriggerNoted(
            tenant=state.tenant, schedule=state.name, upstream=upstream, sequence=report.sequence,
            number=report.number, appended_at=from_millis(appended_ms), chain=report.chain,
        ),
    )  # fmt: skip


# --- when ---------------------------------------------------------------------------------------------------------


def may_go(state: ScheduleState) -> bool:
    """Whether the first one that waits can have its run now."""
    line = state.links.waiting
    return bool(line.count) and state.waiting is None and overlap.has_room(state, state.plans[line.version])


def stopped(state: ScheduleState) -> Phase | None:
    """The pause or deletion that ends the waiting of the first one."""
    line = state.links.waiting
    return timeline.stop_from(state, line.at_ms) if line.count else None


def next_ms(state: ScheduleState) -> int | None:
    """When something of the links is due: a question, a trigger, the end of one's waiting."""
    stop, other_stop = stopped(state), awaiting.stop_of(state)
    instants = (
        state.links.ask_ms,
        state.links.noted.at_ms if state.links.noted.count else None,
        None if stop is None else stop.from_ms,
        None if other_stop is None else other_stop.from_ms,
        state.links.awaits.due_ms,
        state.links.awaits.ask_ms,
        judging.ready_ms(state),
    )
    return min((instant for instant in instants if instant is not None), default=None)


def sooner(state: ScheduleState, instant_ms: int, step: Step | None) -> tuple[int, Step | None]:
    """The earliest thing, if it is one of these. A pause comes before the outcome that may have led to it."""
    if state.links is NO_LINKS:
        return instant_ms, step
    stop = stopped(state)
    if stop is not None and stop.from_ms <= instant_ms:
        instant_ms, step = stop.from_ms, drop
    if state.links.noted.count and state.links.noted.at_ms < instant_ms:
        instant_ms, step = state.links.noted.at_ms, decide
    if state.links.awaits.count:
        instant_ms, step = _of_awaited(state, instant_ms, step)
    judged_ms = judging.ready_ms(state)
    if judged_ms is not None and judged_ms < instant_ms:
        instant_ms, step = judged_ms, judging.judge
    return instant_ms, step


def _of_awaited(state: ScheduleState, instant_ms: int, step: Step | None) -> tuple[int, Step | None]:
    """The same with occurrences that wait for other schedules."""
    due_ms, stop = state.links.awaits.due_ms, awaiting.stop_of(state)
    if stop is not None and stop.from_ms <= instant_ms:
        instant_ms, step = stop.from_ms, awaiting.drop
    if due_ms is not None and due_ms < instant_ms:
        instant_ms, step = due_ms, awaiting.resolve
    return instant_ms, step


# --- what ---------------------------------------------------------------------------------------------------------


def decide(state: ScheduleState, context: Context) -> tuple[Fact, ...]:
    """The first one that was noted."""
    trigger = lines.first(state.links.noted, state.rows, keys.NOTED)
    phase = _phase_at(state, trigger.at_ms)
    return (_taken(state), *_decided(state, context, trigger, phase, state.plans.get(phase.version)))


def _decided(
    state: ScheduleState, context: Context, trigger: Trigger, phase: Phase, plan: Plan | None
) -> tuple[Fact, ...]:
    if plan is None or phase.deleted:
        return (_skipped(state, context, trigger, phase.version, SkipReason.ENDED),)
    if phase.paused:
        return (_skipped(state, context, trigger, phase.version, SkipReason.PAUSED),)
    if state.name in trigger.chain or len(trigger.chain) > CHAIN_MAX:
        detail = f"{len(trigger.chain)} schedules one behind the other: {' > '.join(trigger.chain)}"
        return (_skipped(state, context, trigger, phase.version, SkipReason.CYCLE, detail=detail),)
    if overlap.blocks(state, plan) or (plan.exclusive and state.links.waiting.count):
        return _blocked(state, context, trigger, phase.version, plan)
    return (_run(state, context, trigger, phase.version, plan),)


def release(state: ScheduleState, context: Context) -> tuple[Fact, ...]:
    """The first one that waits has its run."""
    trigger = lines.first(state.links.waiting, state.rows, keys.TRIGGER)
    plan = state.plans[trigger.version]
    return (_taken(state, waited=True), _run(state, context, trigger, trigger.version, plan))


def drop(state: ScheduleState, context: Context) -> tuple[Fact, ...]:
    """The schedule was paused or deleted while the first one waited."""
    trigger, stop = lines.first(state.links.waiting, state.rows, keys.TRIGGER), stopped(state)
    reason = SkipReason.ENDED if stop is not None and stop.deleted else SkipReason.PAUSED
    skipped = _skipped(state, context, trigger, trigger.version, reason, detail="was waiting for a run to end")
    return (_taken(state, waited=True), skipped)


def _phase_at(state: ScheduleState, at_ms: int) -> Phase:
    begun = [phase for phase in state.phases if phase.from_ms <= at_ms]
    return begun[-1] if begun else state.phases[0]


def _blocked(state: ScheduleState, context: Context, trigger: Trigger, version: int, plan: Plan) -> tuple[Fact, ...]:
    """A run is in the way: wait, where the policy has places for it, or do without."""
    blocker = overlap.blocker(state)
    if plan.overlap == "skip" or state.waiting_count + state.links.waiting.count >= plan.buffer:
        return (_skipped(state, context, trigger, version, SkipReason.OVERLAP, blocked_by=blocker),)
    note = f"overlap {plan.overlap}: makes room for what {trigger.upstream.run_id} leads to"
    first = not (state.waiting_count or state.links.waiting.count)
    asked = overlap.asked(state, context, plan, note) if first else ()
    return (
        *asked,
        TriggerDeferred(
            tenant=state.tenant, schedule=state.name, version=version, upstream=trigger.upstream,
            appended_at=from_millis(trigger.at_ms), decided_at=context.now, chain=trigger.chain, blocked_by=blocker,
        ),
    )  # fmt: skip


def _run(state: ScheduleState, context: Context, trigger: Trigger, version: int, plan: Plan) -> Fact:
    recipe = runs.recipe_of(plan, state.tenant, context.shared)
    if recipe is None:
        detail = f"there is no job {plan.job_name}"
        return _skipped(state, context, trigger, version, SkipReason.NO_JOB, detail=detail)
    return runs.of_upstream(state, context, version, recipe, trigger.upstream, trigger.chain)


def _skipped(
    state: ScheduleState, context: Context, trigger: Trigger, version: int, reason: SkipReason, *,
    blocked_by: str | None = None, detail: str = "",
) -> OccurrenceSkipped:  # fmt: skip
    plan = state.plans.get(version)
    return OccurrenceSkipped(
        tenant=state.tenant, schedule=state.name, version=version, reason=reason, decided_at=context.now,
        rule="" if plan is None else plan.rule, tz_version=context.tz_version, blocked_by=blocked_by, detail=detail,
        upstream=trigger.upstream,
    )  # fmt: skip


def _taken(state: ScheduleState, *, waited: bool = False) -> TriggerTaken:
    return TriggerTaken(tenant=state.tenant, schedule=state.name, waited=waited)


# --- what facts make of it ----------------------------------------------------------------------------------------


def noted(state: ScheduleState, fact: TriggerNoted) -> Links:
    """One more to decide; the edge has seen this report."""
    edge = edges.find(state, fact.upstream.schedule)
    assert edge is not None, "a report that is noted is one of an edge"
    seen = replace(edge, seen_sequence=fact.sequence, seen_number=fact.number)
    edges.write(state.rows, fact.upstream.schedule, seen)
    trigger = Trigger(upstream=fact.upstream, at_ms=millis(fact.appended_at), chain=fact.chain)
    return replace(state.links, noted=lines.append(state.links.noted, state.rows, keys.NOTED, trigger))


def deferred(state: ScheduleState, fact: TriggerDeferred) -> Links:
    """One more that waits."""
    trigger = Trigger(
        upstream=fact.upstream, at_ms=millis(fact.appended_at), chain=fact.chain, version=fact.version
    )  # fmt: skip
    return replace(state.links, waiting=lines.append(state.links.waiting, state.rows, keys.TRIGGER, trigger))


def taken(state: ScheduleState, fact: TriggerTaken) -> Links:
    """The first of either line is decided."""
    if fact.waited:
        return replace(state.links, waiting=lines.without_first(state.links.waiting, state.rows, keys.TRIGGER))
    return replace(state.links, noted=lines.without_first(state.links.noted, state.rows, keys.NOTED))
