"""Who floods a partition waits for itself: strands of an input take turns, and each keeps the order of the log.

A strand of the toy's is what stands before the slash in a name. What is answered in turns is remembered as exactly as
what is answered in the order of the log: by the position, and by the strands that are beyond it.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime import footer as framing
from runtime.continuity import Halted
from runtime.limits import Limits
from runtime.logs.simulated import SimulatedLog
from runtime.machine import PARTITION
from runtime.read_ahead import ReadAhead
from runtime.record import Outgoing, Record, TopicPartition
from runtime.strands import STRANDS, number_of
from schemas import codec, topics
from schemas.facts import CommandRejected, GapAccepted, ScheduleResumed
from schemas.operations import GapAccept
from simulation.clock import ManualClock
from tests.runtime.shell import CHANGELOG, CHANGES, NOON, Shell
from tests.runtime.toy import Add

if TYPE_CHECKING:
    from runtime.footer import Footer, InputPosition

FLOOD = 2000
FEW = Limits(records=50)
ALL = PARTITION.decode()
X, Y = str(number_of(b"x")), str(number_of(b"y"))


def new(limits: Limits = Limits()) -> Shell:  # noqa: B008 -- a frozen value
    clock = ManualClock(NOON)
    shell = Shell(SimulatedLog(7, clock), clock, limits=limits)
    shell.settle()
    return shell


def flooded(*behind: Add) -> Shell:
    """A flood of `x`, something behind it, and the batch in which that is read: it is known after the first one."""
    shell = new()
    shell.publish(*[Add(name="x/a") for _ in range(FLOOD)], *behind)
    shell.processor.step(0.0)
    shell.processor.step(0.0)
    return shell


def counted(shell: Shell, name: str) -> list[int]:
    return [fact.version for fact in shell.facts() if isinstance(fact, ScheduleResumed) and fact.schedule == name]


def footer(shell: Shell) -> Footer:
    return framing.read_footer(shell.records(*CHANGELOG)[-1].value or b"")


def place(shell: Shell) -> InputPosition:
    """Where the last transaction says that its partition stands in the flooded input."""
    return next(item for item in footer(shell).positions if item.topic == CHANGES.topic)


def test_a_record_behind_a_flood_of_another_strand_is_answered_in_the_batch_that_reads_it() -> None:
    shell = flooded(Add(name="y/b"))
    assert counted(shell, "y/b") == [1]
    assert len(counted(shell, "x/a")) < FLOOD / 2


def test_a_footer_says_which_strands_are_beyond_its_position_and_nothing_when_all_is_answered() -> None:
    shell = flooded(Add(name="y/b"))
    offsets = [record.offset for record in shell.records(*CHANGES)]
    answered = len(counted(shell, "x/a"))
    assert place(shell).offset == offsets[answered]
    assert place(shell).strands == {Y: offsets[-1] + 1}
    shell.settle()
    assert place(shell).strands == {}


@pytest.mark.parametrize("lose_store", [False, True])
def test_a_successor_passes_over_what_was_answered_beyond_the_position(lose_store: bool) -> None:
    shell = flooded(Add(name="y/b"), Add(name="y/b"))
    assert counted(shell, "y/b") == [1, 2]
    shell.publish(Add(name="y/b"))
    shell.restart(lose_store=lose_store)
    shell.settle()
    assert counted(shell, "y/b") == [1, 2, 3]
    assert counted(shell, "x/a") == [*range(1, FLOOD + 1)]


def test_a_successor_that_answers_nothing_says_what_its_predecessor_had_answered() -> None:
    """It dies as well, before the records that were answered are read again."""
    shell = flooded(Add(name="y/b"))
    before = place(shell)
    shell.limits = Limits(records=1, ahead_records=1)
    shell.restart()
    shell.processor.step(0.0)
    assert place(shell).offset == before.offset + 1
    assert place(shell).strands == before.strands
    shell.restart(lose_store=True)
    shell.settle()
    assert counted(shell, "y/b") == [1]


def tear(shell: Shell) -> None:
    """Of the last transaction all is there but the footer."""
    assert isinstance(shell.log, SimulatedLog)
    written = shell.records(*CHANGELOG)
    last = [record.offset for record in written if record.key == framing.FOOTER_KEY][-2:-1]
    behind = [record for record in written if not last or record.offset > last[0]]
    shell.log.truncate(CHANGELOG, behind[0].offset)
    shell.log.append([Outgoing(*CHANGELOG, record.key, record.value) for record in behind[:-1]])


def test_a_torn_transaction_is_completed_with_the_strands_beyond_its_position() -> None:
    shell = flooded(Add(name="y/b"))
    before = place(shell)
    tear(shell)
    shell.restart(lose_store=True)
    assert place(shell) == before
    shell.settle()
    decided = [name for name, _, _ in shell.core.decided]
    assert "y/b" not in decided


def test_what_all_keys_share_is_answered_behind_all_before_it_and_before_all_behind_it() -> None:
    shell = new(FEW)
    shell.publish(Add(name="x/a"), Add(name="x/a"), Add(name="y/b"), Add(name=ALL), Add(name="y/b"), Add(name="x/a"))
    shell.settle()
    assert [name for name, _, _ in shell.core.decided] == ["x/a", "y/b", "x/a", ALL, "y/b", "x/a"]


def test_a_record_of_a_newer_version_holds_back_all_that_stands_behind_it() -> None:
    """Nobody knows whom it is about; what stands before it is answered, of whichever strand."""
    shell = new(FEW)
    shell.publish(Add(name="x/a"), Add(name="x/a"), Add(name="y/b"), b"impossible", Add(name="z/c"))
    with pytest.raises(AssertionError, match="impossible"):
        shell.settle()
    shell.restart()
    with pytest.raises(AssertionError, match="impossible"):
        shell.settle()
    assert [counted(shell, name) for name in ("x/a", "y/b", "z/c")] in ([[], [], []], [[1, 2], [1], []])
    assert "z/c" not in [name for name, _, _ in shell.core.decided]


def test_many_strands_take_as_many_turns_as_each_other() -> None:
    """However much each has: a hundred of one, and ten each of nine."""
    shell = new(Limits(records=40))
    shell.publish(*[Add(name="x/a") for _ in range(100)])
    shell.publish(*[Add(name=f"{strand}/a") for strand in "abcdefghi" for _ in range(10)])
    for _ in range(4):
        shell.processor.step(0.0)
    assert len({len(counted(shell, f"{strand}/a")) for strand in "abcdefghi"}) == 1


# --- what is lost ---------------------------------------------------------------------------------------------------


def test_a_log_that_lost_what_was_answered_beyond_the_position_halts_and_goes_on_where_nothing_is_passed_over() -> None:
    """What stands there since then is not taken for answered, and the flood is answered to its end."""
    shell = flooded(Add(name="y/b"))
    assert isinstance(shell.log, SimulatedLog)
    offset, end = place(shell).offset, shell.log.end_offset(CHANGES)
    shell.log.truncate(CHANGES, end - 1)
    with pytest.raises(Halted, match=f"ends at {end - 1}, and was read up to {end}"):
        shell.restart()
    id_ = shell.log.topic_id(CHANGES.topic)
    word = GapAccept(
        role="scheduler", partition=0, topic=CHANGES.topic, topic_partition=0, left_id=id_, topic_id=id_,
        read_up_to=end, go_on_at=offset, by="ada",
    )  # fmt: skip
    key, value = codec.encode(word, source="tidewheel/test", time=NOON)
    del key
    shell.log.append([Outgoing(topics.OPERATIONS, 0, word.subject.encode(), value)])
    shell.restart()
    shell.publish(Add(name="y/b"))
    shell.settle()
    assert counted(shell, "y/b") == [1, 2]
    assert counted(shell, "x/a") == [*range(1, FLOOD + 1)]
    assert [type(fact) for fact in shell.facts()].count(GapAccepted) == 1


# --- footers of other versions --------------------------------------------------------------------------------------


def test_a_footer_of_before_strands_were_kept_has_none_beyond_its_position() -> None:
    old = {"topic": CHANGES.topic, "partition": 0, "offset": 5, "topic_id": "a"}
    assert codec.load(framing.InputPosition, old).strands == {}


def test_a_footer_without_strands_beyond_its_position_is_written_as_before() -> None:
    item = framing.InputPosition(topic=CHANGES.topic, partition=0, offset=5, topic_id="a")
    assert codec.dump(item) == b'{"offset":5,"partition":0,"topic":"tidewheel.schedule-changes","topic_id":"a"}'


def test_a_strand_has_the_same_number_for_ever() -> None:
    """It stands in footers."""
    assert STRANDS == 1024
    assert [number_of(strand) for strand in (b"", b"acme", b"globex", b"_")] == [0, 574, 762, 1000]


# --- the buffer by itself -------------------------------------------------------------------------------------------

OUTCOMES = TopicPartition(topics.RUN_OUTCOMES, 0)


def read(given: Record) -> tuple[bytes, str]:
    return given.value or b"", "input"


def no_glance(_given: Record) -> bytes | None:
    return None


def strand(_given: Record, key: bytes | None, _input: Any) -> bytes:
    return (key or b"").rpartition(b"/")[0]


def held(*values: bytes, further: dict[TopicPartition, dict[int, int]] | None = None) -> ReadAhead:
    ahead = ReadAhead(read, no_glance, strand, (CHANGES, OUTCOMES), records_max=100, bytes_max=1000)
    ahead.resume(further or {})
    ahead.add(Record(*CHANGES, 10 + number, None, value, (), NOON) for number, value in enumerate(values))
    return ahead


def taken(ahead: ReadAhead, count: int = 100) -> list[bytes | None]:
    return [entry.key for entry in ahead.take(count, 1000)]


def test_strands_take_turns_with_one_record_each_and_a_new_one_comes_behind_the_others() -> None:
    ahead = held(b"x/1", b"x/2", b"x/3", b"y/1", b"y/2", b"z/1")
    assert taken(ahead, 2) == [b"x/1", b"y/1"]
    ahead.add([Record(*CHANGES, 16, None, b"w/1", (), NOON)])
    assert taken(ahead) == [b"z/1", b"x/2", b"y/2", b"w/1", b"x/3"]


def test_the_position_is_that_of_the_first_record_without_an_answer() -> None:
    ahead = held(b"x/1", b"x/2", b"y/1", b"x/3")
    positions = []
    for _ in range(4):
        ahead.take(1, 1000)
        positions.append(ahead.position(CHANGES, 14))
    assert positions == [11, 11, 13, 14]


def test_strands_are_told_while_they_are_beyond_the_position() -> None:
    ahead = held(b"x/1", b"x/2", b"y/1", b"x/3")
    told = []
    for _ in range(4):
        ahead.take(1, 1000)
        told.append(dict(ahead.further({CHANGES: ahead.position(CHANGES, 14)})[CHANGES]))
    assert told == [{}, {number_of(b"y"): 13}, {}, {}]


def test_what_was_answered_is_neither_held_nor_forgotten() -> None:
    further = {CHANGES: {number_of(b"y"): 13}}
    ahead = held(b"x/1", b"x/2", b"y/1", further=further)
    assert len(ahead) == 2
    assert ahead.is_known(b"y/1")
    assert ahead.further({CHANGES: 10}) == further
    ahead.add([Record(*CHANGES, 13, None, b"y/1", (), NOON)])
    assert taken(ahead) == [b"x/1", b"y/1", b"x/2"]


def test_what_all_keys_share_keeps_its_place_and_several_of_it_their_order() -> None:
    ahead = held(b"x/1", b"x/2", b"y/1", b"", b"", b"y/2", b"x/3")
    assert taken(ahead) == [b"x/1", b"y/1", b"x/2", b"", b"", b"y/2", b"x/3"]
    assert ahead.position(CHANGES, 17) == 17


# --- whatever happens -----------------------------------------------------------------------------------------------

NAMES = ("x/a", "x/b", "y/a", "z/a", "plain")
OPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(NAMES), st.integers(1, 12)),
        st.tuples(st.sampled_from(["step"]), st.integers(1, 3)),
        st.tuples(st.sampled_from(["crash", "lose", "tear", "poison", "all"]), st.just(1)),
    ),
    max_size=30,
)
BOUNDS = st.builds(Limits, records=st.sampled_from([1, 3, 20]), ahead_records=st.sampled_from([1, 5, 1000]))


class Played:
    """A partition that something happens to; each of its records has another number, by which it is known."""

    def __init__(self, limits: Limits) -> None:
        self.shell = new(limits)
        self.published: list[tuple[str, int]] = []
        self.answered: list[tuple[str, int]] = []
        self.poison = 0

    def play(self, what: str, count: int) -> None:
        match what:
            case "step":
                for _ in range(count):
                    self.shell.processor.step(0.0)
            case "crash" | "lose" | "tear":
                self.end(what)
            case "poison":
                self.poison += 1
                self.shell.publish(Add(name="y/a", times=-1))
            case "all":
                self.publish(ALL)
            case name:
                for _ in range(count):
                    self.publish(name)

    def publish(self, name: str) -> None:
        self.published.append((name, len(self.published) + 1))
        self.shell.publish(Add(name=name, times=len(self.published)))

    def end(self, how: str) -> None:
        self.heard()
        if how == "tear" and self.shell.records(*CHANGELOG):
            tear(self.shell)
        self.shell.restart(lose_store=how != "crash")

    def heard(self) -> None:
        self.answered += [(name, input_.times) for name, input_, _ in self.shell.core.decided]
        self.shell.core.decided.clear()

    def settle(self) -> None:
        self.shell.settle()
        self.heard()


@settings(max_examples=100, deadline=None)
@given(ops=OPS, bounds=BOUNDS)
def test_each_record_is_answered_once_and_each_strand_in_its_order_whatever_happens(
    ops: list[tuple[str, int]], bounds: Limits
) -> None:
    played = Played(bounds)
    for what, count in ops:
        played.play(what, count)
    played.settle()
    assert sorted(played.answered) == sorted(played.published)
    for name in ("x", "y", "z", "plain"):
        assert of(played.answered, name) == of(played.published, name)
    for number, (name, _) in enumerate(played.published):
        if name == ALL:
            at = played.answered.index(played.published[number])
            assert set(played.answered[:at]) == set(played.published[:number])
    last = {name: sum(times for each, times in played.published if each == name) for name, _ in played.published}
    assert {name: counted(played.shell, name)[-1] for name in last} == last
    assert place(played.shell).strands == {}
    told = Counter(type(fact) for fact in played.shell.facts(topics.REJECTIONS))
    assert told[CommandRejected] >= played.poison


def of(records: list[tuple[str, int]], strand_: str) -> list[int]:
    return [number for name, number in records if (name.rpartition("/")[0] or name) == strand_]
