"""A transaction that nobody has ended: whoever takes its partition over ends it, and decides nothing a second time.

Kafka 4.4.0 leaves one where a partition has no leader when its transaction ends, be it committed or aborted
(KAFKA-20734): the coordinator takes it for ended, and readers of the partition get no further. The next end under the
same id ends it as well, whichever that is.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast

import orjson
import pytest

from runtime import footer as framing
from runtime import hanging
from runtime.log import LogError
from runtime.logs.producing import BufferingProducer, Commit, Writer
from runtime.logs.simulated import SimulatedLog
from runtime.processor import Processor, World
from runtime.record import Outgoing, TopicPartition
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


class UnendedAt(Unended):
    """That becomes such a one with a producer's `at`-th commit."""

    def __init__(self, log: SimulatedLog, left: Left, *, at: int) -> None:
        super().__init__(log, left, acks=False)
        self._count = at

    def commit(self, writer: Writer, records: Sequence[Outgoing], positions: Mapping[TopicPartition, int]) -> Commit:
        """See `Ledger.commit`."""
        self._count -= 1
        if self._count:
            return self._log.commit(writer, records, positions)
        return super().commit(writer, records, positions)


class Refusing:
    """A log that takes nobody's transactions."""

    def __init__(self, log: SimulatedLog) -> None:
        self._log = log

    def open_producer(self, transactional_id: str, *, group: str) -> BufferingProducer:
        epoch = self._log.open_producer(transactional_id, group=group).epoch
        return BufferingProducer(self, Writer(transactional_id, epoch, group))

    def commit(self, writer: Writer, records: Sequence[Outgoing], positions: Mapping[TopicPartition, int]) -> Commit:
        """See `Ledger.commit`."""
        del writer, records, positions
        raise LogError("the brokers are away")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)


class Failing:
    """A log on which the owner dies in its `at`-th commit, which aborts what it had sent."""

    def __init__(self, log: SimulatedLog, at: int) -> None:
        self._log, self._left = log, at

    def open_producer(self, transactional_id: str, *, group: str) -> BufferingProducer:
        epoch = self._log.open_producer(transactional_id, group=group).epoch
        return BufferingProducer(self, Writer(transactional_id, epoch, group))

    def commit(self, writer: Writer, records: Sequence[Outgoing], positions: Mapping[TopicPartition, int]) -> Commit:
        """See `Ledger.commit`."""
        self._left -= 1
        if self._left:
            return self._log.commit(writer, records, positions)
        for place in {TopicPartition(record.topic, record.partition) for record in records}:
            self._log.give_up(writer.transactional_id, place)
        raise LogError("the owner is gone")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)


def fail(shell: Watched, at: int) -> None:
    """Let an owner take the partition over and die in its `at`-th commit."""
    log, shell.log = shell.log, cast("Any", Failing(cast("SimulatedLog", shell.log), at))
    with pytest.raises(LogError, match="the owner is gone"):
        shell.restart()
    shell.log = log


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
    """Its store has it, and what it sent may hang elsewhere: it is carried out again, from the state before it."""
    shell.store = leave(shell, whole, acks=True)
    shell.restart()
    assert len(shell.told.of(Event.STORE_OUTDATED)) == 1
    shell.settle()
    assert shell.core.decided == []
    assert sorted(set(counts(shell))) == [("a", 1), ("a", 11)]
    assert shell.log.stable_offset(EVENTS) == shell.log.end_offset(EVENTS)
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


# --- an owner that goes on without noticing ---------------------------------------------------------------------------


class Marking(SimulatedLog):
    """A log in which each end takes a place, where it is told."""

    told = True

    def open_producer(self, transactional_id: str, *, group: str) -> BufferingProducer:
        producer = super().open_producer(transactional_id, group=group)
        producer.marks_ends = True
        return producer

    def _write(self, records: Sequence[Outgoing], gap_max: int) -> Commit:
        del gap_max
        commit = super()._write(records, 0)
        for place in {TopicPartition(record.topic, record.partition) for record in records} if self.told else ():
            self._partition(place).end += 1
        return commit


def test_what_hung_is_sent_again_by_the_owner_that_has_ended_it_with_its_next_transaction() -> None:
    """No end stands behind it in the changelog: so it hung there, and may do so where it sent something."""
    clock = ManualClock(NOON)
    log = Marking(7, clock)
    shell = Watched(log, clock)
    shell.publish(Add(name="a"))
    shell.settle()
    log.told = False
    shell.publish(Add(name="a"))
    shell.settle()
    log.told = True
    shell.publish(Add(name="a"))
    shell.settle()
    shell.publish(Add(name="a"))
    shell.settle()
    assert counts(shell) == [("a", 1), ("a", 2), ("a", 3), ("a", 2), ("a", 4)]
    assert len(ids(shell)) == 4
    assert len(shell.told.of(Event.TRANSACTION_HUNG)) == 1


class Replaced(BufferingProducer):
    """One whose client is another one with each transaction, as Kafka's is after a commit in doubt."""

    def begin(self) -> None:
        ledger: Any = self._ledger
        taken = ledger._log.open_producer(self._writer.transactional_id, group=self._writer.group)
        self._writer, self.epoch = self._writer._replace(epoch=taken.epoch), taken.epoch
        super().begin()


class Doubted(Unended):
    """A log on which an owner doubts what it was told, and goes on with another client."""

    def open_producer(self, transactional_id: str, *, group: str) -> BufferingProducer:
        epoch = self._log.open_producer(transactional_id, group=group).epoch
        return Replaced(self, Writer(transactional_id, epoch, group))


def test_who_doubts_a_commit_looks_whether_it_hangs_before_another_one_could_take_it_along(shell: Watched) -> None:
    log = cast("SimulatedLog", shell.log)
    shell.log = cast("Any", Doubted(log, whole, acks=True))
    shell.restart()
    shell.publish(Add(name="a", times=10))
    shell.processor.step(0.0)
    shell.publish(Add(name="a"))
    end = log.end_offset(CHANGELOG)
    with pytest.raises(LogError, match="the last transaction was left without an end"):
        shell.processor.step(0.0)
    assert log.end_offset(CHANGELOG) == end, "nothing is sent"
    shell.log = log
    shell.restart()
    shell.settle()
    assert sorted(set(counts(shell))) == [("a", 1), ("a", 11), ("a", 12)]
    assert len(ids(shell)) == 3


class Aborting:
    """A log on which taking over aborts what its owner had open, and what had hung before that."""

    def __init__(self, log: SimulatedLog) -> None:
        self._log = log

    def open_producer(self, transactional_id: str, *, group: str) -> BufferingProducer:
        self._log.give_up(transactional_id, CHANGELOG)
        return self._log.open_producer(transactional_id, group=group)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)


def test_what_taking_over_aborts_is_carried_out_if_its_owner_may_have_been_told_that_it_is_committed(
    shell: Watched,
) -> None:
    """It went on without knowing, and died in its next transaction."""
    leave(shell, whole, acks=True)
    shell.log = cast("Any", Aborting(cast("SimulatedLog", shell.log)))
    shell.restart()
    shell.settle()
    assert shell.core.decided == []
    assert sorted(set(counts(shell))) == [("a", 1), ("a", 11)]
    goes_on(shell)


def test_what_taking_over_aborts_is_decided_anew_if_its_owner_was_told_nothing(shell: Watched) -> None:
    leave(shell, without_footer)
    shell.log = cast("Any", Aborting(cast("SimulatedLog", shell.log)))
    shell.restart()
    shell.settle()
    assert [key for key, *_ in shell.core.decided] != []
    assert sorted(set(counts(shell))) == [("a", 1), ("a", 11)]
    goes_on(shell)


# --- the owner that ends it fails as well -----------------------------------------------------------------------------

POSITIONS, END, CARRIED_OUT = 1, 2, 3  # the commits of who takes such a partition over


@pytest.mark.parametrize("lose_store", [False, True])
@pytest.mark.parametrize("at", [END, POSITIONS, CARRIED_OUT])
@pytest.mark.parametrize("left", [decision_only, without_rows, without_footer, whole])
def test_whoever_dies_before_it_is_carried_out_loses_nothing(
    shell: Watched, left: Left, at: int, *, lose_store: bool
) -> None:
    """An abort takes what hung along: its decision stands in a copy. A commit may be all that there is in the end."""
    leave(shell, left)
    fail(shell, at)
    shell.restart(lose_store=lose_store)
    shell.settle()
    assert shell.core.decided == []
    assert sorted(set(counts(shell))) == [("a", 1), ("a", 11)]
    assert len(ids(shell)) == 2
    goes_on(shell)


def test_what_its_owner_was_told_is_committed_is_kept_when_it_is_aborted_after_all(shell: Watched) -> None:
    """Its store knows more than the log, and is built anew; what it knew is carried out again."""
    shell.store = leave(shell, whole, acks=True)
    fail(shell, END)
    shell.restart()
    assert [told["reason"][-80:] for told in shell.told.of(Event.STORE_QUARANTINED)] != []
    shell.settle()
    assert shell.core.decided == []
    assert sorted(set(counts(shell))) == [("a", 1), ("a", 11)]
    goes_on(shell)


@pytest.mark.parametrize(
    ("left", "again"),
    [
        (decision_only, decision_only),
        (decision_only, whole),
        (without_footer, without_footer),
        (whole, without_footer),
        (whole, whole),
    ],
)
def test_what_is_carried_out_may_hang_as_well(shell: Watched, left: Left, again: Left) -> None:
    """Whoever ended the first is left without an end in its turn: what was decided is the same, and known by its id."""
    leave(shell, left)
    log = cast("SimulatedLog", shell.log)
    shell.log = cast("Any", UnendedAt(log, again, at=CARRIED_OUT))
    with pytest.raises(LogError):
        shell.restart()
    shell.log = log
    fail(shell, POSITIONS)
    shell.restart()
    shell.settle()
    assert shell.core.decided == []
    assert sorted(set(counts(shell))) == [("a", 1), ("a", 11)]
    assert len(ids(shell)) == 2
    goes_on(shell)


@pytest.mark.parametrize("lose_store", [False, True])
def test_a_copy_that_comes_late_says_nothing_new(shell: Watched, *, lose_store: bool) -> None:
    """Whoever was fenced long ago may still append it: what it names is done."""
    leave(shell, whole)
    fail(shell, END)
    copies = [record for record in shell.records(CHANGELOG.topic) if (record.key or b"").startswith(hanging.COPY_KEY)]
    assert len(copies) == 1
    shell.restart()
    shell.settle()
    late = Outgoing(*CHANGELOG, copies[0].key, copies[0].value)
    shell.log.append([late])
    written = shell.log.end_offset(CHANGELOG)
    shell.restart(lose_store=lose_store)
    shell.settle()
    assert (shell.core.decided, shell.log.end_offset(CHANGELOG)) == ([], written)
    goes_on(shell)


def test_a_copy_that_comes_late_takes_nobody_elses_place(shell: Watched) -> None:
    """It may stand between a decision that is torn and its rows, or behind one that hangs."""
    leave(shell, decision_only)
    fail(shell, END)
    (copy,) = [record for record in shell.records(CHANGELOG.topic) if (record.key or b"").startswith(hanging.COPY_KEY)]
    shell.restart()
    leave(shell, decision_only)
    shell.log.append([Outgoing(*CHANGELOG, copy.key, copy.value)])
    fail(shell, END)
    shell.restart()
    shell.settle()
    assert shell.core.decided == []
    assert sorted(set(counts(shell))) == [("a", 1), ("a", 11), ("a", 21)]


def test_a_copy_is_made_once(shell: Watched) -> None:
    """However often the end fails: what hangs in the changelog may do so for long."""
    leave(shell, whole)
    log = cast("SimulatedLog", shell.log)
    for _ in range(3):
        shell.log = cast("Any", Refusing(log))
        with pytest.raises(LogError):
            shell.restart()
    shell.log = log
    shell.restart()
    keys = [record.key for record in shell.records(CHANGELOG.topic)]
    assert keys.count(hanging.COPY_KEY + b"0000") == 1
    goes_on(shell)
