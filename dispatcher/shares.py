"""Fair shares of the tenants in a lane: of the time for which slots are held, not of how often they are given.

Start-time fair queueing of slot time. A lane remembers what each tenant has *used*, in microseconds of slots over its
weight, beyond the lane's *level*; nobody has used less than that, so who was away or could not be served saves nothing
up. A run that is with a worker is charged as it goes on, with the reports of its worker, and to the microsecond when
it ends. Until then nobody knows how long it will take, so each run at work counts `RESERVED` in advance, for as long
as it is: whoever stands lowest is next, by use and reserve together. Among those who stand alike whoever has waited
longest is: where nobody competes, the oldest run goes first.

So where slots are many, what counts is how many of them a tenant holds, over its weight: one whose runs hang gets no
slot beyond its share while others wait, from the first moment on. Where they are few, what counts is how long it held
them. What nobody else waits for costs nothing: alone, a tenant has all there is.

Over any stretch in which two tenants always have something to hand out, what each used, over its weight, differs by no
more than `RESERVED` over its weight for each slot that the other holds, and by what its last runs still take.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import field
from datetime import timedelta

from schemas.frozen import frozen

PERIOD = timedelta(seconds=5)  # at most so often a worker's runs are charged: with idle reports, or a few prompt ones
RESERVED = 5_000_000  # of a run at work at weight 1: so much it may have used when it is charged next
HAND_OUT = 1_000  # what a slot is taken for in any case: a run of no time at all is not for nothing
AHEAD_MAX = 1_000  # tenants of a lane whose use is remembered: a row of 40 KB; the one that has used least is forgiven
_MICROSECOND = timedelta(microseconds=1)


@frozen
class Standing:
    """What is stored of a lane: its level, and who has used more than that, and how much."""

    level: int = 0
    ahead: Mapping[str, int] = field(default_factory=dict)


class Share:
    """One lane. Who is at work is told, and stored with the runs."""

    def __init__(self, standing: Standing, weight_of: Callable[[str], int]) -> None:
        self._weight_of = weight_of
        self.level = standing.level
        self.ahead = dict(standing.ahead)
        self.at_work: Counter[str] = Counter()
        self._order = [(used, tenant) for tenant, used in self.ahead.items()]
        heapq.heapify(self._order)
        # Of those at work; others are left out when they come up. None: to be made when the level may rise.
        self._busy: list[tuple[int, str]] | None = None

    def stands_at(self, tenant: str) -> int:
        """Where a tenant stands; nobody is below the level."""
        return self._used(tenant) + self.at_work[tenant] * (RESERVED // self._weight_of(tenant))

    def serve(self, tenant: str) -> list[str]:
        """A run of the tenant is handed out. All who stand elsewhere now, as seen from the level."""
        used, weight, at_work = self._used(tenant), self._weight_of(tenant), self.at_work[tenant]
        stands_at = used + at_work * (RESERVED // weight)
        self.at_work[tenant] = at_work + 1
        self._use(tenant, used + HAND_OUT // weight)
        self._rise(used, stands_at)
        return [tenant, *self._forget()]

    def charge(self, tenant: str, time: timedelta) -> list[str]:
        """A run of the tenant has held a slot for so long since it was charged last. All who stand elsewhere now."""
        self._use(tenant, self._used(tenant) + time // _MICROSECOND // self._weight_of(tenant))
        return [tenant, *self._forget()]

    def resume(self, tenant: str) -> None:
        """A run of the tenant is with a worker, as it was before."""
        self.at_work[tenant] += 1
        self._busy = None

    def release(self, tenant: str) -> None:
        """One is no longer."""
        self.at_work[tenant] -= 1
        if not self.at_work[tenant]:
            del self.at_work[tenant]

    def begin_anew(self) -> None:
        """Nobody competes: what was used until now was in nobody's way."""
        self.level, self.ahead = 0, {}
        self._order = []
        self._busy = None

    def standing(self) -> Standing:
        """What is to be stored."""
        return Standing(level=self.level, ahead=dict(sorted(self.ahead.items())))

    def _used(self, tenant: str) -> int:
        return max(self.level, self.ahead.get(tenant, self.level))

    def _use(self, tenant: str, used: int) -> None:
        self.ahead[tenant] = used
        heapq.heappush(self._order, (used, tenant))
        if self._busy is not None:
            heapq.heappush(self._busy, (used, tenant))
        if len(self._order) + len(self._busy or ()) > 4 * (len(self.ahead) + len(self.at_work)) + AHEAD_MAX:
            self._order = sorted((used, tenant) for tenant, used in self.ahead.items())
            self._busy = None

    def _rise(self, used: int, stands_at: int) -> None:
        """The level follows whoever was served, up to the least used by anyone who waits for his next turn.

        Who stands lower than who was served would have been served, had he something to hand out: nobody waits for him.
        """
        if used <= self.level:
            return
        if self._busy is None:
            self._busy = sorted((self._used(tenant), tenant) for tenant in self.at_work)
        while self._busy:
            least, other = self._busy[0]
            if self._used(other) == least and self.at_work[other] and self.stands_at(other) >= stands_at:
                used = min(used, least)
                break
            heapq.heappop(self._busy)
        self.level = used

    def _forget(self) -> list[str]:
        """Those who have used no more than the level, or of too many the least."""
        gone = []
        while self._order and (self._order[0][0] <= self.level or len(self.ahead) > AHEAD_MAX):
            used, tenant = heapq.heappop(self._order)
            if self.ahead.get(tenant) == used:
                del self.ahead[tenant]
                gone.append(tenant)
        return gone


def cost_of(weight: int) -> int:
    """By how much a hand-out moves a tenant."""
    return RESERVED // weight + HAND_OUT // weight
