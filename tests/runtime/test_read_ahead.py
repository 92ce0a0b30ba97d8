"""A flood of records of one key leaves the other keys of its partition their time, and changes nothing else.

What was read and is not answered holds back whom it is about, and nobody else; a successor reads it again.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING
from weakref import ref

import pytest

from runtime import footer as framing
from runtime.continuity import Halted
from runtime.limits import Limits
from runtime.logs.simulated import SimulatedLog
from runtime.machine import PARTITION, Woken
from runtime.read_ahead import KEPT_BYTES_MAX, UNDERSTOOD_MAX, Allowance, ReadAhead
from runtime.record import Outgoing, Record, TopicPartition
from schemas import codec, topics
from schemas.facts import CommandRejected, Fact, SchedulePaused, ScheduleResumed
from schemas.faults import Fault, Refused
from simulation.clock import ManualClock
from tests.runtime.shell import CHANGELOG, CHANGES, NOON, Shell
from tests.runtime.toy import Add

if TYPE_CHECKING:
    from collections.abc import Iterable

FLOOD = 2000
SECOND = timedelta(seconds=1)
FEW = Limits(records=200)


def flooded(
    *behind: Add | bytes, limits: Limits = FEW, wait: timedelta = 2 * SECOND, **wakes: timedelta
) -> Shell:  # fmt: skip
    """A second before `b` is due a flood of `a` is published, something behind it, and nobody works for a while."""
    clock = ManualClock(NOON)
    shell = Shell(SimulatedLog(7, clock), clock, limits=limits)
    shell.publish(Add(name="b", wake_at=NOON + 2 * SECOND))
    shell.publish(*[Add(name=name, wake_at=NOON + after) for name, after in wakes.items()])
    shell.settle()
    clock.advance(SECOND)
    shell.publish(*[Add(name="a") for _ in range(FLOOD)])
    shell.publish(*behind)
    clock.advance(wait)
    return shell


def woken(facts: Iterable[Fact], name: str = "b") -> int:
    return sum(isinstance(fact, SchedulePaused) and fact.schedule == name for fact in facts)


def counted(facts: Iterable[Fact], name: str = "a") -> list[int]:
    return [fact.version for fact in facts if isinstance(fact, ScheduleResumed) and fact.schedule == name]


def steps_until_woken(shell: Shell, name: str = "b") -> tuple[int, int]:
    """How many steps it took until a key was woken, and how many records of `a` were answered by then."""
    for step in range(1, FLOOD):
        shell.processor.step(0.0)
        decided = [(key, input_) for key, input_, _ in shell.core.decided]
        if any(key == name and isinstance(input_, Woken) for key, input_ in decided):
            return step, sum(key == "a" for key, _ in decided)
    raise AssertionError(f"{name} is never woken")


def test_a_key_is_woken_at_its_time_while_a_flood_of_another_is_answered() -> None:
    """As soon as the flood is read, and that is done first."""
    steps, answered = steps_until_woken(flooded())
    assert steps <= 3
    assert answered <= 2 * 200


def answered_at_once(shell: Shell) -> int:
    shell.core.decided.clear()
    shell.processor.step(0.0)
    return len(shell.core.decided)


def test_of_a_flood_little_is_answered_at_once_when_somebody_is_due_before_a_full_batch_ends() -> None:
    assert answered_at_once(flooded(wait=timedelta(milliseconds=700))) == 200 // 100


def test_a_flood_is_answered_in_full_batches_when_nobody_is_due_so_soon() -> None:
    assert answered_at_once(flooded(wait=timedelta(milliseconds=400))) > 200 // 2  # all that one read has brought


def test_a_flood_is_answered_in_full_batches_when_it_is_about_whoever_is_due() -> None:
    """Little of it would help nobody: its key waits for all of it."""
    shell = flooded(Add(name="b"), wait=timedelta(milliseconds=700))
    shell.processor.step(0.0)
    assert answered_at_once(shell) == 200


def test_of_a_flood_little_is_answered_at_once_although_what_all_keys_share_has_changed() -> None:
    """That stands in another input, and has its turn in the same batch: then the others are known."""
    shell = flooded(wait=timedelta(milliseconds=700))
    shell.log.append([Outgoing(topics.CATALOG, 0, b"k", codec.dump(Add(name=PARTITION.decode())))])
    assert answered_at_once(shell) == 200 // 100 + 1


def test_a_key_waits_for_a_record_of_its_own_behind_the_flood() -> None:
    """It was published before the key is due: a pause, say."""
    shell = flooded(Add(name="b", times=5))
    _, answered = steps_until_woken(shell)
    assert answered > FLOOD - 200
    decided = [type(input_).__name__ for name, input_, _ in shell.core.decided if name == "b"]
    assert decided == ["Add", "Add", "Woken"]


def test_a_key_whose_record_is_answered_waits_no_longer() -> None:
    """What stands before the flood is answered first."""
    clock = ManualClock(NOON)
    shell = Shell(SimulatedLog(7, clock), clock, limits=FEW)
    shell.publish(Add(name="b", wake_at=NOON + SECOND), *[Add(name="a") for _ in range(FLOOD)])
    clock.advance(2 * SECOND)
    steps, _ = steps_until_woken(shell)
    assert steps <= 30


def test_what_all_keys_share_holds_all_of_them_back() -> None:
    """A record that changes it is answered before any time behind it is decided."""
    _, answered = steps_until_woken(flooded(Add(name=PARTITION.decode())))
    assert answered > FLOOD - 200


def test_a_record_that_cannot_be_read_holds_nobody_back() -> None:
    """It changes nothing, and is refused in its turn. Only whom it names, if it does, waits for that."""
    shell = flooded(b"{not json", Add(name="c", times=-1))
    steps, _ = steps_until_woken(shell)
    assert steps <= 30
    assert shell.facts(topics.REJECTIONS) == []
    shell.settle()
    assert [type(fact) for fact in shell.facts(topics.REJECTIONS)] == [CommandRejected, CommandRejected]


def test_a_record_of_a_newer_version_stops_the_partition_in_its_turn() -> None:
    """What stands before it is answered; and no time behind it is decided, for nobody knows whom it is about."""
    shell = flooded(b"impossible")
    with pytest.raises(AssertionError, match="impossible"):
        shell.settle()
    assert len(counted(shell.facts())) > FLOOD - 200
    assert woken(shell.facts()) == 0


def test_what_is_decided_against_the_evidence_waits_for_all_that_is_read() -> None:
    """Whoever reads the decision record sees up to where everything was answered."""
    shell = flooded()
    shell.publish(Add(name="c", evidence_at=NOON + 3 * SECOND))
    shell.clock.advance(SECOND)
    _, answered = steps_until_woken(shell, "c")
    assert answered == FLOOD
    moment = next(moment for name, input_, moment in shell.core.decided if name == "c" and isinstance(input_, Woken))
    assert moment.read_until >= NOON + 3 * SECOND


def test_who_is_woken_ahead_is_told_that_it_is_known_further_than_all_is_read() -> None:
    """All was read until the flood began; everything about this key is known until now."""
    shell = flooded()
    steps_until_woken(shell)
    moment = next(moment for name, input_, moment in shell.core.decided if name == "b" and isinstance(input_, Woken))
    assert (moment.now, moment.known_until) == (NOON + 3 * SECOND, NOON + 3 * SECOND)
    assert moment.horizon == NOON + 3 * SECOND
    assert moment.read_until == NOON


def test_a_footer_speaks_only_for_what_is_answered() -> None:
    """The position is that of the first record without an answer, and nothing behind it counts as decided."""
    shell = flooded()
    _, answered = steps_until_woken(shell)
    footer = framing.read_footer(shell.records(*CHANGELOG)[-1].value or b"")
    positions = framing.positions_of(footer.positions)
    offsets = [record.offset for record in shell.records(*CHANGES)]
    assert positions[CHANGES] == offsets[1 + answered]
    assert footer.decided_until == NOON
    shell.settle()
    footer = framing.read_footer(shell.records(*CHANGELOG)[-1].value or b"")
    assert footer.decided_until == NOON + 3 * SECOND


@pytest.mark.parametrize("lose_store", [False, True])
def test_a_successor_answers_what_was_read_and_not_answered(lose_store: bool) -> None:
    """Each record of the flood once, and the key that was woken ahead is not woken again."""
    shell = flooded()
    steps_until_woken(shell)
    shell.restart(lose_store=lose_store)
    shell.settle()
    shell.advance(seconds=1)
    assert counted(shell.facts()) == [*range(1, FLOOD + 1)]
    assert woken(shell.facts()) == 1


def test_who_stops_in_the_middle_of_a_flood_says_how_far_it_came_and_leaves_the_rest() -> None:
    """As when its partition is given to another: one batch more, and no word beyond what was answered."""
    shell = flooded()
    steps_until_woken(shell)
    shell.processor.settle()
    footer = framing.read_footer(shell.records(*CHANGELOG)[-1].value or b"")
    answered = len(counted(shell.facts()))
    assert answered < FLOOD
    offsets = [record.offset for record in shell.records(*CHANGES)]
    assert framing.positions_of(footer.positions)[CHANGES] == offsets[1 + answered]
    assert footer.decided_until == NOON
    shell.restart()
    shell.settle()
    assert counted(shell.facts()) == [*range(1, FLOOD + 1)]
    assert woken(shell.facts()) == 1


def test_more_than_the_bound_is_not_read_ahead() -> None:
    """Who would have to hold too much answers first: then a flood holds all back until the rest of it has room."""
    _, answered = steps_until_woken(flooded(limits=Limits(records=50, ahead_records=200)))
    assert FLOOD - 300 <= answered < FLOOD


def test_what_the_log_has_lost_behind_a_reader_is_answered_while_it_is_held() -> None:
    """Retention passed the reader in the middle of a flood: what it has in hand is not lost with the rest."""
    shell = flooded(limits=Limits(records=50, ahead_records=FLOOD // 2))
    for _ in range(3):
        shell.processor.step(0.0)
    assert isinstance(shell.log, SimulatedLog)
    changes = shell.log._topics[topics.SCHEDULE_CHANGES].partitions[0]
    kept = changes.records[-1:]
    changes.records, changes.begin = kept, kept[0].offset
    held = len(shell.processor._ahead)
    assert held
    answered = len(counted(shell.facts()))
    with pytest.raises(Halted, match=f"was read up to {1 + answered + held} only"):
        shell.settle()
    assert len(counted(shell.facts())) == answered + held


def test_nobody_is_woken_further_once_the_log_has_lost_where_a_reader_stood() -> None:
    """It grows again to behind that place, and what it holds there is never read: a pause, say."""
    shell = flooded(c=4 * SECOND)
    steps_until_woken(shell)
    assert isinstance(shell.log, SimulatedLog)
    shell.log.truncate(CHANGES, shell.log.end_offset(CHANGES) - 100)
    shell.publish(Add(name="c"))
    shell.clock.advance(2 * SECOND)
    held = len(shell.processor._ahead)
    assert held
    answered = len(counted(shell.facts()))
    with pytest.raises(Halted, match="records that were answered are lost"):
        shell.settle()
    assert len(counted(shell.facts())) == answered + held
    assert woken(shell.facts(), "c") == 0


def test_many_keys_that_wait_do_not_hide_one_that_need_not() -> None:
    """The index is walked on from where the last batch stopped, also past those who have to wait."""
    many = [f"aa{number:03d}" for number in range(100)]
    limits = Limits(records=50, woken_keys=8)
    shell = flooded(*[Add(name=name) for name in many], limits=limits, **dict.fromkeys(many, 2 * SECOND))
    _, answered = steps_until_woken(shell)
    assert answered < FLOOD
    shell.settle()
    facts = shell.facts()
    assert [woken(facts, name) for name in many] == [1] * 100


# --- the buffer by itself ---------------------------------------------------------------------------------------------


def test_how_much_is_held_is_told() -> None:
    shell = flooded()
    labels = {"role": "scheduler", "partition": "0"}
    shell.processor.step(0.0)  # It hears of the flood.
    shell.clock.advance(timedelta(seconds=6))
    shell.processor.step(0.0)
    held = shell.telemetry.registry.get_sample_value("tidewheel_records_unanswered", labels)
    assert held is not None
    assert FLOOD - 200 < held < FLOOD  # all of it is read, and few are answered
    shell.settle()
    shell.clock.advance(timedelta(seconds=6))
    shell.processor.step(0.0)
    assert shell.telemetry.registry.get_sample_value("tidewheel_records_unanswered", labels) == 0


OUTCOMES = TopicPartition(topics.RUN_OUTCOMES, 0)


def record(where: TopicPartition, offset: int, value: bytes) -> Record:
    return Record(*where, offset, None, value, (), NOON)


def read(given: Record) -> tuple[bytes, str] | None:
    """The value is the key; some are refused, and some are for nobody."""
    if given.value == b"refused":
        raise Refused(Fault(pointer="", code="refused", message="is refused"))
    return None if given.value == b"ignored" else (given.value or b"", "input")


def no_glance(_given: Record) -> bytes | None:
    return None


def strand(_given: Record, _key: bytes | None, _input: object) -> bytes:
    """All are of one, as in most inputs."""
    return b""


def held(*values: bytes, where: TopicPartition = CHANGES, into: ReadAhead | None = None) -> ReadAhead:
    if into is None:
        ahead = ReadAhead(read, no_glance, strand, (CHANGES, OUTCOMES), records_max=10, bytes_max=100)
    else:
        ahead = into
    ahead.add(record(where, 10 + number, value) for number, value in enumerate(values))
    return ahead


def test_inputs_take_turns_and_each_keeps_its_order() -> None:
    ahead = held(b"a", b"b", b"c", b"d")
    held(b"x", b"y", where=OUTCOMES, into=ahead)
    assert [entry.key for entry in ahead.take(5, 100)] == [b"a", b"x", b"b", b"y", b"c"]
    assert [entry.key for entry in ahead.take(5, 100)] == [b"d"]


def test_an_input_may_be_held_to_less_than_the_others() -> None:
    ahead = held(b"a", b"b", b"c")
    held(b"x", b"y", b"z", where=OUTCOMES, into=ahead)
    assert [entry.key for entry in ahead.take(10, 100, {CHANGES: 1})] == [b"a", b"x", b"y", b"z"]
    assert [entry.key for entry in ahead.take(10, 100, {CHANGES: 1})] == [b"b"]
    assert [entry.key for entry in ahead.take(10, 100)] == [b"c"]


def test_positions_stand_before_what_is_held_and_at_the_reader_where_nothing_is() -> None:
    ahead = held(b"ignored", b"a", b"b", b"ignored")
    assert (ahead.position(CHANGES, 14), ahead.position(OUTCOMES, 3)) == (11, 3)
    ahead.take(1, 100)
    assert ahead.position(CHANGES, 14) == 12
    ahead.take(1, 100)
    assert ahead.position(CHANGES, 14) == 14


def test_a_key_is_known_when_the_last_of_its_records_is_taken() -> None:
    ahead = held(b"a", b"b", b"a")
    assert [ahead.is_known(key) for key in (b"a", b"b", b"c")] == [False, False, True]
    ahead.take(2, 100)
    assert [ahead.is_known(key) for key in (b"a", b"b", b"c")] == [False, True, True]
    ahead.take(1, 100)
    assert ahead.is_known(b"a")


def test_a_refused_record_has_its_turn_and_is_about_nobody() -> None:
    ahead = held(b"refused", b"a")
    assert ahead.is_known(b"b")
    first, second = ahead.take(5, 100)
    assert (first.key, first.refusal is not None, second.key) == (None, True, b"a")


def test_what_cannot_be_read_for_a_fault_of_ours_has_its_turn_and_holds_all_back() -> None:
    def faulty(given: Record) -> tuple[bytes, str] | None:
        return {b"a": (b"a", "input")}[given.value or b""]

    ahead = ReadAhead(faulty, no_glance, strand, (CHANGES,), records_max=10, bytes_max=100)
    ahead.add([record(CHANGES, 10, b"a"), record(CHANGES, 11, b"b")])
    assert not ahead.is_known(b"c")
    first, second = ahead.take(5, 100)
    assert (first.key, type(second.impossible)) == (b"a", KeyError)


def test_there_is_room_up_to_so_many_records_and_while_there_are_bytes() -> None:
    ahead = held(*[b"a"] * 7)
    assert ahead.room == 3
    held(b"b" * 200, into=ahead)
    assert ahead.room == 0
    ahead.take(8, 1000)
    assert (ahead.room, len(ahead)) == (10, 0)


def of_a_process(allowance: Allowance) -> ReadAhead:
    return ReadAhead(read, no_glance, strand, (CHANGES,), records_max=10, bytes_max=1000, allowance=allowance)


def test_partitions_of_a_process_have_room_together_and_each_for_a_batch_in_any_case() -> None:
    allowance = Allowance(bytes_max=500, share=50)
    first, second = of_a_process(allowance), of_a_process(allowance)
    held(b"a" * 600, into=first)
    held(b"b" * 20, into=second)
    assert (first.room, second.room) == (0, 9)
    held(b"b" * 60, into=second)
    assert (first.room, second.room) == (0, 0)
    first.take(1, 1000)
    assert (first.room, second.room) == (10, 8)


def test_what_a_partition_held_that_is_given_back_counts_no_more() -> None:
    allowance = Allowance(bytes_max=500, share=50)
    first, second = of_a_process(allowance), of_a_process(allowance)
    held(b"a" * 600, into=first)
    held(b"b" * 60, into=second)
    assert second.room == 0
    del first
    assert second.room == 9


def test_beside_a_flood_that_leaves_no_room_in_the_process_a_partition_goes_on() -> None:
    """It reads a batch at a time, and time goes on only as far as that: the last one may still be answered."""
    shell = flooded()
    shell.ahead = Allowance(bytes_max=0, share=1)
    shell.restart()
    _, answered = steps_until_woken(shell)
    assert answered > FLOOD - 200
    shell.settle()
    assert counted(shell.facts()) == [*range(1, FLOOD + 1)]


def test_what_is_far_from_its_turn_is_understood_when_it_comes() -> None:
    """What is wrong with it is not kept meanwhile."""
    ahead = ReadAhead(read, no_glance, strand, (CHANGES,), records_max=10_000, bytes_max=1 << 20)
    ahead.add(record(CHANGES, number, b"refused" if number % 1000 == 999 else b"a") for number in range(6000))
    taken = ahead.take(6000, 1 << 20)
    assert [entry.record.offset for entry in taken] == [*range(6000)]
    assert sum(entry.refusal is not None for entry in taken) == 6
    assert {(entry.key, entry.input) for entry in taken} == {(b"a", "input"), (None, None)}


def test_where_a_glance_tells_whom_it_is_about_no_more_is_done_until_its_turn() -> None:
    """What is poison seems to be about somebody until then; what a glance does not tell is understood at once."""
    understood: list[int] = []

    def reading(given: Record) -> tuple[bytes, str] | None:
        understood.append(given.offset)
        return read(given)

    def glance(given: Record) -> bytes | None:
        return {b"refused": b"poisoned", b"b": b"b"}.get(given.value or b"")

    ahead = ReadAhead(reading, glance, strand, (CHANGES,), records_max=10_000, bytes_max=1 << 20)
    ahead.add(record(CHANGES, number, b"a") for number in range(500))
    ahead.add(record(CHANGES, 500 + number, value) for number, value in enumerate((b"b", b"refused", b"c", b"ignored")))
    assert understood == [*range(500), 502, 503]
    assert [ahead.is_known(key) for key in (b"a", b"b", b"c", b"poisoned", b"d")] == [False, False, False, False, True]
    ahead.take(500, 1 << 20)
    last = ahead.take(500, 1 << 20)
    assert [(entry.key, entry.input, entry.refusal is not None) for entry in last] == [
        (b"b", "input", False), (None, None, True), (b"c", "input", False),
    ]  # fmt: skip
    assert ahead.is_known(b"poisoned")


def test_what_a_glance_tells_nothing_of_is_understood_once_while_little_is_held() -> None:
    understood: list[int] = []

    def reading(given: Record) -> tuple[bytes, str] | None:
        understood.append(given.offset)
        return b"a", "input"

    ahead = ReadAhead(reading, no_glance, strand, (CHANGES,), records_max=10_000, bytes_max=1 << 30)
    ahead.add(record(CHANGES, number, b"a") for number in range(600))
    ahead.add(record(CHANGES, number, b"a" * (KEPT_BYTES_MAX // 2)) for number in range(600, 604))
    assert understood == [*range(604)]
    taken = ahead.take(604, 1 << 30)
    assert [(entry.record.offset, entry.input) for entry in taken] == [(number, "input") for number in range(604)]
    assert understood == [*range(604), 602, 603]


def test_of_a_flood_that_cannot_be_read_no_more_is_kept_than_the_records() -> None:
    """What is said of each, with all that led to it, is some kilobytes: two hundred megabytes in a partition."""
    said: list[ref[Refused]] = []

    def refusing(given: Record) -> tuple[bytes, str] | None:
        try:
            return read(given)
        except Refused as refusal:
            said.append(ref(refusal))
            raise

    ahead = ReadAhead(refusing, no_glance, strand, (CHANGES,), records_max=10_000, bytes_max=1 << 20)
    ahead.add(record(CHANGES, number, b"refused") for number in range(6000))
    assert sum(each() is not None for each in said) == UNDERSTOOD_MAX


def test_what_stands_beside_a_value_counts_as_well() -> None:
    """A publisher may put a megabyte into a header, or into a key."""
    ahead = ReadAhead(read, no_glance, strand, (CHANGES,), records_max=10, bytes_max=100)
    ahead.add([Record(*CHANGES, 10, b"k" * 30, b"a", (("h", b"x" * 30),), NOON)])
    assert ahead.room == 9
    ahead.add([Record(*CHANGES, 11, b"k" * 30, b"a", (("h", b"x" * 30),), NOON)])
    assert ahead.room == 0
    assert len(ahead.take(5, 60)) == 1
    assert ahead.room == 9


def test_one_record_is_taken_however_large_it_is() -> None:
    ahead = held(b"a" * 50, b"b")
    assert [len(entry.key or b"") for entry in ahead.take(5, 10)] == [50]
