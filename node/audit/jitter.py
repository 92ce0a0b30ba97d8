"""When an occurrence with a jitter is due: the audit's own reading of it."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from node.audit.due import due, duration_seconds


def due_ms(definition: Mapping[str, Any], hash_key: str, nominal: int) -> int:
    """A place within the jitter and before the next occurrence, which follows from the schedule and the instant."""
    jitter = definition["trigger"].get("jitter")
    if jitter is None:
        return nominal * 1000
    longest = duration_seconds(jitter)
    following = next(due(definition, hash_key, nominal, nominal + longest), nominal + longest)
    draw = int.from_bytes(sha256(f"{hash_key}@{nominal}".encode()).digest()[:8], "big")
    return nominal * 1000 + draw % ((following - nominal) * 1000)
