"""Time that moves only when it is told to."""

from __future__ import annotations

from datetime import datetime, timedelta


class ManualClock:
    """Implements `runtime.clock.Clock`. `advance` moves both clocks; `set_wall` only the wall, as a jump does."""

    def __init__(self, now: datetime) -> None:
        self._wall = now
        self._boot = 1000.0

    def now(self) -> datetime:
        """See `Clock.now`."""
        return self._wall

    def since_boot(self) -> float:
        """See `Clock.since_boot`."""
        return self._boot

    def advance(self, by: timedelta) -> None:
        """Let time pass."""
        self._wall += by
        self._boot += by.total_seconds()

    def advance_to(self, instant: datetime) -> None:
        """Let time pass until `instant`; an earlier one changes nothing."""
        if instant > self._wall:
            self.advance(instant - self._wall)

    def set_wall(self, instant: datetime) -> None:
        """Let the wall clock jump."""
        self._wall = instant
