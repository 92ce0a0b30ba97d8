"""Each footer says what the state digests to; who has another state raises an alarm, and mends nothing."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime import footer as framing
from runtime import ranges, restore, verification
from runtime.digest import Walk, counted
from runtime.logs.simulated import SimulatedLog
from runtime.processor import Processor, World
from runtime.record import Outgoing
from runtime.stores.memory import MemoryStore
from runtime.telemetry import Event, Telemetry
from runtime.workspace import row_key
from schemas.facts import ScheduleResumed
from simulation.clock import ManualClock
from tests.runtime.dying import Died, DyingStore
from tests.runtime.shell import CHANGELOG, NOON, PARTITION, Shell
from tests.runtime.toy import Add

if TYPE_CHECKING:
    from collections.abc import Sequence

CHANGES = st.lists(
    st.dictionaries(
        st.integers(0, 12).map(lambda n: b"r\0\1k%d" % n), st.none() | st.binary(max_size=3), min_size=1, max_size=4
    ),
    max_size=20,
)


@settings(max_examples=50)
@given(changes=CHANGES, rows=st.integers(1, 5))
def test_a_walk_beside_the_work_comes_to_what_is_there_at_its_end(
    changes: Sequence[dict[bytes, bytes | None]], rows: int
) -> None:
    """However few rows it takes at a time, and whatever is written or deleted before it and behind it."""
    store = MemoryStore()
    store.apply({b"r\0\1k%d" % number: b"first" for number in range(5)})
    walk = Walk(store, rows=rows, every=0.0)
    ends = 0
    more: list[dict[bytes, bytes | None]] = [{b"r\0\1k0": b"%d" % number} for number in range(20)]
    for change in (*changes, *more):
        walk.step(0.0)
        walk.change(change)
        taken = walk.taken(0.0)
        store.apply(change)
        if taken:
            assert taken == counted(store)
            ends += 1
    assert ends


def test_a_walk_waits_for_its_time() -> None:
    """Ten minutes after the process began, and after the last one."""
    walk = Walk(MemoryStore())
    seen = []
    for boot in (100.0, 699.0, 700.0, 701.0, 1299.0, 1300.0):
        walk.step(boot)
        walk.change({b"r\0\1k": b"%f" % boot})
        seen.append(bool(walk.taken(boot)))
    assert seen == [False, False, True, False, False, True]


def test_rows_are_told_apart_by_where_their_key_ends() -> None:
    one, other = MemoryStore(), MemoryStore()
    one.apply({b"ra": b"bc"})
    other.apply({b"rab": b"c"})
    assert counted(one) != counted(other)


# --- a partition --------------------------------------------------------------------------------------------------


class Told:
    """A logger that remembers."""

    def __init__(self) -> None:
        self.alarms: list[dict[str, Any]] = []
        self.set_aside: list[dict[str, Any]] = []

    def error(self, name: str, **fields: Any) -> None:
        if name == Event.STATE_DIFFERS.value:
            self.alarms.append(fields)
        if name == Event.STORE_QUARANTINED.value:
            self.set_aside.append(fields)

    def info(self, name: str, **fields: Any) -> None: ...

    warning = info


class Watched(Shell):
    """A shell that keeps the alarms since its last restart."""

    log: SimulatedLog

    def start(self) -> Processor:
        self.told = Told()
        self.telemetry = Telemetry(logger=self.told)
        world = World(clock=self.clock, entropy=lambda: bytes(16), telemetry=self.telemetry)
        processor = Processor(self.core, PARTITION, self.log, self.store, world)
        processor.open()
        return processor

    def pass_time(self, minutes: int = 11) -> None:
        """Idle for so long that the state is digested."""
        for _ in range(minutes):
            self.clock.advance(timedelta(minutes=1))
            for _ in range(2):
                self.processor.step(0.0)

    def digest_with(self, add: Add) -> None:
        """Let the transaction of an input be the one that has a digest."""
        self.pass_time(9)
        self.clock.advance(timedelta(minutes=1))
        self.publish(add)
        self.settle()
        assert self.footers()[-1].digest
        assert self.footers()[-1].decision_parts

    def claimed_at(self) -> int:
        """Where the last footer with a digest stands."""
        return max(
            record.offset
            for record in self.records(CHANGELOG.topic)
            if record.key == framing.FOOTER_KEY and framing.read_footer(record.value or b"").digest
        )

    def footers(self) -> list[framing.Footer]:
        return [
            framing.read_footer(record.value or b"")
            for record in self.records(CHANGELOG.topic)
            if record.key == framing.FOOTER_KEY
        ]

    def counts(self) -> list[tuple[str, int]]:
        return [(fact.schedule, fact.version) for fact in self.facts() if isinstance(fact, ScheduleResumed)]

    def alarm(self) -> float | None:
        labels = {"role": "scheduler", "partition": "0"}
        return self.telemetry.registry.get_sample_value("tidewheel_state_differs", labels)


@pytest.fixture
def shell() -> Watched:
    """A partition with two keys."""
    clock = ManualClock(NOON)
    shell = Watched(SimulatedLog(7, clock), clock)
    shell.publish(Add(name="a"), Add(name="b"))
    shell.settle()
    return shell


A, B = row_key(b"a", b"count"), row_key(b"b", b"count")


def test_every_ten_minutes_a_footer_has_the_digest_of_the_rows_as_its_transaction_leaves_them(shell: Watched) -> None:
    """The sum of a hash of each, and of nothing else: anybody can count it."""
    shell.pass_time(15)
    shell.publish(Add(name="a"))
    shell.settle()
    shell.pass_time(15)
    rows: dict[bytes, bytes] = {}
    digests, known = [], set[str]()
    for record in shell.records(CHANGELOG.topic):
        key, value = record.key or b"", record.value or b""
        if key == framing.FOOTER_KEY and (said := framing.read_footer(value).digest) not in {"", *known}:
            known.add(said)
            hashes = [
                blake2b(key + value + len(key).to_bytes(2, "big"), digest_size=16).digest()
                for key, value in rows.items()
            ]
            digests.append((said, f"{sum(int.from_bytes(each, 'big') for each in hashes) % 2**128:032x}"))
        elif key != framing.FOOTER_KEY and not key.startswith(framing.DECISION_KEY):
            rows[key] = value
    assert len(digests) == 2, "the state changed once"
    assert all(said == expected for said, expected in digests)


@pytest.mark.parametrize("lose_store", [False, True])
def test_who_restores_a_sound_state_comes_to_the_same(shell: Watched, *, lose_store: bool) -> None:
    for _ in range(3):
        shell.publish(Add(name="a"))
        shell.settle()
        shell.pass_time()
        shell.restart(lose_store=lose_store)
        assert shell.told.alarms == []
    assert shell.alarm() == (0 if lose_store else None), "a store that has followed already is not counted"


def test_a_changelog_that_lost_a_row_raises_an_alarm_where_a_store_is_built_from_it(shell: Watched) -> None:
    """There is nothing else to go by, so the partition goes on with what there is; the alarm comes with each build."""
    shell.pass_time()
    kept = [record for record in shell.records(CHANGELOG.topic) if record.key != B]
    shell.log.truncate(CHANGELOG, 0)
    shell.log.append([Outgoing(*CHANGELOG, record.key, record.value) for record in kept])
    for _ in range(2):
        shell.restart(lose_store=True)
        (alarm,) = shell.told.alarms
        assert (alarm["role"], alarm["partition"], alarm["where"]) == ("scheduler", "0", [])
        assert alarm["logged"] != alarm["found"]
        assert shell.alarm() == 1
    shell.publish(Add(name="b"))
    shell.settle()
    assert shell.counts()[-1] == ("b", 1)


def test_a_store_that_is_not_its_changelog_raises_an_alarm_that_says_where(shell: Watched) -> None:
    """It has caught up with a footer that has a digest. Nothing is mended: which is right is for a person to say."""
    behind = dict(shell.store.scan(b"", None))
    shell.pass_time()
    c = row_key(b"c", b"count")
    for _ in range(2):
        shell.store = MemoryStore()
        shell.store.apply({key: value for key, value in behind.items() if key != B} | {A: b"{}", c: b"{}"})
        shell.restart()
        (alarm,) = shell.told.alarms
        assert alarm["where"] == [
            f"{A!r}: another value", f"{c!r}: not in the changelog", f"{B!r}: not in the store"
        ]  # fmt: skip
        assert shell.store.get(A) == b"{}"


def test_only_the_state_at_the_footer_is_held_against_its_digest(shell: Watched) -> None:
    """What was written since does not belong to it, and neither does a transaction that was torn behind it."""
    shell.pass_time()
    shell.publish(Add(name="a"), Add(name="c"))
    shell.settle()
    torn = shell.records(CHANGELOG.topic)
    shell.log.truncate(CHANGELOG, torn[-1].offset)
    shell.restart(lose_store=True)
    assert shell.told.alarms == []
    assert shell.counts()[-2:] == [("a", 2), ("c", 1)]


def test_a_state_whose_rows_may_be_compacted_is_not_held_against_its_digest(shell: Watched) -> None:
    """Others have taken their places since; the footer is still there, the decision of its transaction is not."""
    shell.digest_with(Add(name="a"))
    shell.publish(Add(name="a"), Add(name="b"))
    shell.settle()
    kept = [
        record
        for record in shell.records(CHANGELOG.topic)
        if record.key == framing.FOOTER_KEY or record.offset > shell.claimed_at()
    ]
    shell.log.truncate(CHANGELOG, 0)
    shell.log.append([Outgoing(*CHANGELOG, record.key, record.value) for record in kept])
    shell.restart(lose_store=True)
    assert shell.told.alarms == []
    assert shell.alarm() is None


def test_a_state_that_changed_since_is_held_against_its_digest_while_its_transaction_is_whole(shell: Watched) -> None:
    shell.digest_with(Add(name="a"))
    shell.publish(Add(name="a"), Add(name="b"))
    shell.settle()
    shell.restart(lose_store=True)
    assert shell.alarm() == 0


def test_what_nobody_changed_since_has_its_digest_in_every_footer(shell: Watched) -> None:
    """So that one who builds a state that stood still finds it, however old it is."""
    shell.pass_time(14)
    digests = [footer.digest for footer in shell.footers()[-4:]]
    assert digests == [digests[0]] * 4
    assert digests[0]
    shell.publish(Add(name="a"))
    shell.settle()
    assert shell.footers()[-1].digest == ""
    shell.clock.advance(timedelta(days=2))
    shell.log.maintain()


def test_a_state_that_stood_still_for_days_is_held_against_its_digest(shell: Watched) -> None:
    shell.pass_time()
    shell.clock.advance(timedelta(days=2))
    shell.log.maintain()
    shell.restart(lose_store=True)
    assert shell.alarm() == 0


@pytest.mark.parametrize("step", range(8))
@pytest.mark.parametrize("behind", ["wholly", "far", "a little"])
def test_a_restore_that_dies_at_any_change_raises_no_false_alarm(
    shell: Watched, monkeypatch: pytest.MonkeyPatch, step: int, behind: str
) -> None:
    monkeypatch.setattr(ranges, "READ_RECORDS", 3)
    monkeypatch.setattr(restore, "HELD_ROWS_MAX", 100 if behind == "a little" else 2)
    store = DyingStore()
    store.apply({} if behind == "wholly" else dict(shell.store.scan(b"", None)))
    for name in ("a", "c", "d", "a", "e"):
        shell.publish(Add(name=name))
        shell.settle()
    shell.pass_time()
    for name in ("a", "f", "g"):
        shell.publish(Add(name=name))
        shell.settle()
    shell.store = store
    store.left = step
    with suppress(Died):
        shell.restart()
    store.left = 1_000_000
    shell.restart()
    assert shell.told.alarms == []
    assert shell.told.set_aside == []


def test_a_changelog_that_is_too_long_is_not_compared(shell: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    """The alarm does not wait for it."""
    monkeypatch.setattr(verification, "COMPARED_MAX", 3)
    shell.pass_time()
    kept = [record for record in shell.records(CHANGELOG.topic) if record.key != B]
    shell.log.truncate(CHANGELOG, 0)
    shell.log.append([Outgoing(*CHANGELOG, record.key, record.value) for record in kept])
    shell.restart(lose_store=True)
    (alarm,) = shell.told.alarms
    assert alarm["where"][0].startswith("not compared: the changelog has ")
