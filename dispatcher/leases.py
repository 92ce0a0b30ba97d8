"""The right to an attempt: what a worker quotes, and what that is worth now.

A lease text is `<queue>.<shard>.<offset>.<key>`. Only the key proves anything, and only together with the incarnation
that was given it: whatever else a report names is treated as if it did not exist, all such texts alike.
"""

from __future__ import annotations

from dispatcher.memory import PastLease
from dispatcher.run import OpenRun
from dispatcher.shard import Shard

OFFSET_DIGITS_MAX = 18


def live(shard: Shard, incarnation: str, text: str) -> OpenRun | None:
    """The run of a live lease that this incarnation holds."""
    run = _quoted(shard, incarnation, text)
    return run if run is not None and run.is_leased else None


def ended(shard: Shard, incarnation: str, text: str) -> OpenRun | None:
    """The run of a lease that this incarnation held, as long as the run has not been handed out again."""
    run = _quoted(shard, incarnation, text)
    return run if run is not None and not run.is_leased else None


def taken_back(shard: Shard, incarnation: str, text: str) -> PastLease | None:
    """The lease that this incarnation held until the shard took it back."""
    offset, key = parse(shard, text)
    past = None if offset is None else shard.memory.past(offset)
    return past if past is not None and (past.lease_key, past.incarnation) == (key, incarnation) else None


def parse(shard: Shard, text: str) -> tuple[int | None, str]:
    """Offset and key of a lease text of this shard; no offset for any other text."""
    prefix = shard.lease_prefix
    if not text.startswith(prefix):
        return None, ""
    digits, _, key = text[len(prefix) :].partition(".")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= OFFSET_DIGITS_MAX):
        return None, ""
    offset = int(digits)
    # One lease has one text: `007` is not another way to write 7, or a lease could be finished twice in one report.
    return (offset, key) if str(offset) == digits else (None, "")


def _quoted(shard: Shard, incarnation: str, text: str) -> OpenRun | None:
    offset, key = parse(shard, text)
    run = None if offset is None else shard.leases.get(offset)
    return run if run is not None and run.lease_key == key and run.incarnation == incarnation else None
