"""What waits and runs in a queue, shard by shard."""

from __future__ import annotations

from typing import TYPE_CHECKING

from projections.runs import RUNNING
from projections.store import backlog as open_runs
from projections.store.reader import ALL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from api import views
    from projections.store.reader import Reader


def backlog(reader: Reader, queue: str) -> views.Json:
    """Sums, and each shard that the queue has. One that it has no more is `leaving`, and shown until it is empty.

    `at_least`: there are more runs than are counted for one answer.
    """
    declared = reader.entry(ALL, "queue", queue)
    shards = 1 if declared is None else declared["definition"].get("shards", 1)
    seen = open_runs.backlog(reader, queue)
    numbers = sorted({*range(shards), *(row["shard"] for row in seen)})
    of_each = [(number, [row for row in seen if row["shard"] == number]) for number in numbers]
    view: views.Json = {"queue": queue, **_counts(seen), "shards": [_shard(*each, shards) for each in of_each]}
    if sum(row["count"] for row in seen) >= open_runs.OPEN_MAX:
        view["at_least"] = True
    return view


def _shard(number: int, rows: Sequence[views.Row], shards: int) -> views.Json:
    return {"shard": number, **_counts(rows), **({"leaving": True} if number >= shards else {})}


def _counts(rows: Sequence[views.Row]) -> views.Json:
    waiting = [row for row in rows if row["state"] != RUNNING]
    running = sum(row["count"] for row in rows if row["state"] == RUNNING)
    counts = {"waiting": sum(row["count"] for row in waiting), "running": running}
    return {**counts, "oldest_at": min(row["oldest_at"] for row in waiting)} if waiting else counts
