"""A run comes to its shard."""

from __future__ import annotations

from collections.abc import Sequence

from dispatcher.portions import Portion
from dispatcher.shard import Shard
from runtime.machine import Moment
from schemas.facts import ErrorInfo, Fact, Outcome, RunCreated, RunFinished


def decide(shard: Shard, run: RunCreated, moment: Moment, portion: Portion) -> Sequence[Fact]:
    """A run is taken once: `runs` may hold it twice after a failure. Above its tenant's quota it ends at once."""
    if shard.knows(run):
        return ()
    waiting = shard.limits.waiting[run.tenant]
    if portion.queued is None or waiting < portion.queued:
        return (run,)
    place = f"queue {shard.queue}" if shard.limits.queue.shards == 1 else f"shard {shard.name}"
    message = f"{waiting} runs of tenant {run.tenant} wait in {place}, of {portion.queued} that may"
    finished = RunFinished(
        tenant=run.tenant, schedule=run.schedule, run_id=run.run_id, version=run.version, cause=run.cause,
        outcome=Outcome.EXPIRED, attempts=0, created_at=run.created_at, finished_at=moment.now,
        nominal_time=run.nominal_time, of=run.of, labels=run.labels, reason="quota", queue=shard.queue,
        shard=shard.number, error=ErrorInfo(type="quota", message=message),
    )  # fmt: skip
    return (finished,)
