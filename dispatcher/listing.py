"""When a worker's line in the list of workers is written: what it says changed, or the line is a minute old.

The list is for people. Reports come every few seconds from each of thousands; a line written for each of them would
be most of what a quiet queue writes.
"""

from __future__ import annotations

from datetime import timedelta

from dispatcher.workforce import Worker, shown
from schemas.internal import WorkerListed, WorkerReported

EVERY = timedelta(minutes=1)  # how old the list may be: 5,000 workers are 83 records a second
APART = timedelta(seconds=5)  # an idle report: a worker that says another thing each time is listed no more often


def decide(reported: WorkerReported, worker: Worker | None) -> list[WorkerListed]:
    """The worker's line after a report, if it is to be written; `worker` as it was known before."""
    if worker is not None and worker.record.listed_at is not None:
        record = worker.record
        changed = record.unlisted or shown(record) != shown(reported)
        if reported.reported_at - worker.record.listed_at < (APART if changed else EVERY):
            return []
    line = WorkerListed(
        queue=reported.queue, shard=reported.shard, worker=reported.worker, incarnation=reported.incarnation,
        tasks=reported.tasks, heard_at=reported.reported_at, draining=reported.draining,
        slots_total=reported.slots_total, stuck=reported.stuck, client=reported.client, transport=reported.transport,
    )  # fmt: skip
    return [line]
