"""A loop with brokers, a network and machines, for tests that live in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from random import Random
from typing import Any

from runtime.log import Log, LogError
from runtime.record import TopicPartition
from simulation.kafka.broker import Broker
from simulation.kafka.log import SETTINGS, SimulatedKafka
from simulation.kafka.network import Network, NetworkFaults
from simulation.loop import Loop, Machine, Task
from tests.runtime.logs.words import PLENTY, SPECS, START, texts

MILLISECOND = timedelta(milliseconds=1)
LONG = timedelta(seconds=20)  # a transaction outlives a commit that is repeated after a second and a half
HASTY = {"socket.timeout.ms": "1500"}


class Wall:
    """The time of the loop as a clock."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self.offset = timedelta(0)

    def now(self) -> datetime:
        return START + self.offset + int(self._loop.seconds * 1000) * MILLISECOND

    def since_boot(self) -> float:
        return self._loop.seconds


class World:
    """Everything that a test needs. `log` is that of a machine; what is called goes on in `task`s, or in `run`."""

    def __init__(self, seed: int = 1, faults: NetworkFaults = NetworkFaults()) -> None:  # noqa: B008 -- frozen
        self.loop = Loop(Random(seed))
        self.pause = self.loop.sleep  # of virtual time; in a task
        self.clock = Wall(self.loop)
        self.broker = Broker(self.loop, Random(seed + 1), self.clock.now)
        self.network = Network(self.loop, self.broker, str(seed), faults)
        self.machines: dict[str, Machine] = {}
        self.reasons: list[str] = []
        self.run(lambda: self.log("setup").create(SPECS))

    def machine(self, name: str) -> Machine:
        return self.machines.setdefault(name, Machine(name))

    def log(self, machine: str = "a", *, session: timedelta = LONG, **options: Any) -> SimulatedKafka:
        settings = replace(SETTINGS, session_timeout=session, properties=HASTY)
        return SimulatedKafka(
            self.network, self.machine(machine), self.clock, settings=settings,
            **{"replaced": lambda _id, why: self.reasons.append(why)} | options,
        )  # fmt: skip

    def task(self, body: Callable[[], object], machine: str = "a") -> Task:
        return self.loop.spawn("test", partial(_only, body), self.machine(machine))

    def run(self, body: Callable[[], Any], machine: str = "a", *, within: float = 600.0) -> Any:
        """Do it in a task; its value, or its error."""
        values: list[Any] = []
        task = self.task(lambda: values.append(body()), machine)
        deadline = self.loop.seconds + within
        while not task.done:
            assert self.loop.seconds < deadline, f"not done within {within} s"
            self.loop.run(0.01)
        if task.failure is not None:
            raise task.failure
        return values[0] if values else None

    def sees(self, partition: TopicPartition) -> list[str]:
        """What a reader on another machine sees after a while."""

        def body() -> list[str]:
            reader = self.log("reader").open_reader({partition: 0})
            seen: list[str] = []
            while records := reader.poll(records_max=100, bytes_max=PLENTY, timeout=0.5):
                seen += texts(records)
            reader.close()
            return seen

        found: list[str] = self.run(body, "reader")
        return found


def _only(body: Callable[[], object]) -> None:
    body()


class Process:
    """A member of the group `owners` that is polled in a task of its own, and what it was told."""

    def __init__(self, world: World, name: str, *, machine: str = "", log: SimulatedKafka | None = None) -> None:
        self.world, self.name, self.machine = world, name, machine or name
        self.owned: dict[int, Log] = {}
        self.told: list[tuple[str, int]] = []
        self.error: LogError | None = None
        self.on_revoke: Callable[[int], object] = lambda _partition: None
        self.stopping = False
        self._log = log
        self.task = world.task(self._poll, self.machine)

    def assigned(self, partitions: Sequence[int], log: Log) -> None:
        for partition in partitions:
            self.told.append(("assigned", partition))
            self.owned[partition] = log

    def revoked(self, partitions: Sequence[int]) -> None:
        for partition in partitions:
            self.on_revoke(partition)
            self.told.append(("revoked", partition))
            del self.owned[partition]

    def lost(self, partitions: Sequence[int]) -> None:
        for partition in partitions:
            self.told.append(("lost", partition))
            del self.owned[partition]

    def becomes(self, holds: Callable[[], bool], *, within: float = 120.0) -> None:
        """Let time pass until it holds."""
        deadline = self.world.loop.seconds + within
        while not holds():
            assert self.world.loop.seconds < deadline, (self.told, self.error)
            self.world.loop.run(0.01)

    def has(self, *partitions: int) -> None:
        self.becomes(lambda: set(self.owned) == set(partitions))

    def stop(self) -> None:
        self.stopping = True
        self.becomes(lambda: self.task.done)

    def _poll(self) -> None:
        log = self._log or self.world.log(self.machine, session=timedelta(seconds=6))
        member = log.join("owners", "events", name=self.name, owner=self)
        try:
            while not self.stopping:
                member.poll(0.5)
        except LogError as error:
            self.error = error
        member.close()
