"""Retention and compaction of the embedded log, in small steps beside the work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.lifecycle import ThreadService
from runtime.log import LogError
from runtime.telemetry import Event, Telemetry

if TYPE_CHECKING:
    from runtime.lifecycle import Running
    from runtime.logs.embedded import EmbeddedLog

IDLE_SECONDS = 5.0  # between looks when there was nothing to do
BUSY_SECONDS = 0.05  # between steps while there is: the line keeps most of the machine


class Upkeep:
    """Calls `maintain` again and again. A service (`runtime.lifecycle`)."""

    def __init__(self, log: EmbeddedLog, telemetry: Telemetry) -> None:
        self._log, self._telemetry = log, telemetry
        self._thread = ThreadService("upkeep", self._run)
        self.name = self._thread.name
        self.start, self.ready, self.stop = self._thread.start, self._thread.ready, self._thread.stop

    @property
    def failure(self) -> BaseException | None:
        """See `runtime.lifecycle.Service`."""
        return self._thread.failure

    def _run(self, running: Running) -> None:
        running.ready()
        pause = IDLE_SECONDS
        while not running.stopping.wait(pause):
            try:
                pause = BUSY_SECONDS if self._log.maintain() else IDLE_SECONDS
            except LogError as error:  # the log goes on growing; the line goes on
                self._telemetry.error(Event.MAINTENANCE_FAILED, reason=str(error))
                pause = IDLE_SECONDS
