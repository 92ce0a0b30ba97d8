"""One cluster from its beginning to its end: an hour under faults, then without them until everything has drained."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING, Any

from runtime.logs.kafka import doubt
from schemas import topics
from simulation.cluster import drained, hour
from simulation.cluster.askers import askers
from simulation.cluster.client import ApiNode, Caller
from simulation.cluster.node import Node
from simulation.cluster.occasions import Occasions
from simulation.cluster.onlooker import Onlooker
from simulation.cluster.options import Options
from simulation.cluster.projecting import ProjectorNode, ReadModelPlace, SecondProjector
from simulation.cluster.site import Site
from simulation.cluster.storm import Storm
from simulation.cluster.upstream import Upstream
from simulation.cluster.worker import QUEUE, SHARDS, WorkerNode
from simulation.kafka.broker import Broker
from simulation.kafka.log import SETTINGS, SimulatedKafka
from simulation.kafka.network import Network, NetworkFaults
from simulation.loop import Machine, Stuck

if TYPE_CHECKING:
    from runtime.log import Log
    from simulation.clock import MachineClock

ONLOOKER_SECONDS = 60.0
LOOK_SECONDS = 10.0  # between looks whether everything has drained
REBUILD_SECONDS = 5.0  # some batches
SLOTS = (2, 4, 10)
SLOTS_WHEN_SATURATED = 1
WORKER_CLOCK_SECONDS_MAX = 3600.0  # H9
Member = Node | ProjectorNode | WorkerNode


class World:
    """A cluster and its surroundings. `run` once."""

    def __init__(self, options: Options, tell: Callable[[str], None] | None = None) -> None:
        self.options = options
        self.site = site = Site(options, tell)
        self.broker = Broker(site.loop, Random(f"broker {options.seed}"), site.now)
        latency = options.latency_seconds
        self.weather = NetworkFaults(latency_seconds=(latency / 4, latency))
        self.network = Network(site.loop, self.broker, str(options.seed), self.weather)
        self.password = f"password of {options.seed}"  # that all processes have, and nothing may tell
        self.settings = replace(
            SETTINGS, session_timeout=timedelta(seconds=options.session_seconds),
            properties={"sasl.password": self.password},
        )  # fmt: skip
        site.log_of = self._log_of
        site.undisturbed_since = self.network.undisturbed_since
        self.place = ReadModelPlace(database=options.database)
        self.nodes = [self._node("scheduler", number) for number in range(options.schedulers)]
        self.nodes += [self._node("dispatcher", number) for number in range(options.dispatchers)]
        self.projectors = [self._projector(number) for number in range(options.projectors)]
        self.workers = [self._worker(number) for number in range(self._workers_wanted())]
        self.cut: set[str] = set()  # machines that reach nobody
        self.upstream = Upstream(site)
        site.publish = self.upstream.append
        self.api = ApiNode(site, "api-0", site.clock(site.skew()))
        self.storm = Storm(self)
        self.occasions = Occasions(self)
        self.onlooker = Onlooker(self.place)
        self.rested_at: float | None = None
        self._seconds = 0

    def everybody(self) -> Iterator[Member]:
        """All who are started again when they end."""
        yield from self.nodes
        yield from self.projectors
        yield from self.workers

    def run(self) -> None:
        """From noon to the end. What went wrong is in the story."""
        try:
            self._begin()
            self.site.loop.run(hour.HOUR_SECONDS * self.options.hours)
            self.storm.calm()
            self.site.loop.run(hour.LAST_CALLS_SECONDS)
            self.upstream.end()
            self._drain()
        except Stuck as stuck:
            self.site.story.fail("loop", f"stuck: {stuck}")

    def close(self) -> None:
        """Everybody ends."""
        self.site.loop.close()
        self.place.close()

    def rebuilt(self) -> Mapping[str, tuple[Mapping[str, Any], ...]]:
        """The read model made anew from the log by a projector of its own."""
        place = ReadModelPlace(database=self.options.database)
        second = SecondProjector(self.site, "rebuilding", place.writer())
        self.site.loop.run(REBUILD_SECONDS)
        self.site.loop.kill(second.machine)
        tables = place.tables()
        place.close()
        return tables

    # --- phases ---------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        admin = Machine("admin")
        self.site.spawn("admin", lambda: self._create_topics(admin), admin)
        self.site.loop.run(1.0)
        for node in self.everybody():
            node.start()
        self._keep_api()
        self.upstream.begin()
        for number in range(self.options.callers):
            Caller(self.site, self.api, f"caller-{number}").start()
        for asker in askers(self.site, self.api):
            asker.start()
        self.storm.begin()
        self.occasions.begin()
        self._look()

    def _create_topics(self, machine: Machine) -> None:
        log = self._log_of(machine, self.site.clock())
        layout, retention = self.site.layout, self.site.retention
        specs = (*topics.topic_table(retention), topics.dispatch_spec(QUEUE, retention))
        log.create({spec: layout.partitions(spec.family) for spec in specs})
        log.close()

    def _keep_api(self) -> None:
        """An API node that died comes back."""
        self.api.start()
        self.site.loop.later(5.0, self._keep_api)

    def _look(self) -> None:
        """Somebody looks at the page."""
        self.onlooker.look()
        self.site.loop.later(ONLOOKER_SECONDS, self._look)

    def _drain(self) -> None:
        longest = self.site.agenda.drain_seconds
        until = self.site.loop.seconds + longest
        left = "nothing was looked at"
        while left and self.site.loop.seconds < until:
            self.site.loop.run(LOOK_SECONDS)
            left = drained.left(self)
        if left:
            self.site.story.fail("I9", f"not drained {longest:.0f} s after the last fault: {left}")
        else:
            self.rested_at = self.site.loop.seconds

    # --- who there is ---------------------------------------------------------------------------------------------

    def _log_of(self, machine: Machine, clock: MachineClock) -> Log:
        doubts = doubt.doubt if self.options.doubting else _never
        return SimulatedKafka(
            self.network, machine, clock, settings=self.settings, doubts=doubts, now_ms=clock.now_ms
        )  # fmt: skip

    def _node(self, role: str, number: int) -> Node:
        return Node(self.site, role, f"{role}-{number}", self.site.clock(self.site.skew()))

    def another(self, role: str) -> Node:
        """One more node of a role, with an empty disk; it is not started yet."""
        number = sum(node.role == role for node in self.nodes)
        node = self._node(role, number)
        self.nodes.append(node)
        return node

    def _projector(self, number: int) -> ProjectorNode:
        clock = self.site.clock(self.site.skew())
        return ProjectorNode(self.site, f"projector-{number}", clock, self.place.writer)

    def second_projector(self) -> SecondProjector:
        """One that follows everything, and is in no group (J2)."""
        self._seconds += 1
        return SecondProjector(self.site, f"second-projector-{self._seconds}", self.place.writer())

    def _workers_wanted(self) -> int:
        """One for each shard that the queue may have, and may have had."""
        return max(self.options.workers, SHARDS) if self.options.has("shards") else self.options.workers

    def _worker(self, number: int) -> WorkerNode:
        site = self.site
        most = WORKER_CLOCK_SECONDS_MAX if self.options.has("H9") else 0.0
        skew = site.chance.uniform(-most, most) + site.skew()
        slots = site.chance.choice(SLOTS)
        slots = SLOTS_WHEN_SATURATED if self.options.has("saturated") else slots
        shard = number % SHARDS if self.options.has("shards") else 0
        return WorkerNode(site, f"worker-{number}", site.clock(skew), slots, shard)


def _never(_seen: doubt.Seen) -> str:
    return ""
