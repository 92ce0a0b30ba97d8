"""How long logs that live in this process keep what they may let go."""

from __future__ import annotations

from datetime import timedelta

# A reader that stops for less than a day learns of every deletion; one that was away longer must begin anew.
TOMBSTONES_KEPT = timedelta(hours=24)

# A superseded record stays this long, so that an owner who comes back right after a crash finds the transactions
# since its store's last batch complete, and can check their sequence. A store is behind by one transaction at most.
COMPACTION_LAG = timedelta(minutes=1)


def trim_after(retention: timedelta) -> timedelta:
    """At which age of a partition's oldest record it is trimmed: a little late, so that trims are few and large."""
    return retention + retention / 16
