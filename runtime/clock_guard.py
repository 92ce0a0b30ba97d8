"""When not to believe the wall clock.

The wall is held against the time since boot. Between two looks both should have moved by the same amount; when they
differ by more than five seconds, the wall has been set, and nothing may be decided by time until both agree again or
`accept_after` has passed (or an operator accepts the new time). At the first look the wall is held against the
partition's clock mark: earlier than it, or more than 400 days later, is not believed either.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

TOLERANCE = timedelta(seconds=5)  # more than a slewing NTP client ever corrects between two looks
YEARS_AHEAD = timedelta(days=400)  # a machine off for longer than this has an operator beside it


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockGuard:
    """What is known of the wall clock. `held` says why it is not believed; empty when it is."""

    accept_after: timedelta | None
    wall: datetime | None = None
    boot: float = 0.0
    held: str = ""
    held_since: float = 0.0

    def look(self, *, mark: datetime, wall: datetime, boot: float) -> ClockGuard:
        """The guard after one look at both clocks. `mark` is the partition's clock mark."""
        if self.wall is None:
            return self._first_look(mark, wall, boot)
        expected = self.wall + timedelta(seconds=boot - self.boot)
        if abs(wall - expected) <= TOLERANCE:
            return replace(self, wall=wall, boot=boot, held="")
        if not self.held:
            return replace(self, held=_jump(wall - expected), held_since=boot)
        return self._accepted(wall, boot) or self

    def accepted(self, wall: datetime, boot: float) -> ClockGuard:
        """The guard after an operator said that the wall is right."""
        return replace(self, wall=wall, boot=boot, held="")

    def _first_look(self, mark: datetime, wall: datetime, boot: float) -> ClockGuard:
        reason = _implausible(mark, wall)
        if not reason:
            return replace(self, wall=wall, boot=boot, held="")
        if not self.held:
            return replace(self, held=reason, held_since=boot)
        return self._accepted(wall, boot) or self

    def _accepted(self, wall: datetime, boot: float) -> ClockGuard | None:
        if self.accept_after is None or boot - self.held_since < self.accept_after.total_seconds():
            return None
        return self.accepted(wall, boot)


def _implausible(mark: datetime, wall: datetime) -> str:
    if mark - wall > TOLERANCE:
        return f"the wall clock is {(mark - wall).total_seconds():.0f} s behind the clock mark"
    if wall - mark > YEARS_AHEAD:
        return f"the wall clock is {(wall - mark).days} days ahead of the clock mark"
    return ""


def _jump(step: timedelta) -> str:
    seconds = step.total_seconds()
    direction = "forward" if seconds > 0 else "back"
    return f"the wall clock jumped {direction} by {abs(seconds):.0f} s against the time since boot"
