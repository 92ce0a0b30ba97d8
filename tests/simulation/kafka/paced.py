"""A simulated log for tests that know nothing of loops: their threads hand each call to one that runs the loop.

Virtual time is paced by real time, so that a thread which waits for another one finds it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from queue import Empty, Queue
from random import Random
from threading import Event, Thread, get_ident
from typing import Any

from simulation.kafka.broker import Broker
from simulation.kafka.fetcher import SimulatedReader
from simulation.kafka.log import SETTINGS, Producing, SimulatedKafka
from simulation.kafka.member import SimulatedMember
from simulation.kafka.network import Network
from simulation.loop import Loop, Machine
from tests.runtime.logs.words import HandClock

SPEED = 10.0  # virtual seconds in a real one, at most
PATIENT = replace(SETTINGS, session_timeout=timedelta(seconds=60))  # a thread of a busy machine may be slow
STEP = 0.002  # virtual seconds
OURS = (SimulatedKafka, SimulatedReader, SimulatedMember, Producing)


@dataclass
class Call:
    """What a thread wants done, and what came of it."""

    body: Callable[[], Any]
    done: Event
    value: Any = None
    error: BaseException | None = None

    def run(self) -> None:
        try:
            self.value = self.body()
        except Exception as error:  # noqa: BLE001 -- it is raised again where it was asked for
            self.error = error
        self.done.set()


class Paced:
    """Runs a loop in a thread of its own."""

    def __init__(self, seed: int, clock: HandClock) -> None:
        self._seed, self._clock = seed, clock
        self._calls: Queue[Call] = Queue()
        self._stopping = False
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()
        self.log = self.do(lambda: SimulatedKafka(self.network, self.machine, clock, settings=PATIENT))

    def do(self, body: Callable[[], Any]) -> Any:
        """Do it in a task of the loop, and wait for it."""
        if get_ident() == self._thread.ident:
            return body()
        call = Call(body, Event())
        self._calls.put(call)
        assert call.done.wait(60)
        if call.error is not None:
            raise call.error
        return self.outside(call.value)

    def outside(self, value: Any) -> Any:
        """What tests may hold in their hands."""
        return Outside(self, value) if isinstance(value, OURS) else value

    def close(self) -> None:
        self._stopping = True
        self._thread.join(20)

    def _run(self) -> None:
        loop = Loop(Random(self._seed))
        self.broker = Broker(loop, Random(self._seed + 1), self._clock.now)
        self.network = Network(loop, self.broker, str(self._seed))
        self.machine = Machine("here")
        began = time.monotonic()
        while not self._stopping:
            try:
                call = self._calls.get(timeout=max(0.0, loop.seconds / SPEED - (time.monotonic() - began)))
                loop.spawn("call", call.run, self.machine)
            except Empty:
                pass
            loop.run(STEP)
        loop.kill(self.machine)


class Outside:
    """A log, a reader, a producer or a member whose every call is done in the loop."""

    def __init__(self, paced: Paced, inside: Any) -> None:
        self._paced, self._inside = paced, inside

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inside, name)
        if not callable(found):
            return found
        if name == "join":
            return lambda *arguments, owner, **named: self._paced.do(
                lambda: found(*arguments, owner=OutsideOwner(self._paced, owner), **named)
            )
        if name == "maintain":
            return lambda: self._paced.do(self._paced.broker.tidy)
        return lambda *arguments, **named: self._paced.do(lambda: found(*arguments, **named))


class OutsideOwner:
    """An owner that is given such a log."""

    def __init__(self, paced: Paced, owner: Any) -> None:
        self._paced, self._owner = paced, owner

    def assigned(self, partitions: Any, log: Any) -> None:
        self._owner.assigned(partitions, self._paced.outside(log))

    def revoked(self, partitions: Any) -> None:
        self._owner.revoked(partitions)

    def lost(self, partitions: Any) -> None:
        self._owner.lost(partitions)
