"""What an owner does while it waits for what it has not read: no core of the machine should be busy with it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from runtime.logs.simulated import SimulatedLog
from simulation.clock import ManualClock
from tests.runtime.shell import CHANGES, NOON, Shell
from tests.runtime.toy import Add

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from runtime.record import Record, TopicPartition


class AwayLog:
    """A log that has heard of one record more than it ever delivers, as when its brokers go away."""

    def __init__(self, log: SimulatedLog) -> None:
        self._log = log
        self.is_away = False
        self.waits: list[float] = []

    def end_offsets(self, partitions: Iterable[TopicPartition]) -> Mapping[TopicPartition, int]:
        ends = dict(self._log.end_offsets(partitions))
        return ends | {CHANGES: ends[CHANGES] + 1} if self.is_away else ends

    def open_reader(self, positions: Mapping[TopicPartition, int]) -> Any:
        return WaitingReader(self._log.open_reader(positions), self.waits)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)


class WaitingReader:
    """Notes how long it is allowed to wait, and does not."""

    def __init__(self, reader: Any, waits: list[float]) -> None:
        self._reader, self._waits = reader, waits

    def poll(self, *, records_max: int, bytes_max: int, timeout: float) -> list[Record]:
        self._waits.append(timeout)
        found: list[Record] = self._reader.poll(records_max=records_max, bytes_max=bytes_max, timeout=0.0)
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reader, name)


def test_a_due_wakeup_that_must_wait_for_unread_input_does_not_keep_a_core_busy() -> None:
    """Its instant has come, an input is known of and does not arrive: each look at the log may last a moment."""
    clock = ManualClock(NOON)
    log: Any = AwayLog(SimulatedLog(1, clock))
    shell = Shell(log, clock)
    shell.publish(Add(name="a", wake_at=NOON + timedelta(seconds=1)))
    shell.settle()
    log.is_away = True
    shell.processor.step(0.0)  # asks for the ends, one of which it will not reach
    clock.advance(timedelta(seconds=2))
    log.waits.clear()
    for _ in range(3):
        shell.processor.step(1.0)
    assert log.waits
    assert min(log.waits) > 0
