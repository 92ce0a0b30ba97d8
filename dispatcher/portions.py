"""What one shard may use of a limit that is given for the whole queue. Each shard keeps to its own and asks nobody.

Of a tenant that is spread over n shards, those with numbers under n have a portion: of `running` and `queued` an n-th,
rounded down, and one more where the number is under the remainder. So the portions add up to the limit, and each is
one at least (`schemas.placing.spread`). Of a rate each has an n-th: as many hand-outs in n times the time.

A shard with another number has runs only from before the queue or the quota was changed, or from a scheduler that has
not read the change yet. They must come to an end too: there the tenant may have one at work at a time, one waiting, and
the rate of the others.
"""

from __future__ import annotations

from functools import lru_cache

from schemas import placing, rates
from schemas.frozen import frozen
from schemas.internal import TenantLimits
from schemas.rates import Rate


@frozen
class Portion:
    """Of one tenant in one shard; None: as many as there are."""

    running: int | None = None
    queued: int | None = None
    rate: Rate | None = None


@lru_cache(maxsize=1024)  # tenants with limits, of the shards of one process that were asked for last
def of_tenant(limits: TenantLimits, shards: int, number: int) -> Portion:
    """The portion that shard `number` has of a tenant's limits."""
    over = placing.spread(shards, limits.running, limits.queued)
    return Portion(
        running=_part(limits.running, over, number),
        queued=_part(limits.queued, over, number),
        rate=of_rate(limits.rate, over),
    )


@lru_cache(maxsize=1024)  # as many as there are different ones in a deployment
def of_rate(rate: str | None, over: int) -> Rate | None:
    """The portion of a rate that each of so many shards has."""
    if rate is None:
        return None
    whole = rates.parse(rate)
    return Rate(count=whole.count, per=whole.per * over)


def _part(limit: int | None, over: int, number: int) -> int | None:
    if not limit:
        return limit
    return limit // over + (number < limit % over) if number < over else 1
