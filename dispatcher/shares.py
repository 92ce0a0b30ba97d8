"""Fair shares of the tenants in a lane: who has had how much, since when it was everybody's turn.

Start-time fair queueing. A hand-out costs a tenant `COST` over its weight. A lane's *level* is where the tenant that
was served last stood before it; a tenant stands at the level, or *ahead* of it by what it was given since. Whoever
stands lowest is next, and among those at the level whoever has waited longest: where nobody competes, the oldest run
goes first. Who could not be served saves nothing up, because nobody stands below the level.

Over any stretch in which two tenants always have something to hand out, what each was given, over its weight, differs
by at most one hand-out of each.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import field

from schemas.frozen import frozen

COST = 1_000_000  # of one hand-out at weight 1; with weights up to a thousand no share is rounded by over a thousandth
AHEAD_MAX = 1_000  # tenants of a lane that are remembered to be ahead: a row of 40 KB; the next one in turn is forgiven


@frozen
class Standing:
    """What is stored of a lane: its level, and who is ahead of it, and where."""

    level: int = 0
    ahead: Mapping[str, int] = field(default_factory=dict)


class Share:
    """One lane."""

    def __init__(self, standing: Standing) -> None:
        self.level = standing.level
        self.ahead = dict(standing.ahead)
        self._order = [(stands_at, tenant) for tenant, stands_at in self.ahead.items()]
        heapq.heapify(self._order)

    def stands_at(self, tenant: str) -> int:
        """Where a tenant stands; nobody is below the level."""
        return self.ahead.get(tenant, self.level)

    def serve(self, tenant: str, weight: int) -> list[str]:
        """A run of the tenant is handed out. All who stand elsewhere now, as seen from the level."""
        self.level = self.stands_at(tenant)
        self.ahead[tenant] = self.level + cost_of(weight)
        heapq.heappush(self._order, (self.ahead[tenant], tenant))
        moved = [tenant]
        while self._order and (self._order[0][0] <= self.level or len(self.ahead) > AHEAD_MAX):
            stands_at, other = heapq.heappop(self._order)
            if self.ahead.get(other) == stands_at:
                del self.ahead[other]
                moved.append(other)
        return moved

    def standing(self) -> Standing:
        """What is to be stored."""
        return Standing(level=self.level, ahead=dict(sorted(self.ahead.items())))


def cost_of(weight: int) -> int:
    """What a hand-out costs a tenant."""
    return COST // weight
