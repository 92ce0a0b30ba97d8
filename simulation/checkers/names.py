"""A name of a worker has one process: a part of I6.

Whoever reports under the name of another incarnation takes its place at once: nothing that one holds is left to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from simulation.checkers.reading import DISPATCHER, Fact, changelogs
from simulation.evidence import Evidence, Violation

ID = "I6"
SHARD = tuple[str, int]  # queue and number


@dataclass(slots=True)
class _Shard:
    """Who has which name, and what each holds."""

    named: dict[str, str] = field(default_factory=dict)
    held: dict[str, set[int]] = field(default_factory=dict)  # hand-outs, by incarnation


def check(evidence: Evidence) -> Iterator[Violation]:
    """Every incarnation that keeps its leases when its name is another's."""
    for log in changelogs(evidence, DISPATCHER):
        shards: dict[SHARD, _Shard] = {}
        for fact in log.facts():
            if "incarnation" in fact.data:
                yield from _follow(shards.setdefault(_shard(fact), _Shard()), fact)


def _shard(fact: Fact) -> SHARD:
    data: Any = fact.data
    return str(data.get("queue") or data.get("run", {}).get("job", {}).get("queue", "")), int(data.get("shard", 0))


def _follow(shard: _Shard, fact: Fact) -> Iterator[Violation]:
    data: Any = fact.data
    incarnation: str = data["incarnation"]
    match fact.type:
        case "worker.reported" if "worker" in data:
            before = shard.named.get(data["worker"], incarnation)
            shard.named[data["worker"]] = incarnation
            if before != incarnation and shard.held.get(before):
                left = len(shard.held.pop(before))
                what = f"{incarnation} has the name {data['worker']}, and {left} leases are left to {before}"
                yield Violation(invariant=ID, what=what, where=fact.place)
        case "run.handed_out":
            shard.held.setdefault(incarnation, set()).add(data["offset"])
        case "attempt.finished":
            shard.held.get(incarnation, set()).discard(data["handout"])
