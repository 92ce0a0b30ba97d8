"""How long logs that live in this process keep what they may let go."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from schemas.topics import TopicSpec

# A reader that stops for less than a day learns of every deletion; one that was away longer must begin anew.
TOMBSTONES_KEPT = timedelta(hours=24)

# A superseded record stays this long, so that an owner who comes back right after a crash finds the transactions
# since its store's last batch complete, and can check their sequence. A store is behind by one transaction at most.
COMPACTION_LAG = timedelta(minutes=1)


def lag_of(spec: TopicSpec) -> timedelta:
    """How long what is superseded in a compacted topic stays at least."""
    return COMPACTION_LAG if spec.retention is None else max(spec.retention, COMPACTION_LAG)


def trim_after(retention: timedelta) -> timedelta:
    """At which age of a partition's oldest record it is trimmed: a little late, so that trims are few and large."""
    return retention + retention / 16
