"""What became of an occurrence: it has its run, none, or a place among those that wait, who move up as others leave."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from scheduler import backfills, finishing, keys, ledger, pacing, reruns, sweeps
from scheduler.evolving import phases
from scheduler.instants import millis, seconds
from scheduler.ledger import CREATED, SKIPPED, WAITS
from scheduler.links import awaiting, judging, triggers
from scheduler.state import ScheduleState, Segment, Sweep, Waiting, changed, draft, finished, updated
from schemas import codec
from schemas.facts import Cause, DeferReason, OccurrenceDeferred, OccurrenceSkipped, RunCreated
from schemas.linking import TriggerTaken
from schemas.scheduling import HoldQuestioned, OccurrencePaced, SkipRequested


def created(state: ScheduleState, fact: RunCreated) -> ScheduleState:
    """A run is open, and the occurrence that it is of is decided."""
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


def skipped(state: ScheduleState, fact: OccurrenceSkipped) -> ScheduleState:
    """An occurrence, or a range of them, has no run."""
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


def deferred(state: ScheduleState, fact: OccurrenceDeferred) -> ScheduleState:
    """An occurrence waits, or goes on to wait for something else."""
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
    return phases.decided(new, new.decided_until)


def _into_backlog(new: Any, fact: OccurrenceDeferred, nominal: int) -> ScheduleState:
    place = pacing.entered(fact, nominal)
    if new.backlog is not None and new.backlog.nominal == nominal:
        if place.frozen and not new.backlog.moves_others:
            new.paced_ms = None  # turns that were given behind it are none any more; its own has come
        new.backlog = replace(place, moved=not place.frozen)  # it stays there, for something else
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
    return phases.decided(new, new.decided_until)


def _entered(new: Any, segment: Segment) -> ScheduleState:
    """The draft, finished, with a newly decided occurrence, or a range of them."""
    new.segments, new.spilled_to = ledger.spill(new, ledger.append(new.segments, segment))
    new.last_nominal = segment.to
    return phases.decided(new, segment.to)


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
    return phases.decided(new, new.decided_until)


def skip_requested(state: ScheduleState, fact: SkipRequested) -> ScheduleState:
    """An occurrence to come is to have no run."""
    state.rows.put(keys.number(keys.SKIP, seconds(fact.nominal_time)), codec.dump(fact))
    return updated(state, skips=state.skips + 1)


def hold_questioned(state: ScheduleState, fact: HoldQuestioned) -> ScheduleState:
    """What freezes hold is looked at from then on. Of the backlog it is the first one that is asked."""
    at_ms = millis(fact.at)
    first, backlog = (
        replace(each, release_ms=min(each.release_ms, at_ms)) if each is not None and each.frozen else each
        for each in (state.waiting, state.backlog)
    )
    return changed(state, waiting=first, backlog=backlog, links=awaiting.questioned(state, at_ms))


def paced(state: ScheduleState, fact: OccurrencePaced) -> ScheduleState:
    """A turn is given away."""
    return updated(state, paced_ms=millis(fact.release_at))


def trigger_taken(state: ScheduleState, fact: TriggerTaken) -> ScheduleState:
    """What a run of an upstream leads to is decided."""
    new = draft(state)
    new.links = triggers.taken(state, fact)
    return phases.decided(new, state.decided_until)
