"""Backfills: the occurrences of a past range get their runs, a few at a time, beside what the schedule itself does.

A backfill is a cursor. It looks at the occurrences of its range one behind the other, leaves alone those that have what
was asked for, and makes a run for the others: never more than `max_active` that have no outcome yet, never closer
together than its rate. So a month of minutes is one small value here, and a handful of runs in the queue.

    started ─▶ running ◀──▶ paused          by command; also paused when the job it needs is gone
                  │            │
                  ├────────────┴─▶ cancelling   by command, or with the schedule
                  ▼                    ▼
              completed            cancelled     when the last of its runs has its outcome

It passes no occurrence that the schedule itself has still to decide. It does not look at the schedule's runs otherwise,
nor the schedule at these: neither is in the other's way. What a crash interrupts goes on behind the cursor.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any, NamedTuple

from scheduler import calendars, fates, fills, keys, occurrences, runs, timeline
from scheduler.context import Context
from scheduler.instants import SECOND_MS, from_millis, from_seconds, millis, seconds
from scheduler.plan import Plan
from scheduler.state import Backfill, ScheduleState, updated
from schemas import rates
from schemas.facts import (
    BackfillCounts,
    BackfillFinished,
    BackfillProgressed,
    BackfillStarted,
    Fact,
    RunCreated,
    RunFinished,
)
from schemas.scheduling import BackfillStepped, RunSettled

ACTIVE_MAX = 4  # of one schedule: they stand in its row, which every decision writes, and take each other's workers
OCCURRENCES_MAX = 100_000  # of one: two months of minutes. Whoever wants more starts the next when this one is judged
STRETCHES_MAX = 250  # that are looked at in one step: some milliseconds
MILLISECOND = timedelta(milliseconds=1)
STEP_PAUSE_MS = 50  # behind a step that made no run: the partition has others to decide
TELL_MS = 5_000  # between two reports of progress
BACK_SECONDS = 3600  # that are looked at at a time from the newest end
RUNNING, PAUSED, CANCELLING = "running", "paused", "cancelling"
COMPLETED, CANCELLED = "completed", "cancelled"

Facts = tuple[Fact, ...]


class _Found(NamedTuple):
    """How far a step has looked, what it left alone on the way, and the occurrence that has a run now, if any."""

    cursor: int
    left_out: dict[str, int]
    nominal: int | None = None
    again: bool = False


def find(state: ScheduleState, backfill_id: str) -> Backfill | None:
    """One that is under way."""
    return next((each for each in state.backfills if each.id == backfill_id), None)


def spacing_ms(rate: str) -> int:
    """From one run to the next, so that no second, minute or hour has more of them than the rate says."""
    parsed = rates.parse(rate)
    return -(-parsed.per // MILLISECOND // parsed.count)


def open_in(state: ScheduleState) -> int:
    """How many open runs of the schedule are of backfills."""
    return sum(each.counts.active for each in state.backfills)


def decided(counts: BackfillCounts) -> int:
    """How many occurrences it has decided."""
    return counts.created + counts.reprocessed + sum(counts.left_out.values())


def decide(state: ScheduleState, context: Context) -> Facts:
    """One step of the one whose turn it is; nothing when none is due."""
    gate = _gate(state)
    due_ms, backfill = min(((_due_ms(each, gate), each) for each in state.backfills), key=lambda pair: _order(pair[0]))
    if due_ms is None or due_ms > context.horizon_ms:
        return ()
    if _is_over(backfill):
        return (_finished(state, backfill, context),)
    if _may_step(backfill, gate) and backfill.next_ms <= context.horizon_ms:
        return _step(state, backfill, context, gate)
    return (progressed(state, backfill, context, backfill.state),)


def wakeup_ms(state: ScheduleState) -> int | None:
    """When the next step of one of them is due."""
    gate = _gate(state)
    return min((at for each in state.backfills if (at := _due_ms(each, gate)) is not None), default=None)


def settled(state: ScheduleState, run: RunCreated, finished: RunFinished, at_ms: int) -> RunSettled:
    """The outcome of a run of a backfill: it stood in nobody's way."""
    return RunSettled(
        tenant=state.tenant, schedule=state.name, run_id=run.run_id, outcome=finished.outcome,
        appended_at=from_millis(at_ms), counted=False, nominal_time=run.nominal_time, backfill=run.backfill,
    )  # fmt: skip


def progressed(state: ScheduleState, backfill: Backfill, context: Context, status: str, **why: str) -> Fact:
    """How far one has come, and in which state it is now."""
    return BackfillProgressed(
        tenant=state.tenant, schedule=state.name, backfill=backfill.id, state=status,
        cursor=from_seconds(backfill.cursor), decided=decided(backfill.counts), occurrences=backfill.occurrences,
        counts=backfill.counts, progressed_at=context.now,
        expected_at=_expected_at(backfill, context) if status == RUNNING else None, **why,
    )  # fmt: skip


def stopped(state: ScheduleState, context: Context, reason: str) -> Facts:
    """All that are under way come to their end, as their schedule does."""
    going = (each for each in state.backfills if each.state != CANCELLING)
    return tuple(progressed(state, each, context, CANCELLING, reason=reason) for each in going)


# --- when ---------------------------------------------------------------------------------------------------------


def _gate(state: ScheduleState) -> int | None:
    """The last second whose occurrences the schedule itself has decided; None where it has no more to decide.

    What rules take out is certain to be skipped, although it is said later and of all neighbours at once.
    """
    due, _, _, taken = timeline.upcoming(state)
    return None if due is None or taken is not None else due.nominal - 1


def _due_ms(backfill: Backfill, gate: int | None) -> int | None:
    if _is_over(backfill):
        return 0
    tells_ms = backfill.told_ms + TELL_MS if _steps(backfill) != backfill.told else None
    if not _may_step(backfill, gate):
        return tells_ms
    return backfill.next_ms if tells_ms is None else min(backfill.next_ms, tells_ms)


def _order(due_ms: int | None) -> float:
    return float("inf") if due_ms is None else due_ms


def _is_over(backfill: Backfill) -> bool:
    return not backfill.counts.active and (backfill.state == CANCELLING or _is_exhausted(backfill))


def _is_exhausted(backfill: Backfill) -> bool:
    return backfill.cursor <= backfill.from_ if backfill.newest else backfill.cursor >= backfill.to


def _may_step(backfill: Backfill, gate: int | None) -> bool:
    if backfill.state != RUNNING or _is_exhausted(backfill) or backfill.counts.active >= backfill.max_active:
        return False
    return gate is None or (backfill.to - 1 if backfill.newest else backfill.cursor) <= gate


def _steps(backfill: Backfill) -> int:
    """A number that grows with all there is to tell."""
    return decided(backfill.counts) + sum(backfill.counts.ended.values())


def _expected_at(backfill: Backfill, context: Context) -> Any:
    """When it is through at the speed it had since it was started or resumed."""
    done = decided(backfill.counts) - backfill.counts.active
    passed_ms = context.horizon_ms - backfill.since_ms
    if done <= backfill.done_before or passed_ms <= 0:
        return None
    left = backfill.occurrences - done
    return from_millis(context.horizon_ms + left * passed_ms // (done - backfill.done_before))


# --- a step -------------------------------------------------------------------------------------------------------


def _step(state: ScheduleState, backfill: Backfill, context: Context, gate: int | None) -> Facts:
    plan = fates.judging_plan(state, backfill.version, context)
    assert plan is not None, "a version is kept for as long as a backfill goes by it"
    plan = calendars.bound(plan, state.tenant, calendars.adopted_by(context.shared))
    recipe = runs.recipe_of(plan, state.tenant, context.shared)
    if recipe is None:
        return (progressed(state, backfill, context, PAUSED, reason=f"no_job: there is no job {plan.job_name}"),)
    found = _look(state, backfill, context, plan, gate)
    stepped = _stepped(state, backfill, context, found)
    if found.nominal is None:
        return stepped
    run = runs.of_backfill(state, context, plan, recipe, backfill, found.nominal, again=found.again)
    return (*stepped, run)


def _stepped(state: ScheduleState, backfill: Backfill, context: Context, found: _Found) -> Facts:
    if found.nominal is not None and not found.left_out:
        return ()  # the run itself says how far it is
    stepped = BackfillStepped(
        tenant=state.tenant, schedule=state.name, backfill=backfill.id, cursor=from_seconds(found.cursor),
        left_out=dict(sorted(found.left_out.items())), stepped_at=context.now,
    )  # fmt: skip
    return (stepped,)


def _look(state: ScheduleState, backfill: Backfill, context: Context, plan: Plan, gate: int | None) -> _Found:
    """Along the range up to the first occurrence that is to have a run."""
    left_out: dict[str, int] = {}
    cursor = backfill.cursor
    for count, stretch in enumerate(_ahead(state, backfill, context, plan, gate)):
        if count >= STRETCHES_MAX:
            return _Found(cursor, left_out)
        if fates.wanted(stretch.fate, backfill.reprocess):
            nominal = _nearest(plan, stretch, newest=backfill.newest)
            if nominal is not None:
                return _Found(cursor, left_out, nominal, stretch.fate not in fates.NOT_RUN)
        elif passed := stretch.count(plan):
            left_out[stretch.fate] = left_out.get(stretch.fate, 0) + passed
        cursor = stretch.after + 1 if backfill.newest else stretch.until + 1
    return _Found(backfill.from_ if backfill.newest else _last(backfill, gate) + 1, left_out)


def _nearest(plan: Plan, stretch: fates.Stretch, *, newest: bool) -> int | None:
    if newest:
        return occurrences.last_between(plan.trigger, stretch.after, stretch.until)
    nominal = plan.trigger.next_after(stretch.after)
    return nominal if nominal is not None and nominal <= stretch.until else None


def _ahead(
    state: ScheduleState, backfill: Backfill, context: Context, plan: Plan, gate: int | None
) -> Iterator[fates.Stretch]:
    """What lies ahead of the cursor, in its order. What has left the history meanwhile is not looked up any more."""
    kept_from = context.horizon_ms // SECOND_MS - context.history_seconds
    if not backfill.newest:
        first, last = backfill.cursor, _last(backfill, gate)
        if first < kept_from:
            yield fates.Stretch(first - 1, min(kept_from - 1, last), fates.BEYOND)
        if max(first, kept_from) <= last:
            yield from fates.stretches(state, plan, backfill.version, max(first, kept_from), last)
        return
    oldest, cursor = max(backfill.from_, kept_from), backfill.cursor
    while (last_ := occurrences.last_between(plan.trigger, oldest - 1, cursor - 1)) is not None:
        cursor = max(oldest, last_ - BACK_SECONDS)
        yield from reversed([*fates.stretches(state, plan, backfill.version, cursor, last_)])
    if backfill.from_ < kept_from:
        yield fates.Stretch(backfill.from_ - 1, min(kept_from, backfill.cursor) - 1, fates.BEYOND)


def _last(backfill: Backfill, gate: int | None) -> int:
    """The last second that it may look at now, the oldest first."""
    return backfill.to - 1 if gate is None else min(backfill.to - 1, gate)


def _finished(state: ScheduleState, backfill: Backfill, context: Context) -> Fact:
    return BackfillFinished(
        tenant=state.tenant, schedule=state.name, backfill=backfill.id,
        outcome=CANCELLED if backfill.state == CANCELLING else COMPLETED, cursor=from_seconds(backfill.cursor),
        decided=decided(backfill.counts), occurrences=backfill.occurrences, counts=backfill.counts,
        finished_at=context.now, reason=backfill.reason,
    )  # fmt: skip


# --- what facts make of them --------------------------------------------------------------------------------------


def evolve_started(state: ScheduleState, fact: BackfillStarted) -> ScheduleState:
    """One more is under way."""
    newest = fact.order == "newest"
    at_ms = millis(fact.started_at)
    backfill = Backfill(
        id=fact.backfill, version=fact.version, from_=seconds(fact.from_), to=seconds(fact.to),
        cursor=seconds(fact.to) if newest else seconds(fact.from_), occurrences=fact.occurrences,
        max_active=fact.max_active, spacing_ms=spacing_ms(fact.rate), reprocess=fact.reprocess,
        newest=newest, next_ms=at_ms, told_ms=at_ms, since_ms=at_ms,
    )  # fmt: skip
    return updated(state, backfills=(*state.backfills, backfill))


def evolve_stepped(state: ScheduleState, fact: BackfillStepped) -> ScheduleState:
    """It has passed occurrences that it leaves alone."""
    backfill = _known(state, fact.backfill)
    left_out = dict(backfill.counts.left_out)
    for reason, count in fact.left_out.items():
        left_out[reason] = left_out.get(reason, 0) + count
    counts = replace(backfill.counts, left_out=dict(sorted(left_out.items())))
    next_ms = millis(fact.stepped_at) + STEP_PAUSE_MS
    return _with(state, replace(backfill, cursor=seconds(fact.cursor), counts=counts, next_ms=next_ms))


def evolve_progressed(state: ScheduleState, fact: BackfillProgressed) -> ScheduleState:
    """It was told how far it is, and goes on in the state that was said."""
    backfill = _known(state, fact.backfill)
    at_ms = millis(fact.progressed_at)
    new = replace(
        backfill, state=fact.state, told=_steps(backfill), told_ms=at_ms, reason=fact.reason or backfill.reason
    )
    if fact.state == RUNNING and backfill.state != RUNNING:
        done = decided(backfill.counts) - backfill.counts.active
        new = replace(new, since_ms=at_ms, done_before=done, next_ms=max(backfill.next_ms, at_ms), reason="")
    return _with(state, new)


def evolve_finished(state: ScheduleState, fact: BackfillFinished) -> ScheduleState:
    """It is over; its story stands in the log."""
    return updated(state, backfills=tuple(each for each in state.backfills if each.id != fact.backfill))


def evolve_created(new: Any, fact: RunCreated) -> None:
    """The draft of a state with a run of a backfill, behind whose occurrence the cursor stands now."""
    assert fact.nominal_time is not None, "a backfill makes runs of occurrences"
    nominal = seconds(fact.nominal_time)
    bucket = fills.put(new.rows, nominal, fills.OPEN)
    new.filled_from = bucket if new.filled_from is None else min(new.filled_from, bucket)
    new.rows.put(_run_row(fact.backfill, fact.run_id), b"")
    backfill = _known(new, fact.backfill)
    counts, again = backfill.counts, fact.of is not None
    counts = replace(
        counts, created=counts.created + (not again), reprocessed=counts.reprocessed + again, active=counts.active + 1
    )
    cursor = nominal if backfill.newest else nominal + 1
    next_ms = millis(fact.created_at) + backfill.spacing_ms
    new.backfills = _replaced(new, replace(backfill, counts=counts, cursor=cursor, next_ms=next_ms))


def evolve_settled(new: Any, fact: RunSettled) -> None:
    """The draft of a state in which a run of a backfill has its outcome."""
    assert fact.nominal_time is not None, "a backfill makes runs of occurrences"
    bucket = fills.put(new.rows, seconds(fact.nominal_time), fact.outcome.value)
    new.filled_from = bucket if new.filled_from is None else min(new.filled_from, bucket)
    new.rows.delete(_run_row(fact.backfill, fact.run_id))
    backfill = _known(new, fact.backfill)
    ended = {**backfill.counts.ended, fact.outcome.value: backfill.counts.ended.get(fact.outcome.value, 0) + 1}
    counts = replace(backfill.counts, active=backfill.counts.active - 1, ended=dict(sorted(ended.items())))
    new.backfills = _replaced(new, replace(backfill, counts=counts))


def open_runs(state: ScheduleState, backfill_id: str) -> list[str]:
    """The ids of its runs without an outcome, at most as many as it may have."""
    start = _run_row(backfill_id, "")
    return [row[len(start) :].decode() for row, _ in state.rows.scan(start, keys.end_of(start))]


def _run_row(backfill_id: str, run_id: str) -> bytes:
    return keys.BACKFILLED + f"{backfill_id}/{run_id}".encode()


def _known(state: Any, backfill_id: str) -> Backfill:
    backfill = find(state, backfill_id)
    assert backfill is not None, "a backfill stays until all of its runs have their outcomes"
    return backfill


def _with(state: ScheduleState, backfill: Backfill) -> ScheduleState:
    return updated(state, backfills=_replaced(state, backfill))


def _replaced(state: Any, backfill: Backfill) -> tuple[Backfill, ...]:
    return tuple(backfill if each.id == backfill.id else each for each in state.backfills)
