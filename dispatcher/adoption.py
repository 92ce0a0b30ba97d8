"""How definitions of queues and tenants come into a shard.

The partition reads the topic `catalog` and logs `catalog.adopted`; what stands there of queues and tenants is its own
state, with the order in which it changed. A shard follows: at its next decision it takes over what changed since it
last looked. Workers report every few seconds, so no shard with anything to hand out stays behind.

    x/<kind>/<tenant>/<name>   the definition as adopted
    o/<offset>                 whose it is: so that a shard that follows reads only what changed
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any

from dispatcher import portions
from dispatcher.portions import Portion
from dispatcher.shard import Shard
from runtime.machine import Moment, Rows
from schemas import codec, durations, placing
from schemas.facts import BreakerPolicy, CatalogAdopted, CatalogEntry
from schemas.frozen import frozen
from schemas.internal import LimitsAdopted, QueueLimits, TenantLimits

ROLE = "dispatcher"
ADOPTED = frozenset({"queue", "tenant"})  # kinds of the catalog that decisions here rest on
CHANGES_PER_STEP = 256  # that a shard takes over at once: a new one begins with all there are
HEAD, DEFINITION = b"s", b"x/"
CHANGE, CHANGE_END = b"o/", b"o0"  # "0" follows "/"


@frozen
class CatalogRead:
    """A record of the catalog, as an input of the partition."""

    entry: CatalogEntry
    offset: int
    position: str = ""


@frozen
class Definition:
    """A definition as adopted, and where it stood."""

    offset: int
    definition: Mapping[str, Any]


@frozen
class SharedHead:
    """What a partition has besides definitions."""

    offset: int = -1


@dataclass(slots=True)
class Shared:
    """What all shards of a partition share: queues and tenants as the catalog has them up to `offset`."""

    rows: Rows
    offset: int = -1
    saved_offset: int = -1


def load(rows: Rows) -> Shared:
    """The shared state as stored."""
    stored = rows.get(HEAD)
    offset = -1 if stored is None else codec.load(SharedHead, codec.parse(stored)).offset
    return Shared(rows=rows, offset=offset, saved_offset=offset)


def save(shared: Shared, rows: Rows) -> None:
    """Write what changed."""
    shared.rows = rows
    if shared.offset != shared.saved_offset:
        rows.put(HEAD, codec.dump(SharedHead(offset=shared.offset)))
        shared.saved_offset = shared.offset


def adopt(shared: Shared, input_: CatalogRead, partition: int, moment: Moment) -> Sequence[CatalogAdopted]:
    """The partition uses what the catalog says from now on; known records and other kinds are left alone."""
    if input_.offset <= shared.offset or input_.entry.kind not in ADOPTED:
        return ()
    fact = CatalogAdopted(
        role=ROLE, partition=partition, offset=input_.offset, adopted_at=moment.now, entries=(input_.entry,),
        position=input_.position,
    )  # fmt: skip
    return (fact,)


def evolve(shared: Shared, fact: CatalogAdopted) -> None:
    """The definition stands in its row, and last in the order of changes."""
    for entry in fact.entries:
        row = DEFINITION + entry.subject.encode()
        known = shared.rows.get(row)
        if known is not None:
            shared.rows.delete(_change(codec.load(Definition, codec.parse(known)).offset))
        # One that was deleted keeps its row, so that shards hear of it: names are few, and come back.
        adopted = Definition(offset=fact.offset, definition=entry.definition or {})
        shared.rows.put(row, codec.dump(adopted))
        shared.rows.put(_change(fact.offset), entry.subject.encode())
    shared.offset = fact.offset


def follow(shard: Shard, shared: object, moment: Moment) -> Sequence[LimitsAdopted]:
    """What a shard takes over of what changed since it last looked."""
    if not isinstance(shared, Shared) or shared.offset <= shard.limits_offset:
        return ()
    changes = list(islice(_changes(shared.rows, shard.limits_offset + 1), CHANGES_PER_STEP))
    queue: QueueLimits | None = None
    tenants: dict[str, TenantLimits] = {}
    for _, kind, tenant, name, definition in changes:
        if kind == "tenant":
            known = shard.limits.tenants.get(tenant, TenantLimits())
            limits = _tenant_limits(definition, shard.queue, known.paused_at or moment.now)
            if limits != known:
                tenants[tenant] = limits
        elif name == shard.queue:
            queue = _queue_limits(definition, shard.limits.queue.paused_at or moment.now)
    fact = LimitsAdopted(
        queue=shard.queue, shard=shard.number, offset=changes[-1][0], adopted_at=moment.now, limits=queue,
        tenants=tenants,
    )  # fmt: skip
    return (fact,)


def portion_of(shard: Shard, tenant: str, followed: Sequence[LimitsAdopted]) -> Portion:
    """What a tenant may use of the shard, by what is defined and by what the same decision takes over of it."""
    if not followed:
        return shard.limits.portion(tenant)
    queue = followed[0].limits or shard.limits.queue
    limits = followed[0].tenants.get(tenant) or shard.limits.tenants.get(tenant, TenantLimits())
    return portions.of_tenant(limits, queue.shards, shard.number)


def _changes(rows: Rows, offset: int) -> Iterator[tuple[int, str, str, str, Mapping[str, Any]]]:
    for row, subject in rows.scan(_change(offset), CHANGE_END):
        kind, tenant, name = subject.decode().split("/")
        stored = rows.get(DEFINITION + subject)
        assert stored is not None, f"{subject!r} changed and is not there"
        yield int(row[len(CHANGE) :], 16), kind, tenant, name, codec.load(Definition, codec.parse(stored)).definition


def _queue_limits(definition: Mapping[str, Any], since: datetime) -> QueueLimits:
    paused_at = None if definition.get("paused") is None else since
    return QueueLimits(
        weights=definition.get("weights", {}), rate=definition.get("rate"), paused_at=paused_at,
        shards=definition.get("shards", 1),
    )  # fmt: skip


def _tenant_limits(definition: Mapping[str, Any], queue: str, since: datetime) -> TenantLimits:
    quota = placing.quota_of(definition, queue)
    return TenantLimits(
        running=quota.get("running"), queued=quota.get("queued"), rate=quota.get("rate"),
        paused_at=None if quota.get("paused") is None else since,
        breaker=None if quota.get("breaker") is None else _breaker(quota["breaker"]),
    )  # fmt: skip


def _breaker(given: Mapping[str, Any]) -> BreakerPolicy:
    return BreakerPolicy(
        failures=given["failures"], percent=int(given["share"].rstrip("%")), window=durations.parse(given["window"]),
        wait=durations.parse(given["wait"]), probes=given["probes"],
    )  # fmt: skip


def _change(offset: int) -> bytes:
    return CHANGE + b"%016x" % offset
