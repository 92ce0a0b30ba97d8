"""The two roles that own partitions: which core, which inputs."""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING, Any

from dispatcher.core import DispatcherCore
from node.figures import DispatcherFigures, SchedulerFigures
from runtime.clock_watch import Remembered
from runtime.continuity import check_count
from runtime.host import PartitionService, RoleService, pause_when_fenced
from runtime.partition import Inputs, Partition
from runtime.processor import Processor, World
from runtime.read_ahead import Allowance
from runtime.restore import told_store_set_aside
from runtime.stores.rocksdb import RocksStore
from runtime.telemetry import Metric
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
    from runtime.observer import Observer
    from runtime.telemetry import Telemetry

SCHEDULER = Inputs(
    lead=topics.SCHEDULE_CHANGES, companions=(topics.RUN_OUTCOMES, topics.LINKS), references=(topics.CATALOG,)
)
DISPATCHER = Inputs(lead=topics.RUNS, companions=(topics.ATTEMPTS,), references=(topics.CATALOG,))


def partitions_of(layout: topics.Layout) -> Iterator[Partition]:
    """Every partition of both roles."""
    for role, inputs, count in (("scheduler", SCHEDULER, layout.schedule), ("dispatcher", DISPATCHER, layout.shard)):
        for number in range(count):
            yield Partition(role=role, number=number, inputs=inputs, layout=layout)


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
    """Builds this process's share of the roles over one log, with the stores in one folder.

    `member` names this process in the roles' groups, the same after a restart.
    """

    def __init__(  # noqa: PLR0913 -- what a process is made of, each said by name
        self, log: Log, clock: Clock, telemetry: Telemetry, *, state: Path, layout: topics.Layout,
        retention: topics.Retention, accept_clock_after: timedelta | None, member: str,
        catch_up_rate: str,
    ) -> None:  # fmt: skip
        self._log, self._clock, self._telemetry = log, clock, telemetry
        self._state, self._layout, self._retention = state, layout, retention
        self._accept_clock_after, self._remembered, self._ahead = accept_clock_after, Remembered(), Allowance()
        self._member, self._catch_up_rate = member, catch_up_rate

    def scheduler(self) -> RoleService:
        """Decides when."""
        return self._role("scheduler", SCHEDULER, self._scheduler_core, SchedulerFigures)

    def dispatcher(self) -> RoleService:
        """Decides who, and what next."""
        return self._role("dispatcher", DISPATCHER, self._dispatcher_core, DispatcherFigures)

    def _scheduler_core(self, number: int) -> SchedulerCore:
        return SchedulerCore(
            self._layout, number, tz_version(), retention=self._retention, tenant_rate=self._catch_up_rate
        )

    def _dispatcher_core(self, number: int) -> DispatcherCore:
        return DispatcherCore(self._layout, number, remembered_for=self._retention.runs)

    def _role(
        self, role: str, inputs: Inputs, core: Callable[[int], Core[Any]],
        observer: Callable[[Telemetry, int], Observer],
    ) -> RoleService:  # fmt: skip
        def make(number: int, log: Log) -> PartitionService:
            # A partition that the layout does not have shows that somebody added some: nobody may go on as if not.
            found = max(log.partitions(inputs.lead), number + 1)
            check_count(inputs.lead, found, self._partitions_of(role))
            partition = Partition(role=role, number=number, inputs=inputs, layout=self._layout)
            return self._service(partition, core, observer, log)

        self._telemetry.set(Metric.ROLE_PARTITIONS, {"role": role}, self._partitions_of(role))
        member = f"{role}-{self._member}"
        return RoleService(role, inputs.lead, self._log, member=member, make=make, telemetry=self._telemetry)

    def _partitions_of(self, role: str) -> int:
        return self._layout.shard if role == "dispatcher" else self._layout.schedule

    def _service(
        self, partition: Partition, core: Callable[[int], Core[Any]], observer: Callable[[Telemetry, int], Observer],
        log: Log,
    ) -> PartitionService:  # fmt: skip
        world = World(
            clock=self._clock, entropy=Entropy(), telemetry=self._telemetry, remembered=self._remembered,
            ahead=self._ahead,
        )  # fmt: skip

        def make() -> Processor:
            store = RocksStore.opened(
                self._state / f"{partition.role}-{partition.number}",
                told=lambda reason, kept: told_store_set_aside(partition, self._telemetry, reason, kept),
            )
            return Processor(
                core(partition.number), partition, log, store, world, accept_clock_after=self._accept_clock_after,
                observer=observer(self._telemetry, partition.number),
            )  # fmt: skip

        return PartitionService(
            partition.role, partition.number, make, self._telemetry,
            pause_when_fenced=lambda times: pause_when_fenced(times, random.random()),
        )  # fmt: skip
