"""When not to believe the wall clock.

It has three witnesses. The time since boot: between two looks both should have moved by the same amount; when they
differ by more than five seconds, the wall has been set. The log's own clock, where it has one: what it said of a commit
must lie within the time that the commit took, to five seconds. And, when a partition is opened, its clock mark: a wall
that is earlier, or more than 400 days later, is not believed either. While one of them disagrees nothing may be decided
by time, until they agree or `accept_after` has passed (or an operator accepts the new time).
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from schemas.frozen import frozen

TOLERANCE = timedelta(seconds=5)  # more than a slewing NTP client ever corrects between two looks
YEARS_AHEAD = timedelta(days=400)  # a machine off for longer than this has an operator beside it
NONE = timedelta()


@frozen  # one is made at every look
class ClockGuard:
    """What is known of the wall clock. `held` says why it is not believed; empty when it is."""

    accept_after: timedelta | None
    wall: datetime | None = None  # when it was last believed
    boot: float = 0.0
    placed: bool = False  # whether it has been held against the clock mark
    ahead: timedelta = NONE  # of the log's clock, when that last told the time; nothing while they agree
    accepted_ahead: timedelta = NONE  # what somebody has accepted as the fault of the log's clock
    held: str = ""
    held_since: float = 0.0

    def look(self, *, mark: datetime, wall: datetime, boot: float) -> ClockGuard:
        """The guard after one look at both clocks. `mark` is the partition's clock mark."""
        reason = self._moved(wall, boot) or self._misplaced(mark, wall) or _apart(self.ahead)
        if not reason:
            return self._believing(wall, boot)
        if not self.held:
            return replace(self, held=reason, held_since=boot)
        return self._accepted(wall, boot) or self

    def told(self, at: datetime, *, wall: datetime, boot: float, seconds: float) -> ClockGuard:
        """The guard after the log's clock showed `at`, sometime within the last `seconds` before `wall`.

        Where both agree this is a first look at our clocks, if there was none: an idle partition takes its time to one.
        """
        most = wall - at
        least = most - timedelta(seconds=seconds)
        for known in (NONE, self.accepted_ahead):
            if least - TOLERANCE <= known <= most + TOLERANCE:
                return self._agreeing(known, wall, boot)
        return replace(self, ahead=least if least > NONE else most)

    def _agreeing(self, known: timedelta, wall: datetime, boot: float) -> ClockGuard:
        """Mostly what it was: a guard is told with every commit."""
        same = self.ahead == NONE and self.accepted_ahead == known
        seen = self if same else replace(self, ahead=NONE, accepted_ahead=known)
        return seen if self.wall is not None else replace(seen, wall=wall, boot=boot)

    def accepted(self, wall: datetime, boot: float) -> ClockGuard:
        """The guard after an operator said that the wall is right."""
        accepted = self.ahead or self.accepted_ahead
        return replace(self._believing(wall, boot), ahead=NONE, accepted_ahead=accepted)

    def of_another_partition(self, accept_after: timedelta | None) -> ClockGuard:
        """What a partition that is opened now knows from one that runs in the same process."""
        known = self.accepted_ahead
        return ClockGuard(accept_after=accept_after, wall=self.wall, boot=self.boot, accepted_ahead=known)

    def _moved(self, wall: datetime, boot: float) -> str:
        """Not as much as the time since boot, since it was last believed."""
        step = NONE if self.wall is None else wall - self.wall - timedelta(seconds=boot - self.boot)
        return _jump(step) if abs(step) > TOLERANCE else ""

    def _misplaced(self, mark: datetime, wall: datetime) -> str:
        return "" if self.placed else _implausible(mark, wall)

    def _believing(self, wall: datetime, boot: float) -> ClockGuard:
        return ClockGuard(  # not `replace`, which takes as long as all of the look
            accept_after=self.accept_after, wall=wall, boot=boot, placed=True, ahead=self.ahead,
            accepted_ahead=self.accepted_ahead, held_since=self.held_since,
        )  # fmt: skip

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


def _apart(ahead: timedelta) -> str:
    seconds = ahead.total_seconds()
    if not seconds:
        return ""
    direction = "ahead of" if seconds > 0 else "behind"
    return f"the wall clock is {abs(seconds):.0f} s {direction} the log's clock"


def _jump(step: timedelta) -> str:
    seconds = step.total_seconds()
    direction = "forward" if seconds > 0 else "back"
    return f"the wall clock jumped {direction} by {abs(seconds):.0f} s against the time since boot"
