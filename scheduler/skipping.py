"""Occurrences that get no run: one, a range of them, or a local reading that a policy left out."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice

from scheduler import keys, occurrences
from scheduler.context import Context
from scheduler.instants import DAY_SECONDS, from_seconds
from scheduler.plan import Plan
from scheduler.state import Phase, ScheduleState
from scheduler.timeline import Due
from schemas import codec
from schemas.facts import NominalRange, OccurrenceSkipped, SkipReason
from schemas.scheduling import SkipRequested

RANGE_SECONDS_MAX = DAY_SECONDS  # contract: up to a day a record
DETAIL_CHARACTERS_MAX = 400  # of what a person said: every reader of the decision carries it
DROPPED_MAX = 60  # readings of one gap that are named one by one: a gap of an hour, each minute


def one(
    state: ScheduleState,
    context: Context,
    nominal: int,
    version: int,
    reason: SkipReason,
    *,
    blocked_by: str | None = None,
    detail: str = "",
) -> OccurrenceSkipped:
    """One occurrence has no run."""
    return OccurrenceSkipped(
        tenant=state.tenant,
        schedule=state.name,
        version=version,
        reason=reason,
        decided_at=context.now,
        rule=state.plans[version].rule,
        tz_version=context.tz_version,
        nominal_time=from_seconds(nominal),
        blocked_by=blocked_by,
        detail=detail,
        used=state.plans[version].used,
    )


def request(state: ScheduleState, nominal: int) -> SkipRequested | None:
    """Who wants this occurrence to have no run, if somebody does."""
    row = state.rows.get(keys.number(keys.SKIP, nominal)) if state.skips else None
    return None if row is None else codec.load(SkipRequested, codec.parse(row))


def requested(state: ScheduleState, context: Context, due: Due) -> tuple[OccurrenceSkipped, ...]:
    """An occurrence that would have its run now, and for which somebody asked that it has none."""
    wish = request(state, due.nominal)
    if wish is None:
        return ()
    detail = ": ".join(filter(None, (f"by {wish.by}" if wish.by else "", wish.note)))[:DETAIL_CHARACTERS_MAX]
    return (one(state, context, due.nominal, due.phase.version, SkipReason.REQUESTED, detail=detail),)


def stretch(
    state: ScheduleState, context: Context, first: int, until: int, version: int, reason: SkipReason, detail: str = ""
) -> OccurrenceSkipped:
    """The occurrence `first` and those behind it up to `until` have no run; at most a day of them in one record."""
    trigger = state.plans[version].trigger
    until = min(until, first + RANGE_SECONDS_MAX - 1)
    others = occurrences.count_between(trigger, first, until, RANGE_SECONDS_MAX)
    fact = one(state, context, first, version, reason, detail=detail)
    if others == 0:
        return fact
    last = occurrences.last_between(trigger, first, until)
    assert last is not None, "what was counted is there"
    # The range ends right behind its last occurrence, so that it says where the next decision begins.
    span = NominalRange(from_=from_seconds(first), to=from_seconds(last + 1), count=others + 1)
    return _with_range(fact, span)


def excluded(
    state: ScheduleState, context: Context, due: Due, taken: occurrences.Taken,
    reason: SkipReason = SkipReason.EXCLUDED,
) -> OccurrenceSkipped:  # fmt: skip
    """Neighbouring occurrences that rules take out, and which rules do."""
    fact = one(state, context, due.nominal, due.phase.version, reason, detail=taken.quoted)
    if taken.count == 1:
        return fact
    first, behind = from_seconds(due.nominal), from_seconds(taken.last + 1)
    return _with_range(fact, NominalRange(from_=first, to=behind, count=taken.count))


def dropped(
    state: ScheduleState, context: Context, phase: Phase, after: int, until: int
) -> Iterator[OccurrenceSkipped]:
    """Local readings in (after, until] that the version's gap and fold policies left out."""
    plan = state.plans[phase.version]
    if phase.paused or not plan.drops:
        return
    found = list(islice(occurrences.dropped(plan.trigger, max(after, phase.from_), until), DROPPED_MAX + 1))
    for reading in found[:DROPPED_MAX]:
        more = len(found) > DROPPED_MAX and reading is found[DROPPED_MAX - 1]
        yield _reading(state, context, phase.version, plan, reading, "and later ones" if more else "")


def _reading(
    state: ScheduleState, context: Context, version: int, plan: Plan, reading: occurrences.Dropped, detail: str
) -> OccurrenceSkipped:
    return OccurrenceSkipped(
        tenant=state.tenant,
        schedule=state.name,
        version=version,
        reason=SkipReason(reading.reason),
        decided_at=context.now,
        rule=plan.rule,
        tz_version=context.tz_version,
        local_time=datetime.fromtimestamp(reading.local_reading, UTC).isoformat()[:19],
        detail=detail,
    )


def _with_range(fact: OccurrenceSkipped, span: NominalRange) -> OccurrenceSkipped:
    return OccurrenceSkipped(
        tenant=fact.tenant,
        schedule=fact.schedule,
        version=fact.version,
        reason=fact.reason,
        decided_at=fact.decided_at,
        rule=fact.rule,
        tz_version=fact.tz_version,
        range=span,
        detail=fact.detail,
        used=fact.used,
    )
