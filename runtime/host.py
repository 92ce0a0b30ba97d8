"""Runs a processor in a thread of its own, and decides what an error means.

The network's errors are retried, with a bounded pause and a processor opened anew. Being fenced, or an impossible
state, stops this partition loudly and leaves the others running.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.lifecycle import Threaded, ThreadService
from runtime.log import Fenced, LogError
from runtime.telemetry import Event, Metric, Telemetry

if TYPE_CHECKING:
    from collections.abc import Callable

    from runtime.lifecycle import Running
    from runtime.processor import Processor

STEP_SECONDS = 1.0  # how long an idle step waits; new records and `stop` wake it at once
RETRY_SECONDS_MAX = 10.0  # a log that is back is noticed within this


class PartitionService(Threaded):
    """One partition of one role as a service. `make` opens its store and builds its processor."""

    def __init__(self, role: str, number: int, make: Callable[[], Processor], telemetry: Telemetry) -> None:
        self._make = make
        self._telemetry = telemetry
        self._where = {"role": role, "partition": str(number)}
        self._processor: Processor | None = None
        self._thread = ThreadService(f"{role}-{number}", self._run, interrupt=self._wake, failed=self._failed)

    def _run(self, running: Running) -> None:
        pause = 0.1
        while not running.stopping.is_set():
            try:
                self._process(running)
            except Fenced:
                raise
            except LogError as error:
                self._telemetry.warning(Event.COMMIT_RETRIED, reason=str(error), **self._where)
                running.stopping.wait(pause)
                pause = min(pause * 2, RETRY_SECONDS_MAX)

    def _process(self, running: Running) -> None:
        processor = self._processor = self._make()
        try:
            processor.open()
            running.ready()
            self._telemetry.info(Event.PARTITION_READY, **self._where)
            while not running.stopping.is_set():
                processor.step(STEP_SECONDS)
            processor.settle()
        finally:
            self._processor = None
            processor.close()
        self._telemetry.info(Event.PARTITION_STOPPED, **self._where)

    def _wake(self) -> None:
        processor = self._processor
        if processor is not None:
            processor.wake()

    def _failed(self, error: BaseException) -> None:
        fenced = isinstance(error, Fenced)
        event = Event.PARTITION_FENCED if fenced else Event.PARTITION_FAILED
        self._telemetry.set(Metric.PARTITION_FAILED, self._where, 1)
        self._telemetry.error(event, reason=f"{type(error).__name__}: {error}", exc_info=error, **self._where)
