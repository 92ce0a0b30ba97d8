"""What is due when, across the phases of a schedule."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from scheduler import occurrences
from scheduler.instants import SECOND_MS
from scheduler.links.state import Awaits
from scheduler.plan import Plan
from scheduler.state import Phase, ScheduleState, Waiting

LAST_INSTANT = 253_370_764_800  # 9999-01-01: what comes later cannot be written as an instant


class Due(NamedTuple):
    """An occurrence and the phase it belongs to."""

    nominal: int
    phase: Phase
    ends: int | None  # the last second of the phase; None: it is the last one


class Stretch(NamedTuple):
    """A phase that has occurrences, and the seconds (after, until] of a question that fall into it."""

    plan: Plan
    after: int
    until: int


class Next(NamedTuple):
    """The first occurrence that is not decided, and when the clock jumps over a reading left out before it.

    It is decided at `at_ms`: at its nominal instant, or later by its jitter. One that is `taken` out is decided with
    its neighbours, when the last of them is due: a record a day and not one a second.
    """

    due: Due | None
    dropped_at: int | None
    at_ms: int = 0
    taken: occurrences.Taken | None = None


def next_event_ms(state: ScheduleState) -> int | None:
    """The instant of what is next."""
    due, dropped_at, at_ms, _ = upcoming(state)
    if due is None:
        return None
    return at_ms if dropped_at is None else dropped_at * SECOND_MS


def upcoming(state: ScheduleState) -> Next:
    """What is next; worked out once a state."""
    noted: Next | None = state.due
    if noted is None:
        due = first_after(state, state.decided_until)
        noted = Next(None, None) if due is None else _following(state, due)
        object.__setattr__(state, "due", noted)  # a note of what follows from the rest; the value does not change
    return noted


def _following(state: ScheduleState, due: Due) -> Next:
    plan = state.plans[due.phase.version]
    taken = None if due.phase.paused else plan.taken(due.nominal, LAST_INSTANT if due.ends is None else due.ends)
    at_ms = (due.nominal if taken is None else taken.last) * SECOND_MS
    if plan.jitter_ms and taken is None and not due.phase.paused:
        at_ms = _hastened(plan.due_ms(due.nominal), due)
    return Next(due, _first_dropped(state, due), at_ms, taken)


def _hastened(due_ms: int, due: Due) -> int:
    """A change of the schedule ends the waiting for a jitter: what comes under the next phase must not wait for it."""
    return due_ms if due.ends is None else min(due_ms, max(due.ends, due.nominal) * SECOND_MS)


def _first_dropped(state: ScheduleState, due: Due) -> int | None:
    plan = state.plans[due.phase.version]
    if not plan.drops or due.phase.paused:
        return None
    after = max(state.decided_until, due.phase.from_)
    reading = next(iter(occurrences.dropped(plan.trigger, after, due.nominal)), None)
    return None if reading is None or reading.at >= due.nominal else reading.at


def first_after(state: ScheduleState, after: int) -> Due | None:
    """The first occurrence after an instant at or behind the decided mark."""
    phases = state.phases
    last = len(phases) - 1
    for index, phase in enumerate(phases):
        ends = phases[index + 1].from_ if index < last else None
        if phase.deleted or (ends is not None and ends <= after) or state.used_up(phase.version):
            continue
        nominal = state.plans[phase.version].trigger.next_after(max(after, phase.from_))
        if nominal is not None and nominal < LAST_INSTANT and (ends is None or nominal <= ends):
            return Due(nominal, phase, ends)
    return None


def count(state: ScheduleState, after: int, until: int, limit: int) -> int:
    """How many occurrences in (after, until] may have runs, at most `limit`."""
    total = 0
    for plan, begins, ends in _stretches(state, after, until):
        total += plan.count(begins, ends, limit - total)
        if total >= limit:
            break
    return total


def stop_behind(state: ScheduleState, nominal: int) -> Phase | None:
    """The first pause or deletion behind an occurrence."""
    return stop_from(state, nominal * SECOND_MS)


def stop_from(state: ScheduleState, instant_ms: int) -> Phase | None:
    """The first pause or deletion at an instant or later."""
    for phase in state.phases:
        if phase.from_ms >= instant_ms and (phase.paused or phase.deleted):
            return phase
    return None


def stop_before_due(state: ScheduleState, due: Due, plan: Plan) -> Phase | None:
    """The pause or deletion that comes while an occurrence waits for its jitter."""
    if not plan.jitter_ms or due.phase.paused or due.ends is None:
        return None
    following = state.phases[state.phases.index(due.phase) + 1]
    stops = following.paused or following.deleted
    return following if stops and following.from_ms < plan.due_ms(due.nominal) else None


def stopped_at(state: ScheduleState, instant_ms: int) -> Phase | None:
    """The pause or deletion that is in force at an instant."""
    in_force = [phase for phase in state.phases if phase.from_ms <= instant_ms]
    last = in_force[-1] if in_force else None
    return last if last is not None and (last.paused or last.deleted) else None


def ends_waiting(phase: Phase, waiting: Waiting | None, backlog: Waiting | None, awaits: Awaits) -> bool:
    """Whether a pause or deletion still has to end somebody's waiting."""
    if not (phase.paused or phase.deleted):
        return False
    is_behind = waiting is not None and phase.from_ms >= waiting.nominal * SECOND_MS
    is_behind = is_behind or (awaits.count > 0 and phase.from_ms >= awaits.since_ms)
    return is_behind or (backlog is not None and phase.from_ms >= backlog.since_ms)


def quiet_until(state: ScheduleState, until_ms: int) -> bool:
    """Whether nothing is due between the decided mark and an instant."""
    due = upcoming(state).due
    return due is None or due.nominal * SECOND_MS > until_ms


def _phases(state: ScheduleState) -> Iterator[tuple[Phase, int | None]]:
    phases = state.phases
    for index, phase in enumerate(phases):
        yield phase, phases[index + 1].from_ if index + 1 < len(phases) else None


def _stretches(state: ScheduleState, after: int, until: int) -> Iterator[Stretch]:
    for phase, ends in _phases(state):
        begins, stops = max(after, phase.from_), until if ends is None else min(until, ends)
        if begins < stops and not phase.paused and not phase.deleted and not state.used_up(phase.version):
            yield Stretch(state.plans[phase.version], begins, stops)
