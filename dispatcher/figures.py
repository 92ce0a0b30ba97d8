"""What a shard looks like from outside, in numbers: a view of its state, which changes nothing and decides nothing."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType

from dispatcher import budgets
from dispatcher.shard import Shard
from schemas.frozen import frozen


@frozen
class ShardFigures:
    """By tenant: runs that wait, and runs that are with workers. `head_wait_seconds`: of the longest first in line.

    The first in line of a paused queue waits too. A run whose instant has not come does not.
    """

    queue: str
    queued: Mapping[str, int]
    running: Mapping[str, int]
    head_wait_seconds: float
    paused: bool
    workers: int
    slots_free: int
    budget_used: float
    breakers_open: int


def of(shard: Shard, now: datetime) -> ShardFigures:
    """One look; it costs what there are lines, workers, and schedules that retried within ten minutes."""
    takers = [worker for worker in shard.workforce.by_incarnation.values() if worker.takes_runs]
    return ShardFigures(
        queue=shard.queue,
        queued=MappingProxyType(dict(shard.limits.waiting)),
        running=MappingProxyType(dict(shard.limits.running)),
        head_wait_seconds=_head_wait_seconds(shard, now),
        paused=shard.limits.is_paused,
        workers=len(takers),
        slots_free=sum(max(worker.free, 0) for worker in takers),
        breakers_open=shard.breakers.tripped_count,
        budget_used=max((budgets.used(budget, now) for budget in shard.holds.budgets.values()), default=0.0),
    )


def _head_wait_seconds(shard: Shard, now: datetime) -> float:
    heads = (leaf.queue.first()[2] for leaf in shard.waiting.leaves.values())
    waits = ((now - max(run.not_before, run.queued_at)).total_seconds() for run in heads)
    return max(0.0, max(waits, default=0.0))
