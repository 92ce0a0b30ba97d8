"""What has to be decided because of the time, one small step at a call, the most urgent first.

Whatever takes a run from a worker (leases, timeouts, deadlines of leased runs) is decided against the evidence: up to
`read_until` every report has been read. After a takeover the evidence is old by the length of the outage: the first
step that would end a lease or miss a worker gives all of them one fresh period instead, from the takeover on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from itertools import islice

from dispatcher import breakers, deferrals, endings, handing, layouts
from dispatcher.endings import Ending
from dispatcher.run import DEADLINE, START_WITHIN, OpenRun
from dispatcher.shard import Shard
from dispatcher.workforce import Worker
from runtime.machine import Moment
from schemas.facts import AttemptOutcome, ErrorInfo, Fact, Outcome, RunDeferReason, RunDeferred
from schemas.internal import LeaseNotice, LeasesRenewed, MemoryTrimmed, WorkerLapsed, WorkersForgotten

LEASES_PER_STEP = 64  # of one worker; the rest in the next step, so that a large worker's end stays a bounded step
TOLD_PER_STEP = 256

_REACHED = {DEADLINE: "the run reached its deadline", START_WITHIN: "no attempt had begun in time"}
_WAITED = _REACHED | {DEADLINE: "the run waited until its deadline"}


def decide(shard: Shard, moment: Moment) -> Sequence[Fact]:
    """The facts of the first thing that is due."""
    steps: tuple[Callable[[Shard, Moment], Sequence[Fact]], ...] = (
        _attend, _switch, _expire, _forget, _trim, handing.decide, _tell, _tell_held, layouts.decide,
    )  # fmt: skip
    for step in steps:
        facts = step(shard, moment)
        if facts:
            return facts
    return ()


def _attend(shard: Shard, moment: Moment) -> Sequence[Fact]:
    """End what took too long, then leases that were not renewed; then miss the worker itself."""
    first = shard.workforce.first_attendance()
    if first is None or first[0] > moment.read_until:
        return ()
    worker = shard.workforce.by_incarnation[first[1]]
    held = [worker.leases[offset] for offset in sorted(worker.leases)]
    over = [run for run in held if run.over_at() <= moment.read_until]
    if over:
        return _time_out(shard, worker, over[:LEASES_PER_STEP], moment)
    assert shard.loaded_at is not None
    if _was_last_seen_before(shard, worker, shard.loaded_at):
        return (LeasesRenewed(queue=shard.queue, shard=shard.number, renewed_at=shard.loaded_at),)
    silent = [run for run in held if shard.workforce.lease_ends_at(run) <= moment.read_until]
    if silent:
        return _end_leases(shard, worker, silent[:LEASES_PER_STEP], moment)
    incarnation = worker.record.incarnation
    return (WorkerLapsed(queue=shard.queue, shard=shard.number, incarnation=incarnation, lapsed_at=moment.now),)


def _was_last_seen_before(shard: Shard, worker: Worker, loaded_at: datetime) -> bool:
    """Whether a worker has been silent since before this owner took the shard over, and had no fresh period since."""
    renewed_at = shard.workforce.renewed_at
    return worker.record.reported_at < loaded_at and (renewed_at is None or renewed_at < loaded_at)


def _time_out(shard: Shard, worker: Worker, over: list[OpenRun], moment: Moment) -> Sequence[Fact]:
    """End attempts that took too long, or whose runs have reached their deadline."""
    facts = [fact for run in over for fact in endings.attempt_ended(shard, run, _timeout(run, moment))]
    return [*facts, _ended(shard, worker, over)]


def _timeout(run: OpenRun, moment: Moment) -> Ending:
    reason = run.expired_by(run.over_at())
    error = ErrorInfo(type=reason, message=_REACHED[reason]) if reason else None
    return Ending(outcome=AttemptOutcome.TIMED_OUT, at=moment.now, error=error)


def _end_leases(shard: Shard, worker: Worker, silent: list[OpenRun], moment: Moment) -> Sequence[Fact]:
    """One that was not read is no sign of the worker's end while that still reports."""
    ending = Ending(outcome=AttemptOutcome.LEASE_EXPIRED, at=moment.now)
    gone = ending._replace(with_worker=True)
    facts: list[Fact] = []
    for run in silent:
        is_gone = shard.workforce.is_silent(run, moment.read_until)
        facts += endings.attempt_ended(shard, run, gone if is_gone else ending)
    return [*facts, _ended(shard, worker, silent)]


def _ended(shard: Shard, worker: Worker, runs: list[OpenRun]) -> LeaseNotice:
    return LeaseNotice(
        queue=shard.queue, incarnation=worker.record.incarnation, inbox=worker.record.inbox,
        ended=tuple(run.lease for run in runs),
    )  # fmt: skip


def _switch(shard: Shard, moment: Moment) -> Sequence[Fact]:
    """Open, try or close a breaker, before anything more is handed out."""
    first = shard.breakers.first_due()
    if first is None or first[0] > moment.now:
        return ()
    breaker = shard.breakers.get(first[1])
    assert breaker is not None, f"breaker {first[1]} is due and is not there"
    return (breakers.fact_of(breaker, breakers.change(breaker, moment.now), shard.queue, shard.number, moment.now),)


def _expire(shard: Shard, moment: Moment) -> Sequence[Fact]:
    """End a run that waited to its deadline, or for as long as it may before an attempt begins."""
    first = shard.deadlines.first()
    if first is None or first[0] > moment.now:
        return ()
    run = shard.runs[first[1]]
    reason = run.expired_by(first[0])
    error = ErrorInfo(type=reason, message=_WAITED[reason])
    ending = Ending(outcome=AttemptOutcome.TIMED_OUT, at=moment.now, error=error)
    return (endings.finish(shard, run, Outcome.EXPIRED, ending, reason=reason),)


def _forget(shard: Shard, moment: Moment) -> Sequence[Fact]:
    """Forget an ended incarnation that nobody has heard of for long."""
    first = shard.workforce.first_forgetting()
    if first is None or first[0] > moment.now:
        return ()
    return (WorkersForgotten(queue=shard.queue, shard=shard.number, incarnations=(first[1],), forgotten_at=moment.now),)


def _trim(shard: Shard, moment: Moment) -> Sequence[Fact]:
    """Forget a bounded part of what ended long ago."""
    trim_at = shard.memory.trim_at()
    if trim_at is None or trim_at > moment.now:
        return ()
    until = shard.memory.keeps_since(moment.now)
    return (MemoryTrimmed(queue=shard.queue, shard=shard.number, until=until, trimmed_at=moment.now),)


def _tell(shard: Shard, moment: Moment) -> Sequence[Fact]:
    """Say of runs that wait for want of a worker why they do."""
    first = shard.deferrals.due()
    if first is None or first[0] > moment.now:
        return ()
    told = islice(shard.deferrals.to_tell(first[1], moment.now), TOLD_PER_STEP)
    return [_deferred(shard, run, reason, since, None, moment) for run, reason, since in told]


def _tell_held(shard: Shard, moment: Moment) -> Sequence[Fact]:
    """Say of runs that a limit holds which one it is."""
    first = shard.held.due()
    if first is None or first[0] > moment.now:
        return ()
    told = islice(shard.held.to_tell(first[1], moment.now), TOLD_PER_STEP)
    return [_deferred(shard, run, reason, since, until, moment) for run, reason, since, until in told]


def _deferred(
    shard: Shard, run: OpenRun, reason: RunDeferReason, since: datetime, until: datetime | None, moment: Moment
) -> RunDeferred:
    breaker = run.held_by if reason is RunDeferReason.BREAKER else ""
    return deferrals.deferred(shard.queue, shard.number, run, reason, since, until, moment.now, breaker=breaker)
