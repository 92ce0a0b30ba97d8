"""What a decision may look at besides the state of its key."""

from __future__ import annotations

from datetime import datetime

from scheduler.state import PartitionState
from schemas.frozen import frozen


@frozen
class Context:
    """The moment, what the partition shares, and how this scheduler is set up.

    `horizon` is the instant up to which everything the log held about the key has been read: what is due by then is
    decided, and age is measured against it. `now` is only written down.
    """

    now: datetime
    horizon: datetime
    horizon_ms: int
    shared: PartitionState
    partition: int
    tz_version: str
    history_seconds: int
    tenant_rate: str = ""
