"""What is allowed and how much of it is used: quotas of tenants, rates, and concurrency keys.

What is allowed stands in the catalog, for keys in the runs themselves, and comes here by facts; of what is given for a
queue with several shards, each has its portion. What is used follows from the runs that are open. A run that was taken
back from its worker counts no longer, though the worker may not know yet: the next holder has the newer lease.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime

from dispatcher import pacing, portions
from dispatcher.portions import Portion
from dispatcher.run import OpenRun
from schemas.facts import BreakerPolicy
from schemas.frozen import frozen
from schemas.internal import QueueLimits, TenantLimits
from schemas.rates import Rate

NO_LIMITS, UNLIMITED = TenantLimits(), Portion()
KeyName = tuple[str, str]  # tenant, concurrency key


@frozen
class Pace:
    """How far a rate is used up. `tenant` empty: the queue's own."""

    tenant: str
    reserved_until: datetime


class KeyUse:
    """The runs of a concurrency key. The smallest limit that an open run gives counts."""

    __slots__ = ("limits", "running")

    def __init__(self) -> None:
        self.limits: Counter[int] = Counter()
        self.running = 0

    @property
    def is_full(self) -> bool:
        """Whether none may be handed out."""
        return self.running >= min(self.limits)


class Limits:
    """Of one shard, by its number."""

    def __init__(self, number: int) -> None:
        self._number = number
        self.queue = QueueLimits()
        self.tenants: dict[str, TenantLimits] = {}  # of the whole queue
        self._portions: dict[str, Portion] = {}  # of them
        self.paces: dict[str, Pace] = {}
        self.running: Counter[str] = Counter()
        self.waiting: Counter[str] = Counter()
        self.keys: dict[KeyName, KeyUse] = {}

    # --- questions ------------------------------------------------------------------------------------------------

    def weight(self, tenant: str) -> int:
        """A tenant's weight among the others."""
        return self.queue.weights.get(tenant, 1)

    @property
    def is_paused(self) -> bool:
        """Whether nothing is handed out."""
        return self.queue.paused_at is not None

    def is_paused_for(self, tenant: str) -> bool:
        """Whether nothing of a tenant is handed out, as its own definition says."""
        limits = self.tenants.get(tenant)
        return limits is not None and limits.paused_at is not None

    def paused_at(self, tenant: str) -> datetime | None:
        """Since when a tenant's runs wait because somebody paused them or the queue; None: nobody did."""
        limits = self.tenants.get(tenant)
        if limits is None or limits.paused_at is None:
            return self.queue.paused_at
        return limits.paused_at if self.queue.paused_at is None else min(self.queue.paused_at, limits.paused_at)

    def breaker_of(self, tenant: str) -> BreakerPolicy | None:
        """When breakers of a tenant open, as its definition says."""
        limits = self.tenants.get(tenant)
        return None if limits is None else limits.breaker

    def portion(self, tenant: str) -> Portion:
        """What a tenant may use here."""
        return self._portions.get(tenant, UNLIMITED)

    def is_full(self, tenant: str) -> bool:
        """Whether a tenant has as many runs at work as it may."""
        portion = self._portions.get(tenant)
        return portion is not None and portion.running is not None and self.running[tenant] >= portion.running

    def is_key_full(self, key: KeyName) -> bool:
        """Whether as many runs of the key are at work as may be."""
        return self.keys[key].is_full

    def is_limited(self, tenant: str) -> bool:
        """Whether what a tenant may be handed depends on what it was handed just now."""
        portion = self._portions.get(tenant)
        return portion is not None and (portion.running is not None or portion.rate is not None)

    def has_rate(self, tenant: str) -> bool:
        """Whether hand-outs of a tenant are paced."""
        return self.queue.rate is not None or self.portion(tenant).rate is not None

    def tenant_opens_at(self, tenant: str) -> datetime | None:
        """From when a tenant's rate allows a hand-out; None: always."""
        portion = self._portions.get(tenant)
        return None if portion is None else self._opens_at(portion.rate, tenant)

    def queue_opens_at(self) -> datetime | None:
        """From when the queue's own rate allows one."""
        return self._opens_at(self._queue_rate(), "")

    def _queue_rate(self) -> Rate | None:
        return portions.of_rate(self.queue.rate, self.queue.shards)

    def _opens_at(self, rate: Rate | None, tenant: str) -> datetime | None:
        pace = self.paces.get(tenant)
        return None if rate is None or pace is None else pacing.opens_at(rate, pace.reserved_until)

    # --- changes --------------------------------------------------------------------------------------------------

    def define_queue(self, limits: QueueLimits) -> None:
        """What the queue's definition says from now on. With another number of shards all portions are others."""
        self.queue = limits
        if limits.rate is None:
            self.paces.pop("", None)
        for tenant, given in self.tenants.items():
            self._portions[tenant] = portions.of_tenant(given, limits.shards, self._number)

    def define_tenant(self, tenant: str, limits: TenantLimits) -> None:
        """What a tenant's definition says of the queue from now on."""
        self.tenants.pop(tenant, None)
        self._portions.pop(tenant, None)
        if limits != NO_LIMITS:
            self.tenants[tenant] = limits
            self._portions[tenant] = portions.of_tenant(limits, self.queue.shards, self._number)
        if limits.rate is None:
            self.paces.pop(tenant, None)

    def opened(self, run: OpenRun) -> None:
        """A run is there."""
        if run.concurrency:
            self.keys.setdefault(key_name(run), KeyUse()).limits[run.concurrency_limit] += 1

    def closed(self, run: OpenRun) -> None:
        """A run is over; it was given back before."""
        if run.concurrency:
            use = self.keys[key_name(run)]
            use.limits -= Counter((run.concurrency_limit,))
            if not use.limits:
                del self.keys[key_name(run)]

    def taken(self, run: OpenRun) -> None:
        """A run is with a worker."""
        self.running[run.tenant] += 1
        if run.concurrency:
            self.keys[key_name(run)].running += 1

    def given_back(self, run: OpenRun) -> None:
        """A run is with a worker no longer."""
        _less(self.running, run.tenant)
        if run.concurrency:
            self.keys[key_name(run)].running -= 1

    def began_to_wait(self, run: OpenRun) -> None:
        """A run waits."""
        self.waiting[run.tenant] += 1

    def stopped_waiting(self, run: OpenRun) -> None:
        """A run waits no longer."""
        _less(self.waiting, run.tenant)

    def pace(self, tenant: str, at: datetime) -> list[str]:
        """A run of the tenant is handed out: whose rate is used further now, "" for the queue's."""
        if not self.has_rate(tenant):
            return []
        asked = {"": self._queue_rate(), tenant: self.portion(tenant).rate}
        paced = [(name, rate) for name, rate in asked.items() if rate is not None]
        for name, rate in paced:
            known = self.paces.get(name)
            until = pacing.after(rate, None if known is None else known.reserved_until, at)
            self.paces[name] = Pace(tenant=name, reserved_until=until)
        return [name for name, _ in paced]


def key_name(run: OpenRun) -> KeyName:
    """What the runs of a concurrency key go by: keys belong to a tenant."""
    return run.tenant, run.concurrency


def _less(counter: Counter[str], name: str) -> None:
    counter[name] -= 1
    if not counter[name]:
        del counter[name]
