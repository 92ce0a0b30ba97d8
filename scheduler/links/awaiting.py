"""Occurrences that wait for all that other schedules were due in a window, `mode: interval`.

Each asks the owners of its upstreams and stands in a row until every answer is yes, or one leads elsewhere: then it
goes on as if it had become due at that instant, or is skipped and says for which upstream. An answer counts from when
it was appended to the log, and a deadline at its instant, so it does not matter when this process came to look.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from scheduler import holding, keys, occurrences, overlap, runs, skipping, sweeps, timeline
from scheduler.context import Context
from scheduler.instants import DAY_SECONDS, from_millis, from_seconds, millis, seconds, text
from scheduler.links import edges, windows
from scheduler.links.state import NO_AWAITS, Awaited, Awaits, Links, Standing
from scheduler.links.windows import Fate, Way, Window
from scheduler.timeline import Due
from schemas import codec, durations
from schemas.facts import Cause, DeferReason, Fact, OccurrenceDeferred, SkipReason
from schemas.faults import Fault
from schemas.linking import EdgeWithdrawn, WindowAsked, WindowHeard, WindowJudged

if TYPE_CHECKING:
    from runtime.machine import Rows
    from scheduler.plan import Plan
    from scheduler.state import Phase, ScheduleState
    from schemas.after import After

AWAITED_MAX = 100  # of one schedule: each change looks at all of them; an hourly one may wait for four days
TOO_MANY = f"{AWAITED_MAX} occurrences wait for upstreams already"
LOOK_BACKS = (3600, DAY_SECONDS, 32 * DAY_SECONDS, 366 * DAY_SECONDS)  # for the occurrence before, which is near
UPSTREAMS_SHOWN_MAX = 3
SAID = frozenset({Fate.UNMET, Fate.UNKNOWN})  # what people should know of while it waits
MILLISECOND, SECOND = timedelta(milliseconds=1), timedelta(seconds=1)

Facts = tuple[Fact, ...]


def begin(state: ScheduleState, context: Context, due: Due, cause: Cause, since_ms: int) -> Facts:
    """What is due asks its upstreams and waits. The decision is last."""
    version = due.phase.version
    if state.links.awaits.count >= AWAITED_MAX:
        return (skipping.one(state, context, due.nominal, version, SkipReason.UPSTREAM, detail=TOO_MANY),)
    awaited = Awaited(nominal=due.nominal, version=version, cause=cause, since_ms=since_ms, asked_ms=0)
    return (*_questions(state, context, awaited), _deferred(state, context, awaited))


def heard(state: ScheduleState, answer: WindowJudged, appended_ms: int, context: Context) -> Facts:
    """An answer to what is still asked; what is certain already stays so."""
    awaited = find(state.rows, seconds(answer.nominal_time)) if state.links.awaits.count else None
    if awaited is None:
        return ()
    entry = _entry(state.plans[awaited.version], answer.schedule)
    known = _standing(awaited, answer.schedule)
    if entry is None or not _may_hear(awaited, entry, appended_ms):
        return ()
    if (known.fate, known.instant) == (answer.fate, _instant(answer)):
        return ()
    word = WindowHeard(
        tenant=state.tenant, schedule=state.name, upstream=answer.schedule, nominal_time=answer.nominal_time,
        fate=answer.fate, appended_at=from_millis(appended_ms), instant=answer.instant, detail=answer.detail,
    )  # fmt: skip
    if word.fate not in SAID or _is_certain(_standing(_with(awaited, word), entry.schedule), entry):
        return (word,)
    return (word, _deferred(state, context, _with(awaited, word)))


def ask_again(state: ScheduleState, context: Context) -> Facts:
    """Those that have waited for so long ask those upstreams again that have not said yes."""
    return tuple(
        question
        for awaited in _rows(state.rows)
        if awaited.frozen_ms is None and _ask_ms(awaited) <= context.horizon_ms
        for question in _questions(state, context, awaited)
    )


# --- at its instant -----------------------------------------------------------------------------------------------


def stop_of(state: ScheduleState) -> Phase | None:
    """The pause or deletion that ends the waiting of the first one."""
    awaits = state.links.awaits
    return timeline.stop_from(state, awaits.since_ms) if awaits.count else None


def resolve(state: ScheduleState, context: Context) -> Facts:
    """The first one whose waiting is over goes on, or is skipped."""
    awaited = find(state.rows, state.links.awaits.due)
    assert awaited is not None, "what is noted stands in its row"
    plan = state.plans[awaited.version]
    way = _way(awaited, plan)
    if not way.goes:
        detail = _missing(state, awaited, way)
        return (skipping.one(state, context, awaited.nominal, awaited.version, SkipReason.UPSTREAM, detail=detail),)
    recipe = runs.recipe_of(plan, state.tenant, context.shared)
    if recipe is None:
        detail = f"there is no job {plan.job_name}"
        return (skipping.one(state, context, awaited.nominal, awaited.version, SkipReason.NO_JOB, detail=detail),)
    if (hold := holding.met(plan, context.horizon_ms)) is not None:
        fact = holding.deferred(
            state, context, awaited.nominal, awaited.version, hold, cause=awaited.cause, due_ms=awaited.since_ms
        )  # fmt: skip
        return (*holding.noted(state, context, hold), fact)
    cause = awaited.cause if awaited.frozen_ms is None else Cause.CATCH_UP
    if overlap.blocks(state, plan):
        return overlap.blocked(state, context, _due(state, awaited), plan, cause, _goes_ms(awaited, plan))
    run = runs.of_occurrence(state, context, awaited.nominal, awaited.version, recipe, cause, awaited.since_ms)
    return (replace(run, detail=_without(state, awaited, plan)),)


def drop(state: ScheduleState, context: Context) -> Facts:
    """The schedule was paused or deleted while the first one waited."""
    stop = stop_of(state)
    assert stop is not None, "asked at its instant"
    awaited = next(each for each in _rows(state.rows) if each.since_ms <= stop.from_ms)
    reason = SkipReason.ENDED if stop.deleted else SkipReason.PAUSED
    detail = "was waiting for other schedules"
    return (skipping.one(state, context, awaited.nominal, awaited.version, reason, detail=detail),)


def _due(state: ScheduleState, awaited: Awaited) -> Due:
    phase = replace(state.phases[0], version=awaited.version)
    return Due(nominal=awaited.nominal, phase=phase, ends=None)


def _way(awaited: Awaited, plan: Plan) -> Way:
    return windows.together(_way_of(awaited, entry) for entry in plan.intervals)


def _goes_ms(awaited: Awaited, plan: Plan) -> int:
    """When it goes there, or behind the freeze that defers it."""
    return max(_way(awaited, plan).at_ms, awaited.frozen_ms or 0)


def _way_of(awaited: Awaited, entry: After) -> Way:
    known = _standing(awaited, entry.schedule)
    return windows.way(
        entry.schedule, known.fate, known.at_ms, on_unmet=entry.on_unmet or "wait",
        deadline_ms=_deadline_ms(awaited, entry),
    )  # fmt: skip


def _deadline_ms(awaited: Awaited, entry: After) -> int:
    assert entry.deadline is not None, "an interval has one"
    return awaited.since_ms + entry.deadline // MILLISECOND


def _is_certain(known: Standing, entry: After) -> bool:
    return known.fate == Fate.MET or (known.fate == Fate.UNMET and entry.on_unmet != "wait")


def _standing(awaited: Awaited, upstream: str) -> Standing:
    nothing = Standing(upstream=upstream, fate="", at_ms=0)
    return next((each for each in awaited.heard if each.upstream == upstream), nothing)


def _instant(answer: WindowJudged) -> int | None:
    return None if answer.instant is None else seconds(answer.instant)


# --- words --------------------------------------------------------------------------------------------------------


def _questions(state: ScheduleState, context: Context, awaited: Awaited) -> Iterator[Fact]:
    plan = state.plans[awaited.version]
    for entry in plan.intervals:
        if _is_certain(_standing(awaited, entry.schedule), entry) or not edges.waits(state, entry.schedule):
            continue
        window = window_of(plan, entry, awaited.nominal)
        yield WindowAsked(
            tenant=state.tenant, schedule=state.name, upstream=entry.schedule,
            nominal_time=from_seconds(awaited.nominal), after=from_seconds(window.after),
            until=from_seconds(window.until), condition=entry.condition, once=entry.on_unmet != "wait",
            expires_at=from_millis(_deadline_ms(awaited, entry)), asked_at=context.now,
        )  # fmt: skip


def window_of(plan: Plan, entry: After, nominal: int) -> Window:
    """What an occurrence looks back on: so far, or as far as its own last one is away."""
    assert entry.offset is not None, "an interval has one"
    span = _own_interval(plan, nominal) if entry.span is None else entry.span // SECOND
    return windows.of(nominal, span, entry.offset // SECOND)


def beyond(plan: Plan, now: int, history: timedelta, pointer: str) -> Iterator[Fault]:
    """Windows of which nobody would know any more what was decided, when the last of those that wait is to know it."""
    first = plan.trigger.next_after(now)
    second = None if first is None else plan.trigger.next_after(first)
    for index, entry in enumerate(plan.intervals):
        assert entry.offset is not None, "an interval has one"
        assert entry.deadline is not None, "and a deadline"
        own = timedelta(seconds=_own_interval(plan, second or first or now)) if entry.span is None else entry.span
        if (reach := own - entry.offset + entry.deadline) > history:
            back, deadline, kept = map(durations.render, (reach, entry.deadline, history))
            message = f"looks back {back}, of which the deadline is {deadline}; decisions are kept for {kept}"
            remedy = "give a shorter one, or keep history for longer (retain_history)"
            yield Fault(pointer=f"{pointer}/{index}/span", code="range", message=message, remedy=remedy)


def _own_interval(plan: Plan, nominal: int) -> int:
    """From the occurrence before; where there is none, to the next one; else a day."""
    if plan.after_finish is not None:
        return plan.after_finish
    for back in LOOK_BACKS:
        before = occurrences.last_between(plan.trigger, nominal - back, nominal - 1)
        if before is not None:
            return nominal - before
    following = plan.trigger.next_after(nominal)
    return DAY_SECONDS if following is None else following - nominal


def _deferred(state: ScheduleState, context: Context, awaited: Awaited) -> OccurrenceDeferred:
    plan = state.plans[awaited.version]
    said = [_words(each) for each in awaited.heard if each.fate in SAID]
    detail = ("; ".join(said) or note(plan, awaited.nominal))[: skipping.DETAIL_CHARACTERS_MAX]
    return OccurrenceDeferred(
        tenant=state.tenant, schedule=state.name, version=awaited.version, nominal_time=from_seconds(awaited.nominal),
        reason=DeferReason.WAITING, decided_at=context.now, until=from_millis(_last_ms(awaited, plan)),
        cause=awaited.cause, rule=plan.rule, tz_version=context.tz_version, detail=detail, used=plan.used,
        since=from_millis(awaited.since_ms),
    )  # fmt: skip


def note(plan: Plan, nominal: int) -> str:
    """What an occurrence waits for: `waits for load from …, to …`, instants in (from, to]."""
    windows_ = (
        (entry.schedule, window_of(plan, entry, nominal)) for entry in plan.intervals[:UPSTREAMS_SHOWN_MAX]
    )  # fmt: skip
    said = [
        f"{name} in ({text(from_seconds(window.after))}, {text(from_seconds(window.until))}]"
        for name, window in windows_
    ]
    more = len(plan.intervals) - len(said)
    return f"waits for {', '.join([*said, *([f'{more} more'] if more else [])])}" if said else ""


def _last_ms(awaited: Awaited, plan: Plan) -> int:
    """When it waits no longer in any case."""
    return windows.together(
        windows.way(entry.schedule, "", 0, on_unmet="wait", deadline_ms=_deadline_ms(awaited, entry))
        for entry in plan.intervals
    ).at_ms


def _without(state: ScheduleState, awaited: Awaited, plan: Plan) -> str:
    """What was missing when it went on all the same."""
    ways = (_way_of(awaited, entry) for entry in plan.intervals)
    said = [_missing(state, awaited, way) for way in ways if _standing(awaited, way.upstream).fate != Fate.MET]
    return f"runs anyway: {'; '.join(said)}"[: skipping.DETAIL_CHARACTERS_MAX] if said else ""


def _missing(state: ScheduleState, awaited: Awaited, way: Way) -> str:
    """The upstream that it is skipped for, and what was missing."""
    known = _standing(awaited, way.upstream)
    edge = edges.find(state, way.upstream)
    if edge is not None and edge.refused:
        what = f"{way.upstream}: {edge.refused}"
    elif known.fate:
        what = _words(known)
    else:
        what = f"{way.upstream}: not everything in the window was decided"
    return f"{what}, by {text(from_millis(way.at_ms))}" if way.is_late else what


def _words(known: Standing) -> str:
    instant = "" if known.instant is None else f"{text(from_seconds(known.instant))} "
    return f"{known.upstream}: {instant}{known.detail}"


# --- rows ---------------------------------------------------------------------------------------------------------


def find(rows: Rows, nominal: int) -> Awaited | None:
    """An occurrence that waits."""
    row = rows.get(keys.number(keys.AWAITED, nominal))
    return None if row is None else codec.load(Awaited, codec.parse(row))


def holds(state: ScheduleState, nominal: int) -> bool:
    """Whether an occurrence waits here."""
    return bool(state.links.awaits.count) and state.rows.get(keys.number(keys.AWAITED, nominal)) is not None


def _rows(rows: Rows) -> Iterator[Awaited]:
    for _, value in rows.scan(keys.AWAITED, keys.end_of(keys.AWAITED)):
        yield codec.load(Awaited, codec.parse(value))


def _put(state: ScheduleState, awaited: Awaited) -> Links:
    state.rows.put(keys.number(keys.AWAITED, awaited.nominal), codec.dump(awaited))
    return _links(state)


def _links(state: ScheduleState) -> Links:
    """The links with what their rows come to."""
    found = list(_rows(state.rows))
    if not found:
        return replace(state.links, awaits=NO_AWAITS)
    due_ms, due = min((_goes_ms(each, state.plans[each.version]), each.nominal) for each in found)
    awaits = Awaits(
        count=len(found), since_ms=min(each.since_ms for each in found), version=min(each.version for each in found),
        due_ms=due_ms, due=due, ask_ms=min((_ask_ms(each) for each in found if each.frozen_ms is None), default=None),
    )  # fmt: skip
    return replace(state.links, awaits=awaits)


def _ask_ms(awaited: Awaited) -> int:
    """Ten minutes after the first time, then twice as long each time, at last every six hours."""
    return sweeps.next_inquiry_ms(awaited.since_ms, awaited.asked_ms)


# --- what facts make of it ----------------------------------------------------------------------------------------


def deferred(state: ScheduleState, fact: OccurrenceDeferred) -> Links:
    """One more that waits."""
    assert fact.since is not None, "it says since when it waits"
    awaited = Awaited(
        nominal=seconds(fact.nominal_time), version=fact.version, cause=fact.cause, since_ms=millis(fact.since),
        asked_ms=millis(fact.decided_at),
    )  # fmt: skip
    for entry in state.plans[fact.version].intervals:
        if not edges.waits(state, entry.schedule):
            awaited = _heard(awaited, _freed(state, awaited, entry.schedule))
    return _put(state, awaited)


def frozen(state: ScheduleState, fact: OccurrenceDeferred) -> Links:
    """One may not go before a window's end."""
    awaited = find(state.rows, seconds(fact.nominal_time))
    assert awaited is not None, "asked of those that wait"
    assert fact.release_at is not None, "it says when the window ends"
    return _put(state, replace(awaited, frozen_ms=millis(fact.release_at)))


def questioned(state: ScheduleState, at_ms: int) -> Links:
    """Freezes have changed: what they defer is looked at from then on."""
    if not state.links.awaits.count:
        return state.links
    for awaited in list(_rows(state.rows)):
        if awaited.frozen_ms is not None and awaited.frozen_ms > at_ms:
            state.rows.put(keys.number(keys.AWAITED, awaited.nominal), codec.dump(replace(awaited, frozen_ms=at_ms)))
    return _links(state)


def _freed(state: ScheduleState, awaited: Awaited, upstream: str) -> Standing:
    """That a later version, which was read before this occurrence was decided, no longer names an upstream."""
    without = (
        phase.from_ms
        for phase in state.phases
        if phase.version > awaited.version
        and all(each.schedule != upstream for each in state.plans[phase.version].intervals)
    )
    return Standing(upstream=upstream, fate=Fate.MET, at_ms=max(awaited.since_ms, next(without, 0)))


def asked(state: ScheduleState, fact: WindowAsked) -> Links:
    """One that waits already has asked again; the first time it asks before it stands in its row."""
    awaited = find(state.rows, seconds(fact.nominal_time))
    if awaited is None:
        return state.links
    return _put(state, replace(awaited, asked_ms=millis(fact.asked_at)))


def answered(state: ScheduleState, fact: WindowHeard) -> Links:
    """One upstream's answer is known."""
    awaited = find(state.rows, seconds(fact.nominal_time))
    assert awaited is not None, "answers are heard of what waits"
    return _put(state, _with(awaited, fact))


def left(state: ScheduleState, nominal: int) -> Links:
    """One waits no longer."""
    state.rows.delete(keys.number(keys.AWAITED, nominal))
    return _links(state)


def withdrawn(state: ScheduleState, fact: EdgeWithdrawn) -> Links:
    """Nobody is asked for this upstream any more, so what waits for it does so no longer."""
    if not state.links.awaits.count:
        return state.links
    freed = Standing(upstream=fact.upstream, fate=Fate.MET, at_ms=millis(fact.withdrawn_at))
    for awaited in list(_rows(state.rows)):
        if _may_hear(awaited, _entry(state.plans[awaited.version], fact.upstream), freed.at_ms):
            _put(state, _heard(awaited, freed))
    return _links(state)


def _may_hear(awaited: Awaited, entry: After | None, at_ms: int) -> bool:
    """Whether something that is known from an instant on can still matter: not behind what is certain or is over."""
    if entry is None or at_ms > _deadline_ms(awaited, entry):
        return False
    return not _is_certain(_standing(awaited, entry.schedule), entry)


def _entry(plan: Plan, upstream: str) -> After | None:
    return next((each for each in plan.intervals if each.schedule == upstream), None)


def _with(awaited: Awaited, fact: WindowHeard) -> Awaited:
    instant = None if fact.instant is None else seconds(fact.instant)
    standing = Standing(
        upstream=fact.upstream, fate=fact.fate, at_ms=millis(fact.appended_at), instant=instant, detail=fact.detail
    )
    return _heard(awaited, standing)


def _heard(awaited: Awaited, standing: Standing) -> Awaited:
    others = (each for each in awaited.heard if each.upstream != standing.upstream)
    return replace(awaited, heard=(*others, standing))
