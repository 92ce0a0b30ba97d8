"""The two roles that own partitions: which core, which inputs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from dispatcher.core import DispatcherCore
from runtime.host import PartitionService
from runtime.partition import Inputs, Partition
from runtime.processor import Processor, World
from runtime.stores.rocksdb import RocksStore
from scheduler import SchedulerCore
from scheduler.occurrences import tz_version
from schemas import topics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import timedelta
    from pathlib import Path

    from runtime.clock import Clock
    from runtime.log import Log
    from runtime.machine import Core
    from runtime.telemetry import Telemetry

SCHEDULER = Inputs(
    lead=topics.SCHEDULE_CHANGES, companions=(topics.RUN_OUTCOMES, topics.LINKS), references=(topics.CATALOG,)
)
DISPATCHER = Inputs(lead=topics.RUNS, companions=(topics.ATTEMPTS,))


class Entropy:
    """Sixteen fresh random bytes a call, for one thread.

    Drawn by the page: each draw lets go of the interpreter, and in a busy process it takes long to get it back.
    """

    PAGE = 4096

    def __init__(self) -> None:
        self._page = b""

    def __call__(self) -> bytes:
        if not self._page:
            self._page = os.urandom(self.PAGE)
        drawn, self._page = self._page[:16], self._page[16:]
        return drawn


class Roles:
    """Builds the partitions of both roles over one log, with their stores in one folder."""

    def __init__(
        self, log: Log, clock: Clock, telemetry: Telemetry, *, state: Path, layout: topics.Layout,
        retention: topics.Retention, accept_clock_after: timedelta,
    ) -> None:  # fmt: skip
        self._log, self._clock, self._telemetry = log, clock, telemetry
        self._state, self._layout, self._retention = state, layout, retention
        self._accept_clock_after = accept_clock_after

    def services(self) -> Iterator[PartitionService]:
        """Every partition of this process."""
        for number in range(self._layout.schedule):
            partition = Partition(role="scheduler", number=number, inputs=SCHEDULER, layout=self._layout)
            yield self._service(partition, self._scheduler(number))
        for number in range(self._layout.shard):
            partition = Partition(role="dispatcher", number=number, inputs=DISPATCHER, layout=self._layout)
            yield self._service(partition, self._dispatcher(number))

    def _scheduler(self, number: int) -> Callable[[], Core[Any]]:
        return lambda: SchedulerCore(self._layout, number, tz_version(), retention=self._retention)

    def _dispatcher(self, number: int) -> Callable[[], Core[Any]]:
        return lambda: DispatcherCore(self._layout, number, remembered_for=self._retention.runs)

    def _service(self, partition: Partition, core: Callable[[], Core[Any]]) -> PartitionService:
        world = World(clock=self._clock, entropy=Entropy(), telemetry=self._telemetry)

        def make() -> Processor:
            store = RocksStore(self._state / f"{partition.role}-{partition.number}")
            return Processor(core(), partition, self._log, store, world, accept_clock_after=self._accept_clock_after)

        return PartitionService(partition.role, partition.number, make, self._telemetry)
