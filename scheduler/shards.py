"""Which shard of its queue a run goes to: chosen when it is created, carried by it, never changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scheduler import keys
from scheduler.plan import Adopted
from scheduler.state import PartitionState
from schemas import codec, identity
from schemas.commands import EVERYONE
from schemas.facts import JobSnapshot


def of(tenant: str, schedule: str, job: JobSnapshot, shared: PartitionState) -> int:
    """The shard, by the queue's definition as the partition has adopted it; a queue that has none has one shard."""
    if not shared.sharded:
        return 0
    row = shared.rows.get(keys.adopted("queue", EVERYONE, job.queue))
    shards = 1 if row is None else codec.load(Adopted, codec.parse(row)).definition.get("shards", 1)
    held_by = schedule if job.concurrency is None else job.concurrency.key
    return identity.shard_of(tenant, held_by, shards)


def are_in(kind: str, definition: Mapping[str, Any] | None) -> bool:
    """Whether a definition is that of a queue with several."""
    return kind == "queue" and definition is not None and definition.get("shards", 1) > 1
