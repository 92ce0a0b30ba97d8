"""What waits and runs in a queue: a question of its own beside the reader's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import func, select

from projections.store import tables
from projections.store.reader import OPEN_STATES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from projections.store.reader import Reader, Row

OPEN_MAX = 100_000  # open runs that are counted for one answer: 0.1 s; whoever has more is told at least so many


def backlog(reader: Reader, queue: str) -> Sequence[Row]:
    """How many runs are open in each shard of a queue, by state, and when the oldest of them was created."""
    table = tables.RUNS
    of_queue = select(table.c.shard, table.c.state, table.c.created_at)
    seen = of_queue.where(table.c.state.in_(OPEN_STATES), table.c.queue == queue).limit(OPEN_MAX).subquery()
    counted = (func.count().label("count"), func.min(seen.c.created_at).label("oldest_at"))
    shard = func.coalesce(seen.c.shard, 0).label("shard")
    grouped = select(shard, seen.c.state, *counted).group_by(shard, seen.c.state).order_by(shard, seen.c.state)
    return reader._all(grouped)  # noqa: SLF001 -- it would not fit into the reader's file
