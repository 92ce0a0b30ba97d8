"""How a run ended, from when that counts, and what it means for the occurrence that it is of."""

from __future__ import annotations

from scheduler import backfills, finishing, keys, ledger, reruns
from scheduler.instants import millis, seconds
from scheduler.links import judging
from scheduler.state import NO_SWEEP, Held, ScheduleState, changed, draft, finished, updated
from schemas.facts import BackfillFinished
from schemas.scheduling import OutcomeHeld, RunSettled


def held(state: ScheduleState, fact: OutcomeHeld) -> ScheduleState:
    """An outcome is known, and counts when what was due before it is decided."""
    known = Held(
        at_ms=millis(fact.appended_at), run_id=fact.run_id, outcome=fact.outcome,
        nominal=None if fact.nominal_time is None else seconds(fact.nominal_time),
        finished=None if fact.finished_at is None else seconds(fact.finished_at),
    )  # fmt: skip
    return changed(state, held=(*state.held, known))


def settled(state: ScheduleState, fact: RunSettled) -> ScheduleState:
    """A run is over."""
    state.rows.delete(keys.RUN + fact.run_id.encode())
    new = draft(state)
    new.open_runs -= 1
    if fact.failures is not None:
        new.failures = fact.failures if fact.failures.count else None
    if new.open_runs == 0:
        new.inquiry = NO_SWEEP
    if state.held:
        new.held = tuple(each for each in state.held if each.run_id != fact.run_id)
    if fact.backfill:
        backfills.evolve_settled(new, fact)
    elif fact.counted:
        new.active -= 1
        if state.blocker == fact.run_id:
            new.blocker = ""
    elif fact.nominal_time is not None:
        reruns.evolve_settled(new, fact)
    if fact.counted and fact.nominal_time is not None and not fact.backfill:
        new.segments = ledger.resolve(
            state.segments, state.rows, seconds(fact.nominal_time), outcome=fact.outcome.value
        )
    if fact.nominal_time is not None and state.links.intervals:
        nominal = seconds(fact.nominal_time)
        new.links = judging.moved(state, nominal, nominal, millis(fact.appended_at))
    if fact.next_from is not None and fact.nominal_time is not None:
        finishing.link(new, seconds(fact.nominal_time), seconds(fact.next_from))
    # Else what is due did not change, so what was computed about it is kept.
    return finished(new)


def backfill_over(state: ScheduleState, fact: BackfillFinished) -> ScheduleState:
    """What it did not come to stands as it stood before: whoever was told to wait for it is told so."""
    backfill = backfills.find(state, fact.backfill)
    state = backfills.evolve_finished(state, fact)
    assert backfill is not None, "it was under way"
    return updated(state, links=judging.moved(state, backfill.from_, backfill.to - 1, millis(fact.finished_at)))
