"""Limits of what is with workers, and of what waits: a part of I20. Keys as runs give them, quotas as adopted.

Breakers are heeded too: nothing goes while one is open, and of a suspect one run at a time.

Counted anew from the dispatcher's facts: a run is with a worker from its hand-out to the end of that attempt, and waits
for as long as it is open otherwise. One that comes when too many wait ends at once, and no other ends for that reason.

Each shard of a queue has a part of a quota. Whatever part it takes: what the shards of a queue had at work at most,
each while the same was defined, adds up to no more than the quota. So clocks of different owners need not be compared.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from simulation.checkers import portions
from simulation.checkers.reading import DISPATCHER, Data, Fact, facts
from simulation.evidence import Evidence, Violation

ID = "I20"
NAME = tuple[str, str]  # tenant, run id
SHARD = tuple[str, int]  # queue, shard
DEFINED = tuple[str, str, int, int, int | None]  # queue, tenant, shards, running, queued


@dataclass(slots=True)
class _Shard:
    """What is with workers, what is open, and what the adopted definitions say of a tenant in the whole queue."""

    queue: str = ""
    number: int = 0
    shards: int = 1
    at_work: dict[NAME, Data] = field(default_factory=dict)
    open: set[NAME] = field(default_factory=set)
    limits: dict[str, Data] = field(default_factory=dict)
    paused: dict[str, str | None] = field(default_factory=dict)  # since when; "" the queue itself
    open_until: dict[NAME, str] = field(default_factory=dict)  # tenant, breaker of a job or schedule
    suspects: dict[NAME, set[NAME]] = field(default_factory=dict)  # the same, and which runs of it are tried

    def waiting(self, tenant: str) -> int:
        """How many runs of a tenant wait."""
        return sum(run[0] == tenant and run not in self.at_work for run in self.open)

    def allowed(self, tenant: str, what: str) -> int | None:
        """How many of a tenant's runs may be at work here, or wait."""
        return portions.part(self.limits.get(tenant, {}), what, self.shards, self.number)

    def adopt(self, data: Data) -> None:
        """Other definitions are in force."""
        self.limits |= data.get("tenants", {})
        self.paused |= {name: given.get("paused_at") for name, given in data.get("tenants", {}).items()}
        if data.get("limits") is not None:
            self.paused[""] = data["limits"].get("paused_at")
            self.shards = data["limits"].get("shards", 1)


class _Shards(dict[SHARD, _Shard]):
    def __missing__(self, name: SHARD) -> _Shard:
        self[name] = _Shard(*name)
        return self[name]


def check(evidence: Evidence) -> Iterator[Violation]:
    """Every hand-out beyond a limit."""
    shards, most = _Shards(), defaultdict[DEFINED, dict[int, int]](dict)
    for fact in facts(evidence, DISPATCHER):
        data = fact.data
        match fact.type:
            case "limits.adopted":
                shards[data["queue"], data.get("shard", 0)].adopt(data)
            case "run.created":
                shard = shards[data["job"]["queue"], data.get("shard", 0)]
                yield from _taken(shard, fact)
                shard.open.add((data["tenant"], data["run_id"]))
            case "run.finished" if not data.get("repeat"):
                shard = shards[data.get("queue", ""), data.get("shard", 0)]
                yield from _turned_away(shard, fact)
                shard.open.discard((data["tenant"], data["run_id"]))
            case "run.handed_out":
                shard = shards[data["run"]["job"]["queue"], data.get("shard", 0)]
                shard.at_work[data["run"]["tenant"], data["run"]["run_id"]] = data["run"]
                yield from _handed_out(shard, fact)
                yield from _all_shards(shard, most, fact)
            case "breaker.changed":
                shard = shards[data["queue"], data.get("shard", 0)]
                _changed(shard, data)
                shard.open_until.pop((data["tenant"], data["breaker"]), None)
                if data["state"] == "open":
                    shard.open_until[data["tenant"], data["breaker"]] = data["until"]
            case "attempt.finished":
                shard = shards[data.get("queue", ""), data.get("shard", 0)]
                shard.at_work.pop((data["tenant"], data["run_id"]), None)
                for tried in shard.suspects.values():
                    tried.discard((data["tenant"], data["run_id"]))


def _changed(shard: _Shard, data: Data) -> None:
    """A breaker is a suspect's from `losses` on, until it is closed; while it is open none of its runs is tried."""
    name = data["tenant"], data["breaker"]
    if data["state"] == "closed":
        shard.suspects.pop(name, None)
    elif data["reason"] == "losses" or name in shard.suspects:
        shard.suspects[name] = set()


def _taken(shard: _Shard, fact: Fact) -> Iterator[Violation]:
    tenant = fact.data["tenant"]
    most, waiting = shard.allowed(tenant, "queued"), shard.waiting(tenant)
    if most is not None and waiting >= most:
        what = f"{tenant}: run {fact.data['run_id']} is taken while {waiting} of its tenant wait, of {most} that may"
        yield Violation(invariant=ID, what=what, where=fact.place)


def _turned_away(shard: _Shard, fact: Fact) -> Iterator[Violation]:
    tenant = fact.data["tenant"]
    most, waiting = shard.allowed(tenant, "queued"), shard.waiting(tenant)
    if fact.data.get("reason") == "quota" and (most is None or waiting < most):
        of = "any number" if most is None else str(most)
        what = (
            f"{tenant}: run {fact.data['run_id']} is turned away while {waiting} of its tenant wait, of {of} that may"
        )
        yield Violation(invariant=ID, what=what, where=fact.place)


def _handed_out(shard: _Shard, fact: Fact) -> Iterator[Violation]:
    run = fact.data["run"]
    mine = [other for other in shard.at_work.values() if other["tenant"] == run["tenant"]]
    allowed, said = shard.allowed(run["tenant"], "running"), ""
    if allowed is not None and len(mine) > allowed:
        said = f"is handed out beside {len(mine) - 1} of its tenant, of {allowed} that may"
    key = _key(run)
    if key:
        limits = [other["job"]["concurrency"]["limit"] for other in mine if _key(other) == key]
        if len(limits) > min(limits):
            said = f"is handed out beside {len(limits) - 1} of key {key}, of {min(limits)} that may"
    if since := shard.paused.get("") or shard.paused.get(run["tenant"]):
        said = f"is handed out, and its queue is paused for it since {since}"
    name = run["job"].get("name")
    breaker = f"schedule:{run['schedule']}" if name is None else f"job:{name}"
    if until := shard.open_until.get((run["tenant"], breaker)):
        said = f"is handed out, and {breaker} is open until {until}"
    tried = shard.suspects.get((run["tenant"], breaker))
    if tried:
        said = f"is handed out beside {len(tried)} of {breaker}, which is a suspect"
    if tried is not None:
        tried.add((run["tenant"], run["run_id"]))
    if said:
        yield Violation(invariant=ID, what=f"{run['tenant']}: run {run['run_id']} {said}", where=fact.place)


def _all_shards(shard: _Shard, most: defaultdict[DEFINED, dict[int, int]], fact: Fact) -> Iterator[Violation]:
    """What the shards in which a tenant is had at most adds up to its quota, or less."""
    tenant = fact.data["run"]["tenant"]
    limits = shard.limits.get(tenant, {})
    running = limits.get("running")
    if running is None or shard.shards == 1 or shard.number >= portions.over(limits, shard.shards):
        return
    seen = most[shard.queue, tenant, shard.shards, running, limits.get("queued")]
    at_work = sum(other["tenant"] == tenant for other in shard.at_work.values())
    seen[shard.number] = max(at_work, seen.get(shard.number, 0))
    if sum(seen.values()) > running:
        counts = ", ".join(f"{count} in shard {number}" for number, count in sorted(seen.items()))
        what = f"{tenant}: its {running} runs at work in queue {shard.queue} were {counts}"
        yield Violation(invariant=ID, what=what, where=fact.place)


def _key(run: Data) -> str:
    return str((run["job"].get("concurrency") or {}).get("key", ""))
