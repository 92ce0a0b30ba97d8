"""What has to be decided because of the time, one small step at a call, the most urgent first.

Whatever takes a run from a worker (leases, timeouts, deadlines of leased runs) is decided against the evidence: up to
`read_until` every report has been read. After a takeover the evidence is old by the length of the outage: the first
step that would end a lease or miss a worker gives all of them one fresh period instead, from the takeover on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from itertools import islice

from dispatcher import endings, handing
from dispatcher.endings import Ending
from dispatcher.run import OpenRun
from dispatcher.shard import Shard
from dispatcher.workforce import Worker
from runtime.machine import Moment
from schemas.facts import AttemptOutcome, ErrorInfo, Fact, Outcome, RunDeferred
from schemas.internal import LeaseNotice, LeasesRenewed, MemoryTrimmed, WorkerLapsed, WorkersForgotten

LEASES_PER_STEP = 64  # of one worker; the rest in the next step, so that a large worker's end stays a bounded step
TOLD_PER_STEP = 256


def decide(shard: Shard, moment: Moment) -> Sequence[Fact]:
    """The facts of the first thing that is due."""
    steps: tuple[Callable[[Shard, Moment], Sequence[Fact]], ...] = (
        _attend, _time_out, _expire, _forget, _trim, handing.decide, _tell,
    )  # fmt: skip
    for step in steps:
        facts = step(shard, moment)
        if facts:
            return facts
    return ()


def _attend(shard: Shard, moment: Moment) -> Sequence[Fact]:
    """End the leases that a worker did not renew, and miss a worker that is silent."""
    first = shard.workforce.first_attendance()
    if first is None or first[0] > moment.read_until:
        return ()
    worker = shard.workforce.by_incarnation[first[1]]
    assert shard.loaded_at is not None
    if _was_last_seen_before(shard, worker, shard.loaded_at):
        return (LeasesRenewed(queue=shard.queue, shard=shard.number, renewed_at=shard.loaded_at),)
    over = [run for run in _leases(worker) if shard.workforce.lease_ends_at(run) <= moment.read_until]
    if over:
        return _end_leases(shard, worker, over[:LEASES_PER_STEP], moment)
    return (
        WorkerLapsed(
            queue=shard.queue, shard=shard.number, incarnation=worker.record.incarnation, lapsed_at=moment.now
        ),
    )


def _was_last_seen_before(shard: Shard, worker: Worker, loaded_at: datetime) -> bool:
    """Whether a worker has been silent since before this owner took the shard over, and had no fresh period since."""
    renewed_at = shard.workforce.renewed_at
    return worker.record.reported_at < loaded_at and (renewed_at is None or renewed_at < loaded_at)


def _leases(worker: Worker) -> list[OpenRun]:
    return [worker.leases[offset] for offset in sorted(worker.leases)]


def _end_leases(shard: Shard, worker: Worker, over: list[OpenRun], moment: Moment) -> Sequence[Fact]:
    ending = Ending(outcome=AttemptOutcome.LEASE_EXPIRED, at=moment.now)
    facts = [fact for run in over for fact in endings.attempt_ended(shard, run, ending)]
    return [*facts, _ended(shard, worker, over)]


def _ended(shard: Shard, worker: Worker, runs: list[OpenRun]) -> LeaseNotice:
    return LeaseNotice(
        queue=shard.queue, incarnation=worker.record.incarnation, inbox=worker.record.inbox,
        ended=tuple(map(shard.lease_text, runs)),
    )  # fmt: skip


def _time_out(shard: Shard, moment: Moment) -> Sequence[Fact]:
    """End an attempt that took too long, or whose run has reached its deadline."""
    first = shard.timeouts.first()
    if first is None or first[0] > moment.read_until:
        return ()
    run = shard.runs[first[1]]
    error = None
    if run.deadline_at <= run.timeout_at():
        error = ErrorInfo(type="deadline", message="the run reached its deadline")
    ending = Ending(outcome=AttemptOutcome.TIMED_OUT, at=moment.now, error=error)
    return [*endings.attempt_ended(shard, run, ending), _ended(shard, shard.workforce.of(run), [run])]


def _expire(shard: Shard, moment: Moment) -> Sequence[Fact]:
    """End a run that waited to its deadline."""
    first = shard.deadlines.first()
    if first is None or first[0] > moment.now:
        return ()
    ending = Ending(
        outcome=AttemptOutcome.TIMED_OUT, at=moment.now,
        error=ErrorInfo(type="deadline", message="the run waited until its deadline"),
    )  # fmt: skip
    return (endings.finish(shard, shard.runs[first[1]], Outcome.EXPIRED, ending, reason="deadline"),)


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
    return [
        RunDeferred(
            tenant=run.tenant, schedule=run.schedule, run_id=run.run_id, reason=reason, since=since,
            decided_at=moment.now, queue=shard.queue, shard=shard.number,
        )
        for run, reason, since in islice(shard.deferrals.to_tell(first[1], moment.now), TOLD_PER_STEP)
    ]  # fmt: skip
