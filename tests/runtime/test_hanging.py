"""A transaction that nobody has ended: whoever takes its partition over ends it, and decides nothing a second time.

Kafka 4.4.0 leaves one where a partition has no leader when its transaction ends, be it committed or aborted
(KAFKA-20734): the coordinator takes it for ended, and readers of the partition get no further. The next end under the
same id ends it as well, whichever that is.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from runtime import footer as framing
from runtime.log import LogError
from runtime.logs.producing import BufferingProducer, Commit, Writer
from runtime.logs.simulated import SimulatedLog
from runtime.processor import Processor, World
from runtime.record import TopicPartition
from runtime.stores.memory import MemoryStore
from runtime.telemetry import Event, Telemetry
from runtime.workspace import META
from schemas import codec, topics
from simulation.clock import ManualClock
from tests.runtime.shell import CHANGELOG, NOON, PARTITION
from tests.runtime.test_continuity import Watched, counts, stored
from tests.runtime.toy import Add, ToyCore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from runtime.record import Outgoing

    Left = Callable[[Sequence[Outgoing]], Sequence[Outgoing]]  # what stands in the log of what was sent

EVENTS = TopicPartition(topics.RUN_EVENTS, 0)


@pytest.fixture
def shell() -> Watched:
    """A partition that has answered one input."""
    clock = ManualClock(NOON)
    shell = Watched(SimulatedLog(7, clock), clock)
    shell.publish(Add(name="a"))
    shell.settle()
    return shell


class Unended:
    """A log whose coordinator never tells the partitions how a transaction ended.

    `left` picks what stands in the log by then of what was sent; `acks`: whoever commits is told that it is committed.
    """

    def __init__(self, log: SimulatedLog, left: Left, *, acks: bool) -> None:
        self._log, self._left, self._acks = log, left, acks

    def open_producer(self, transactional_id: str, *, group: str) -> BufferingProducer:
        epoch = self._log.open_producer(transactional_id, group=group).epoch
        return BufferingProducer(self, Writer(transactional_id, epoch, group))

    def check_writer(self, writer: Writer) -> None:
        self._log.check_writer(writer)

    def check_exists(self, records: Iterable[Outgoing]) -> None:
        self._log.check_exists(records)

    def commit(self, writer: Writer, records: Sequence[Outgoing], positions: Mapping[TopicPartition, int]) -> Commit:
        """See `Ledger.commit`."""
        del positions
        before = self._log.end_offset(CHANGELOG)
        left = self._left(records)
        self._log.hang(writer.transactional_id, left)
        if not self._acks:
            raise LogError("the brokers went away")
        changelog = [record for record in left if (record.topic, record.partition) == CHANGELOG]
        offsets = [before + len(changelog) - 1] * len(records)  # the last one is asked for: where the footer stands
        return Commit(offsets=offsets, appended_at=NOON)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)


def leave(shell: Watched, left: Left, *, acks: bool = False) -> MemoryStore:
    """Let an owner begin on the next input and vanish; its store."""
    store = MemoryStore()
    store.apply(stored(shell))
    log: Any = Unended(shell.log, left, acks=acks)  # type: ignore[arg-type]
    world = World(clock=shell.clock, entropy=lambda: bytes(16), telemetry=Telemetry())
    owner = Processor(ToyCore(), PARTITION, log, store, world)
    owner.open()
    shell.publish(Add(name="a", times=10, wake_at=NOON + timedelta(hours=1)))
    if acks:
        owner.step(0.0)
    else:
        with pytest.raises(LogError):
            owner.step(0.0)
    return store


def whole(records: Sequence[Outgoing]) -> Sequence[Outgoing]:
    return records


def without_rows(records: Sequence[Outgoing]) -> Sequence[Outgoing]:
    """The decision and what was to be sent."""
    return [record for record in records if record.topic != CHANGELOG.topic or is_decision(record)]


def decision_only(records: Sequence[Outgoing]) -> Sequence[Outgoing]:
    return [record for record in records if is_decision(record)]


def without_footer(records: Sequence[Outgoing]) -> Sequence[Outgoing]:
    return records[:-1]


def is_decision(record: Outgoing) -> bool:
    return (record.key or b"").startswith(framing.DECISION_KEY)


def ids(shell: Watched) -> set[str]:
    return {codec.parse(record.value or b"")["id"] for record in shell.records(topics.RUN_EVENTS)}


def goes_on(shell: Watched) -> None:
    """What is published next counts on from there, also for whoever has nothing but the log."""
    shell.publish(Add(name="a"))
    shell.settle()
    assert counts(shell)[-1] == ("a", 12)
    live = dict(shell.store.scan(b"", None))
    shell.restart(lose_store=True)
    rebuilt = dict(shell.store.scan(b"", None))
    assert {key: value for key, value in rebuilt.items() if key != META} == {
        key: value for key, value in live.items() if key != META
    }
    shell.publish(Add(name="a"))
    shell.settle()
    assert counts(shell)[-1] == ("a", 13)
    assert shell.told.of(Event.STORE_QUARANTINED) == []


@pytest.mark.parametrize("left", [decision_only, without_rows, without_footer, whole])
def test_what_a_dead_owner_had_decided_is_carried_out_as_written(shell: Watched, left: Left) -> None:
    """Nobody can tell whether it was committed: its decision stands, and what it was to send is sent, maybe again."""
    leave(shell, left)
    assert shell.log.stable_offset(CHANGELOG) < shell.log.end_offset(CHANGELOG)
    shell.restart()
    shell.settle()
    assert shell.core.decided == []
    assert sorted(set(counts(shell))) == [("a", 1), ("a", 11)]
    assert len(ids(shell)) == 2
    assert shell.log.stable_offset(CHANGELOG) == shell.log.end_offset(CHANGELOG)
    assert shell.log.stable_offset(EVENTS) == shell.log.end_offset(EVENTS)
    (told,) = shell.told.of(Event.TRANSACTION_HUNG)
    assert (told["role"], told["partition"]) == ("scheduler", "0")
    goes_on(shell)


@pytest.mark.parametrize("left", [without_rows, whole])
def test_who_has_nothing_but_the_log_carries_it_out_as_well(shell: Watched, left: Left) -> None:
    leave(shell, left)
    shell.restart(lose_store=True)
    shell.settle()
    assert sorted(set(counts(shell))) == [("a", 1), ("a", 11)]
    assert len(ids(shell)) == 2
    goes_on(shell)


def test_what_its_owner_was_told_is_committed_counts_once(shell: Watched) -> None:
    """Its store has it, and so has the log once it is ended: there is nothing to carry out."""
    shell.store = leave(shell, whole, acks=True)
    shell.restart()
    shell.settle()
    assert shell.core.decided == []
    assert counts(shell) == [("a", 1)], "an output is seen when something is committed behind it"
    goes_on(shell)
    assert sorted(set(counts(shell))) == [("a", 1), ("a", 11), ("a", 12), ("a", 13)]


def test_a_decision_of_which_a_part_is_missing_sent_nothing_and_is_made_anew(shell: Watched) -> None:
    def begun(records: Sequence[Outgoing]) -> Sequence[Outgoing]:
        first = next(record for record in records if is_decision(record))
        value = orjson.dumps(codec.parse(first.value or b"") | {"last": False})
        return [first._replace(value=value)]

    leave(shell, begun)
    shell.restart()
    shell.settle()
    assert [key for key, *_ in shell.core.decided] != []
    assert counts(shell) == [("a", 1), ("a", 11)]
    goes_on(shell)


def test_nothing_is_said_or_written_where_nothing_hangs(shell: Watched) -> None:
    end = shell.log.end_offset(CHANGELOG)
    shell.restart()
    assert shell.told.of(Event.TRANSACTION_HUNG) == []
    assert shell.log.end_offset(CHANGELOG) == end
