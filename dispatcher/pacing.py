"""Rates: when the next hand-out may be, so that there are no more than so many in a second, a minute or an hour.

Hand-outs are evenly spaced. Faster than `STEP` apart they come in bursts of at most a step's worth, because no owner
looks more often: in every window the excess over the rate is at most that one burst.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from schemas.rates import Rate

STEP = timedelta(milliseconds=50)
_MILLISECOND = timedelta(milliseconds=1)


def after(rate: Rate, reserved_until: datetime | None, at: datetime) -> datetime:
    """Up to when the rate is used up, once there is a hand-out at `at`."""
    begun = at if reserved_until is None else max(reserved_until, at)
    return begun + rate.per / rate.count


def opens_at(rate: Rate, reserved_until: datetime) -> datetime:
    """When the next hand-out may be; a whole millisecond, as all instants are."""
    apart = rate.per / rate.count
    opens = reserved_until - (timedelta() if apart >= STEP else STEP)
    part = timedelta(microseconds=opens.microsecond % 1000)
    return opens if not part else opens - part + _MILLISECOND
