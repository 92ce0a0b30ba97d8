"""What a reader gets, in which portions, and what wakes it."""

import time
from threading import Event, Thread

import pytest

from runtime.log import LogError, OffsetOutOfRange, Reader, UnknownTopic
from runtime.record import Outgoing, Record, TopicPartition
from tests.runtime.logs.words import (
    DEADLINE,
    E0,
    E1,
    E2,
    IN_PROCESS,
    O0,
    PLENTY,
    batches,
    drain,
    read,
    records_of,
    text,
    texts,
    to,
    write,
)


def test_records_come_in_the_order_of_their_commits(log):
    producer = log.open_producer("writer", group="group")
    write(producer, *to(E0, "a", "b"))
    log.append(to(E0, "c"))
    write(producer, *to(E0, "d"))
    assert read(log, E0) == ["a", "b", "c", "d"]
    offsets = [record.offset for record in records_of(log, E0)]
    assert offsets == sorted(set(offsets))


def test_a_record_comes_back_as_it_was_sent(log):
    headers = (("tw-seq", b"scheduler-3-17"), ("empty", b""), ("tw-seq", b"again"), ("ü", b"\x00\xff"))
    appended_at = log.append([Outgoing("events", 2, b"\x00key\xff", b"\x00value\xff", headers)]).appended_at
    (record,) = records_of(log, E2)
    assert (record.topic, record.partition, record.offset) == ("events", 2, 0)
    assert (record.key, record.value, record.headers) == (b"\x00key\xff", b"\x00value\xff", headers)
    assert record.appended_at == appended_at


@pytest.mark.parametrize("empty_log", IN_PROCESS, indirect=True)
def test_a_record_has_the_time_of_the_clock(log, clock):
    log.append(to(E0, "a"))
    assert records_of(log, E0)[0].appended_at == clock.instant


@pytest.mark.parametrize("empty_log", IN_PROCESS, indirect=True)
def test_a_log_in_this_process_delivers_at_once_what_is_there(log):
    log.append(to(E0, "a"))
    assert texts(log.open_reader({E0: 0}).poll(records_max=10, bytes_max=PLENTY, timeout=0)) == ["a"]


@pytest.mark.parametrize("key", [None, b"", b"k"])
@pytest.mark.parametrize("value", [None, b"", b"v"])
def test_nothing_and_empty_are_told_apart(log, key, value):
    log.append([Outgoing("events", 0, key, value)])
    (record,) = records_of(log, E0)
    assert (record.key, record.value) == (key, value)


def test_a_value_of_a_mebibyte_survives(log):
    value = bytes(range(256)) * 4096
    log.append([Outgoing("events", 0, b"large", value)])
    assert records_of(log, E0)[0].value == value


def test_a_poll_returns_no_more_records_than_it_may(log):
    log.append(to(E0, *"abcdefgh"))
    portions = batches(log.open_reader({E0: 0}), {E0: log.end_offset(E0)}, records_max=3)
    read = ["".join(texts(portion)) for portion in portions]
    assert max(map(len, read)) <= 3
    assert "".join(read) == "abcdefgh"


def test_a_poll_returns_no_more_bytes_than_it_may(log):
    log.append(to(E0, *["x" * 100] * 10))
    lengths = list(map(len, batches(log.open_reader({E0: 0}), {E0: log.end_offset(E0)}, bytes_max=250)))
    assert max(lengths) <= 2
    assert sum(lengths) == 10


def test_one_record_is_delivered_however_large_it_is(log):
    log.append([*to(E0, "small"), *to(E0, "x" * 1000), *to(E0, "small again")])
    portions = batches(log.open_reader({E0: 0}), {E0: log.end_offset(E0)}, bytes_max=100)
    assert [len(text(record)) for portion in portions for record in portion] == [5, 1000, 11]


def test_a_reader_starts_where_it_is_told(log):
    offsets = log.append(to(E0, "a", "b", "c")).offsets
    assert read(log, E0, start=offsets[1]) == ["b", "c"]
    assert read(log, E0, start=log.end_offset(E0)) == []


def test_a_reader_reads_each_of_its_partitions_in_order(log):
    log.append([*to(E0, "a0", "a1"), *to(O0, "b0", "b1"), *to(E0, "a2")])
    reader = log.open_reader({E0: 0, O0: 0})
    records = drain(reader, {E0: log.end_offset(E0), O0: log.end_offset(O0)})
    assert [text(record) for record in records if record.topic == "events"] == ["a0", "a1", "a2"]
    assert [text(record) for record in records if record.topic == "others"] == ["b0", "b1"]


def test_a_busy_partition_does_not_starve_the_others(log):
    log.append([*to(E0, *["busy"] * 500), *to(E1, *["quiet"] * 3), *to(O0, *["quiet"] * 3)])
    reader = log.open_reader({E0: 0, E1: 0, O0: 0})
    ends = {partition: log.end_offset(partition) for partition in (E0, E1, O0)}
    seen = [text(record) for portion in batches(reader, ends, records_max=6) for record in portion]
    # Each poll serves everybody or, where it is too small for that, in turn: some polls find the 6 quiet records.
    assert seen.count("quiet") == 6
    assert seen[:360].count("quiet") == 6


def test_large_records_of_a_quiet_partition_do_not_starve_beside_a_busy_one(log):
    log.append([*to(E0, *["busy"] * 500), *to(E1, "first", "q" * 1000)])
    reader = log.open_reader({E0: 0, E1: 0})
    ends = {partition: log.end_offset(partition) for partition in (E0, E1)}
    seen = [text(record) for portion in batches(reader, ends, records_max=4, bytes_max=100) for record in portion]
    come = seen.index("first")  # A broker may send what stands in the other partition long before.
    assert "q" * 1000 in seen[come : come + 240]


def test_an_assigned_partition_is_read_from_the_given_offset_and_an_unassigned_one_no_more(log):
    offsets = log.append(to(E1, "a", "b")).offsets
    log.append(to(E0, "c"))
    reader = log.open_reader({E0: 0})
    reader.assign({E1: offsets[1]})
    reader.unassign([E0, E2])
    assert texts(drain(reader, {E1: log.end_offset(E1)})) == ["b"]
    with pytest.raises(LogError, match="events-0"):
        reader.position(E0)


def test_a_reader_can_be_sent_back(log):
    log.append(to(E0, "a", "b"))
    reader = log.open_reader({E0: 0})
    assert texts(drain(reader, {E0: log.end_offset(E0)})) == ["a", "b"]
    reader.assign({E0: 0})
    assert texts(drain(reader, {E0: log.end_offset(E0)})) == ["a", "b"]


def test_a_position_beyond_the_end_belongs_to_another_log(log):
    log.append(to(E0, "a"))
    reader = log.open_reader({E0: log.end_offset(E0) + 1})
    with pytest.raises(OffsetOutOfRange, match="events-0"):
        reader.poll(records_max=10, bytes_max=PLENTY, timeout=DEADLINE)


def test_a_reader_of_a_missing_partition_leaves_nothing_half_assigned(log):
    reader = log.open_reader({E0: 0})
    with pytest.raises(UnknownTopic):
        reader.assign({E1: 0, TopicPartition("nowhere", 0): 0})
    with pytest.raises(LogError, match="events-1"):
        reader.position(E1)


def test_a_poll_without_records_returns_nothing_when_its_time_is_up(log):
    reader = log.open_reader({E0: 0, O0: 0})
    started = time.monotonic()
    assert reader.poll(records_max=10, bytes_max=PLENTY, timeout=0.05) == []
    assert time.monotonic() - started >= 0.05


def test_a_poll_without_time_does_not_wait(log):
    assert log.open_reader({E0: 0}).poll(records_max=10, bytes_max=PLENTY, timeout=0) == []


def test_a_waiting_poll_is_woken_by_a_commit_to_any_of_its_partitions(log):
    polled = Polling(log.open_reader({E0: 0, O0: 0}))
    write(log.open_producer("writer", group="group"), *to(O0, "news"))
    assert polled.result() == ["news"]


def test_a_waiting_poll_sleeps_through_commits_to_other_partitions(log):
    reader = log.open_reader({E0: 0})
    polled = Polling(reader)
    log.append(to(E1, "for others"))
    log.append(to(E0, "for us"))
    assert polled.result() == ["for us"]


def test_wake_ends_a_waiting_poll(log):
    reader = log.open_reader({E0: 0})
    polled = Polling(reader)
    reader.wake()
    assert polled.result() == []


def test_a_wake_that_comes_before_the_poll_is_not_lost_and_counts_once(log):
    reader = log.open_reader({E0: 0})
    reader.wake()
    reader.wake()
    assert reader.poll(records_max=10, bytes_max=PLENTY, timeout=DEADLINE) == []
    polled = Polling(reader)
    log.append(to(E0, "later"))
    assert polled.result() == ["later"]


def test_closing_the_log_ends_a_waiting_poll_with_an_error(log):
    polled = Polling(log.open_reader({E0: 0}))
    log.close()
    with pytest.raises(LogError, match="closed"):
        polled.result()


def test_closing_a_reader_twice_is_fine_and_reading_from_it_is_not(log):
    reader = log.open_reader({E0: 0})
    reader.close()
    reader.close()
    with pytest.raises(LogError, match="closed"):
        reader.poll(records_max=1, bytes_max=1, timeout=0)


class Polling:
    """A poll that waits in a thread of its own."""

    def __init__(self, reader: Reader) -> None:
        self._outcome: list[list[Record] | LogError] = []
        self._begun = Event()
        self._thread = Thread(target=self._poll, args=(reader,), daemon=True)
        self._thread.start()
        assert self._begun.wait(DEADLINE)

    def result(self) -> list[str]:
        self._thread.join(DEADLINE)
        assert not self._thread.is_alive(), "the poll was not woken"
        (outcome,) = self._outcome
        if isinstance(outcome, LogError):
            raise outcome
        return texts(outcome)

    def _poll(self, reader: Reader) -> None:
        self._begun.set()
        try:
            self._outcome.append(reader.poll(records_max=10, bytes_max=PLENTY, timeout=2 * DEADLINE))
        except LogError as error:
            self._outcome.append(error)
