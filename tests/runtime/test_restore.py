"""What a restore takes from a changelog, and which stores it refuses because they do not fit to it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from runtime.logs.simulated import SimulatedLog
from runtime.processor import Processor, World
from runtime.stores.memory import MemoryStore
from runtime.telemetry import Event, Telemetry
from simulation.clock import ManualClock
from tests.runtime.shell import NOON, PARTITION
from tests.runtime.test_continuity import Watched, counts, stored
from tests.runtime.toy import Add, ToyCore

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from runtime.log import Reader
    from runtime.record import TopicPartition


@pytest.fixture
def shell() -> Watched:
    """A partition that has answered one input, and stands still."""
    clock = ManualClock(NOON)
    shell = Watched(SimulatedLog(7, clock), clock)
    shell.publish(Add(name="a", wake_at=NOON + timedelta(hours=1)))
    shell.settle()
    return shell


class OvertakenLog:
    """A log that grows each time before it is read."""

    def __init__(self, log: Any, grow: Callable[[], None]) -> None:
        self._log, self._grow = log, grow

    def open_reader(self, positions: Mapping[TopicPartition, int]) -> Reader:
        self._grow()
        reader: Reader = self._log.open_reader(positions)
        return reader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)


def test_an_owner_who_is_overtaken_while_it_restores_keeps_a_store_that_it_can_use_again(shell: Watched) -> None:
    """Its successor commits meanwhile: what stands behind the end that was asked for is left for the next restore."""
    late = MemoryStore()
    late.apply(stored(shell))

    def work() -> None:
        shell.restart()
        for _ in range(2):
            shell.publish(Add(name="a"))
            shell.settle()

    overtaken: Any = OvertakenLog(shell.log, work)
    world = World(clock=shell.clock, entropy=lambda: bytes(16), telemetry=Telemetry())
    Processor(ToyCore(), PARTITION, overtaken, late, world).open()
    done = len(counts(shell))
    assert done > 1
    shell.store = late
    shell.restart()
    assert shell.told.of(Event.STORE_QUARANTINED) == []
    shell.publish(Add(name="a"))
    shell.settle()
    assert counts(shell) == [("a", number) for number in range(1, done + 2)]
