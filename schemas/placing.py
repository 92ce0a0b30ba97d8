"""Over how many shards of a queue the runs of a tenant are spread: schedulers place by it, dispatchers split limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

ANY_QUEUE = "*"  # in a tenant's quota: every queue that has no entry of its own


def quota_of(tenant: Mapping[str, Any], queue: str) -> Mapping[str, Any]:
    """What the definition of a tenant allows it in a queue; empty where it says nothing."""
    quotas = tenant.get("quota", {}).get("queues", {})
    return quotas.get(queue) or quotas.get(ANY_QUEUE) or {}


def spread(shards: int, running: int | None, queued: int | None) -> int:
    """A tenant is in no more shards than it may have runs at work or waiting: so each of them may have one at least.

    A tenant that may have none waiting is turned away in all of them alike.
    """
    return min(shards, running or shards, queued or shards)
