"""Time that moves only when it is told to, and clocks of simulated machines."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simulation.loop import Loop


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


class MachineClock:
    """The clocks of a machine in a simulation: the wall is off by `skew_seconds`, the time since boot is virtual."""

    def __init__(self, loop: Loop, began_at: datetime, skew_seconds: float = 0.0) -> None:
        self._loop = loop
        self._began_at = began_at
        self._began_ms = round(began_at.timestamp() * 1000)
        self.skew_seconds = skew_seconds
        self._ms, self._now = self._began_ms, began_at  # what was shown last: each instant is asked for several times

    def now(self) -> datetime:
        """See `Clock.now`."""
        milliseconds = self.now_ms()
        if milliseconds != self._ms:
            self._ms, self._now = milliseconds, datetime.fromtimestamp(milliseconds / 1000, UTC)
        return self._now

    def now_ms(self) -> int:
        """The same in milliseconds since 1970, as it stamps what it sends."""
        return self._began_ms + int((self._loop.seconds + self.skew_seconds) * 1000)

    def since_boot(self) -> float:
        """See `Clock.since_boot`."""
        return self._loop.seconds + 1000.0
