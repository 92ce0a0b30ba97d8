"""The figures of the read model, told by every process that has an API: how far it is, and what it says is left to do.

Several processes over one read model tell the same: take the largest, not the sum.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from projections.store.reader import OPEN_BACKFILLS
from runtime.lifecycle import Threaded, ThreadService
from runtime.telemetry import Metric

if TYPE_CHECKING:
    from api.services import Progress
    from projections.store.reader import Reader
    from runtime.lifecycle import Running
    from runtime.log import Log
    from runtime.telemetry import Telemetry

LOOK_SECONDS = 5.0  # between looks: a question to the log and two to the database


class ModelFigures(Threaded):
    """Looks again and again. A service (`runtime.lifecycle`)."""

    def __init__(self, log: Log, reader: Reader, progress: Progress, telemetry: Telemetry) -> None:
        self._log, self._reader, self._progress, self._telemetry = log, reader, progress, telemetry
        self._thread = ThreadService("figures", self._run)

    def _run(self, running: Running) -> None:
        running.ready()
        stopping = False
        while not stopping:
            try:
                self.look()
            except Exception:  # noqa: BLE001 -- the border: what is away is told by /readyz, and by an as-of that stands
                self._say_nothing()
            stopping = running.stopping.wait(LOOK_SECONDS)

    def look(self) -> None:
        """Once. Whatever a log or a database that is away raises."""
        self._telemetry.set(Metric.READ_MODEL_AS_OF, {}, self._progress.as_of.timestamp())
        positions = self._reader.positions()
        ends = self._log.end_offsets(self._progress.inputs())
        lag = sum(max(end - positions.get(place, 0), 0) for place, end in ends.items())
        self._telemetry.set(Metric.PROJECTION_LAG_RECORDS, {}, lag)
        left = self._reader.backfills_left()
        for state in OPEN_BACKFILLS:
            count, occurrences = left.get(state, (0, 0))
            self._telemetry.set(Metric.BACKFILLS_OPEN, {"state": state}, count)
            self._telemetry.set(Metric.BACKFILL_OCCURRENCES_LEFT, {"state": state}, occurrences)

    def _say_nothing(self) -> None:
        """An old figure would be a wrong one. The as-of stays: it says itself how old it is."""
        self._telemetry.set(Metric.PROJECTION_LAG_RECORDS, {}, float("nan"))
        for name in (Metric.BACKFILLS_OPEN, Metric.BACKFILL_OCCURRENCES_LEFT):
            self._telemetry.forget(name, {})
