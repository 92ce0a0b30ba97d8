"""Which shard of its queue a run goes to: chosen when it is created, carried by it, never changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scheduler import keys
from scheduler.plan import Adopted
from scheduler.state import PartitionState
from schemas import codec, identity, placing
from schemas.commands import EVERYONE
from schemas.facts import CatalogEntry, JobSnapshot

Definition = Mapping[str, Any]
UNTIL_THEN = "until the others have ended, a concurrency key may have as many as its limit at work in two shards"


def of(tenant: str, schedule: str, job: JobSnapshot, shared: PartitionState) -> int:
    """The shard, by what the partition has adopted of the queue and of the tenant; an undeclared queue has one."""
    if not shared.sharded:
        return 0
    shards = _adopted(shared, "queue", EVERYONE, job.queue).get("shards", 1)
    if shards == 1:
        return 0
    quota = placing.quota_of(_adopted(shared, "tenant", tenant, EVERYONE), job.queue)
    held_by = schedule if job.concurrency is None else job.concurrency.key
    return identity.shard_of(tenant, held_by, placing.spread(shards, quota.get("running"), quota.get("queued")))


def are_in(kind: str, definition: Definition | None) -> bool:
    """Whether a definition is that of a queue with several."""
    return kind == "queue" and definition is not None and definition.get("shards", 1) > 1


def ever(shared: PartitionState, queue: str) -> int:
    """How many shards of a queue may hold something: those that it had once may not be empty yet."""
    row = shared.rows.get(keys.SHARDED + queue.encode())
    return 1 if row is None else int(row)


def note(shared: PartitionState, entry: CatalogEntry) -> None:
    """A definition is adopted: what the queue had before is not forgotten, also when the definition is deleted."""
    if entry.definition is not None and are_in(entry.kind, entry.definition):
        most = max(ever(shared, entry.name), entry.definition["shards"])
        shared.rows.put(keys.SHARDED + entry.name.encode(), str(most).encode())


def resized(kind: str, before: Definition | None, after: Definition) -> tuple[str, ...]:
    """What whoever gives a queue another number of shards has to know."""
    was, becomes = (definition.get("shards", 1) for definition in (before or {}, after))
    if kind != "queue" or was == becomes:
        return ()
    return (f"/shards: {was} before, {becomes} for runs from now on; {UNTIL_THEN}",)


def _adopted(shared: PartitionState, kind: str, tenant: str, name: str) -> Definition:
    row = shared.rows.get(keys.adopted(kind, tenant, name))
    return {} if row is None else codec.load(Adopted, codec.parse(row)).definition
