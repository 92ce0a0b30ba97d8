"""What a partition does when its store or its topics are not what they were: it makes anew what can be, or halts."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from prometheus_client import CollectorRegistry

from runtime import footer as framing
from runtime import ranges, restore
from runtime.continuity import Halted
from runtime.logs.simulated import SimulatedLog
from runtime.machine import Woken
from runtime.processor import Processor, World
from runtime.record import Outgoing, TopicPartition
from runtime.store import StoreCorrupt
from runtime.stores.memory import MemoryStore
from runtime.telemetry import Event, Telemetry
from runtime.workspace import DERIVATION, META, row_key
from schemas import codec, topics
from schemas.facts import SchedulePaused, ScheduleResumed
from simulation.clock import ManualClock
from tests.runtime.dying import Died, DyingStore
from tests.runtime.shell import CHANGELOG, CHANGES, LAYOUT, NOON, PARTITION, Shell
from tests.runtime.toy import Add, ToyCore

if TYPE_CHECKING:
    from collections.abc import Mapping

OUTCOMES = TopicPartition(topics.RUN_OUTCOMES, 0)
CATALOG = TopicPartition(topics.CATALOG, 0)


class Told:
    """A logger that remembers."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, dict[str, Any]]] = []

    def of(self, event: Event) -> list[dict[str, Any]]:
        """The fields of each line of that name."""
        return [fields for name, fields in self.lines if name == event.value]

    def info(self, name: str, **fields: object) -> None:
        self.lines.append((name, fields))

    warning = error = info


class Watched(Shell):
    """A shell that knows what its partition has told since its last restart."""

    def start(self) -> Processor:
        self.told = Told()
        world = World(clock=self.clock, entropy=lambda: bytes(16), telemetry=Telemetry(logger=self.told))
        processor = Processor(self.core, PARTITION, self.log, self.store, world, limits=self.limits)
        processor.open()
        return processor

    def recreate(self, *names: str) -> None:
        """Delete topics and create them again, empty."""
        assert isinstance(self.log, SimulatedLog)
        specs = {spec: LAYOUT.partitions(spec.family) for spec in topics.topic_table(topics.Retention())}
        for name in names:
            self.log.delete(name)
        self.log.create(specs)


@pytest.fixture
def log() -> SimulatedLog:
    return SimulatedLog(7, ManualClock(NOON))


@pytest.fixture
def shell() -> Watched:
    """A partition that has answered one input, and stands still."""
    clock = ManualClock(NOON)
    shell = Watched(SimulatedLog(7, clock), clock)
    shell.publish(Add(name="a", wake_at=NOON + timedelta(hours=1)))
    shell.settle()
    return shell


def simulated(shell: Watched) -> SimulatedLog:
    assert isinstance(shell.log, SimulatedLog)
    return shell.log


def counts(shell: Shell) -> list[tuple[str, int]]:
    return [(fact.schedule, fact.version) for fact in shell.facts() if isinstance(fact, ScheduleResumed)]


def wakes(shell: Shell) -> list[str]:
    return [fact.schedule for fact in shell.facts() if isinstance(fact, SchedulePaused)]


def stored(shell: Shell) -> dict[bytes, bytes]:
    return dict(shell.store.scan(b"", None))


def forge(shell: Shell, **fields: object) -> None:
    """Change what the store's checkpoint says, and a row, so that serving it would show."""
    meta = orjson.dumps(codec.parse(shell.store.get(META) or b"") | fields)
    shell.store.apply({META: meta, row_key(b"a", b"count"): b'{"name":"a","count":99}'})


def goes_on(shell: Shell) -> None:
    """The partition has the state that the changelog tells, and its wakeups."""
    shell.publish(Add(name="a"))
    shell.settle()
    assert counts(shell) == [("a", 1), ("a", 2)]
    shell.advance(hours=1)
    assert wakes(shell) == ["a"]


# --- the store ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"cluster_id": "elsewhere"}, "it belongs to the cluster elsewhere, not to "),
        ({"role": "dispatcher"}, "it belongs to dispatcher partition 0"),
        ({"partition": 3}, "it belongs to scheduler partition 3"),
        ({"format": 2}, "its format is 2, this version writes 1"),
        ({"changelog_offset": "many"}, "/changelog_offset"),
        ({"changelog_offset": 10_000}, "the store is at 10000, ahead of the log, which ends at "),
    ],
)
def test_a_store_that_must_not_be_used_is_set_aside_and_built_anew(
    shell: Watched, fields: Mapping[str, object], reason: str
) -> None:
    """It says why, and where the old one is kept."""
    forge(shell, **fields)
    shell.restart()
    (told,) = shell.told.of(Event.STORE_QUARANTINED)
    assert reason in told["reason"]
    assert (told["kept"], told["role"], told["partition"]) == ("nowhere: it was in memory", "scheduler", "0")
    goes_on(shell)


def test_a_store_that_is_as_it_should_be_is_kept(shell: Watched) -> None:
    shell.restart()
    assert shell.told.of(Event.STORE_QUARANTINED) == []
    goes_on(shell)


class DamagedStore(MemoryStore):
    """A store of which one row cannot be read, until it is set aside."""

    damaged = b""

    def get(self, key: bytes) -> bytes | None:
        if key == self.damaged:
            raise StoreCorrupt("block checksum mismatch in 000009.sst")
        return super().get(key)

    def set_aside(self) -> str:
        self.damaged = b""
        return super().set_aside()


def test_damage_that_is_met_at_work_is_set_aside_too(shell: Watched) -> None:
    """The step ends with an error and without a decision; the next processor builds the store anew and decides."""
    damaged = DamagedStore()
    damaged.apply(stored(shell))
    damaged.damaged = row_key(b"a", b"count")
    shell.store = damaged
    shell.restart()
    shell.publish(Add(name="a"))
    with pytest.raises(StoreCorrupt):
        shell.settle()
    (told,) = shell.told.of(Event.STORE_QUARANTINED)
    assert told["reason"] == "block checksum mismatch in 000009.sst"
    assert counts(shell) == [("a", 1)]
    shell.restart()
    shell.settle()
    assert counts(shell) == [("a", 1), ("a", 2)]


def test_a_store_that_was_away_for_longer_than_deletions_are_kept_is_built_anew(shell: Watched) -> None:
    """The changelog does not say any more what was deleted: a store that followed it would keep it for ever."""
    (*_, last) = shell.records(CHANGELOG.topic)
    later = orjson.dumps(codec.parse(last.value or b"") | {"sequence": 2})
    deleted = row_key(b"a", b"count")
    shell.log.append([Outgoing(*CHANGELOG, deleted, None), Outgoing(*CHANGELOG, framing.FOOTER_KEY, later)])
    shell.clock.advance(timedelta(hours=30))
    shell.log.maintain()
    assert [record for record in shell.records(CHANGELOG.topic) if record.key == deleted] == []
    shell.restart()
    assert len(shell.told.of(Event.STORE_OUTDATED)) == 1
    assert shell.told.of(Event.STORE_QUARANTINED) == []
    shell.publish(Add(name="a"))
    shell.settle()
    assert counts(shell)[-1] == ("a", 1)
    assert wakes(shell) == []


def test_a_store_that_missed_nothing_is_kept_however_long_it_was_away(shell: Watched) -> None:
    shell.clock.advance(timedelta(days=30))
    shell.restart()
    assert shell.told.of(Event.STORE_OUTDATED) == []


@pytest.mark.parametrize("step", range(12))
@pytest.mark.parametrize("behind", ["wholly", "far", "a little"])
def test_a_restore_that_dies_at_any_change_loses_no_wakeup(
    shell: Watched, monkeypatch: pytest.MonkeyPatch, step: int, behind: str
) -> None:
    """Whether rows or wakeups were written last: the next restore goes on, and every due key is asked."""
    monkeypatch.setattr(ranges, "READ_RECORDS", 4)
    monkeypatch.setattr(restore, "HELD_ROWS_MAX", 100 if behind == "a little" else 2)
    store = DyingStore()
    store.apply({} if behind == "wholly" else stored(shell))
    names = [f"k{number}" for number in range(8)]
    for name in names:
        shell.publish(Add(name=name, wake_at=NOON + timedelta(hours=1)))
        shell.settle()
    shell.store = store
    store.left = step
    with suppress(Died):
        shell.restart()
    store.left = 1_000_000
    shell.restart()
    shell.advance(hours=1)
    assert sorted(wakes(shell)) == ["a", *names]
    assert store.get(DERIVATION) is not None


def test_a_restore_says_how_much_is_left(shell: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    """A gauge, and a line every few seconds; both end at nothing."""
    monkeypatch.setattr(ranges, "READ_RECORDS", 3)
    monkeypatch.setattr(restore, "TOLD_SECONDS", 0.0)
    for name in "bcdef":
        shell.publish(Add(name=name))
        shell.settle()
    shell.restart(lose_store=True)
    left = [line["records_left"] for line in shell.told.of(Event.PARTITION_RESTORING)]
    assert left[0] == simulated(shell).end_offset(CHANGELOG)
    assert left == sorted(left, reverse=True)
    assert len(left) >= 6
    assert left[-1] == 0
    assert shell.processor.problem is None


def test_the_gauge_of_a_restore_ends_at_zero() -> None:
    """While it runs the partition says that it is only a matter of time."""
    registry = CollectorRegistry()
    progress = restore.Progress(PARTITION, ManualClock(NOON), Telemetry(registry))
    progress.reached(120)
    labels = {"role": "scheduler", "partition": "0"}
    assert (progress.left, registry.get_sample_value("tidewheel_restore_records_left", labels)) == (120, 120.0)
    progress.done()
    assert (progress.left, registry.get_sample_value("tidewheel_restore_records_left", labels)) == (None, 0.0)


# --- the changelog ------------------------------------------------------------------------------------------------


def test_a_changelog_that_lost_its_end_is_gone_back_to_and_what_it_does_not_know_is_decided_anew(
    shell: Watched,
) -> None:
    """The store is ahead of it, and set aside; inputs behind the last footer are read again, with the same answers."""
    end = simulated(shell).end_offset(CHANGELOG)
    shell.publish(Add(name="a", times=5))
    shell.settle()
    simulated(shell).truncate(CHANGELOG, end)
    shell.restart()
    (told,) = shell.told.of(Event.STORE_QUARANTINED)
    assert told["reason"].endswith("transactions that were committed are lost")
    (differ,) = shell.told.of(Event.POSITIONS_DIFFER)
    assert differ["group"] == f"{CHANGES.topic}-0 at 2"
    assert differ["footer"] == f"{CHANGES.topic}-0 at 1"
    shell.settle()
    assert counts(shell) == [("a", 1), ("a", 6), ("a", 6)]
    ids = [codec.parse(record.value or b"")["id"] for record in shell.records(topics.RUN_EVENTS)]
    assert ids[1] == ids[2]


def test_a_changelog_that_lost_everything_halts_its_partition_and_the_store_is_left_alone(shell: Watched) -> None:
    """The store is all that is left of the state: it is not thrown away for an empty one."""
    before = stored(shell)
    simulated(shell).truncate(CHANGELOG, 0)
    with pytest.raises(Halted, match="ahead of the log, which ends at 0, and no transaction stands in ") as halted:
        shell.restart()
    assert "may still be in memory" in str(halted.value)
    assert "delete the offsets of group scheduler" in str(halted.value)
    assert stored(shell) == before


def test_a_lost_changelog_is_noticed_without_a_store_too(shell: Watched) -> None:
    """The group has positions: there was a state, and to begin anew would lose every schedule behind all backs."""
    simulated(shell).truncate(CHANGELOG, 0)
    with pytest.raises(Halted, match=f"group scheduler has positions: .*{CHANGES.topic}-0 at 1"):
        shell.restart(lose_store=True)


def test_a_changelog_that_was_deleted_and_created_again_halts_its_partition(shell: Watched) -> None:
    """With its store, which is left alone, and without; an empty state is never built over an empty changelog."""
    before = stored(shell)
    shell.recreate(CHANGELOG.topic)
    with pytest.raises(Halted, match=f"{CHANGELOG.topic} was deleted and created again") as halted:
        shell.restart()
    assert "move that folder away, and delete the offsets of group scheduler" in str(halted.value)
    assert stored(shell) == before
    with pytest.raises(Halted, match="group scheduler has positions"):
        shell.restart(lose_store=True)


def test_what_an_operator_does_to_begin_anew_is_enough(shell: Watched) -> None:
    """The folder moved away and the offsets deleted: what is still published is read from its beginning."""
    shell.recreate(CHANGELOG.topic)
    simulated(shell).forget_positions("scheduler")
    shell.restart(lose_store=True)
    shell.settle()
    assert counts(shell) == [("a", 1), ("a", 1)]


def test_a_changelog_that_is_created_again_under_a_running_partition_halts_it(shell: Watched) -> None:
    """Before anything is written to the new one."""
    shell.recreate(CHANGELOG.topic)
    shell.publish(Add(name="a"))
    with pytest.raises(Halted, match=f"{CHANGELOG.topic} was deleted and created again while it was in use"):
        shell.settle()
    assert shell.records(CHANGELOG.topic) == []


def test_footers_of_another_changelog_halt_a_partition_without_a_store(shell: Watched) -> None:
    """Records that were copied from a former topic do not make this one whole: offsets differ."""
    copied = shell.records(CHANGELOG.topic)
    shell.recreate(CHANGELOG.topic)
    shell.log.append([Outgoing(*CHANGELOG, record.key, record.value) for record in copied])
    with pytest.raises(Halted, match=f"{CHANGELOG.topic} was deleted and created again"):
        shell.restart(lose_store=True)


# --- the inputs ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("topic", [CHANGES.topic, OUTCOMES.topic, CATALOG.topic])
@pytest.mark.parametrize("lose_store", [False, True])
def test_an_input_that_was_deleted_and_created_again_halts_the_partition(
    shell: Watched, topic: str, *, lose_store: bool
) -> None:
    """Lead, companion or reference: what was read up to says nothing about the new one."""
    shell.recreate(topic)
    with pytest.raises(Halted, match=f"topic {topic} was deleted and created again: position . of partition 0"):
        shell.restart(lose_store=lose_store)


def test_an_input_that_is_created_again_under_a_running_partition_halts_it(shell: Watched) -> None:
    shell.recreate(CHANGES.topic)
    shell.publish(Add(name="a"), Add(name="a"))
    with pytest.raises(Halted, match=f"{CHANGES.topic} was deleted and created again while it was in use"):
        shell.settle()
    assert counts(shell) == [("a", 1)]


def test_positions_written_before_incarnations_were_kept_are_believed(shell: Watched) -> None:
    """A footer of an earlier version says nothing of ids; the next one does."""
    (*_, last) = shell.records(CHANGELOG.topic)
    old = codec.parse(last.value or b"")
    del old["changelog_id"]
    for position in old["positions"]:
        del position["topic_id"]
    shell.log.append([Outgoing(*CHANGELOG, framing.FOOTER_KEY, orjson.dumps(old | {"sequence": 2}))])
    shell.restart(lose_store=True)
    goes_on(shell)
    new = framing.read_footer(shell.records(CHANGELOG.topic)[-1].value or b"")
    assert new.changelog_id == shell.log.topic_id(CHANGELOG.topic)
    assert {item.topic: item.topic_id for item in new.positions} == {
        topic: shell.log.topic_id(topic) for topic in (CHANGES.topic, OUTCOMES.topic, CATALOG.topic)
    }


def test_an_input_that_lost_what_was_answered_halts_the_partition(shell: Watched) -> None:
    """What is published next would stand where an answered command stood, and be passed over."""
    simulated(shell).truncate(CHANGES, 0)
    with pytest.raises(Halted, match=f"{CHANGES.topic} partition 0 ends at 0, and was read up to 1: 1 records that"):
        shell.restart()


def test_an_input_that_lost_what_only_the_group_remembers_halts_the_partition(shell: Watched) -> None:
    """Changelog and input both lost their end: the group's positions are the only witness."""
    end = shell.log.end_offset(CHANGELOG)
    shell.publish(Add(name="a"))
    shell.settle()
    simulated(shell).truncate(CHANGELOG, end)
    simulated(shell).truncate(CHANGES, 1)
    with pytest.raises(Halted, match="ends at 1, and was read up to 2"):
        shell.restart(lose_store=True)


def test_an_input_that_was_deleted_before_it_was_read_halts_the_partition(shell: Watched) -> None:
    """Retention of thirty days, and a partition that stood still for longer: the gap is named, at start and at work."""
    shell.publish(Add(name="a"), Add(name="a"), Add(name="b"))
    shell.clock.advance(timedelta(days=40))
    shell.log.maintain()
    gap = f"{CHANGES.topic} partition 0 begins at 4, and was read up to 1 only: 3 records were deleted before"
    with pytest.raises(
        Halted, match=f"{gap} they were read; `tidewheel admin accept-gap --role scheduler --partition 0` "
    ):
        shell.processor.step(0.0)
    with pytest.raises(Halted, match=gap):
        shell.restart()


def test_group_offsets_that_are_deleted_or_reset_change_nothing(shell: Watched) -> None:
    """The footer's positions are the ones."""
    simulated(shell).forget_positions("scheduler")
    shell.restart(lose_store=True)
    assert shell.told.of(Event.POSITIONS_DIFFER) == []
    goes_on(shell)


# --- the layout ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("topic", [CHANGES.topic, topics.RUNS, topics.RUN_EVENTS, CHANGELOG.topic])
def test_a_topic_with_another_number_of_partitions_halts_the_partition(log: SimulatedLog, topic: str) -> None:
    """Input, output or changelog: nothing is read or written under another modulus."""
    specs = topics.topic_table(topics.Retention())
    log.create({spec: 2 if spec.name == topic else LAYOUT.partitions(spec.family) for spec in specs})
    world = World(clock=ManualClock(NOON), entropy=lambda: bytes(16), telemetry=Telemetry())
    processor = Processor(ToyCore(), PARTITION, log, MemoryStore(), world)
    with pytest.raises(Halted, match=f"topic {topic} has 2 partitions, and the layout of this node says 1"):
        processor.open()


@pytest.mark.parametrize("topic", [CHANGES.topic, OUTCOMES.topic])
def test_a_topic_that_is_given_partitions_under_a_running_partition_halts_it(shell: Watched, topic: str) -> None:
    """Before its next transaction, which an idle partition has twice a minute."""
    simulated(shell).add_partition(topic)
    shell.clock.advance(timedelta(seconds=30))
    with pytest.raises(Halted, match=f"topic {topic} has 2 partitions, and the layout of this node says 1"):
        shell.processor.step(0.0)
    assert counts(shell) == [("a", 1)]


def test_a_rolled_forward_decision_is_held_against_the_inputs_too(shell: Watched) -> None:
    """A torn transaction over an input that was created again is not completed."""
    shell.publish(Add(name="b"))
    shell.settle()
    torn = shell.records(CHANGELOG.topic)[-3:]
    simulated(shell).truncate(CHANGELOG, torn[0].offset)
    shell.log.append([Outgoing(*CHANGELOG, record.key, record.value) for record in torn[:-1]])
    shell.recreate(CHANGES.topic)
    with pytest.raises(Halted, match="was deleted and created again"):
        shell.restart(lose_store=True)
    assert [type(input_) for _, input_, _ in shell.core.decided if not isinstance(input_, Woken)] == []
