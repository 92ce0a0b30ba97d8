"""Partitions as services: what stops one leaves the others running."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from node.process import unready
from runtime import host
from runtime.clock import SystemClock
from runtime.host import PartitionService, RoleService, pause_when_fenced
from runtime.log import Fenced, LogError
from runtime.logs.embedded import EmbeddedLog
from runtime.logs.simulated import SimulatedLog
from runtime.partition import Partition
from runtime.processor import Processor, World
from runtime.record import Outgoing, TopicPartition
from runtime.store import StoreCorrupt, StoreError
from runtime.stores.memory import MemoryStore
from runtime.telemetry import Telemetry
from schemas import codec, topics
from schemas.operations import GapAccept
from simulation.clock import ManualClock
from tests.runtime.shell import NOON, PARTITION
from tests.runtime.toy import Add, ToyCore
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from runtime.log import Log, Owner
    from runtime.logs.alone import OnlyMember
    from runtime.logs.producing import BufferingProducer
    from runtime.store import Store

SOON = 20.0
LAYOUT = topics.Layout(schedule=2, shard=2)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedLog]:
    log = EmbeddedLog(tmp_path, SystemClock())
    log.create({spec: LAYOUT.partitions(spec.family) for spec in topics.topic_table(topics.Retention())})
    yield log
    log.close()


def service(
    log: Log, number: int, *, pause_when_fenced: Callable[[int], float | None] = lambda _times: None,
    open_store: Callable[[], Store] = MemoryStore, telemetry: Telemetry | None = None,
    halted_seconds: float = host.HALTED_SECONDS,
) -> PartitionService:  # fmt: skip
    telemetry = telemetry or Telemetry()
    partition = Partition(role="scheduler", number=number, inputs=PARTITION.inputs, layout=LAYOUT)

    def make() -> Processor:
        world = World(clock=SystemClock(), entropy=lambda: bytes(16), telemetry=telemetry)
        return Processor(ToyCore(), partition, log, open_store(), world)

    return PartitionService(
        "scheduler", number, make, telemetry, pause_when_fenced=pause_when_fenced, halted_seconds=halted_seconds
    )


def role(log: Log) -> RoleService:
    """The only member of its group."""
    lead = topics.SCHEDULE_CHANGES
    return RoleService(
        "scheduler", lead, log, member="m", make=lambda number, log: service(log, number), telemetry=Telemetry()
    )


def publish(log: Log, partition: int, value: bytes) -> None:
    log.append([Outgoing(topics.SCHEDULE_CHANGES, partition, b"k", value)])


def wait_for_facts(log: Log, count: int) -> None:
    """Until `count` facts are published in all."""
    where = [TopicPartition(topics.RUN_EVENTS, number) for number in range(2)]
    reader = log.open_reader({item: log.begin_offset(item) for item in where})
    found = 0
    while found < count:
        records = reader.poll(records_max=100, bytes_max=1 << 20, timeout=SOON)
        assert records, f"{found} of {count} facts within {SOON} s"
        found += len(records)
    reader.close()


def test_an_impossible_state_stops_its_partition_and_leaves_the_others(log: EmbeddedLog) -> None:
    """The failure is kept and told; the neighbour goes on deciding."""
    broken, neighbour = service(log, 0), service(log, 1)
    for partition in (broken, neighbour):
        partition.start()
        assert partition.ready(SOON)
    publish(log, 0, b"impossible")
    assert broken.stopped(SOON)
    publish(log, 1, codec.dump(Add(name="a")))
    wait_for_facts(log, 1)
    assert isinstance(broken.failure, AssertionError)
    assert not broken.ready(0)
    assert neighbour.failure is None
    assert neighbour.stop(SOON)


def test_a_service_that_is_taken_over_stops(log: EmbeddedLog) -> None:
    """Two processes that believe to own a partition: the later one does; the earlier one ends as fenced."""
    earlier, later = service(log, 0), service(log, 0)
    earlier.start()
    assert earlier.ready(SOON)
    later.start()
    assert later.ready(SOON)
    publish(log, 0, codec.dump(Add(name="a")))
    wait_for_facts(log, 1)
    assert earlier.stopped(SOON)
    assert isinstance(earlier.failure, Fenced)
    assert later.failure is None
    assert later.stop(SOON)


def test_a_stop_wakes_an_idle_partition(log: EmbeddedLog) -> None:
    idle = service(log, 0)
    idle.start()
    assert idle.ready(SOON)
    assert idle.stop(SOON)
    assert idle.failure is None


def test_an_owner_that_was_fenced_but_keeps_its_right_takes_the_partition_back(log: EmbeddedLog) -> None:
    """Whoever fenced it was late: the group still says that the partition is ours."""
    rightful = service(log, 0, pause_when_fenced=lambda times: 0.0 if times == 1 else None)
    rightful.start()
    assert rightful.ready(SOON)
    log.open_producer("scheduler.0", group="scheduler").close()
    publish(log, 0, codec.dump(Add(name="a")))
    wait_for_facts(log, 1)
    assert rightful.failure is None
    assert rightful.stop(SOON)


class Failing(MemoryStore):
    """A store that raises what it is told to, so many times."""

    def __init__(self, errors: list[Exception]) -> None:
        super().__init__()
        self._errors = errors

    def get(self, key: bytes) -> bytes | None:
        if self._errors:
            raise self._errors.pop()
        return super().get(key)


def test_a_store_that_cannot_be_used_for_a_while_is_waited_for(log: EmbeddedLog) -> None:
    """A full disk, a folder that a predecessor still has: the partition works as soon as that is over."""
    errors: list[Exception] = [StoreError("no space left on device"), StoreError("no space left on device")]
    patient = service(log, 0, open_store=lambda: Failing(errors))
    patient.start()
    assert patient.ready(SOON)
    assert errors == []
    assert patient.problem is None
    assert patient.stop(SOON)


def test_a_store_that_is_in_use_by_another_is_not_waited_for_for_ever(
    log: EmbeddedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says so while it waits, and in the end fails with what it waited for."""
    monkeypatch.setattr(host, "UNAVAILABLE_MAX", 2)
    reason = "state/scheduler-0 is in use by another process, or opened twice by this one"

    def locked() -> Store:
        raise StoreError(reason)

    waiting = service(log, 0, open_store=locked)
    waiting.start()
    assert waiting.stopped(SOON)
    assert waiting.problem == str(waiting.failure) == reason


def test_a_store_that_is_damaged_is_built_anew_and_the_partition_goes_on(log: EmbeddedLog) -> None:
    """Wherever the damage is met."""
    errors: list[Exception] = []
    damaged = service(log, 0, open_store=lambda: Failing(errors))
    damaged.start()
    assert damaged.ready(SOON)
    errors.append(StoreCorrupt("block checksum mismatch"))
    publish(log, 0, codec.dump(Add(name="a")))
    wait_for_facts(log, 1)
    assert damaged.failure is None
    assert damaged.stop(SOON)


def test_a_store_that_is_damaged_again_and_again_stops_its_partition(
    log: EmbeddedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is at fault, and a person has to look."""
    monkeypatch.setattr(host, "DAMAGED_MAX", 1)
    damaged = service(log, 0, open_store=lambda: Failing([StoreCorrupt("block checksum mismatch")] * 9))
    damaged.start()
    assert damaged.stopped(SOON)
    assert isinstance(damaged.failure, StoreCorrupt)


def starved() -> SimulatedLog:
    """A log that has lost the second input of a partition, which has read one."""
    clock = ManualClock(NOON)
    log = SimulatedLog(7, clock)
    log.create({spec: LAYOUT.partitions(spec.family) for spec in topics.topic_table(topics.Retention())})
    first = service(log, 0)
    first.start()
    assert first.ready(SOON)
    publish(log, 0, codec.dump(Add(name="a")))
    wait_for_facts(log, 1)
    assert first.stop(SOON)
    publish(log, 0, codec.dump(Add(name="a")))
    clock.advance(timedelta(days=40))
    log.maintain()
    return log


def failed(telemetry: Telemetry) -> float | None:
    return telemetry.registry.get_sample_value("tidewheel_partition_failed", {"role": "scheduler", "partition": "0"})


def test_input_that_was_deleted_unread_halts_its_partition_until_that_is_accepted() -> None:
    """It says so, once, and waits for a person; it goes on by itself when they have said their word."""
    log = starved()
    telemetry = Telemetry()
    late = service(log, 0, telemetry=telemetry, halted_seconds=0.01)
    late.start()
    eventually(lambda: late.halted, within=SOON, what="the partition is halted")
    gap = "tidewheel.schedule-changes partition 0 begins at 2, and was read up to 1 only: 1 records were deleted"
    assert gap in unready([late])["scheduler-0"]
    assert failed(telemetry) == 1
    id_ = log.topic_id(topics.SCHEDULE_CHANGES)
    word = GapAccept(
        role="scheduler", partition=0, topic=topics.SCHEDULE_CHANGES, topic_partition=0, left_id=id_, topic_id=id_,
        read_up_to=1, go_on_at=2, by="ada",
    )  # fmt: skip
    _, value = codec.encode(word, source="tidewheel/admin", time=NOON)
    log.append([Outgoing(topics.OPERATIONS, 0, word.subject.encode(), value)])
    assert late.ready(SOON)
    assert (unready([late]), failed(telemetry)) == ({}, 0)
    assert late.stop(SOON)


def test_a_halted_partition_can_be_stopped_at_once() -> None:
    halted = service(starved(), 0)
    halted.start()
    eventually(lambda: halted.halted, within=SOON, what="the partition is halted")
    assert halted.stop(SOON)


class Away(SimulatedLog):
    """A log that is away until it is asked for the third time."""

    asked = 0

    def open_producer(self, transactional_id: str, *, group: str) -> BufferingProducer:
        self.asked += 1
        if self.asked < 3:
            raise LogError("no broker answers")
        return super().open_producer(transactional_id, group=group)


def test_a_log_that_is_away_is_waited_for() -> None:
    log = Away(7, ManualClock(NOON))
    log.create({spec: LAYOUT.partitions(spec.family) for spec in topics.topic_table(topics.Retention())})
    patient = service(log, 0)
    patient.start()
    assert patient.ready(SOON)
    assert patient.stop(SOON)


def test_an_owner_that_was_fenced_five_times_within_its_right_tries_twice_a_minute() -> None:
    """Each pause is long enough for the group to take the partition away, and random, so that two do not meet."""
    assert [pause_when_fenced(times, 0.5) for times in (1, 5, 6, 7)] == [4.5, 4.5, 45.0, 45.0]
    assert (pause_when_fenced(1, 0.0), pause_when_fenced(1, 0.25)) == (3.0, 3.75)


class Disputed:
    """Work that is fenced at each step, until `steps` say something else: whether there was any work."""

    def __init__(self, steps: list[bool | None]) -> None:
        self._steps = steps

    def open(self) -> None: ...

    def step(self, _timeout: float) -> bool:
        worked = self._steps.pop(0) if self._steps else None
        if worked is None:
            raise Fenced("another one has it")
        return worked

    def settle(self) -> None: ...

    def wake(self) -> None: ...

    def close(self) -> None: ...


def disputed(steps: list[bool | None], *, until: int) -> tuple[PartitionService, list[int]]:
    """A partition that takes these steps and is fenced at each None, `until` so many times; what it counted."""
    counted: list[int] = []

    def pause(times: int) -> float | None:
        counted.append(times)
        return 0.0 if len(counted) < until else None

    return PartitionService("scheduler", 0, lambda: Disputed(steps), Telemetry(), pause_when_fenced=pause), counted


def test_an_owner_that_works_between_two_fencings_counts_anew() -> None:
    """Transactions that take too long cost an owner its id each time; it is not at odds with anybody."""
    partition, counted = disputed([True, None] * 9, until=9)
    partition.start()
    assert partition.stopped(SOON)
    assert counted == [1] * 9


def test_an_owner_that_is_fenced_before_it_has_worked_counts_on() -> None:
    """A step without anything to do is no work: whoever idles learns nothing of who owns the partition."""
    partition, counted = disputed([True, None, False, None, None, None, True, None, None], until=6)
    partition.start()
    assert partition.stopped(SOON)
    assert counted == [1, 2, 3, 4, 1, 2]


def test_an_owner_that_is_fenced_again_and_again_says_that_a_person_has_to_look_and_goes_on() -> None:
    """It is held up for as long as it is kept from its work, opened or not, and no longer."""
    held_up: list[bool] = []
    is_over = threading.Event()

    def pause(_times: int) -> float:
        held_up.append(partition.halted)
        return 0.0

    class Settled(Disputed):
        """Nobody disputes it any more, once the steps are over."""

        def step(self, timeout: float) -> bool:
            if steps:
                return super().step(timeout)
            if not partition.halted:
                is_over.set()
            return True

    steps: list[bool | None] = [None] * 8
    partition = PartitionService("scheduler", 0, lambda: Settled(steps), Telemetry(), pause_when_fenced=pause)
    partition.start()
    assert is_over.wait(SOON)
    assert held_up == [False] * 6 + [True, True]
    assert partition.failure is None
    assert partition.stop(SOON)


def test_a_role_alone_in_its_group_runs_all_partitions(log: EmbeddedLog) -> None:
    """It is ready when all of them are, and they end with it."""
    alone = role(log)
    alone.start()
    assert alone.ready(SOON)
    assert [partition.name for partition in alone.partitions()] == ["scheduler-0", "scheduler-1"]
    publish(log, 1, codec.dump(Add(name="a")))
    wait_for_facts(log, 1)
    first = alone.partitions()[0]
    assert alone.stop(SOON)
    assert first.stopped(0)
    assert alone.partitions() == ()
    assert alone.failure is None


class Closed(SimulatedLog):
    """A log in whose groups nobody can take part until it is opened."""

    def __init__(self, why: LogError) -> None:
        super().__init__(7, ManualClock(NOON))
        self.create({spec: LAYOUT.partitions(spec.family) for spec in topics.topic_table(topics.Retention())})
        self.opened, self._why = threading.Event(), why

    def join(self, group: str, topic: str, *, name: str, owner: Owner) -> OnlyMember:
        if not self.opened.is_set():
            raise self._why
        return super().join(group, topic, name=name, owner=owner)


def test_a_role_whose_log_is_away_waits_with_nothing_in_its_hands_and_says_so() -> None:
    """It takes part as soon as the log is back, and has no problem any more."""
    log = Closed(LogError("no broker answers"))
    patient = role(log)
    patient.start()
    eventually(lambda: patient.problem == "no broker answers", within=SOON, what="it says so")
    assert not patient.ready(0)
    assert patient.partitions() == ()
    log.opened.set()
    assert patient.ready(SOON)
    assert patient.problem is None
    assert patient.stop(SOON)
    assert patient.failure is None


def test_a_role_that_waits_for_its_log_can_be_stopped_at_once() -> None:
    patient = role(Closed(LogError("no broker answers")))
    patient.start()
    eventually(lambda: patient.problem is not None, within=SOON, what="it says so")
    assert patient.stop(SOON)


def test_a_role_whose_name_another_process_has_ends() -> None:
    """To ask for it again would take it from the other, which would do the same."""
    second = role(Closed(Fenced("another process has this name")))
    second.start()
    assert second.stopped(SOON)
    assert str(second.failure) == "another process has this name"


@pytest.mark.parametrize("end", [RoleService.revoked, RoleService.lost])
def test_a_partition_that_the_group_takes_away_ends_and_the_others_go_on(
    log: EmbeddedLog, end: Callable[[RoleService, list[int]], None]
) -> None:
    """Nothing is done for it any more once the group has been answered."""
    shared = role(log)
    shared.start()
    assert shared.ready(SOON)
    first = shared.partitions()[0]
    end(shared, [0])
    assert first.stopped(0)
    publish(log, 0, codec.dump(Add(name="a")))
    publish(log, 1, codec.dump(Add(name="a")))
    wait_for_facts(log, 1)
    assert [partition.name for partition in shared.partitions()] == ["scheduler-1"]
    assert shared.stop(SOON)
