"""What holds waiting runs at present, asked by whoever orders them: slots, limits, budgets, turns."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from dispatcher import budgets
from dispatcher.budgets import Budget
from dispatcher.limits import Limits
from dispatcher.shares import Share, Standing
from dispatcher.tripping import Breakers
from dispatcher.workforce import Workforce


class Holds:
    """Implements `waiting.Rules`. `budgets` and `shares` follow from hand-outs, `limits` from what is defined too."""

    def __init__(self, number: int, workforce: Workforce, on_breaker: Callable[[str, str], None]) -> None:
        self._workforce = workforce
        self.limits = Limits(number)
        self.breakers = Breakers(self.limits.breaker_of, workforce.takers, on_breaker)
        self.budgets: dict[str, Budget] = {}  # by tenant/schedule
        self.shares: dict[str, Share] = {}  # by lane

    def is_able(self, task: str) -> bool:
        """See `waiting.Rules`; so all that follows."""
        return self._workforce.pools.is_able(task)

    def is_key_full(self, tenant: str, concurrency: str) -> bool:
        return self.limits.is_key_full((tenant, concurrency))

    def is_breaker_shut(self, tenant: str, breaker: str) -> bool:
        return self.breakers.is_shut(tenant, breaker)

    def is_paused(self) -> bool:
        return self.limits.is_paused

    def is_tenant_held(self, tenant: str) -> bool:
        return self.limits.is_paused_for(tenant) or self.limits.is_full(tenant)

    def tenant_opens_at(self, tenant: str) -> datetime | None:
        return self.limits.tenant_opens_at(tenant)

    def queue_opens_at(self) -> datetime | None:
        return self.limits.queue_opens_at()

    def budget_opens_at(self, tenant: str, schedule: str) -> datetime | None:
        budget = self.budgets.get(f"{tenant}/{schedule}")
        return None if budget is None else budgets.opens_at(budget)

    def stands_at(self, lane: str, tenant: str) -> tuple[int, bool]:
        share = self.share(lane)
        stands_at = share.stands_at(tenant)
        return stands_at, stands_at > share.level

    def share(self, lane: str) -> Share:
        """How the tenants of a lane stand."""
        share = self.shares.get(lane)
        if share is None:
            share = self.shares[lane] = Share(Standing(), self.limits.weight)
        return share
