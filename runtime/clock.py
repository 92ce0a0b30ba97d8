"""The clock port: the wall, which may jump, and the time since boot, which may not."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Two sources of time that can be held against each other."""

    def now(self) -> datetime:
        """The wall clock, UTC, cut to milliseconds."""
        ...

    def since_boot(self) -> float:
        """Seconds since boot, suspended time included; never goes back within one boot."""
        ...


class SystemClock:
    """The machine's clocks."""

    def now(self) -> datetime:
        """See `Clock.now`."""
        instant = datetime.now(UTC)
        return instant.replace(microsecond=instant.microsecond // 1000 * 1000)

    def since_boot(self) -> float:
        """See `Clock.since_boot`."""
        return time.clock_gettime(time.CLOCK_BOOTTIME)
