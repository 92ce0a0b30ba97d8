"""What each fact makes of a shard. Nothing here asks for time or chance, and nothing else changes a shard.

A fact met here is true: it was decided on this very state, or comes from a decision record that was. What does not
fit is an error of ours and stops the partition.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from dispatcher import lifecycle
from dispatcher.calling import Told
from dispatcher.held import LIMITS
from dispatcher.lifecycle import AttemptStep, Step
from dispatcher.memory import PastLease, Remembered
from dispatcher.run import OpenRun, key_of, opened
from dispatcher.shard import Shard
from schemas import codec
from schemas.facts import (
    AttemptFinished,
    AttemptOutcome,
    AttemptStarted,
    BreakerChanged,
    Fact,
    RunCancelRequested,
    RunCreated,
    RunDeferred,
    RunFinished,
    RunRetryScheduled,
)
from schemas.internal import (
    HandOut,
    LeasesRenewed,
    LimitsAdopted,
    MemoryTrimmed,
    QueueLayout,
    WorkerEnded,
    WorkerLapsed,
    WorkerListed,
    WorkerReported,
    WorkersForgotten,
)

# Ways in which the owner takes a hand-out back, or may have to believe later that it was not: remembered, so that
# what the worker still says of it is known for what it is.
TAKEN_BACK = frozenset(
    {AttemptOutcome.LOST, AttemptOutcome.LEASE_EXPIRED, AttemptOutcome.TIMED_OUT, AttemptOutcome.INTERRUPTED}
)

# What only a worker that is alive can have brought about.
SURVIVED = frozenset({AttemptOutcome.SUCCEEDED, AttemptOutcome.FAILED, AttemptOutcome.CANCELLED})


def _created(shard: Shard, fact: RunCreated) -> None:
    lifecycle.advance(None, Step.CREATED)
    run = opened(fact, shard.counters.next_number)
    shard.counters.next_number += 1
    shard.open(run)
    shard.bodies.add(fact)
    shard.line_up(run)
    shard.touch(run)


def _handed_out(shard: Shard, fact: HandOut) -> None:
    assert fact.offset == shard.counters.next_offset, f"hand-out {fact.offset} is not the next"
    run = shard.runs[key_of(fact.run)]
    shard.take(run, fact.handed_out_at)
    lifecycle.advance_attempt(run.state, AttemptStep.HANDED_OUT)
    run.state = lifecycle.advance(run.state, Step.HANDED_OUT)
    shard.leases.pop(run.lease, None)
    shard.counters.next_offset = fact.offset + 1
    run.attempts, run.deferred = fact.attempt, None
    run.lease_offset, run.lease, run.incarnation = fact.offset, fact.lease, fact.incarnation
    run.handed_out_at, run.attempt_started_at, run.attempt_outcome = fact.handed_out_at, None, None
    shard.leases[fact.lease] = run
    shard.breakers.taken(run)
    shard.workforce.lease(run)
    shard.touch(run)


def _started(shard: Shard, fact: AttemptStarted) -> None:
    run = shard.runs[key_of(fact)]
    lifecycle.advance_attempt(run.state, AttemptStep.STARTED)
    run.state = lifecycle.advance(run.state, Step.STARTED)
    run.attempt_started_at = fact.started_at
    run.started_at = run.started_at or fact.started_at
    shard.workforce.begin(run)
    shard.touch(run)


def _attempt_finished(shard: Shard, fact: AttemptFinished) -> None:
    run = shard.runs[key_of(fact)]
    assert fact.handout == run.lease_offset, f"hand-out {fact.handout} of {run.run_id} is not its last"
    lifecycle.advance_attempt(run.state, fact.outcome)
    if fact.outcome in TAKEN_BACK or run.terminated:
        shard.memory.note_past(_past_lease(run, fact))
    run.state = lifecycle.advance(run.state, Step.ATTEMPT_USED if fact.counted else Step.ATTEMPT_SPARED)
    run.attempt_outcome = fact.outcome
    run.used += fact.counted
    _blame(run, fact)
    shard.breakers.note(run, fact, next_offset=shard.counters.next_offset)
    if fact.held:
        _missed(shard, run.incarnation, fact.finished_at)
    elif fact.outcome is AttemptOutcome.TIMED_OUT or run.terminated:
        _ran_over(shard, run, fact)
    _release(shard, run, fact.finished_at)
    if run.waits:
        run.queued_at = fact.finished_at
        shard.line_up(run)
    shard.touch(run)


def _ran_over(shard: Shard, run: OpenRun, fact: AttemptFinished) -> None:
    """A run was ended, and its worker may be there or not: it was lost with one that is known to be gone."""
    aboard = shard.workforce.ran_over(run, fact.outcome)
    shard.touch_worker(run.incarnation)
    shard.breakers.ran_over(run.incarnation, aboard)
    if shard.workforce.of(run).record.is_missed:
        shard.breakers.miss(run.incarnation, fact.finished_at, next_offset=shard.counters.next_offset)


def _missed(shard: Shard, incarnation: str, at: datetime) -> None:
    """A worker went without a word. Of a suspect it is told with blame, when its own attempt ends, or has."""
    lost = shard.workforce.missed(incarnation, at)
    shard.breakers.miss(incarnation, at, next_offset=shard.counters.next_offset)
    for aboard in lost:
        if not shard.breakers.is_suspect(aboard.tenant, aboard.breaker):
            shard.breakers.lose(aboard, at, next_offset=shard.counters.next_offset)
    if lost:
        shard.touch_worker(incarnation)
        _workforce_changed(shard)


def _blame(run: OpenRun, fact: AttemptFinished) -> None:
    """A loss is held against the run; an attempt that its worker lived through clears it; others prove nothing.

    One that took its worker down in its first instant is not known to have begun: it has its part of the blame. One
    that was beside a suspect has none, and that was no loss of its own.
    """
    if fact.outcome is AttemptOutcome.LOST:
        run.losses += run.attempt_started_at is not None and (fact.blame > 0 or not fact.held)
        run.blame = round(run.blame + fact.blame, 6)
    elif fact.outcome in SURVIVED:
        run.losses, run.blame = 0, 0.0


def _past_lease(run: OpenRun, fact: AttemptFinished) -> PastLease:
    return PastLease(
        offset=fact.handout, run_id=run.run_id, tenant=run.tenant, schedule=run.schedule, attempt=fact.attempt,
        incarnation=fact.incarnation, worker=fact.worker, lease=run.lease, outcome=fact.outcome,
        ended_at=fact.finished_at,
    )  # fmt: skip


def _release(shard: Shard, run: OpenRun, at: datetime) -> None:
    shard.give_back(run, at)
    if shard.workforce.release(run) is None:
        shard.touch_worker(run.incarnation)


def _retry_scheduled(shard: Shard, fact: RunRetryScheduled) -> None:
    run = shard.runs[key_of(fact)]
    run.state = lifecycle.advance(run.state, Step.RETRY_SCHEDULED)
    run.not_before, run.queued_at = fact.retry_at, fact.decided_at
    shard.line_up(run)
    shard.touch(run)


def _deferred(shard: Shard, fact: RunDeferred) -> None:
    run = shard.runs[key_of(fact)]
    run.deferred = fact.reason
    if fact.breaker and fact.breaker != run.held_by:
        shard.stand_behind(run, fact.breaker)
    if fact.reason not in LIMITS:
        shard.deferrals.told(run)
    shard.held.told(run)
    shard.touch(run)


def _cancel_requested(shard: Shard, fact: RunCancelRequested) -> None:
    run = shard.runs[key_of(fact)]
    run.terminated = fact.terminate
    run.state = lifecycle.advance(run.state, Step.CANCEL_REQUESTED)
    run.cancel_requested = True
    shard.touch(run)


def _finished(shard: Shard, fact: RunFinished) -> None:
    if fact.repeat:
        return
    run = shard.runs.get(key_of(fact))
    state = lifecycle.advance(None if run is None else run.state, lifecycle.END[fact.outcome])
    if run is not None:
        if run.waits:
            shard.stop_waiting(run)
        run.state = state
        shard.close(run)
    remembered = Remembered(
        outcome=fact.outcome, attempts=fact.attempts, finished_at=fact.finished_at,
        event_id=codec.identify(fact), started_at=fact.started_at,
    )  # fmt: skip
    shard.memory.remember(key_of(fact), remembered)


def _worker_reported(shard: Shard, fact: WorkerReported) -> None:
    before = shard.workforce.get(fact.incarnation)
    was = (before.listed if before is not None else (), shard.workforce.is_empty())
    worker = shard.workforce.report(fact, shard.charge(fact.incarnation, fact.reported_at))
    shard.touch_worker(fact.incarnation)
    shard.breakers.report(fact.incarnation, fact.overdue)
    if was != (worker.listed, shard.workforce.is_empty()):
        _workforce_changed(shard)


def _workforce_changed(shard: Shard) -> None:
    shard.breakers.suspects_changed()
    shard.deferrals.workforce_changed()
    shard.held.all_changed()


def _worker_listed(shard: Shard, fact: WorkerListed) -> None:
    shard.workforce.listed(fact.incarnation, fact.heard_at)
    shard.touch_worker(fact.incarnation)


def _worker_lapsed(shard: Shard, fact: WorkerLapsed) -> None:
    _missed(shard, fact.incarnation, fact.lapsed_at)
    shard.workforce.lapse(fact.incarnation, fact.lapsed_at)
    shard.touch_worker(fact.incarnation)
    _workforce_changed(shard)


def _worker_ended(shard: Shard, fact: WorkerEnded) -> None:
    worker = shard.workforce.by_incarnation[fact.incarnation]
    if worker.record.draining:
        shard.breakers.report(fact.incarnation)
    elif not worker.leases:  # else with the first of its leases, which end now
        _missed(shard, fact.incarnation, fact.ended_at)
    shard.workforce.end(fact.incarnation, fact.ended_by, fact.ended_at)
    shard.touch_worker(fact.incarnation)
    _workforce_changed(shard)


def _workers_forgotten(shard: Shard, fact: WorkersForgotten) -> None:
    for incarnation in fact.incarnations:
        shard.workforce.forget(incarnation)
        shard.touch_worker(incarnation)


def _leases_renewed(shard: Shard, fact: LeasesRenewed) -> None:
    shard.workforce.renew(fact.renewed_at)


def _limits_adopted(shard: Shard, fact: LimitsAdopted) -> None:
    shard.adopt(fact.offset, fact.limits, fact.tenants, fact.adopted_at)


def _layout_told(shard: Shard, fact: QueueLayout) -> None:
    if fact.inbox is None:  # else it was an answer, which repeats what was told before
        shard.told = Told(
            shards=fact.shards, queued=fact.queued, running=fact.running, free=fact.free, workers=fact.workers,
            at=fact.told_at,
        )  # fmt: skip


def _breaker_changed(shard: Shard, fact: BreakerChanged) -> None:
    shard.breakers.change(fact)


def _memory_trimmed(shard: Shard, fact: MemoryTrimmed) -> None:
    shard.memory.trim(fact.until)


CHANGES: Mapping[type[Fact], Callable[[Any, Any], None]] = {
    RunCreated: _created,
    HandOut: _handed_out,
    AttemptStarted: _started,
    AttemptFinished: _attempt_finished,
    RunRetryScheduled: _retry_scheduled,
    RunDeferred: _deferred,
    RunCancelRequested: _cancel_requested,
    RunFinished: _finished,
    WorkerReported: _worker_reported,
    WorkerListed: _worker_listed,
    WorkerLapsed: _worker_lapsed,
    WorkerEnded: _worker_ended,
    WorkersForgotten: _workers_forgotten,
    LeasesRenewed: _leases_renewed,
    LimitsAdopted: _limits_adopted,
    QueueLayout: _layout_told,
    BreakerChanged: _breaker_changed,
    MemoryTrimmed: _memory_trimmed,
}
