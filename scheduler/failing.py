"""`pause_on_failure`: so many failed runs in a row, and the schedule pauses itself.

Counted are runs of occurrences (on time or caught up) of the version in force, in the order of their outcomes. One
that failed, timed out, was dead-lettered or expired is one more; a success begins anew; a cancelled one says nothing,
nor does what ends while the schedule is paused. Manual runs, backfills and reruns are not counted: a person looks at
those. A new version begins anew, because an edit is how a schedule is mended; and so does the pause itself.

The pause takes effect at the instant of the last outcome, among the changes that people made, and is written down
before that outcome counts as settled: what waited for this run to end is dropped, not released by it.
"""

from __future__ import annotations

from dataclasses import replace

from scheduler import sweeps, timeline
from scheduler.context import Context
from scheduler.instants import from_millis
from scheduler.state import Held, Phase, ScheduleState
from schemas.facts import Cause, Outcome, SchedulePaused
from schemas.scheduling import Failures

BY = "tidewheel"  # the author of what nobody asked for by name
REASON = "failures"
NAMED_MAX = 10  # failed runs that the state and the fact name: the last ones
FAILED = frozenset({Outcome.FAILED, Outcome.TIMED_OUT, Outcome.DEAD_LETTERED, Outcome.EXPIRED})
COUNTED = frozenset({Cause.SCHEDULE, Cause.CATCH_UP, Cause.DEPENDENCY})


def heeds_outcomes(state: ScheduleState) -> bool:
    """Whether outcomes change the schedule itself, so that they have to be taken in their order with all else.

    An interval may count from the end of a run again whose version is over by then, or whose schedule was deleted.
    """
    is_counted_from = state.chain is not None and state.chain.since is None
    return is_counted_from or any(plan.heeds_outcomes for plan in state.plans.values())


def may_change(state: ScheduleState) -> bool:
    """Whether what is in force is still asked: by an outcome that may change it, or by a run of another schedule."""
    return (state.open_runs > 0 and heeds_outcomes(state)) or any(plan.follows for plan in state.plans.values())


def counted(state: ScheduleState, held: Held) -> Failures | None:
    """How many have failed in a row with this outcome; None where it changes nothing about that."""
    phase = in_force(state, held.at_ms)
    if phase is None or phase.paused or phase.deleted or state.plans[phase.version].failures_max is None:
        return None
    if held.outcome not in FAILED and held.outcome is not Outcome.SUCCEEDED:
        return None
    run = sweeps.run_row(state, held.run_id)
    if run is None or run.version != phase.version or run.cause not in COUNTED:
        return None
    before = state.failures
    if before is None or before.version != phase.version:
        before = Failures(version=phase.version, count=0)
    if held.outcome is Outcome.SUCCEEDED:
        return replace(before, count=0, runs=()) if before.count else None
    return replace(before, count=before.count + 1, runs=(*before.runs, held.run_id)[-NAMED_MAX:])


def pause(state: ScheduleState, context: Context, held: Held, failures: Failures | None) -> SchedulePaused | None:
    """The schedule pauses itself, if these are as many as its version allows."""
    if failures is None or failures.count < (state.plans[failures.version].failures_max or failures.count + 1):
        return None
    times = f"{failures.count} runs in a row" if failures.count > 1 else "a run"
    return SchedulePaused(
        tenant=state.tenant, schedule=state.name, version=failures.version, effective_at=from_millis(held.at_ms),
        accepted_at=context.now, note=f"{times} failed, the last one {held.run_id}: {held.outcome.value}", by=BY,
        reason=REASON, failures=failures.count, failed_runs=failures.runs,
    )  # fmt: skip


def in_force(state: ScheduleState, at_ms: int) -> Phase | None:
    """The phase that an instant belongs to."""
    return next((phase for phase in reversed(state.phases) if phase.from_ms <= at_ms), None)


def inserted(phases: tuple[Phase, ...], own: Phase) -> tuple[Phase, ...]:
    """The phases with a pause of the schedule's own among them, which later versions take over until somebody resumes.

    A phase with the version of the one before it is what a person said: resumed, paused or deleted. One with a newer
    version says nothing about pausing, unless it is that of a schedule created anew.
    """
    earlier = [phase for phase in phases if phase.from_ms <= own.from_ms]
    result = [*earlier, own]
    last, inherits = own, True
    for phase in phases[len(earlier) :]:
        inherits = inherits and phase.version > last.version and not last.deleted
        last = replace(phase, paused=True, since_ms=own.from_ms) if inherits else phase
        result.append(last)
    return tuple(result)


def turn_ms(state: ScheduleState) -> int | None:
    """When the next phase begins, where outcomes are settled in one order with that."""
    phases = state.phases
    if len(phases) < 2 or not heeds_outcomes(state):  # noqa: PLR2004 -- one is in force, another one is to come
        return None
    if timeline.ends_waiting(phases[0], state.waiting, state.backlog, state.links.awaits):
        return None
    return phases[1].from_ms
