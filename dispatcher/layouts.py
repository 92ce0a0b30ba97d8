"""How a shard of a queue with several shards calls for workers: it tells all inboxes of the queue how it stands.

    runs want nothing but a slot ──▶ told at once, then every five seconds
    they do no longer            ──▶ told once
    another number of shards     ──▶ told once
    a worker's first report      ──▶ what was told last, to that worker alone

Whoever hears nothing of a shard may take it that it wants nothing: what got lost is said again while it counts. The
only shard that its queue ever had need not call anybody, and says nothing at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from dispatcher import calling
from dispatcher.shard import Shard
from dispatcher.workforce import Worker
from runtime.machine import Moment
from schemas.internal import QueueLayout, WorkerReport

QUEUED_MAX = 10_000  # counted; more than the workers of a queue move for at once


def decide(shard: Shard, moment: Moment) -> Sequence[QueueLayout]:
    """Tell what is to be told by now. To be asked when nothing more can be handed out."""
    wanting_at = shard.wanting_at()
    due_at = calling.due(shard.told, wanting_at)
    if due_at is None or due_at > moment.now:
        return ()
    wants = wanting_at is not None and wanting_at <= moment.now
    takers = list(_takers(shard, {task for _, task in shard.waiting.lines} if wants else set()))
    layout = QueueLayout(
        queue=shard.queue, shard=shard.number, shards=shard.limits.queue.shards,
        queued=_count(shard, moment.now) if wants else 0,
        running=sum(len(worker.leases) for worker in takers), free=sum(max(worker.free, 0) for worker in takers),
        workers=len(takers), told_at=moment.now,
    )  # fmt: skip
    return (layout,)


def answer(shard: Shard, report: WorkerReport, moment: Moment) -> Sequence[QueueLayout]:
    """What an incarnation is told that reports for the first time: it may not know that there are several shards."""
    if not shard.is_one_of_several:
        return ()
    told = shard.told
    layout = QueueLayout(
        queue=shard.queue, shard=shard.number, shards=shard.limits.queue.shards, queued=told.queued,
        running=told.running, free=told.free, workers=told.workers, told_at=moment.now, inbox=report.inbox,
    )  # fmt: skip
    return (layout,)


def _takers(shard: Shard, tasks: set[str]) -> Iterator[Worker]:
    """Who is there for what waits: whoever has none of its tasks does not serve it, however many slots are free."""
    for worker in shard.workforce.by_incarnation.values():
        if worker.takes_runs and (not tasks or not tasks.isdisjoint(worker.record.tasks)):
            yield worker


def _count(shard: Shard, now: datetime) -> int:
    """How many runs want nothing but a slot: at least one does."""
    count = 0
    for more in _wanting(shard, now):
        count += more
        if count >= QUEUED_MAX:
            return QUEUED_MAX
    return max(count, 1)


def _wanting(shard: Shard, now: datetime) -> Iterator[int]:
    """By what holds them alike. Of a concurrency key one is counted: how many its limit lets go is not looked up."""
    for line in shard.waiting.lines.values():
        for stream in line:
            for not_before, _, leaf in stream.heads:
                if not_before > now:
                    break
                yield 1 if leaf.key.concurrency else len(leaf.queue)
