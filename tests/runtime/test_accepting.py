"""What an operator can accept: a clock that is not believed, and a gap in an input. Who did stands on the log."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from runtime import footer as framing
from runtime.continuity import Halted
from runtime.logs.simulated import SimulatedLog
from runtime.processor import Processor, World
from runtime.record import Outgoing, TopicPartition
from runtime.telemetry import Telemetry
from schemas import codec, topics
from schemas.facts import ClockHeld, ClockReleased, GapAccepted, GapReason, ScheduleResumed
from schemas.operations import ClockAccept, GapAccept
from simulation.clock import ManualClock
from tests.runtime.shell import CHANGELOG, CHANGES, LAYOUT, NOON, PARTITION, Shell
from tests.runtime.toy import Add

if TYPE_CHECKING:
    from schemas.facts import Fact

HOUR = timedelta(hours=1)
OPERATIONS = TopicPartition(topics.OPERATIONS, 0)


class Operated(Shell):
    """A partition whose clock nobody but an operator accepts."""

    log: SimulatedLog
    clock: ManualClock

    def start(self) -> Processor:
        world = World(clock=self.clock, entropy=lambda: bytes(16), telemetry=Telemetry())
        processor = Processor(self.core, PARTITION, self.log, self.store, world, accept_clock_after=None)
        processor.open()
        return processor

    def say(self, *words: Fact | bytes) -> None:
        """Words of an operator, or of nobody."""
        encoded = [
            word if isinstance(word, bytes) else codec.encode(word, source="tidewheel/admin", time=self.clock.now())[1]
            for word in words
        ]
        keys = [b"junk" if isinstance(word, bytes) else word.subject.encode() for word in words]
        self.log.append([Outgoing(*OPERATIONS, key, value) for key, value in zip(keys, encoded, strict=True)])

    def recreate(self, name: str) -> None:
        self.log.delete(name)
        self.log.create({spec: LAYOUT.partitions(spec.family) for spec in topics.topic_table(topics.Retention())})

    def stated(self, *types: type[Fact]) -> list[Any]:
        return [fact for fact in self.facts() if isinstance(fact, types)]

    def counts(self) -> list[tuple[str, int]]:
        return [(fact.schedule, fact.version) for fact in self.stated(ScheduleResumed)]


@pytest.fixture
def shell() -> Operated:
    """A partition that has answered one input, and stands still."""
    clock = ManualClock(NOON)
    shell = Operated(SimulatedLog(7, clock), clock)
    shell.publish(Add(name="a"))
    shell.settle()
    return shell


def accept_clock(wall: datetime, **fields: Any) -> ClockAccept:
    return ClockAccept(**{"role": "scheduler", "partition": 0, "wall": wall, "by": "ada", "note": "resumed", **fields})


# --- the clock ----------------------------------------------------------------------------------------------------


@pytest.fixture
def held(shell: Operated) -> Operated:
    """The wall has jumped forward by an hour; something is due in it."""
    shell.publish(Add(name="a", wake_at=NOON + HOUR / 2))
    shell.settle()
    shell.clock.set_wall(NOON + HOUR)
    shell.settle()
    assert [type(fact) for fact in shell.stated(ClockHeld, ClockReleased)] == [ClockHeld]
    return shell


def released(shell: Operated) -> list[tuple[str, str]]:
    return [(fact.accepted_by, fact.note) for fact in shell.stated(ClockReleased)]


def test_a_clock_that_is_held_is_released_by_an_operators_word_which_is_named(held: Operated) -> None:
    """Nothing was decided by time until then; what came due meanwhile is decided now."""
    held.advance(minutes=10)
    assert released(held) == []
    held.say(accept_clock(held.clock.now()))
    held.settle()
    assert released(held) == [("ada", "resumed")]
    (fact,) = held.stated(ClockReleased)
    assert fact.reason == "the wall clock jumped forward by 3600 s against the time since boot"
    assert (fact.mark, fact.wall) == (NOON, NOON + HOUR + timedelta(minutes=10))
    assert [type(each).__name__ for each in held.facts()][-1] == "SchedulePaused"


def test_a_hold_that_ends_by_itself_names_nobody(held: Operated) -> None:
    held.clock.set_wall(NOON)
    held.settle()
    assert released(held) == [("", "")]


@pytest.mark.parametrize("apart", [timedelta(minutes=6), timedelta(minutes=-6)])
def test_a_word_about_another_time_is_not_about_this_clock(held: Operated, apart: timedelta) -> None:
    """An operator's machine shows another time, or the word is old: it is the owner's clock that may be wrong."""
    held.say(accept_clock(held.clock.now() + apart))
    held.settle()
    assert released(held) == []
    held.say(accept_clock(held.clock.now()))
    held.settle()
    assert released(held) == [("ada", "resumed")]


@pytest.mark.parametrize("of", [{"partition": 1}, {"role": "dispatcher"}])
def test_a_word_to_another_partition_is_not_heard(held: Operated, of: dict[str, Any]) -> None:
    held.say(accept_clock(held.clock.now(), **of))
    held.settle()
    assert released(held) == []


def test_a_word_is_good_for_one_hold(held: Operated) -> None:
    held.say(accept_clock(held.clock.now()))
    held.settle()
    held.clock.set_wall(held.clock.now() + timedelta(minutes=2))
    held.settle()
    assert [type(fact) for fact in held.stated(ClockHeld, ClockReleased)] == [ClockHeld, ClockReleased, ClockHeld]


def test_a_word_that_came_before_its_hold_is_heard_by_a_new_process(shell: Operated) -> None:
    """The owner ended between: its successor meets the same clock, and the word is about it."""
    shell.clock.advance(timedelta(days=401))
    shell.say(accept_clock(shell.clock.now()))
    shell.restart()
    shell.settle()
    assert [type(fact) for fact in shell.stated(ClockHeld, ClockReleased)] == [ClockHeld, ClockReleased]
    assert released(shell) == [("ada", "resumed")]


def test_what_stands_on_the_topic_and_cannot_be_read_harms_nobody(held: Operated) -> None:
    held.say(b"{", b'{"specversion":"1.0","id":"1","type":"tidewheel.later.v1","data":{}}', accept_clock(NOON + HOUR))
    held.settle()
    assert released(held) == [("ada", "resumed")]


def test_a_log_whose_topics_an_earlier_version_made_holds_as_before(held: Operated) -> None:
    held.log.delete(topics.OPERATIONS)
    held.settle()
    assert released(held) == []


# --- a gap --------------------------------------------------------------------------------------------------------


def accept_gap(shell: Operated, read_up_to: int, go_on_at: int, **fields: Any) -> GapAccept:
    id_ = shell.log.topic_id(CHANGES.topic)
    said: dict[str, Any] = {
        "role": "scheduler", "partition": 0, "topic": CHANGES.topic, "topic_partition": 0, "left_id": id_,
        "topic_id": id_, "read_up_to": read_up_to, "go_on_at": go_on_at, "by": "ada", "note": "four weeks away",
    }  # fmt: skip
    return GapAccept(**(said | fields))


@pytest.fixture
def starved(shell: Operated) -> Operated:
    """Three inputs that nobody read for forty days, and one more; events of then are gone too."""
    shell.publish(Add(name="a"), Add(name="a"), Add(name="a"))
    shell.clock.advance(timedelta(days=40))
    shell.publish(Add(name="a", times=10))
    shell.log.maintain()
    with pytest.raises(Halted, match="begins at 4, and was read up to 1 only"):
        shell.restart()
    return shell


def test_input_that_retention_took_is_passed_over_once_that_is_accepted_and_stated(starved: Operated) -> None:
    """What is left is read; the fact says what is missing, and who knows of it."""
    starved.say(accept_gap(starved, 1, 4))
    starved.restart()
    starved.settle()
    assert starved.counts() == [("a", 11)]
    assert starved.stated(GapAccepted) == [
        GapAccepted(
            role="scheduler", partition=0, topic="tidewheel.schedule-changes", topic_partition=0,
            reason=GapReason.DELETED, read_up_to=1, goes_on_at=4, lost_from=1, lost_to=4, accepted_by="ada",
            note="four weeks away",
        )
    ]  # fmt: skip
    starved.restart()
    starved.settle()
    assert len(starved.stated(GapAccepted)) == 1


def test_a_gap_is_stated_once_however_often_its_owner_dies_before_it_could(starved: Operated) -> None:
    starved.say(accept_gap(starved, 1, 4))
    starved.restart()
    starved.restart(lose_store=True)
    starved.settle()
    assert len(starved.stated(GapAccepted)) == 1
    assert starved.counts() == [("a", 11)]


@pytest.mark.parametrize(
    ("read_up_to", "go_on_at"),
    [(0, 4), (1, 3), (1, 6)],
    ids=["another loss", "where nothing is any more", "where nothing is yet"],
)
def test_what_is_not_this_very_loss_is_not_accepted(starved: Operated, read_up_to: int, go_on_at: int) -> None:
    starved.say(accept_gap(starved, read_up_to, go_on_at))
    with pytest.raises(Halted, match="begins at 4, and was read up to 1 only"):
        starved.restart()


def test_what_was_accepted_is_not_the_next_loss(starved: Operated) -> None:
    """Days later the same thing again: that is for a person to know once more."""
    starved.say(accept_gap(starved, 1, 4))
    starved.restart()
    starved.settle()
    starved.publish(Add(name="a"))
    starved.clock.advance(timedelta(days=40))
    starved.log.maintain()
    with pytest.raises(Halted, match="begins at 6, and was read up to 5 only"):
        starved.restart()


def test_an_input_that_lost_its_answered_end_goes_on_where_an_operator_says(shell: Operated) -> None:
    """What was published since stands where answered records stood; it is read."""
    shell.publish(Add(name="a"), Add(name="a"))
    shell.settle()
    shell.log.truncate(CHANGES, 1)
    shell.publish(Add(name="a", times=10))
    with pytest.raises(Halted, match="ends at 2, and was read up to 3"):
        shell.restart()
    shell.say(accept_gap(shell, 3, 1))
    shell.restart()
    shell.settle()
    assert shell.counts() == [("a", 1), ("a", 2), ("a", 3), ("a", 13)]
    (gap,) = shell.stated(GapAccepted)
    assert (gap.reason, gap.lost_from, gap.lost_to, gap.goes_on_at) == (GapReason.TRUNCATED, 1, 3, 1)
    shell.restart(lose_store=True)


def test_a_topic_that_was_created_again_is_read_from_its_beginning_once_that_is_accepted(shell: Operated) -> None:
    former = shell.log.topic_id(CHANGES.topic)
    shell.recreate(CHANGES.topic)
    shell.publish(Add(name="a", times=10))
    with pytest.raises(Halted, match="was deleted and created again"):
        shell.restart()
    shell.say(accept_gap(shell, 1, 0, left_id=former))
    shell.restart()
    shell.settle()
    assert shell.counts() == [("a", 1), ("a", 11)]
    (gap,) = shell.stated(GapAccepted)
    assert (gap.reason, gap.lost_from, gap.lost_to) == (GapReason.RECREATED, 1, None)
    shell.restart(lose_store=True)
    shell.settle()
    assert shell.counts() == [("a", 1), ("a", 11)]


def test_a_torn_transaction_is_completed_together_with_the_gap_behind_it(starved: Operated) -> None:
    """Its positions lie before the gap: completed alone, it would leave the gap to be met again, or to be forgotten."""
    starved.say(accept_gap(starved, 1, 4))
    starved.restart()
    starved.settle()
    starved.publish(Add(name="b"))
    starved.settle()
    torn = starved.records(CHANGELOG.topic)
    last = [record for record in torn if record.key == framing.FOOTER_KEY][-2].offset
    starved.log.truncate(CHANGELOG, last + 1)
    behind = [record for record in torn if record.offset > last]
    starved.log.append([Outgoing(*CHANGELOG, record.key, record.value) for record in behind[:-1]])
    starved.publish(Add(name="c"))
    starved.clock.advance(timedelta(days=40))
    starved.publish(Add(name="d"))
    starved.log.maintain()
    with pytest.raises(Halted, match="begins at 7, and was read up to 6 only"):
        starved.restart(lose_store=True)
    starved.say(accept_gap(starved, 6, 7))
    starved.restart(lose_store=True)
    footer = framing.read_footer(starved.records(CHANGELOG.topic)[-1].value or b"")
    assert {item.topic: item.offset for item in footer.positions}[CHANGES.topic] == 7
    starved.settle()
    assert [(gap.lost_from, gap.lost_to) for gap in starved.stated(GapAccepted)] == [(6, 7)]
    assert starved.counts()[-1] == ("d", 1)


def test_the_loss_of_the_catalog_cannot_be_accepted(shell: Operated) -> None:
    """What stands on the new one would be passed over: the state remembers up to where it has adopted the old one."""
    former = shell.log.topic_id(topics.CATALOG)
    shell.recreate(topics.CATALOG)
    shell.say(
        accept_gap(
            shell, 0, 0, topic=topics.CATALOG, left_id=former, topic_id=shell.log.topic_id(topics.CATALOG)
        )
    )  # fmt: skip
    with pytest.raises(Halted, match="this loss cannot be accepted, as the state remembers up to where it has adopted"):
        shell.restart()
