"""What facts make of a schedule's state: one table, from the kind of fact to what it does.

Nothing here looks at a trigger or at the time. A fact says all that matters, so the same facts make the same state
under any version of the code, of the tz database and of the moment.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from scheduler import (
    backfills,
    delays,
    failing,
    fills,
    finishing,
    keys,
    ledger,
    memory,
    pacing,
    plan,
    reruns,
    sweeps,
    timeline,
    versions,
)
from scheduler.instants import SECOND_MS, millis, seconds
from scheduler.ledger import CREATED, SKIPPED, WAITS
from scheduler.links import awaiting, folding, judging, triggers
from scheduler.plan import Version
from scheduler.state import (
    NO_SWEEP,
    Cancelling,
    Held,
    Phase,
    ScheduleState,
    Segment,
    Sweep,
    Waiting,
    changed,
    draft,
    finished,
    updated,
)
from schemas import codec
from schemas.facts import (
    BackfillFinished,
    BackfillProgressed,
    BackfillStarted,
    Cause,
    DeferReason,
    Fact,
    OccurrenceDeferred,
    OccurrenceSkipped,
    RunCancelRequested,
    RunCreated,
    ScheduleAccepted,
    ScheduleDeleted,
    SchedulePaused,
    ScheduleResumed,
)
from schemas.internal import RunInquired
from schemas.linking import TriggerTaken
from schemas.scheduling import (
    BackfillStepped,
    CatalogAwaited,
    CommandDelayed,
    CommandRemembered,
    CommandTaken,
    HistoryForgotten,
    HoldQuestioned,
    MarkMoved,
    OccurrencePaced,
    OutcomeHeld,
    RunSettled,
    RunsSwept,
    SkipRequested,
)

if TYPE_CHECKING:
    from runtime.machine import Rows


def evolve(state: ScheduleState, fact: Fact) -> ScheduleState:
    """The state after a fact; a fact that is not in the table is an error of ours."""
    return EVOLUTIONS[type(fact)](state, fact)


# --- the timeline -------------------------------------------------------------------------------------------------


def _accepted(state: ScheduleState, fact: ScheduleAccepted) -> ScheduleState:
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


def _paused(state: ScheduleState, fact: SchedulePaused) -> ScheduleState:
    phase = Phase(from_ms=millis(fact.effective_at), version=fact.version, paused=True)
    if fact.reason != failing.REASON:
        return _with_phase(state, phase)
    new = draft(state)
    new.phases, new.failures = failing.inserted(state.phases, phase), None
    new.effective_ms = max(state.effective_ms, phase.from_ms)
    return _decided(new, state.decided_until)


def _resumed(state: ScheduleState, fact: ScheduleResumed) -> ScheduleState:
    return _with_phase(state, Phase(from_ms=millis(fact.effective_at), version=state.version))


def _deleted(state: ScheduleState, fact: ScheduleDeleted) -> ScheduleState:
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


def _moved(state: ScheduleState, fact: MarkMoved) -> ScheduleState:
    return _decided(draft(state), seconds(fact.until), None if fact.passed is None else millis(fact.passed))


def _with_phase(state: ScheduleState, phase: Phase) -> ScheduleState:
    new = draft(state)
    new.phases = (*state.phases, phase)
    new.effective_ms = phase.from_ms
    return _decided(new, state.decided_until)


def _decided(new: Any, until: int, passed_ms: int | None = None) -> ScheduleState:
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


# --- occurrences --------------------------------------------------------------------------------------------------


def _created(state: ScheduleState, fact: RunCreated) -> ScheduleState:
    state.rows.put(keys.RUN + fact.run_id.encode(), codec.dump(fact))
    inquiry = sweeps.with_another(state.inquiry, millis(fact.created_at) + sweeps.FIRST_MS)
    if fact.cause is Cause.BACKFILL:
        return _beside(state, fact, inquiry, backfills.evolve_created)
    if fact.cause is Cause.DEPENDENCY:
        blocker = state.blocker if state.active else fact.run_id
        return changed(state, open_runs=state.open_runs + 1, inquiry=inquiry, active=state.active + 1, blocker=blocker)
    if fact.cause is Cause.RERUN:
        return _beside(state, fact, inquiry, reruns.evolve_created)
    if fact.nominal_time is None or fact.cause is Cause.MANUAL:
        return changed(state, open_runs=state.open_runs + 1, inquiry=inquiry)
    new = draft(state)
    new.open_runs += 1
    new.inquiry = inquiry
    if not new.active:
        new.blocker = fact.run_id
    new.active += 1
    decided_by = state.plans.get(fact.version)
    if decided_by is not None and decided_by.max_runs is not None:
        new.counted_runs += 1
    nominal = seconds(fact.nominal_time)
    if decided_by is not None and decided_by.after_finish is not None:
        finishing.link(new, nominal, None)
    if awaiting.holds(state, nominal):
        return _awaited_all(new, nominal, decision=CREATED)
    if state.waiting is not None and state.waiting.nominal == nominal:
        return _next_waiting(new, nominal, decision=CREATED)
    if state.backlog is not None and state.backlog.nominal == nominal:
        return _next_paced(new, nominal, decision=CREATED)
    return _entered(new, Segment(from_=nominal, to=nominal, count=1, version=fact.version))


def _beside(
    state: ScheduleState, fact: RunCreated, inquiry: Sweep, noted: Callable[[Any, RunCreated], None]
) -> ScheduleState:  # fmt: skip
    """A run beside the schedule's own: it decides no occurrence and is in nobody's way."""
    new = draft(state)
    new.open_runs += 1
    new.inquiry = inquiry
    noted(new, fact)
    return finished(new)


def _skipped(state: ScheduleState, fact: OccurrenceSkipped) -> ScheduleState:
    if fact.range is not None:
        first, last, count = seconds(fact.range.from_), seconds(fact.range.to) - 1, fact.range.count
    elif fact.nominal_time is not None:
        first = last = seconds(fact.nominal_time)
        count = 1
    else:
        return state  # a local reading that is no occurrence
    new = draft(state)
    decided_by = state.plans.get(fact.version)
    if decided_by is not None and decided_by.after_finish is not None:
        finishing.link(new, last, last)
    new.links = judging.moved(state, first, last)
    if awaiting.holds(state, first):
        return _awaited_all(new, first, decision=SKIPPED, reason=fact.reason.value)
    if state.waiting is not None and state.waiting.nominal == first:
        return _next_waiting(new, first, decision=SKIPPED, reason=fact.reason.value)
    if state.backlog is not None and state.backlog.nominal == first:
        return _next_paced(new, first, decision=SKIPPED, reason=fact.reason.value)
    segment = Segment(
        from_=first, to=last, count=count, version=fact.version, decision=SKIPPED, reason=fact.reason.value
    )
    return _entered(new, segment)


def _deferred(state: ScheduleState, fact: OccurrenceDeferred) -> ScheduleState:
    nominal = seconds(fact.nominal_time)
    until_ms = None if fact.until is None else millis(fact.until)
    waiting = Waiting(nominal=nominal, version=fact.version, cause=fact.cause, until_ms=until_ms)
    new = draft(state)
    if state.plans[fact.version].after_finish is not None:
        finishing.link(new, nominal, None)
    if fact.reason is DeferReason.FROZEN and awaiting.holds(state, nominal):
        new.links = awaiting.frozen(new, fact)
        return finished(new)
    if fact.reason is DeferReason.FROZEN and state.waiting is not None and state.waiting.nominal == nominal:
        new.waiting = replace(pacing.entered(fact, nominal), since_ms=state.waiting.since_ms)
        new.due = None
        return finished(new)
    if fact.release_at is not None:
        return _into_backlog(new, fact, nominal)
    if fact.reason is DeferReason.WAITING:
        return _begun_to_await(new, fact, nominal)
    if awaiting.holds(state, nominal):
        return _next_in_line(new, waiting)
    new.waiting_count += 1
    if state.waiting is None:
        new.waiting = waiting
    else:
        state.rows.put(keys.number(keys.WAITING, nominal), codec.dump(waiting))
    return _entered(new, Segment(from_=nominal, to=nominal, count=1, version=fact.version, decision=WAITS))


def _begun_to_await(new: Any, fact: OccurrenceDeferred, nominal: int) -> ScheduleState:
    """The draft, finished, with an occurrence that waits for other schedules; of one that does, more is known now."""
    if awaiting.holds(new, nominal):
        return finished(new)
    new.links = awaiting.deferred(new, fact)
    return _entered(new, Segment(from_=nominal, to=nominal, count=1, version=fact.version, decision=WAITS))


def _next_in_line(new: Any, waiting: Waiting) -> ScheduleState:
    """The draft, finished, with an occurrence that waits for a run now and for other schedules no longer."""
    new.waiting_count += 1
    if new.waiting is None:
        new.waiting = waiting
    else:
        new.rows.put(keys.number(keys.WAITING, waiting.nominal), codec.dump(waiting))
    return _awaited_all(new, waiting.nominal)


def _awaited_all(new: Any, nominal: int, **fate: str) -> ScheduleState:
    """The draft, finished, when an occurrence waits for other schedules no longer."""
    new.links = awaiting.left(new, nominal)
    if fate:
        new.segments = ledger.resolve(new.segments, new.rows, nominal, **fate)
    return _decided(new, new.decided_until)


def _into_backlog(new: Any, fact: OccurrenceDeferred, nominal: int) -> ScheduleState:
    place = pacing.entered(fact, nominal)
    if new.backlog is not None and new.backlog.nominal == nominal:
        new.backlog = place  # it stays there, for something else
        return finished(new)
    new.backlog_count += 1
    if new.backlog is None:
        new.backlog = place
    else:
        new.rows.put(keys.number(keys.PACED, nominal), codec.dump(place))
    return _entered(new, Segment(from_=nominal, to=nominal, count=1, version=fact.version, decision=WAITS))


def _next_paced(new: Any, nominal: int, **fate: str) -> ScheduleState:
    """The draft, finished, when the first one of the backlog has its fate and the one behind it moves up."""
    new.backlog = pacing.next_in_line(new)
    new.backlog_count -= 1
    new.segments = ledger.resolve(new.segments, new.rows, nominal, **fate)
    return _decided(new, new.decided_until)


def _entered(new: Any, segment: Segment) -> ScheduleState:
    """The draft, finished, with a newly decided occurrence, or a range of them."""
    new.segments, new.spilled_to = ledger.spill(new, ledger.append(new.segments, segment))
    new.last_nominal = segment.to
    return _decided(new, segment.to)


def _next_waiting(new: Any, nominal: int, **fate: str) -> ScheduleState:
    """The draft, finished, when the first waiting occurrence has its fate and the one behind it moves up."""
    rows = new.rows
    following = None
    if new.waiting_count > 1:
        row, value = next(iter(rows.scan(keys.WAITING, keys.end_of(keys.WAITING))))
        following = codec.load(Waiting, codec.parse(value))
        rows.delete(row)
    new.waiting = following
    new.waiting_count -= 1
    new.segments = ledger.resolve(new.segments, rows, nominal, **fate)
    return _decided(new, new.decided_until)


def _skip_requested(state: ScheduleState, fact: SkipRequested) -> ScheduleState:
    state.rows.put(keys.number(keys.SKIP, seconds(fact.nominal_time)), codec.dump(fact))
    return updated(state, skips=state.skips + 1)


def _hold_questioned(state: ScheduleState, fact: HoldQuestioned) -> ScheduleState:
    """What freezes hold is looked at from then on. Of the backlog it is the first one that is asked."""
    at_ms = millis(fact.at)
    first, backlog = (
        replace(each, release_ms=min(each.release_ms, at_ms)) if each is not None and each.frozen else each
        for each in (state.waiting, state.backlog)
    )
    return changed(state, waiting=first, backlog=backlog, links=awaiting.questioned(state, at_ms))


# --- runs ---------------------------------------------------------------------------------------------------------


def _paced(state: ScheduleState, fact: OccurrencePaced) -> ScheduleState:
    return updated(state, paced_ms=millis(fact.release_at))


def _held(state: ScheduleState, fact: OutcomeHeld) -> ScheduleState:
    held = Held(
        at_ms=millis(fact.appended_at), run_id=fact.run_id, outcome=fact.outcome,
        nominal=None if fact.nominal_time is None else seconds(fact.nominal_time),
        finished=None if fact.finished_at is None else seconds(fact.finished_at),
    )  # fmt: skip
    return changed(state, held=(*state.held, held))


def _settled(state: ScheduleState, fact: RunSettled) -> ScheduleState:
    state.rows.delete(keys.RUN + fact.run_id.encode())
    new = draft(state)
    new.open_runs -= 1
    if fact.failures is not None:
        new.failures = fact.failures if fact.failures.count else None
    if new.open_runs == 0:
        new.inquiry = NO_SWEEP
    if state.held:
        new.held = tuple(held for held in state.held if held.run_id != fact.run_id)
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


# --- commands -----------------------------------------------------------------------------------------------------


def _remembered(state: ScheduleState, fact: CommandRemembered) -> ScheduleState:
    source_version = state.source_version if fact.source_version is None else fact.source_version
    return updated(state, memory=memory.remember(state.memory, state.rows, fact), source_version=source_version)


def _forgotten(state: ScheduleState, fact: HistoryForgotten) -> ScheduleState:
    if fact.commands_until is not None:
        state = updated(state, memory=memory.forget(state.memory, state.rows, fact.commands_until))
    if fact.ledger_until is not None:
        segments, spilled_to = ledger.forget(state, seconds(fact.ledger_until))
        filled_from = fills.forget(state.rows, seconds(fact.ledger_until))
        state = updated(state, segments=segments, spilled_to=spilled_to, filled_from=filled_from)
    if fact.versions_up_to is not None:
        state = updated(state, ended=versions.forget(state, fact.versions_up_to))
    return state


def _unchanged(state: ScheduleState, _fact: RunInquired | RunCancelRequested) -> ScheduleState:
    return state


def _backfill_over(state: ScheduleState, fact: BackfillFinished) -> ScheduleState:
    """What it did not come to stands as it stood before: whoever was told to wait for it is told so."""
    backfill = backfills.find(state, fact.backfill)
    state = backfills.evolve_finished(state, fact)
    assert backfill is not None, "it was under way"
    return updated(state, links=judging.moved(state, backfill.from_, backfill.to - 1, millis(fact.finished_at)))


def _trigger_taken(state: ScheduleState, fact: TriggerTaken) -> ScheduleState:
    new = draft(state)
    new.links = triggers.taken(state, fact)
    return _decided(new, state.decided_until)


EVOLUTIONS: Mapping[type[Fact], Callable[[ScheduleState, Any], ScheduleState]] = {
    ScheduleAccepted: _accepted,
    SchedulePaused: _paused,
    ScheduleResumed: _resumed,
    ScheduleDeleted: _deleted,
    MarkMoved: _moved,
    RunCreated: _created,
    OccurrenceSkipped: _skipped,
    OccurrenceDeferred: _deferred,
    SkipRequested: _skip_requested,
    OccurrencePaced: _paced,
    HoldQuestioned: _hold_questioned,
    BackfillStarted: backfills.evolve_started,
    BackfillStepped: backfills.evolve_stepped,
    BackfillProgressed: backfills.evolve_progressed,
    BackfillFinished: _backfill_over,
    OutcomeHeld: _held,
    RunSettled: _settled,
    RunsSwept: sweeps.evolve_swept,
    RunInquired: _unchanged,
    RunCancelRequested: _unchanged,
    CommandRemembered: _remembered,
    CommandDelayed: delays.evolve_delayed,
    CatalogAwaited: delays.evolve_awaited,
    CommandTaken: delays.evolve_taken,
    HistoryForgotten: _forgotten,
    TriggerTaken: _trigger_taken,
    **folding.EVOLUTIONS,
}
