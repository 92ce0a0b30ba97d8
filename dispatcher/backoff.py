"""How long a failed attempt waits for the next one."""

from __future__ import annotations

import hashlib
import math
from datetime import timedelta

from schemas.facts import RetryPolicy

_MILLISECOND = timedelta(milliseconds=1)


def delay(policy: RetryPolicy, retry: int, run_id: str) -> timedelta:
    """The wait before retry number `retry` (1-based): whole milliseconds, at least one, at most the policy's `max`.

    Full jitter spreads it over (0, backoff]: a hash of the run and the retry, so that it is the same wherever it is
    worked out.
    """
    longest = backoff(policy, retry)
    if policy.jitter == "none":
        return longest
    return max(_whole_milliseconds(longest * _fraction(run_id, retry)), _MILLISECOND)


def backoff(policy: RetryPolicy, retry: int) -> timedelta:
    """The first wait × factor^(retry - 1), capped at `max`; no power is worked out that would be beyond it."""
    if policy.initial >= policy.max:
        return max(_whole_milliseconds(policy.max), _MILLISECOND)
    exponent = retry - 1
    if policy.factor > 1 and exponent >= math.log(policy.max / policy.initial) / math.log(policy.factor):
        return max(_whole_milliseconds(policy.max), _MILLISECOND)
    return max(_whole_milliseconds(min(policy.initial * policy.factor**exponent, policy.max)), _MILLISECOND)


def _fraction(run_id: str, retry: int) -> float:
    """A number in (0, 1] that belongs to this retry of this run."""
    digest = hashlib.sha256(f"{run_id}\0{retry}".encode()).digest()
    return (int.from_bytes(digest[:8], "big") + 1) / 2**64


def _whole_milliseconds(wait: timedelta) -> timedelta:
    return wait // _MILLISECOND * _MILLISECOND
