"""The clock that leases are kept by."""

from __future__ import annotations

import time


def boottime() -> float:
    """Seconds that go on counting while the machine sleeps, as leases do."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()
