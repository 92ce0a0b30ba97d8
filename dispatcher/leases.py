"""The right to an attempt: what a worker quotes, and what that is worth now.

A lease text is `<queue>.<shard>.<offset>.<key>`. It proves anything only as a whole, and only together with the
incarnation that was given it: whatever else a report names is treated as if it did not exist, all such texts alike.
"""

from __future__ import annotations

from dispatcher.memory import PastLease
from dispatcher.run import OpenRun
from dispatcher.shard import Shard

OFFSET_DIGITS_MAX = 18  # so that any offset fits the eight bytes of a row's key


def live(shard: Shard, incarnation: str, text: str) -> OpenRun | None:
    """The run of a live lease that this incarnation holds."""
    run = shard.leases.get(text)
    return run if run is not None and run.incarnation == incarnation and run.is_leased else None


def ended(shard: Shard, incarnation: str, text: str) -> OpenRun | None:
    """The run of a lease that this incarnation held, as long as the run has not been handed out again."""
    run = shard.leases.get(text)
    return run if run is not None and run.incarnation == incarnation and not run.is_leased else None


def taken_back(shard: Shard, incarnation: str, text: str) -> PastLease | None:
    """The lease that this incarnation held until the shard took it back."""
    offset = _offset_of(text)
    past = None if offset is None else shard.memory.past(offset)
    return past if past is not None and (past.lease, past.incarnation) == (text, incarnation) else None


def holder(shard: Shard, text: str) -> str | None:
    """The incarnation that a lease was given to, live or not, as long as that is remembered."""
    run = shard.leases.get(text)
    if run is not None:
        return run.incarnation
    offset = _offset_of(text)
    past = None if offset is None else shard.memory.past(offset)
    return past.incarnation if past is not None and past.lease == text else None


def _offset_of(text: str) -> int | None:
    """Where to look for a text that may be a lease."""
    digits = text.rpartition(".")[0].rpartition(".")[2]
    if digits.isascii() and digits.isdigit() and len(digits) <= OFFSET_DIGITS_MAX:
        return int(digits)
    return None
