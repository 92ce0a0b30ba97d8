"""The shell of a core: one transaction a batch, inputs before wakeups, and a restart that loses and doubles nothing."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from runtime import footer as framing
from runtime.limits import Limits
from runtime.log import Fenced
from runtime.logs.producing import BufferingProducer
from runtime.logs.simulated import SimulatedLog
from runtime.machine import Woken
from runtime.record import Outgoing, TopicPartition
from runtime.workspace import AT, META, instant_bytes, row_key
from schemas import codec, topics
from schemas.facts import ClockHeld, ClockReleased, CommandRejected, SchedulePaused, ScheduleResumed
from simulation.clock import ManualClock
from tests.runtime.shell import CHANGELOG, NOON, Shell
from tests.runtime.toy import Add, ToyCore

if TYPE_CHECKING:
    from schemas.facts import Fact


@pytest.fixture
def shell() -> Shell:
    clock = ManualClock(NOON)
    return Shell(SimulatedLog(7, clock), clock)


def counts(facts: list[Fact]) -> list[tuple[str, int]]:
    return [(fact.schedule, fact.version) for fact in facts if isinstance(fact, ScheduleResumed)]


def wakes(facts: list[Fact]) -> list[tuple[str, int]]:
    return [(fact.schedule, fact.version) for fact in facts if isinstance(fact, SchedulePaused)]


def test_inputs_become_facts_in_order(shell: Shell) -> None:
    """Each input is decided once, against the state that the one before it left."""
    shell.publish(Add(name="a"), Add(name="b", times=5), Add(name="a", times=2))
    shell.settle()
    assert counts(shell.facts()) == [("a", 1), ("b", 5), ("a", 3)]


def test_every_output_names_its_transaction(shell: Shell) -> None:
    """The header tw-seq is role, partition and sequence of the transaction that wrote the record."""
    shell.publish(Add(name="a"))
    shell.settle()
    shell.publish(Add(name="a"))
    shell.settle()
    assert [record.header("tw-seq") for record in shell.records(topics.RUN_EVENTS)] == [
        b"scheduler-0-1",
        b"scheduler-0-2",
    ]


def test_a_transaction_begins_with_its_decision_and_ends_with_its_footer(shell: Shell) -> None:
    """Decision record, rows, footer: in this order in the changelog."""
    shell.publish(Add(name="a"))
    shell.settle()
    keys = [record.key for record in shell.records(CHANGELOG.topic)]
    assert keys == [b"\0decision-0000", row_key(b"a", b"count"), b"\0footer"]


def test_a_wakeup_is_answered_when_its_instant_has_come(shell: Shell) -> None:
    """Not a moment earlier, and once."""
    shell.publish(Add(name="a", wake_at=NOON + timedelta(seconds=10)))
    shell.settle()
    shell.advance(seconds=9.999)
    assert wakes(shell.facts()) == []
    shell.advance(seconds=0.001)
    assert wakes(shell.facts()) == [("a", 1)]
    shell.advance(hours=1)
    assert wakes(shell.facts()) == [("a", 1)]


def test_inputs_are_answered_before_wakeups(shell: Shell) -> None:
    """What was published while nobody ran is known before the time that passed is judged."""
    shell.publish(Add(name="a", wake_at=NOON + timedelta(seconds=10)))
    shell.settle()
    shell.clock.advance(timedelta(minutes=5))
    shell.publish(*[Add(name="a") for _ in range(1200)])  # more than two batches hold
    shell.restart()
    shell.settle()
    assert [type(input_) for _, input_, _ in shell.core.decided][-1] is Woken
    assert counts(shell.facts())[-1] == ("a", 1201)


def test_the_moment_never_goes_back(shell: Shell) -> None:
    """A wall clock a little behind the mark does not move `now` back, also after a restart."""
    shell.publish(Add(name="a"))
    shell.settle()
    shell.clock.set_wall(NOON - timedelta(seconds=3))
    shell.restart()
    shell.publish(Add(name="a"))
    shell.settle()
    assert [moment.now for _, _, moment in shell.core.decided] == [NOON]


def test_a_poison_record_costs_itself(shell: Shell) -> None:
    """It becomes a rejection that says where it stood, and the line goes on."""
    shell.publish(Add(name="a"), b"{not json", Add(name="a", times=-1), Add(name="a"))
    shell.settle()
    rejections = [fact for fact in shell.facts(topics.REJECTIONS) if isinstance(fact, CommandRejected)]
    assert counts(shell.facts()) == [("a", 1), ("a", 2)]
    assert [fact.faults[0].code for fact in rejections] == ["not_json", "range"]
    offsets = [record.offset for record in shell.records(topics.SCHEDULE_CHANGES)]
    assert [fact.position.offset for fact in rejections] == offsets[1:3]


def test_an_impossible_state_stops_the_partition(shell: Shell) -> None:
    """An assertion is not survived: it ends the step, and nothing of the batch is seen."""
    shell.publish(Add(name="a"), b"impossible")
    with pytest.raises(AssertionError, match="impossible"):
        shell.settle()
    assert shell.facts() == []


def test_a_restart_goes_on_where_the_log_stands(shell: Shell) -> None:
    """Inputs that were answered are not answered again; the state is the one that was left."""
    shell.publish(Add(name="a", wake_at=NOON + timedelta(hours=1)), Add(name="b"))
    shell.settle()
    shell.restart()
    shell.publish(Add(name="a"))
    shell.settle()
    assert counts(shell.facts()) == [("a", 1), ("b", 1), ("a", 2)]


def test_a_lost_store_is_rebuilt_from_the_changelog(shell: Shell) -> None:
    """States and wakeups come back; nothing is decided twice."""
    shell.publish(Add(name="a", wake_at=NOON + timedelta(hours=1)), Add(name="b", times=4))
    shell.settle()
    before = {key: value for key, value in shell.store.scan(b"", None) if key[:1] in b"rw"}
    shell.restart(lose_store=True)
    assert {key: value for key, value in shell.store.scan(b"", None) if key[:1] in b"rw"} == before
    shell.advance(hours=1)
    assert wakes(shell.facts()) == [("a", 1)]


def test_wakeups_are_derived_anew_when_what_they_follow_from_has_changed(shell: Shell) -> None:
    """A new tz database moves what is not decided yet, also for keys that nobody touches."""
    shell.publish(Add(name="a", wake_at=NOON + timedelta(seconds=10)))
    shell.settle()
    shell.restart(core=ToyCore(late_by=timedelta(seconds=5)))
    shell.advance(seconds=14)
    assert wakes(shell.facts()) == []
    shell.advance(seconds=1)
    assert wakes(shell.facts()) == [("a", 1)]


def test_a_store_behind_the_log_catches_up(shell: Shell) -> None:
    """A crash after the commit and before the store was changed: the tail of the changelog is replayed."""
    shell.publish(Add(name="a"))
    shell.settle()
    behind = dict(shell.store.scan(b"", None))
    shell.publish(Add(name="a", times=2), Add(name="c", wake_at=NOON + timedelta(seconds=1)))
    shell.settle()
    shell.store.clear()
    shell.store.apply(behind)
    shell.restart()
    shell.publish(Add(name="a"))
    shell.advance(seconds=1)
    assert counts(shell.facts()) == [("a", 1), ("a", 3), ("c", 1), ("a", 4)]
    assert wakes(shell.facts()) == [("c", 1)]


@pytest.mark.parametrize("foreign", ["another_log", "ahead", "garbage"])
def test_a_store_that_must_not_be_used_is_rebuilt(shell: Shell, foreign: str) -> None:
    """A store of another log, one ahead of its log and an unreadable checkpoint are set aside, never served."""
    shell.publish(Add(name="a"))
    shell.settle()
    meta = codec.parse(shell.store.get(META) or b"")
    wrong = {
        "another_log": codec_bytes(meta | {"cluster_id": "elsewhere"}),
        "ahead": codec_bytes(meta | {"changelog_offset": 10_000}),
        "garbage": b"\xff\xfe",
    }[foreign]
    shell.store.apply({META: wrong, row_key(b"a", b"count"): b'{"name":"a","count":99}'})
    shell.restart()
    shell.publish(Add(name="a"))
    shell.settle()
    assert counts(shell.facts()) == [("a", 1), ("a", 2)]


def codec_bytes(value: object) -> bytes:
    import orjson  # noqa: PLC0415 -- one line of one test

    return orjson.dumps(value)


def test_a_successor_fences_its_predecessor(shell: Shell) -> None:
    """B-O34: A reads a record, B takes the partition over, A commits late: refused, and nothing of it is seen."""
    old = shell.processor
    shell.restart()
    shell.publish(Add(name="a"))
    with pytest.raises(Fenced):
        old.step(0.0)
    shell.settle()
    assert counts(shell.facts()) == [("a", 1)]


def test_a_decision_without_its_footer_is_rolled_forward_as_written(shell: Shell) -> None:
    """A torn transaction: its facts are sent again with their ids and sequence, decided by nobody a second time."""
    shell.publish(Add(name="a"))
    shell.settle()
    behind = dict(shell.store.scan(b"", None))
    shell.publish(Add(name="a", times=10, wake_at=NOON + timedelta(seconds=5)))
    shell.settle()
    torn = shell.records(CHANGELOG.topic)[-3:]
    written = shell.records(topics.RUN_EVENTS)[-1]
    other = Shell(SimulatedLog(7, shell.clock), shell.clock)  # the same log, had it gone otherwise
    other.publish(Add(name="a"))
    other.settle()
    other.publish(Add(name="a", times=10, wake_at=NOON + timedelta(seconds=5)))  # the input of the torn transaction
    other.log.append([Outgoing(*CHANGELOG, record.key, record.value) for record in torn[:-1]])  # all but the footer
    assert behind
    other.restart()
    assert counts(other.facts()) == [("a", 1), ("a", 11)]
    repeated = other.records(topics.RUN_EVENTS)[-1]
    assert repeated.header("tw-seq") == written.header("tw-seq") == b"scheduler-0-2"
    assert codec.parse(repeated.value or b"")["id"] == codec.parse(written.value or b"")["id"]
    other.advance(seconds=5)
    assert wakes(other.facts()) == [("a", 1)]
    assert other.core.decided[0][1] == Woken()


def test_a_decision_with_a_part_missing_is_dropped(shell: Shell) -> None:
    """It sent nothing: its inputs are read again and decided anew."""
    shell.publish(Add(name="a"))
    shell.settle()
    part = codec.parse(shell.records(CHANGELOG.topic)[0].value or b"") | {"sequence": 2, "last": False}
    shell.publish(Add(name="a", times=7))
    shell.log.append([Outgoing(*CHANGELOG, framing.DECISION_KEY + b"0000", codec_bytes(part))])
    shell.restart()
    shell.settle()
    assert counts(shell.facts()) == [("a", 1), ("a", 8)]


def test_a_backlog_of_one_key_leaves_the_others_their_turn() -> None:
    """Every due key is answered within a few batches, however many are due before it."""
    clock = ManualClock(NOON)
    shell = Shell(SimulatedLog(3, clock), clock, limits=Limits(facts=10, woken_keys=8))
    names = [f"k{number:03d}" for number in range(100)]
    shell.publish(*[Add(name=name, wake_at=NOON + timedelta(seconds=1)) for name in names])
    shell.settle()
    shell.advance(seconds=2)
    assert sorted(wakes(shell.facts())) == [(name, 1) for name in names]


def test_an_index_entry_that_nobody_wants_is_removed(shell: Shell) -> None:
    """A leftover of another rule or version: it is looked at once, and does not keep the partition busy for ever."""
    shell.publish(Add(name="a", wake_at=NOON + timedelta(hours=1)))
    shell.settle()
    leftover = AT + instant_bytes(NOON + timedelta(seconds=1)) + b"a"
    shell.store.apply({leftover: b""})
    shell.restart()
    shell.advance(seconds=2)
    assert shell.store.get(leftover) is None
    assert wakes(shell.facts()) == []
    shell.advance(hours=1)
    assert wakes(shell.facts()) == [("a", 1)]


def test_an_output_that_has_nowhere_to_go_does_not_stop_the_partition(shell: Shell) -> None:
    """An inbox of a queue that nobody serves: the record is dropped and said, the batch is committed."""
    shell.core.also_to = "tidewheel.dispatch.nobody"
    shell.publish(Add(name="a"))
    shell.settle()
    assert counts(shell.facts()) == [("a", 1)]


@pytest.mark.parametrize(("optional", "sent"), [(False, 2), (True, 1)])
def test_a_topic_that_is_not_there_is_asked_for_once_a_minute_by_what_nobody_needs(
    shell: Shell, optional: bool, sent: int
) -> None:
    """What nobody may be waiting for does not hold up the partition, and goes on when the topic has come to be."""
    shell.core.also_to, shell.core.also_is_optional = "tidewheel.dispatch.nobody", optional
    shell.publish(Add(name="a"))
    shell.settle()
    shell.log.create({topics.dispatch_spec("nobody", topics.Retention()): topics.INBOXES})
    shell.publish(Add(name="b"))
    shell.settle()
    shell.advance(seconds=61)
    shell.publish(Add(name="c"))
    shell.settle()
    assert counts(shell.facts()) == [("a", 1), ("b", 1), ("c", 1)]
    reader = shell.log.open_reader({TopicPartition("tidewheel.dispatch.nobody", 0): 0})
    assert len(reader.poll(records_max=10, bytes_max=1 << 20, timeout=0)) == sent
    reader.close()


def test_evidence_wakeups_wait_for_what_is_unread(shell: Shell) -> None:
    """Due against the instant up to which everything has been read."""
    shell.publish(Add(name="a", evidence_at=NOON + timedelta(seconds=2)))
    shell.settle()
    shell.advance(seconds=1)
    assert wakes(shell.facts()) == []
    shell.advance(seconds=1)
    assert wakes(shell.facts()) == [("a", 1)]


def test_a_clock_that_jumps_is_held_and_said(shell: Shell) -> None:
    """Nothing is answered by time while wall and boot clock disagree; commands still are; it says when it is over."""
    shell.publish(Add(name="a", wake_at=NOON + timedelta(hours=1)))
    shell.settle()
    shell.clock.set_wall(NOON + timedelta(hours=2))
    shell.publish(Add(name="b"))
    shell.settle()
    facts = shell.facts()
    assert [type(fact) for fact in facts] == [ScheduleResumed, ClockHeld, ScheduleResumed]
    assert "jumped forward by 7200 s" in facts[1].reason  # type: ignore[attr-defined]
    shell.clock.set_wall(NOON + timedelta(seconds=1))
    shell.settle()
    assert [type(fact) for fact in shell.facts()][3:] == [ClockReleased]
    assert wakes(shell.facts()) == []


def test_the_footer_says_how_far_everything_is_decided(shell: Shell) -> None:
    """Its clock mark and decided_until are the instant up to which nothing is left to answer."""
    shell.publish(Add(name="a"))
    shell.settle()
    shell.advance(minutes=5)
    shell.processor.settle()
    last = framing.read_footer(shell.records(CHANGELOG.topic)[-1].value or b"")
    assert last.decided_until == last.clock_mark == NOON + timedelta(minutes=5)
    assert last.sequence == 2


def test_owner_epochs_grow_also_when_the_log_has_forgotten_the_writer(shell: Shell) -> None:
    """A broker forgets an id after some weeks, or counts anew elsewhere; readers still tell owners apart by epoch."""
    shell.publish(Add(name="a"))
    shell.settle()
    for _ in range(2):
        assert isinstance(shell.log, SimulatedLog)
        shell.log._epochs.clear()
        shell.restart()
        shell.publish(Add(name="a"))
        shell.settle()
    footers = [record for record in shell.records(*CHANGELOG) if record.key == framing.FOOTER_KEY]
    epochs = [framing.read_footer(record.value or b"").epoch for record in footers]
    assert epochs == [1, 2, 3]


@pytest.mark.parametrize("counted", [2, 0])
def test_a_writer_that_is_replaced_signs_with_a_higher_owner_epoch_also_when_the_log_has_counted_anew(
    shell: Shell, counted: int
) -> None:
    """A client whose commit is in doubt is replaced under the same owner: the log's next, or forgotten once more."""
    shell.publish(Add(name="a"))
    shell.settle()
    assert isinstance(shell.log, SimulatedLog)
    shell.log._epochs.clear()
    shell.restart()
    shell.publish(Add(name="a"))
    shell.settle()
    producer = shell.processor._transactions._producer
    assert isinstance(producer, BufferingProducer)
    producer.epoch = counted
    for _ in range(2):
        shell.publish(Add(name="a"))
        shell.settle()
    footers = [record for record in shell.records(*CHANGELOG) if record.key == framing.FOOTER_KEY]
    epochs = [framing.read_footer(record.value or b"").epoch for record in footers]
    assert epochs == [1, 2, 3, 3]
