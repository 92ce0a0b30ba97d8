"""What a restore takes from a changelog, and which stores it refuses because they do not fit to it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from runtime import footer as framing
from runtime.continuity import Halted
from runtime.logs.simulated import SimulatedLog
from runtime.processor import Processor, World
from runtime.record import Outgoing
from runtime.stores.memory import MemoryStore
from runtime.telemetry import Event, Telemetry
from runtime.workspace import META
from schemas import codec
from simulation.clock import ManualClock
from tests.runtime.shell import CHANGELOG, NOON, PARTITION
from tests.runtime.test_continuity import Watched, counts, goes_on, stored
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


# --- stores that do not fit to the log ----------------------------------------------------------------------------


def behind_by(shell: Watched, transactions: int) -> MemoryStore:
    """A store that has stayed where it was while the partition went on."""
    store = MemoryStore()
    store.apply(stored(shell))
    for _ in range(transactions):
        shell.publish(Add(name="a"), Add(name="b"))
        shell.settle()
    shell.store = store
    return store


def at(shell: Watched) -> int:
    offset: int = codec.parse(shell.store.get(META) or b"")["changelog_offset"]
    return offset


def says_it_is_at(store: MemoryStore, offset: int) -> None:
    meta = codec.parse(store.get(META) or b"")
    store.apply({META: orjson.dumps(meta | {"changelog_offset": offset})})


@pytest.mark.parametrize("ahead", range(-3, 18))
def test_a_store_is_used_where_its_last_transaction_ends_and_nowhere_else(shell: Watched, ahead: int) -> None:
    """Were it used one record further, that record would be missing from its state for good.

    Three transactions of four records stand behind it, each with its marker, here and there with a gap.
    """
    offset = at(shell)
    store = behind_by(shell, 3)
    assert offset + 15 <= shell.log.end_offset(CHANGELOG) <= offset + 17
    says_it_is_at(store, offset + ahead)
    shell.restart()
    told = [line["reason"] for line in shell.told.of(Event.STORE_QUARANTINED)]
    assert len(told) == (0 if ahead == 0 else 1), told
    shell.publish(Add(name="a"), Add(name="b"))
    shell.settle()
    assert counts(shell)[-2:] == [("a", 5), ("b", 4)]


def test_the_reason_names_where_the_store_is_and_what_stands_there(shell: Watched) -> None:
    offset = at(shell)
    says_it_is_at(behind_by(shell, 3), offset + 5)
    shell.restart()
    (told,) = shell.told.of(Event.STORE_QUARANTINED)
    assert told["reason"] == (
        f"the store is at {offset + 5}, and does not fit to the log: what stands before {offset + 5} is not the "
        "transaction that the store has read last"
    )


def test_a_store_behind_which_a_transaction_is_missing_is_built_anew(shell: Watched) -> None:
    """It cannot know what that transaction changed; the rows that the log still has are the state."""
    (*_, last) = shell.records(CHANGELOG.topic)
    later = codec.parse(last.value or b"") | {"sequence": 3}
    shell.log.append([Outgoing(*CHANGELOG, framing.FOOTER_KEY, orjson.dumps(later))])
    shell.restart()
    (told,) = shell.told.of(Event.STORE_QUARANTINED)
    assert told["reason"].endswith("transaction 3 stands where 2 should")
    goes_on(shell)


def test_a_store_whose_transactions_may_have_been_compacted_needs_to_be_followed_by_later_ones_only(
    shell: Watched,
) -> None:
    """Of three transactions the log has kept the last footer: nobody can tell, and nothing is wrong."""
    behind_by(shell, 3)
    shell.clock.advance(timedelta(minutes=2))
    shell.log.maintain()
    assert [record.key for record in shell.records(CHANGELOG.topic)].count(framing.FOOTER_KEY) == 1
    shell.restart()
    assert shell.told.of(Event.STORE_QUARANTINED) == []
    shell.publish(Add(name="a"), Add(name="b"))
    shell.settle()
    assert counts(shell)[-2:] == [("a", 5), ("b", 4)]


# --- changelogs that cannot be followed ---------------------------------------------------------------------------


@pytest.mark.parametrize("lose_store", [False, True])
@pytest.mark.parametrize(
    ("key", "value", "what"),
    [
        (framing.FOOTER_KEY, None, "a footer cannot be read"),
        (framing.FOOTER_KEY, b"{", "a footer cannot be read"),
        (framing.DECISION_KEY + b"0000", b"{", "the last decision cannot be read"),
        (b"?", b"", r"the record at \d+ has the unknown key b'\?'"),
    ],
)
def test_a_changelog_that_nobody_can_read_halts_its_partition(
    shell: Watched, key: bytes, value: bytes | None, what: str, *, lose_store: bool
) -> None:
    """It says where to look; the other partitions go on."""
    shell.log.append([Outgoing(*CHANGELOG, key, value)])
    with pytest.raises(Halted, match=f"scheduler-changelog partition 0 cannot be followed: {what}"):
        shell.restart(lose_store=lose_store)


@pytest.mark.parametrize("lose_store", [False, True])
@pytest.mark.parametrize("sequence", [0, 1])
def test_a_changelog_that_goes_back_halts_its_partition(shell: Watched, sequence: int, *, lose_store: bool) -> None:
    """Two writers, or records of another log: what is the state nobody can tell."""
    (*_, last) = shell.records(CHANGELOG.topic)
    earlier = codec.parse(last.value or b"") | {"sequence": sequence}
    shell.log.append([Outgoing(*CHANGELOG, framing.FOOTER_KEY, orjson.dumps(earlier))])
    with pytest.raises(Halted, match=f"transaction {sequence} stands behind transaction 1"):
        shell.restart(lose_store=lose_store)
