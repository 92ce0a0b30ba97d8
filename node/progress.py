"""How far a read model follows the log, seen by a process whose projector is elsewhere."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from projections.projector import HISTORY, Subject, inputs_of
from runtime.lifecycle import Threaded, ThreadService
from runtime.telemetry import Event

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from runtime.lifecycle import Running
    from runtime.log import Log
    from runtime.record import TopicPartition
    from runtime.telemetry import Telemetry

WAITED_SECONDS = 0.05  # between looks while somebody waits for rows
IDLE_SECONDS = 1.0  # between looks otherwise: `Tidewheel-As-Of` is that much behind


class StoredProgress(Threaded):
    """`api.services.Progress` from the positions that stand beside the rows. A service (`runtime.lifecycle`)."""

    def __init__(
        self, log: Log, *, positions: Callable[[], Mapping[TopicPartition, int]], now: Callable[[], datetime],
        telemetry: Telemetry, subject: Subject = HISTORY,
    ) -> None:  # fmt: skip
        self._subject = subject
        self._log, self._stored, self._now = log, positions, now
        self._telemetry = telemetry
        self._positions: Mapping[TopicPartition, int] = {}
        self._asked: tuple[datetime, Mapping[TopicPartition, int]] | None = None
        self._as_of = datetime.fromtimestamp(0, UTC)
        self._waited_for = threading.Event()
        self._callbacks: list[Callable[[], None]] = []
        self._lock = threading.Lock()
        self.problem: str | None = None
        self._thread = ThreadService(
            f"progress-{subject.name}" if subject is not HISTORY else "progress",
            self._run,
            interrupt=self._waited_for.set,
        )

    @property
    def as_of(self) -> datetime:
        """See `Progress.as_of`."""
        return self._as_of

    def inputs(self) -> list[TopicPartition]:
        """See `Progress.inputs`."""
        return inputs_of(self._log, self._subject)

    def reached(self, targets: Mapping[TopicPartition, int]) -> bool:
        """See `Progress.reached`."""
        there = _covers(self._positions, targets)
        if not there:
            self._waited_for.set()
        return there

    def on_progress(self, callback: Callable[[], None]) -> Callable[[], None]:
        """See `Progress.on_progress`."""
        with self._lock:
            self._callbacks.append(callback)
        return lambda: self._silence(callback)

    def _silence(self, callback: Callable[[], None]) -> None:
        with self._lock:
            self._callbacks.remove(callback)

    def _run(self, running: Running) -> None:
        running.ready()
        while not running.stopping.is_set():
            try:
                self._look()
                self.problem = None
            except Exception as error:  # noqa: BLE001 -- the border: a log or a database that is away comes back
                self.problem = f"{type(error).__name__}: {error}"
                self._telemetry.warning(Event.PROGRESS_UNKNOWN, reason=self.problem)
            if self._waited_for.wait(IDLE_SECONDS):
                self._waited_for.clear()
                running.stopping.wait(WAITED_SECONDS)

    def _look(self) -> None:
        """Everything that had been appended when we asked for the ends is in rows once those are reached."""
        if self._asked is None:
            self._asked = (self._now(), self._log.end_offsets(self.inputs()))
        self._positions = self._stored()
        asked_at, ends = self._asked
        if _covers(self._positions, ends):
            self._as_of, self._asked = asked_at, None
        with self._lock:
            callbacks = tuple(self._callbacks)
        for callback in callbacks:
            callback()


def _covers(positions: Mapping[TopicPartition, int], targets: Mapping[TopicPartition, int]) -> bool:
    """A partition in which nothing ever stood has no position."""
    return all(positions.get(place, 0) >= end for place, end in targets.items())
