"""Which version decides, from when on, and up to where all is decided: what accepted changes make of the timeline."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from scheduler import failing, finishing, keys, plan, timeline, versions
from scheduler.instants import SECOND_MS, millis, seconds
from scheduler.links import judging
from scheduler.plan import Version
from scheduler.state import Cancelling, Phase, ScheduleState, changed, draft, finished, updated
from schemas import codec
from schemas.facts import ScheduleAccepted, ScheduleDeleted, SchedulePaused, ScheduleResumed
from schemas.scheduling import MarkMoved

if TYPE_CHECKING:
    from runtime.machine import Rows


def accepted(state: ScheduleState, fact: ScheduleAccepted) -> ScheduleState:
    """A version decides from its instant on."""
    version = Version(definition=fact.definition, effective_at=fact.effective_at, tz_version=fact.tz_version)
    row = codec.dump(version)
    if state.exists and fact.definition.get("on_update") == "cancel":
        state = _replaced(state, fact)
    if state.exists:
        state = updated(state, ended=versions.end(state, millis(fact.effective_at)))
    state = updated(state, links=judging.moved(state, judging.NOWHERE, judging.NOWHERE, millis(fact.accepted_at)))
    state.rows.put(versions.row(fact.version), row)
    plans = {**state.plans, fact.version: finishing.bound(plan.of_version(row, fact.subject), state.chain)}
    phase = Phase(from_ms=millis(fact.effective_at), version=fact.version, paused=state.paused)
    if state.paused:
        phase = replace(phase, since_ms=state.phases[-1].paused_ms)
    first = {} if state.phases else {"decided_until": max(state.decided_until, phase.from_)}
    first["counted_runs"] = state.counted_runs if _goes_on_counting(state, plans[fact.version]) else 0
    state = changed(state, plans=plans, version=fact.version, **first)
    return _with_phase(state, phase)


def _replaced(state: ScheduleState, fact: ScheduleAccepted) -> ScheduleState:
    """Runs of older versions that nobody has begun are to go; a deletion that wants all of them gone comes first."""
    known = state.cancelling
    if known is not None and known.before is None:
        return state
    cancelling = Cancelling(
        requested_ms=millis(fact.accepted_at), at_ms=millis(fact.effective_at), up_to=fact.version - 1,
        command_id=fact.command_id, source=fact.source, before=fact.version,
    )  # fmt: skip
    return changed(state, cancelling=cancelling)


def _goes_on_counting(state: ScheduleState, new: plan.Plan) -> bool:
    """Runs are counted from the first version that gives `max_runs` on, and anew after one that gives none."""
    before = state.plans.get(state.version)
    return state.exists and before is not None and before.max_runs is not None and new.max_runs is not None


def paused(state: ScheduleState, fact: SchedulePaused) -> ScheduleState:
    """From its instant on nothing has a run; a pause by failures may lie before changes that are known already."""
    phase = Phase(from_ms=millis(fact.effective_at), version=fact.version, paused=True)
    if fact.reason != failing.REASON:
        return _with_phase(state, phase)
    new = draft(state)
    new.phases, new.failures = failing.inserted(state.phases, phase), None
    new.effective_ms = max(state.effective_ms, phase.from_ms)
    return decided(new, state.decided_until)


def resumed(state: ScheduleState, fact: ScheduleResumed) -> ScheduleState:
    """From its instant on the last version decides again."""
    return _with_phase(state, Phase(from_ms=millis(fact.effective_at), version=state.version))


def deleted(state: ScheduleState, fact: ScheduleDeleted) -> ScheduleState:
    """From its instant on nothing is due; open runs go, if that was asked for."""
    if fact.runs == "cancel":
        cancelling = Cancelling(
            requested_ms=millis(fact.accepted_at), at_ms=millis(fact.effective_at), up_to=fact.version, by=fact.by,
            command_id=fact.command_id, source=fact.source,
        )  # fmt: skip
        state = changed(state, cancelling=cancelling)
    state = updated(
        state, skips=state.skips - _unskipped(state.rows, keys.number(keys.SKIP, seconds(fact.effective_at) + 1))
    )
    state = updated(state, ended=versions.end(state, millis(fact.effective_at)))
    return _with_phase(state, Phase(from_ms=millis(fact.effective_at), version=state.version, deleted=True))


def moved(state: ScheduleState, fact: MarkMoved) -> ScheduleState:
    """All up to an instant is decided."""
    return decided(draft(state), seconds(fact.until), None if fact.passed is None else millis(fact.passed))


def _with_phase(state: ScheduleState, phase: Phase) -> ScheduleState:
    new = draft(state)
    new.phases = (*state.phases, phase)
    new.effective_ms = phase.from_ms
    return decided(new, state.decided_until)


def decided(new: Any, until: int, passed_ms: int | None = None) -> ScheduleState:
    """The draft, finished, with the decided mark at `until`: without phases that are over and versions nobody needs.

    Where outcomes matter, a phase is over when those up to the instant of the next one are settled.
    """
    phases = new.phases
    until = max(until, new.decided_until)
    while len(phases) > 1 and phases[1].from_ <= until:
        if timeline.ends_waiting(phases[0], new.waiting, new.backlog, new.links.awaits):
            break
        if phases[1].from_ms > (passed_ms or until * SECOND_MS) and failing.may_change(new):
            break
        phases = phases[1:]
    may_have_old = phases is not new.phases or len(new.plans) > 1 or phases[0].deleted
    if new.skips:
        new.skips -= _unskipped(new.rows, keys.SKIP, keys.number(keys.SKIP, until + 1))
    new.decided_until, new.phases, new.due = until, phases, None
    return _without_old_versions(finished(new)) if may_have_old else finished(new)


def _unskipped(rows: Rows, start: bytes, end: bytes = keys.end_of(keys.SKIP)) -> int:
    """Wishes to skip that are over, or whose schedule is deleted before them: how many there were."""
    gone = [row for row, _ in rows.scan(start, end)]
    for row in gone:
        rows.delete(row)
    return len(gone)


def _without_old_versions(state: ScheduleState) -> ScheduleState:
    first = versions.oldest_deciding(state)
    kept = {version: plan_ for version, plan_ in state.plans.items() if version >= first}
    return state if len(kept) == len(state.plans) else changed(state, plans=kept)
