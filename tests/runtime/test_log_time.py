"""A partition on a log that has a clock of its own: whose wall clock is wrong decides nothing by time."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from runtime import footer as framing
from runtime.clock import SystemClock
from runtime.clock_watch import Remembered
from runtime.logs.kafka.log import KafkaLog
from runtime.logs.kafka.settings import KafkaSettings
from runtime.logs.simulated import SimulatedLog
from runtime.processor import Processor, World
from runtime.stores.memory import MemoryStore
from runtime.telemetry import Telemetry
from schemas.facts import ClockHeld, ClockReleased, Fact, SchedulePaused
from simulation.clock import ManualClock
from tests.runtime.logs.words import DEADLINE
from tests.runtime.shell import CHANGELOG, NOON, PARTITION, Shell
from tests.runtime.toy import Add, ToyCore

if TYPE_CHECKING:
    from collections.abc import Callable

TEN_MINUTES = timedelta(minutes=10)
SECONDS = 3.0  # after which a held partition has asked the log for the time again


@dataclass(eq=False)
class Stamped:
    """A log whose commits are stamped by a clock that is not the owner's, and take `seconds` of both."""

    log: Any
    clocks: tuple[ManualClock, ManualClock]  # the log's, the owner's
    seconds: float = 0.0
    commits: int = 0

    def open_producer(self, transactional_id: str, *, group: str) -> StampedProducer:
        return StampedProducer(self.log.open_producer(transactional_id, group=group), self)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.log, name)


class StampedProducer:
    tells_time = True

    def __init__(self, inner: Any, log: Stamped) -> None:
        self._inner, self._log = inner, log

    def commit(self, positions: Any) -> Any:
        self._log.commits += 1
        told_at = self._log.clocks[0].now()
        for clock in self._log.clocks:
            clock.advance(timedelta(seconds=self._log.seconds))
        return replace(self._inner.commit(positions), told_at=told_at)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class Apart(Shell):
    """The log's clock shows `now`, the owner's is ahead of it."""

    log: Stamped

    def __init__(self, ahead: timedelta, now: datetime = NOON) -> None:
        self.brokers = ManualClock(now)
        self.remembered = Remembered()
        super().__init__(Stamped(SimulatedLog(7, self.brokers), ()), ManualClock(now + ahead))  # type: ignore[arg-type]

    def start(self) -> Processor:
        """As in a process that has begun, unless `remembered` is that of another."""
        self.log.clocks = (self.brokers, self.clock)
        world = World(
            clock=self.clock, entropy=lambda: bytes(16), telemetry=Telemetry(), remembered=self.remembered
        )  # fmt: skip
        processor = Processor(self.core, PARTITION, self.log, self.store, world, accept_clock_after=None)
        processor.open()
        return processor

    def in_a_new_process(self, ahead: timedelta) -> None:
        """A process begins under a clock that is ahead."""
        self.remembered = Remembered()
        self.clock = ManualClock(self.brokers.now() + ahead)
        self.restart()

    def advance(self, **by: float) -> None:
        """Let time pass for both."""
        self.brokers.advance(timedelta(**by))
        super().advance(**by)


def waiting(wake_after: timedelta) -> Apart:
    """A partition that has a key which is due then, and whose clock is right."""
    shell = Apart(timedelta(0))
    shell.publish(Add(name="a", wake_at=NOON + wake_after))
    shell.settle()
    return shell


def kinds(shell: Shell) -> list[type[Fact]]:
    return [type(fact) for fact in shell.facts()]


def reasons(shell: Shell) -> list[str]:
    return [fact.reason for fact in shell.facts() if isinstance(fact, ClockHeld)]


@pytest.mark.parametrize("ahead", [timedelta(seconds=30), TEN_MINUTES, timedelta(hours=1), timedelta(days=3650)])
def test_a_process_that_begins_under_a_clock_that_is_ahead_creates_nothing(ahead: timedelta) -> None:
    """Until it is set right: then at its time, and the hold ends by itself."""
    shell = waiting(timedelta(seconds=25))
    shell.in_a_new_process(ahead)
    shell.settle()
    assert kinds(shell)[1:] == [ClockHeld]
    shell.advance(seconds=10)
    assert kinds(shell)[1:] == [ClockHeld]
    shell.clock.set_wall(shell.brokers.now())
    shell.advance(seconds=SECONDS)
    shell.settle()
    assert kinds(shell)[2:] == [ClockReleased]
    shell.advance(seconds=15)
    assert kinds(shell)[3:] == [SchedulePaused]


def test_it_says_by_how_much_its_clock_is_ahead() -> None:
    shell = waiting(TEN_MINUTES)
    shell.in_a_new_process(TEN_MINUTES)
    shell.settle()
    assert reasons(shell) == ["the wall clock is 600 s ahead of the log's clock"]


def test_inputs_are_answered_meanwhile() -> None:
    shell = waiting(TEN_MINUTES)
    shell.in_a_new_process(TEN_MINUTES)
    shell.publish(Add(name="b"))
    shell.settle()
    assert len(shell.core.decided) == 1


def test_a_partition_that_never_had_a_mark_goes_by_the_logs_time_while_it_is_held() -> None:
    shell = Apart(timedelta(days=3650))
    shell.publish(Add(name="a"))
    shell.settle()
    footers = [record for record in shell.records(*CHANGELOG) if record.key == framing.FOOTER_KEY]
    assert framing.read_footer(footers[-1].value or b"").clock_mark == NOON


def test_a_partition_that_is_opened_again_in_a_process_whose_clock_has_jumped_is_held() -> None:
    """Also where the log has no clock of its own: the process remembers the time before the jump."""
    clock = ManualClock(NOON)
    log, remembered, store = SimulatedLog(7, clock), Remembered(), MemoryStore()
    shell = Shell(log, clock)
    world = World(clock=clock, entropy=lambda: bytes(16), telemetry=Telemetry(), remembered=remembered)
    shell.publish(Add(name="a", wake_at=NOON + timedelta(minutes=5)))
    for jump in (timedelta(0), TEN_MINUTES):
        clock.set_wall(NOON + jump)
        processor = Processor(ToyCore(), PARTITION, log, store, world)
        processor.open()
        while processor.step(0.0):
            pass
    assert kinds(shell)[1:] == [ClockHeld]


def test_a_running_partition_notices_at_its_next_commit_that_the_logs_clock_is_another() -> None:
    """Wall and time since boot agree, and both are wrong: a machine that was resumed from a snapshot."""
    shell = waiting(TEN_MINUTES)
    shell.brokers.advance(timedelta(hours=1))
    shell.publish(Add(name="b"))
    shell.settle()
    assert reasons(shell) == ["the wall clock is 3600 s behind the log's clock"]


def test_a_clock_that_jumps_before_a_partition_has_looked_at_it_is_held() -> None:
    """One that was idle since it was opened: the log has confirmed the time then."""
    shell = waiting(timedelta(minutes=5))
    shell.in_a_new_process(timedelta(0))
    shell.clock.set_wall(NOON + TEN_MINUTES)
    shell.settle()
    assert reasons(shell) == ["the wall clock jumped forward by 600 s against the time since boot"]
    assert SchedulePaused not in kinds(shell)


def test_an_owner_whose_clock_is_right_asks_once_and_is_not_held() -> None:
    shell = waiting(timedelta(seconds=10))
    before = shell.log.commits
    shell.in_a_new_process(timedelta(seconds=2))
    shell.settle()
    assert shell.log.commits == before + 1
    shell.advance(seconds=10)
    assert kinds(shell)[1:] == [SchedulePaused]


def test_a_held_owner_asks_every_two_seconds() -> None:
    shell = waiting(TEN_MINUTES)
    shell.in_a_new_process(TEN_MINUTES)
    shell.settle()
    before = shell.log.commits
    for _ in range(20):
        shell.advance(seconds=1)
    assert shell.log.commits == before + 10


def test_a_slow_log_is_asked_again_before_it_is_gone_by() -> None:
    shell = waiting(TEN_MINUTES)
    before = shell.log.commits
    shell.log.seconds = 8.0
    shell.in_a_new_process(timedelta(0))
    assert shell.log.commits == before + 3
    shell.settle()
    assert reasons(shell) == []


def step_until(shell: Shell, condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < deadline
        shell.processor.step(0.5)


class Telling(Shell):
    """Notes what its processor says to its operator."""

    def start(self) -> Processor:
        """See `Shell.start`."""
        self.told: list[str] = []
        world = World(clock=self.clock, entropy=lambda: bytes(16), telemetry=Telemetry(logger=self))
        processor = Processor(self.core, PARTITION, self.log, self.store, world, accept_clock_after=None)
        processor.open()
        return processor

    def __getattr__(self, _level: str) -> Callable[..., None]:
        return lambda event, **_fields: self.told.append(event)


class Ahead(SystemClock):
    """The clock of a machine that is wrong."""

    ahead = TEN_MINUTES

    def now(self) -> datetime:
        return super().now() + self.ahead


def test_on_a_broker_a_process_that_begins_under_a_clock_that_is_ahead_creates_nothing(
    broker: str, topic_prefix: str
) -> None:
    """And goes on within seconds once it is set right."""
    settings = KafkaSettings(bootstrap=broker, namespace=topic_prefix, replication_factor=1, min_insync_replicas=1)
    clock: Any = Ahead()
    with closing(KafkaLog(settings, clock)) as log:
        shell = Telling(log, clock)
        shell.publish(Add(name="a", wake_at=SystemClock().now() + timedelta(minutes=5)))
        step_until(shell, lambda: len(shell.core.decided) == 1)
        assert shell.told == ["partition_restored", "clock_held"]
        clock.ahead = timedelta(0)
        step_until(shell, lambda: "clock_released" in shell.told)
        assert "600 s ahead of the log's clock" in reasons(shell)[0]
        assert SchedulePaused not in kinds(shell)
        shell.processor.close()
