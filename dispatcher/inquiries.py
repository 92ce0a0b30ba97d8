"""The scheduler has no outcome of a run and asks; it sends the whole run along.

A known outcome is said again under the same event id; of an open run there is nothing to say; a run never seen is
taken as new. One that may have ended and been forgotten since is never started: it ends `expired`, reason `unknown`.
"""

from __future__ import annotations

from collections.abc import Sequence

from dispatcher import creating
from dispatcher.memory import Remembered
from dispatcher.portions import Portion
from dispatcher.run import key_of
from dispatcher.shard import Shard
from runtime.machine import Moment
from schemas.facts import Fact, Outcome, RunCreated, RunFinished
from schemas.internal import RunInquired


def decide(shard: Shard, inquiry: RunInquired, moment: Moment, portion: Portion) -> Sequence[Fact]:
    """The facts that follow from an inquiry."""
    run = inquiry.run
    if key_of(run) in shard.runs:
        return ()
    remembered = shard.memory.recall(key_of(run))
    if remembered is not None:
        return (_repeat(shard, run, remembered),)
    if run.created_at >= shard.memory.keeps_since(moment.now):
        return creating.decide(shard, run, moment, portion)
    return (_unknown(shard, run, moment),)


def _repeat(shard: Shard, run: RunCreated, remembered: Remembered) -> RunFinished:
    return RunFinished(
        tenant=run.tenant, schedule=run.schedule, run_id=run.run_id, version=run.version, cause=run.cause,
        outcome=remembered.outcome, attempts=remembered.attempts, created_at=run.created_at,
        finished_at=remembered.finished_at, nominal_time=run.nominal_time, started_at=remembered.started_at,
        of=run.of, labels=run.labels, repeat=True, known_id=remembered.event_id, queue=shard.queue,
        shard=shard.number,
    )  # fmt: skip


def _unknown(shard: Shard, run: RunCreated, moment: Moment) -> RunFinished:
    return RunFinished(
        tenant=run.tenant, schedule=run.schedule, run_id=run.run_id, version=run.version, cause=run.cause,
        outcome=Outcome.EXPIRED, attempts=0, created_at=run.created_at, finished_at=moment.now,
        nominal_time=run.nominal_time, of=run.of, labels=run.labels, reason="unknown", queue=shard.queue,
        shard=shard.number,
    )  # fmt: skip
