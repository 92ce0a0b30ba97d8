"""What a shard may use of a limit that is given for its whole queue, dealt out like cards: one to each in turn.

A tenant is in no more shards than it may have runs. What a shard beyond those still holds comes to an end one by one.
"""

from __future__ import annotations

from simulation.checkers.reading import Data


def over(limits: Data, shards: int) -> int:
    """In how many shards a tenant is."""
    given = (limits.get(name) for name in ("running", "queued"))
    return min([shards, *(int(limit) for limit in given if limit)])


def part(limits: Data, name: str, shards: int, number: int) -> int | None:
    """How much of `running` or `queued` shard `number` has; None: nothing is said."""
    limit, players = limits.get(name), over(limits, shards)
    if limit is None:
        return None
    return len(range(number, limit, players)) if number < players else min(1, limit)
