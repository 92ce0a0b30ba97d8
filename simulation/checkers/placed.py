"""Runs are in the shard that the definitions their scheduler has adopted give them: a part of I20.

A run is in one of the shards that its tenant is spread over (`portions`). As long as these are as many, all runs of a
concurrency key are in the same one, and so are all of a schedule that has none: or two owners would count one key.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from simulation.checkers import portions
from simulation.checkers.reading import SCHEDULER, Data, Fact, changelogs
from simulation.evidence import Evidence, Violation

ID = "I20"
HELD = tuple[str, str, str, int]  # queue, tenant, concurrency key or schedule, over how many shards


@dataclass(slots=True)
class _Partition:
    """What a partition uses: how many shards queues have, and quotas of tenants by queue."""

    shards: dict[str, int] = field(default_factory=dict)
    quotas: dict[str, Data] = field(default_factory=dict)

    def over(self, tenant: str, queue: str) -> int:
        """In how many shards of a queue a tenant's runs are."""
        quotas = self.quotas.get(tenant, {})
        return portions.over(quotas.get(queue) or quotas.get("*") or {}, self.shards.get(queue, 1))

    def adopt(self, entry: Data) -> None:
        """Another definition is in force."""
        definition = entry.get("definition") or {}
        if entry["kind"] == "queue":
            self.shards[entry["name"]] = definition.get("shards", 1)
        elif entry["kind"] == "tenant":
            self.quotas[entry["tenant"]] = (definition.get("quota") or {}).get("queues") or {}


def check(evidence: Evidence) -> Iterator[Violation]:
    """Every run in a shard that its tenant is not in, or in another one than those it must not run beside."""
    seen: dict[HELD, int] = {}
    for log in changelogs(evidence, SCHEDULER):
        partition = _Partition()
        for fact in log.facts():
            if fact.type == "catalog.adopted":
                for entry in fact.data.get("entries", ()):
                    partition.adopt(entry)
            elif fact.type == "run.created":
                yield from _created(partition, seen, fact)


def _created(partition: _Partition, seen: dict[HELD, int], fact: Fact) -> Iterator[Violation]:
    data, job = fact.data, fact.data["job"]
    tenant, queue, shard = data["tenant"], job["queue"], data.get("shard", 0)
    held_by = (job.get("concurrency") or {}).get("key") or data["schedule"]
    over = partition.over(tenant, queue)
    first = seen.setdefault((queue, tenant, held_by, over), shard)
    if shard >= over:
        what = f"{tenant}: run {data['run_id']} is in shard {shard} of {queue}, where its tenant is in {over}"
        yield Violation(invariant=ID, what=what, where=fact.place)
    elif shard != first:
        what = f"{tenant}: run {data['run_id']} is in shard {shard} of {queue}, where {held_by} was in {first} before"
        yield Violation(invariant=ID, what=what, where=fact.place)
