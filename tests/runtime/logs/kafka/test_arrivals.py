"""What was fetched is delivered in turns, and gaps in front of an end are passed over."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from runtime.logs.kafka.arrivals import Arrivals
from runtime.record import Record, TopicPartition

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
AT = datetime(2026, 3, 1, tzinfo=UTC)


def record(partition: TopicPartition, offset: int, size: int = 1) -> Record:
    return Record(*partition, offset, None, b"x" * size, (), AT)


def places(records: list[Record]) -> list[tuple[int, int]]:
    return [(each.partition, each.offset) for each in records]


def test_an_end_moves_the_position_over_the_gap_once_all_before_it_is_delivered():
    arrivals = Arrivals()
    arrivals.follow({A: 0})
    arrivals.put(record(A, 0))
    arrivals.ended(A, 5)
    assert arrivals.positions()[A] == 0
    assert places(arrivals.take(10, 100)) == [(0, 0)]
    assert arrivals.positions()[A] == 5


def test_an_end_that_comes_alone_counts_at_once_and_never_moves_back():
    arrivals = Arrivals()
    arrivals.follow({A: 7})
    arrivals.ended(A, 9)
    arrivals.ended(A, 8)
    assert arrivals.positions()[A] == 9


def test_what_is_behind_the_position_or_not_read_any_more_is_dropped():
    arrivals = Arrivals()
    arrivals.follow({A: 3, B: 0})
    arrivals.drop([B])
    for late in (record(A, 2), record(B, 0), record(A, 3)):
        arrivals.put(late)
    arrivals.ended(B, 4)
    assert places(arrivals.take(10, 100)) == [(0, 3)]


def test_moving_a_partition_drops_what_was_fetched_of_it():
    arrivals = Arrivals()
    arrivals.follow({A: 0})
    arrivals.put(record(A, 0, 10))
    arrivals.follow({A: 4})
    assert (arrivals.count, arrivals.size) == (0, 0)
    assert arrivals.take(10, 100) == []
    assert arrivals.positions()[A] == 4


def test_one_record_is_delivered_however_large_it_is_and_the_next_batch_goes_on():
    arrivals = Arrivals()
    arrivals.follow({A: 0})
    for offset, size in enumerate((1, 50, 1)):
        arrivals.put(record(A, offset, size))
    assert [places(arrivals.take(10, 5)) for _ in range(3)] == [[(0, 0)], [(0, 1)], [(0, 2)]]


@given(
    arrived=st.lists(st.tuples(st.integers(0, 2), st.integers(1, 30)), max_size=60),
    records_max=st.integers(1, 10),
    bytes_max=st.integers(1, 60),
)
def test_everything_is_delivered_once_in_order_within_bounds_and_nobody_waits_for_long(arrived, records_max, bytes_max):
    arrivals = Arrivals()
    partitions = [TopicPartition("t", number) for number in range(3)]
    arrivals.follow(dict.fromkeys(partitions, 0))
    sent: dict[int, list[int]] = {0: [], 1: [], 2: []}
    for offset, (partition, size) in enumerate(arrived):
        arrivals.put(record(partitions[partition], offset, size))
        sent[partition].append(offset)
    got: dict[int, list[int]] = {0: [], 1: [], 2: []}
    polls = 0
    while batch := arrivals.take(records_max, bytes_max):
        polls += 1
        assert len(batch) <= records_max
        assert len(batch) == 1 or sum(len(each.value or b"") for each in batch) <= bytes_max
        for each in batch:
            got[each.partition].append(each.offset)
        waiting = [number for number in sent if not got[number] and sent[number]]
        assert polls < 3 or not waiting, "each has had its turn after as many polls as there are partitions"
    assert got == sent
    assert (arrivals.count, arrivals.size) == (0, 0)
