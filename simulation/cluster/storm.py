"""The faults over time: each at random instants, as often as the options say, for as long as there are faults.

A fault that takes time (a freeze, an outage, a rebalance storm) ends by itself, or when the faults end.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

from runtime.log import LogError
from runtime.partition import Partition
from simulation.cluster.disks import Disks
from simulation.cluster.membership import Membership
from simulation.cluster.node import INPUTS, SKEW_SECONDS_MAX, Node, partitions_of
from simulation.cluster.options import FAULTS
from simulation.cluster.points import POINTS, Points
from simulation.cluster.projecting import ProjectorNode, SecondProjector
from simulation.cluster.worker import WorkerNode
from simulation.kafka.network import CALM, Fate, Fates, Rule
from simulation.loop import Machine

if TYPE_CHECKING:
    from simulation.cluster.world import World

SECONDS_OF_AN_HOUR = 3600.0
LOOK_SECONDS = 2.0  # between looks at who is down
LOSSY = ("EndTransaction", "Produce", "CommitOffsets", "AddPartitions", "InitProducerId", "JoinGroup", "SyncGroup",
         "Heartbeat", "FetchOffsets", "ListOffsets")  # fmt: skip
OF_GROUPS = ("Heartbeat", "JoinGroup", "SyncGroup")
YEAR = 365 * 86_400.0
JUMPS = (-30.0, 30.0, -600.0, 600.0, -3600.0, 3600.0, -10 * YEAR, 10 * YEAR)
LASTING = frozenset({"G3", "H9"})

Does = Callable[[], None]


class Storm:
    """Brings about the faults of one world."""

    def __init__(self, world: World) -> None:
        self.world, self.site, self.loop = world, world.site, world.site.loop
        self.chance = Random(f"storm {world.site.options.seed}")
        self.members = Membership(world, self.chance)
        self._machine = Machine("storm")  # never killed
        self._flushes = Random(f"flushes {world.site.options.seed}")
        self._frozen: list[Machine] = []
        self._rules: list[Rule] = []
        self._restarts: dict[str, float] = {}  # of who is down: not before
        self._away: set[str] = set()
        self._seconds: list[SecondProjector] = []
        self.away_seconds = 0.0
        owners, disks = tuple(map(world.settings.named, INPUTS)), Disks(self.site, self.chance, self._owner)
        self._does: Mapping[str, Does] = {
            **{point: lambda point=point: self._arm(point) for point in POINTS},  # type: ignore[misc]
            "A11": self._stop_and_kill, "A13": self._api_dies, "A14": self._projector_dies,
            "A15": lambda: self._worker_dies("A15"), "A16": lambda: self._worker_dies("A16"),
            "B1": lambda: self._freeze("B1", (1.1, 2.5)), "B2": self._reverse_fence,
            "B5": lambda: self._task(self.members.storm), "F7": lambda: self._task(self.members.another_version),
            "B7": self._one_name, "B9": self._deafen, "B10": lambda: self._task(self.members.resize),
            "C1": lambda: self._hold("C1", "EndTransaction", Fate.STRAY),
            "C2": lambda: self._hold("C2", "EndTransaction", Fate.HOLD),
            "C3": lambda: self._hold("C3", self.chance.choice(("Produce", "AddPartitions")), Fate.HOLD),
            "C4": self._lossy, "C5": self._move_coordinator, "C6": self._freeze_in_transaction,
            "C7": lambda: world.broker.transactions.waylay(owners, lambda: self._outage("C7", (1, 10))),
            "C8": lambda: self._outage("C8", (1, 10)),
            "C9": lambda: self._outage("C9", (60, 180)),
            "C12": self._forget_writer,
            "D1": disks.lose, "D2": disks.flip_bit, "D3": disks.run_ahead, "D4": disks.roll_back,
            "D8": disks.fill, "E4": self._forget_positions,
            "F1": lambda: self._publish("F1", world.upstream.poison),
            "F2": lambda: self._publish("F2", world.upstream.too_large),
            "F3": lambda: self._publish("F3", world.upstream.twice),
            "F4": lambda: self._publish("F4", world.upstream.stale),
            "F5": lambda: self._publish("F5", world.upstream.unknown),
            "F9": lambda: self._publish("F9", world.upstream.give_up),
            "F8": lambda: self._publish("F8", world.upstream.misplaced),
            "G1": self._clock_jumps, "G2": self._clock_steps, "G9": lambda: self._freeze("G9", (10, 30)),
            "H1": self._cut_worker, "H3": self._repeat_report, "H8": self._end_worker, "H10": self._forge,
            "H11": self._all_workers_away, "J2": self._second_projector, "J3": self._database_away, "K1": self._kill,
            "K4": self._slow,
        }  # fmt: skip

    def begin(self) -> None:
        """Let the faults come, and those who are down come back."""
        for fault in sorted(LASTING & self.site.options.faults.keys()):
            self._fault(fault, "clocks", FAULTS[fault][0])
        for fault, rate in self.site.options.faults.items():
            if fault in self._does:
                self._next(fault, rate)
        self._look()

    def calm(self) -> None:
        """The faults end: everything is there again, and works as it should."""
        site, network = self.site, self.world.network
        site.under_faults = False
        self.world.broker.transactions.let_be()
        site.story.say("storm", "the faults end")
        network.recover()
        network.by_machine.clear()
        network.faults = self.world.weather
        for rule in self._rules:
            network.release(rule)
            with suppress(ValueError):  # It has been met already.
                network.forget(rule)
        for name in sorted(self.world.cut):
            network.mend(name)
        self.world.cut.clear()
        for machine in self._frozen:
            self.loop.thaw(machine)
        for node in self.world.everybody():
            node.clock.skew_seconds = max(-SKEW_SECONDS_MAX, min(SKEW_SECONDS_MAX, node.clock.skew_seconds))
        for node in self.world.nodes:
            node.disk.full = False
        self.world.place.gate.open()
        self._disarm()
        for twin in self.members.twins:
            twin.kill("B7: the twin is found")
        for second in self._seconds:
            self.loop.kill(second.machine)
        self._away.clear()
        self._restarts.clear()
        self._look()

    def _disarm(self) -> None:
        """What was to happen at the next occasion does not."""
        for node in self.world.nodes:
            if node.process is not None:
                node.process.points.disarm()
        for projector in self.world.projectors:
            if projector.process is not None:
                projector.process.dies_when_written = False
        for worker in self.world.workers:
            if worker.process is not None:
                worker.process.dies_when = ""
        self.world.api.dies_when_appended = False

    # --- when -----------------------------------------------------------------------------------------------------

    def _next(self, fault: str, rate: float) -> None:
        self.loop.later(self.chance.expovariate(rate / SECONDS_OF_AN_HOUR), lambda: self._now(fault, rate))

    def _now(self, fault: str, rate: float) -> None:
        if self.site.under_faults:
            self._does[fault]()
            self._next(fault, rate)

    def _look(self) -> None:
        """Who is down and wanted comes back after a while; a process that has failed for good ends."""
        for node in self.world.everybody():
            self._end_failed(node)
            if node.runs or not node.wanted or node.name in self._away:  # Of workers all are wanted.
                self._restarts.pop(node.name, None)
            elif node.name not in self._restarts:
                pause = self.chance.choice((0.2, 1.0, 3.0, 10.0, 30.0)) if self.site.under_faults else 0.0
                self._restarts[node.name] = self.loop.seconds + pause
            if node.name in self._restarts and self._restarts[node.name] <= self.loop.seconds:
                del self._restarts[node.name]
                node.start()
        self.loop.later(LOOK_SECONDS, self._look)

    def _end_failed(self, node: Node | ProjectorNode | WorkerNode) -> None:
        if isinstance(node, WorkerNode) or node.process is None or not node.runs:
            return
        if node.process.service.failure is not None and not node.process.machine.frozen:
            node.kill(f"its role has failed: {node.process.service.failure}")

    def _task(self, body: Does) -> None:
        self.site.spawn("storm", body, self._machine)

    def _fault(self, name: str, who: str, what: str) -> None:
        self.site.story.fault(name, who, what)

    # --- processes ------------------------------------------------------------------------------------------------

    def _owner(self) -> Node | None:
        """One of the role nodes that run."""
        running = [node for node in self.world.nodes if node.runs and node.process and not node.process.machine.frozen]
        return self.chance.choice(running) if running else None

    def _arm(self, point: str) -> None:
        node = self._owner()
        if node is not None and node.process is not None:
            node.process.points.arm(point)  # The fault has happened when it dies there.

    def _kill(self) -> None:
        running = [node for node in self.world.everybody() if node.runs and not isinstance(node, WorkerNode)]
        if running:
            node = self.chance.choice(running)
            self._fault("K1", node.name, "is killed")
            node.kill("K1")

    def _stop_and_kill(self) -> None:
        node = self._owner()
        if node is None:
            return
        self._fault("A11", node.name, "is asked to stop, and killed")
        self._task(node.stop)
        self.loop.later(self.chance.choice((0.001, 0.01, 0.1, 1.0)), lambda: node.kill("A11"))

    def _freeze(self, name: str, sessions: tuple[float, float]) -> None:
        node = self._owner()
        if node is not None and node.process is not None:
            seconds = self.site.options.session_seconds * self.chance.uniform(*sessions)
            self._stand_still(name, node.process.machine, seconds)

    def _stand_still(self, name: str, machine: Machine, seconds: float) -> None:
        self._fault(name, machine.name, f"stands still for {seconds:.1f} s")
        self.loop.freeze(machine)
        self._frozen.append(machine)
        self.loop.later(seconds, lambda: self._go_on(machine))

    def _go_on(self, machine: Machine) -> None:
        if machine.frozen and machine.alive:
            self.site.story.say(machine.name, "goes on")
            self.loop.thaw(machine)

    def _freeze_in_transaction(self) -> None:
        node = self._owner()
        if node is not None and node.process is not None:
            machine, seconds = node.process.machine, self.site.options.session_seconds * self.chance.uniform(0.8, 2.5)
            node.process.points.stand_still(lambda: self._stand_still("C6", machine, seconds))

    def _reverse_fence(self) -> None:
        role = self.chance.choice(("scheduler", "dispatcher"))
        number = self.chance.randrange(partitions_of(role, self.site.layout))
        partition = Partition(role=role, number=number, inputs=INPUTS[role], layout=self.site.layout)

        def fence() -> None:
            self._fault("B2", partition.transactional_id, "is opened by one that does not own it")
            machine = Machine(f"former-{self.loop.turns}")
            log = self.site.log_of(machine, self.site.clock())
            try:
                log.open_producer(partition.transactional_id, group=role).close()
            except LogError as error:
                self.site.story.say("former", f"? {error}")
            self.loop.kill(machine)

        self._task(fence)

    def _one_name(self) -> None:
        node = self._owner()
        if node is not None:
            self.members.twin(node)

    # --- the brokers and the network ------------------------------------------------------------------------------

    def _hold(self, name: str, api: str, fate: Fate) -> None:
        node = self._owner()
        if node is None or node.process is None:
            return
        machine = node.process.machine.name
        self._fault(name, machine, f"{api}: {fate.value}")
        rule = self.world.network.next(api, fate, machine=machine)
        self._rules.append(rule)
        self._release_in_a_transaction(node.process.points, rule)
        self.loop.later(self.chance.uniform(1.0, 30.0), lambda: self.world.network.release(rule))

    def _release_in_a_transaction(self, points: Points, rule: Rule) -> None:
        """A transaction lasts for milliseconds: chance alone would hardly ever let anything arrive in one.

        Half of the time when its decision is there, else behind its rows and outputs, if it has any.
        """
        let_pass = [*range(self._flushes.randint(0, 1))]

        def begun() -> None:
            if rule.held and not let_pass:
                self.world.network.release(rule)
                return
            if rule.held:
                let_pass.pop()
            points.stand_still(begun)

        points.stand_still(begun)

    def _deafen(self) -> None:
        """What a process and its group say to each other gets lost, and nothing else."""
        node = self._owner()
        if node is None or node.process is None:
            return
        machine, seconds = node.process.machine.name, self.site.options.session_seconds * self.chance.uniform(1.0, 3.0)
        self._fault("B9", machine, f"and its group do not hear of each other for {seconds:.0f} s")
        rules = [self.world.network.every(api, Fate.DROP, machine=machine) for api in OF_GROUPS]
        self._rules += rules

        def hear() -> None:
            for rule in rules:
                with suppress(ValueError):  # The faults have ended, and the rule with them.
                    self.world.network.forget(rule)

        self.loop.later(seconds, hear)

    def _lossy(self) -> None:
        if self.chance.choice((True, False)):
            api = self.chance.choice(LOSSY)
            self._fault("C4", "network", f"an answer to {api} gets lost")
            self._rules.append(self.world.network.next(api, Fate.LOSE_ANSWER))
            return
        network, worst = self.world.network, self.chance.choice((0.002, 0.02, 0.1))
        fates = Fates(lost=worst / 2, answer_lost=worst, late=worst / 4, repeated=worst / 4)
        self._fault("C4", "network", f"loses {worst:.1%} of answers for a while")
        network.faults = replace(self.world.weather, fates=fates)
        self.loop.later(self.chance.uniform(5, 60), self._clear_up)

    def _clear_up(self) -> None:
        self.world.network.faults = replace(self.world.weather, fates=CALM)

    def _move_coordinator(self) -> None:
        which, seconds = self.chance.choice(("transactions", "groups")), self.chance.choice((0.1, 1.0, 5.0))
        self._fault("C5", "brokers", f"the coordinator of {which} moves within {seconds} s")
        self.world.broker.move_coordinator(which, seconds)

    def _outage(self, name: str, between: tuple[float, float]) -> None:
        if not self.world.broker.is_up:
            return
        seconds = self.chance.uniform(*between)
        self._fault(name, "brokers", f"are away for {seconds:.0f} s")
        self.away_seconds += seconds  # in which nobody ends a transaction whose time is up
        self.world.network.outage()
        self.loop.later(seconds, self.world.network.recover)

    def _slow(self) -> None:
        node = self._owner()
        if node is None or node.process is None:
            return
        machine, slow = node.process.machine.name, self.chance.choice((0.05, 0.3, 1.0))
        self._fault("K4", machine, f"each of its calls takes {slow} s")
        self.world.network.by_machine[machine] = replace(self.world.weather, latency_seconds=(slow / 2, slow))
        self.loop.later(self.chance.uniform(10, 100), lambda: self._speed_up(machine))

    def _speed_up(self, machine: str) -> None:
        self.world.network.by_machine.pop(machine, None)

    def _forget_positions(self) -> None:
        group = self.chance.choice(("scheduler", "dispatcher"))
        self._fault("E4", group, "its positions are forgotten")
        self.world.broker.forget_positions(self.world.settings.named(group))

    def _forget_writer(self) -> None:
        """Of the writers of partitions: who else has a transactional id is not ours."""
        coordinator, roles = self.world.broker.transactions, (*map(self.world.settings.named, INPUTS),)
        resting = [id_ for id_, at in coordinator.transactions.items() if at.is_at_rest and id_.startswith(roles)]
        if resting:
            chosen = self.chance.choice(resting)
            elsewhere = self.chance.choice((True, False))
            self._fault("C12", chosen, f"is forgotten{', and another broker coordinates it' if elsewhere else ''}")
            coordinator.forget(chosen, elsewhere=elsewhere)

    # --- clocks -------------------------------------------------------------------------------------------------------

    def _clock_jumps(self) -> None:
        node = self._owner()
        if node is None:
            return
        before = max(-SKEW_SECONDS_MAX, min(SKEW_SECONDS_MAX, node.clock.skew_seconds))  # not one of another jump
        jump = self.chance.choice(JUMPS)
        self._fault("G1", node.name, f"its clock jumps by {jump:.0f} s")
        node.clock.skew_seconds = before + jump
        self.loop.later(self.chance.uniform(1, 120), lambda: setattr(node.clock, "skew_seconds", before))

    def _clock_steps(self) -> None:
        node = self._owner()
        if node is not None:
            step = self.chance.uniform(-0.5, 0.5)
            self._fault("G2", node.name, f"its clock is set by {step:.3f} s")
            node.clock.skew_seconds = max(-SKEW_SECONDS_MAX, min(SKEW_SECONDS_MAX, node.clock.skew_seconds + step))

    # --- workers, callers, publishers, projectors -----------------------------------------------------------------

    def _worker(self) -> WorkerNode | None:
        running = [node for node in self.world.workers if node.runs]
        return self.chance.choice(running) if running else None

    def _worker_dies(self, name: str) -> None:
        node = self._worker()
        if node is not None and node.process is not None:
            node.process.dies_when = name

    def _end_worker(self) -> None:
        node = self._worker()
        if node is None:
            return
        if self.chance.choice((True, False, False)):
            self._fault("H8", node.name, "is stopped")
            self._task(node.stop)
        else:
            self._fault("H8", node.name, "is killed")
            node.kill("H8")

    def _cut_worker(self) -> None:
        node = self._worker()
        if node is None or node.process is None:
            return
        machine, seconds = node.process.machine.name, self.chance.uniform(5, 120)
        self._fault("H1", machine, f"reaches nobody for {seconds:.0f} s")
        self.world.network.cut(machine)
        self.world.cut.add(machine)
        self.loop.later(seconds, lambda: self._mend(machine))

    def _mend(self, machine: str) -> None:
        if machine in self.world.cut:
            self.world.cut.discard(machine)
            self.world.network.mend(machine)

    def _all_workers_away(self) -> None:
        self._fault("H11", "workers", "are all away")
        self.send_away(self.world.workers, "H11", self.chance.uniform(20, 240))

    def send_away(self, nodes: Collection[Node | WorkerNode], why: str, seconds: float) -> None:
        """Kill these nodes, and let none of them come back for a while."""
        names = {node.name for node in nodes}
        self._away |= names
        for node in nodes:
            node.kill(why)
        self.loop.later(seconds, lambda: self._away.difference_update(names))

    def _repeat_report(self) -> None:
        node = self._worker()
        what = "" if node is None else self.world.upstream.repeat(node)
        if what and node is not None:
            self._fault("H3", node.name, what)

    def _forge(self) -> None:
        node = self._worker()
        what = "" if node is None else self.world.upstream.forge(node)
        if what and node is not None:
            self._fault("H10", node.name, what)

    def _publish(self, name: str, do: Callable[[], str]) -> None:
        self._fault(name, "upstream", do())

    def _api_dies(self) -> None:
        self.world.api.dies_when_appended = True

    def _projector_dies(self) -> None:
        running = [node for node in self.world.projectors if node.process is not None and node.runs]
        if running:
            process = self.chance.choice(running).process
            assert process is not None, "chosen for it"
            process.dies_when_written = True

    def _database_away(self) -> None:
        """For a while, or for one of the next questions alone: a connection that ends, a server that starts anew."""
        gate = self.world.place.gate
        if self.chance.choice((True, False)):
            self._fault("J3", "database", "refuses one of the next questions")
            gate.refuse_one(self.chance.randint(0, 5))
            return
        seconds = self.chance.uniform(1, 60)
        self._fault("J3", "database", f"is away for {seconds:.0f} s")
        gate.away = True
        self.loop.later(seconds, gate.open)

    def _second_projector(self) -> None:
        second = self.world.second_projector()
        self._seconds.append(second)
        self._fault("J2", second.machine.name, "follows what others follow")
        self.loop.later(self.chance.uniform(5, 300), lambda: self.loop.kill(second.machine))
