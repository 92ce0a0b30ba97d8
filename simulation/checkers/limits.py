"""Limits of what is with workers: a part of I20. Concurrency keys as runs give them, quotas and pauses as adopted.

Counted anew from the dispatcher's facts: a run is with a worker from its hand-out to the end of that attempt.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from simulation.checkers.reading import DISPATCHER, Data, Fact, facts
from simulation.evidence import Evidence, Violation

ID = "I20"
NAME = tuple[str, str]  # tenant, run id
SHARD = tuple[str, int]  # queue, shard


@dataclass(slots=True)
class _Shard:
    """What is with workers, and how many runs at once the adopted definitions allow a tenant."""

    at_work: dict[NAME, Data] = field(default_factory=dict)
    allowed: dict[str, int | None] = field(default_factory=dict)
    paused: dict[str, str | None] = field(default_factory=dict)  # since when; "" the queue itself


def check(evidence: Evidence) -> Iterator[Violation]:
    """Every hand-out beyond a limit."""
    shards: dict[SHARD, _Shard] = {}
    for fact in facts(evidence, DISPATCHER):
        data = fact.data
        match fact.type:
            case "limits.adopted":
                shard = shards.setdefault((data["queue"], data.get("shard", 0)), _Shard())
                shard.allowed |= {name: given.get("running") for name, given in data.get("tenants", {}).items()}
                shard.paused |= {name: given.get("paused_at") for name, given in data.get("tenants", {}).items()}
                if data.get("limits") is not None:
                    shard.paused[""] = data["limits"].get("paused_at")
            case "run.handed_out":
                shard = shards.setdefault((data["run"]["job"]["queue"], data.get("shard", 0)), _Shard())
                shard.at_work[data["run"]["tenant"], data["run"]["run_id"]] = data["run"]
                yield from _handed_out(shard, fact)
            case "attempt.finished":
                shard = shards.setdefault((data.get("queue", ""), data.get("shard", 0)), _Shard())
                shard.at_work.pop((data["tenant"], data["run_id"]), None)


def _handed_out(shard: _Shard, fact: Fact) -> Iterator[Violation]:
    run = fact.data["run"]
    mine = [other for other in shard.at_work.values() if other["tenant"] == run["tenant"]]
    allowed, said = shard.allowed.get(run["tenant"]), ""
    if allowed is not None and len(mine) > allowed:
        said = f"is handed out beside {len(mine) - 1} of its tenant, of {allowed} that may"
    key = _key(run)
    if key:
        limits = [other["job"]["concurrency"]["limit"] for other in mine if _key(other) == key]
        if len(limits) > min(limits):
            said = f"is handed out beside {len(limits) - 1} of key {key}, of {min(limits)} that may"
    if since := shard.paused.get("") or shard.paused.get(run["tenant"]):
        said = f"is handed out, and its queue is paused for it since {since}"
    if said:
        yield Violation(invariant=ID, what=f"{run['tenant']}: run {run['run_id']} {said}", where=fact.place)


def _key(run: Data) -> str:
    return str((run["job"].get("concurrency") or {}).get("key", ""))
