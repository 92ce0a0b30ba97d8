"""Retention and compaction of the embedded log, in small steps beside the work.

Age is measured by the wall clock, so nothing is removed while that is not believed: a clock set years ahead must not
empty the log.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from runtime.clock_guard import ClockGuard
from runtime.lifecycle import Threaded, ThreadService
from runtime.log import LogError
from runtime.telemetry import Event, Telemetry

if TYPE_CHECKING:
    from runtime.clock import Clock
    from runtime.lifecycle import Running
    from runtime.logs.embedded import EmbeddedLog

IDLE_SECONDS = 5.0  # between looks when there was nothing to do
EMPTY = datetime(1970, 1, 1, tzinfo=UTC)  # what an empty log answers for its newest record
BUSY_SECONDS = 0.05  # between steps while there is: the line keeps most of the machine


class Upkeep(Threaded):
    """Calls `maintain` again and again. A service (`runtime.lifecycle`)."""

    def __init__(self, log: EmbeddedLog, clock: Clock, telemetry: Telemetry, *, accept_clock_after: timedelta) -> None:
        self._log, self._clock, self._telemetry = log, clock, telemetry
        self._guard = ClockGuard(accept_after=accept_clock_after)
        self._thread = ThreadService("upkeep", self._run)

    def _run(self, running: Running) -> None:
        running.ready()
        pause = IDLE_SECONDS
        while not running.stopping.wait(pause):
            try:
                pause = BUSY_SECONDS if self._may_remove() and self._log.maintain() else IDLE_SECONDS
            except LogError as error:  # the log goes on growing; the line goes on
                self._telemetry.error(Event.MAINTENANCE_FAILED, reason=str(error))
                pause = IDLE_SECONDS

    def _may_remove(self) -> bool:
        wall, newest = self._clock.now(), self._log.newest()
        mark = wall if newest == EMPTY else newest
        self._guard = self._guard.look(mark=mark, wall=wall, boot=self._clock.since_boot())
        return not self._guard.held
