"""Nodes that own partitions: composed as `node.roles` does, of production code, with the simulation's ports.

A node has a name, a disk and a clock that outlive its processes. A process is a machine: what runs in it freezes and
dies together, and what it had not written down is gone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any

from dispatcher.core import DispatcherCore
from node.roles import DISPATCHER, SCHEDULER
from runtime.continuity import check_count
from runtime.host import PartitionService, RoleService, pause_when_fenced
from runtime.limits import Limits
from runtime.partition import Partition
from runtime.processor import Processor, World
from runtime.restore import told_store_set_aside
from scheduler import SchedulerCore
from scheduler.occurrences import tz_version
from schemas import topics
from simulation.cluster import newer
from simulation.cluster.disk import Disk
from simulation.cluster.place import Place
from simulation.cluster.points import DyingLog, Points
from simulation.cluster.story import StoryTelemetry
from simulation.cluster.threads import LoopThreads
from simulation.loop import Machine

if TYPE_CHECKING:
    from runtime.log import Log
    from runtime.machine import Core
    from simulation.clock import MachineClock
    from simulation.cluster.options import Options
    from simulation.cluster.site import Site

SKEW_SECONDS_MAX = 2.0  # of a clock that is set by the network
STOP_SECONDS = 30.0  # for a planned stop; then it is killed, as an operator's tool does
STEP_SECONDS = 30.0  # how long an idle partition waits: longer than in production, for an hour has many idle seconds
POLL_SECONDS = 10.0  # between looks whether to stop; who asks for it, and what the group has to say, ends a wait
INPUTS = {"scheduler": SCHEDULER, "dispatcher": DISPATCHER}


@dataclass(slots=True, eq=False)
class Node(Place["RoleProcess"]):
    """A place where processes of one role run, one after another."""

    site: Site
    role: str
    name: str
    clock: MachineClock
    disk: Disk = field(default_factory=Disk)
    starts: int = 0
    wanted: bool = True  # whether there should be such a node now
    process: RoleProcess | None = None

    def start(self) -> None:
        """Begin a new process, unless there is one."""
        if not self.runs:
            self.starts += 1
            self.site.story.say(self.name, f"starts ({self.starts})")
            self.process = RoleProcess(self)

    def stop(self) -> None:
        """A planned end; called from a task, which waits for it."""
        process = self.process
        if process is not None and self.runs:
            process.service.stop(0)
            process.machine.nudge()
            process.service.stop(STOP_SECONDS)
            self.kill("stopped" if process.service.stopped(0) else "did not stop in time")


class RoleProcess:
    """One life of a node."""

    def __init__(self, node: Node) -> None:
        site = node.site
        self.node = node
        self.machine = Machine(f"{node.name}#{node.starts}")
        self.chance = Random(f"{site.options.seed} {self.machine.name}")
        self.telemetry = StoryTelemetry(site.story, self.machine)
        self.threads = LoopThreads(site.loop, self.machine)
        self.points = Points(site.loop, self.machine, self.chance, self._died)
        self.log = site.log_of(self.machine, node.clock)
        self.is_newer = newer.drawn(site.options, self.machine)
        self._world = World(
            clock=node.clock, entropy=lambda: self.chance.randbytes(16), telemetry=self.telemetry
        )  # fmt: skip
        self.service = RoleService(
            node.role, INPUTS[node.role].lead, self.log, member=f"{node.role}-{node.name}", make=self._partition,
            telemetry=self.telemetry, threads=self.threads, poll_seconds=POLL_SECONDS,
        )  # fmt: skip
        self.service.start()

    def _died(self, point: str) -> None:
        self.node.site.story.fault(point, self.machine.name, "dies here")

    def _partition(self, number: int, log: Log) -> PartitionService:
        role, layout = self.node.role, self.node.site.layout
        inputs = INPUTS[role]
        check_count(inputs.lead, max(log.partitions(inputs.lead), number + 1), partitions_of(role, layout))
        partition = Partition(role=role, number=number, inputs=inputs, layout=layout)
        return PartitionService(
            role, number, lambda: self._processor(partition, log), self.telemetry,
            pause_when_fenced=lambda times: pause_when_fenced(times, self.chance.random()), threads=self.threads,
            step_seconds=STEP_SECONDS,
        )  # fmt: skip

    def _processor(self, partition: Partition, log: Log) -> Processor:
        self.node.site.story.own(self.machine.name, partition.role, partition.number, "begun")
        store = self.node.disk.open(
            f"{partition.role}-{partition.number}", self.machine,
            lambda reason, kept: told_store_set_aside(partition, self.telemetry, reason, kept),
            self.points.store_passes,
        )  # fmt: skip
        site = self.node.site
        dying: Any = DyingLog(log, self.points)
        core: Any = core_of(partition, site.retention)
        make = Processor
        if self.is_newer:
            make, core, dying = newer.NewerProcessor, newer.NewerCore(core), newer.NewerLog(dying)
        return make(
            core, partition, dying, store, self._world,
            limits=limits_of(site.options), accept_clock_after=None,
        )  # fmt: skip


def partitions_of(role: str, layout: topics.Layout) -> int:
    """How many partitions a role has."""
    return layout.shard if role == "dispatcher" else layout.schedule


def core_of(partition: Partition, retention: topics.Retention) -> Core[Any]:
    """The core of a partition."""
    if partition.role == "scheduler":
        return SchedulerCore(partition.layout, partition.number, tz_version(), retention=retention)
    return DispatcherCore(partition.layout, partition.number, remembered_for=retention.runs)


def limits_of(options: Options) -> Limits:
    """The bounds of a batch that a seed has drawn."""
    return Limits(
        records=options.batch_records, ahead_records=options.ahead_records, ahead_bytes=options.ahead_bytes,
        facts=options.batch_facts, woken_keys=options.woken_keys,
        steps_per_key=options.steps_per_key, linger=options.linger_seconds,
    )  # fmt: skip
