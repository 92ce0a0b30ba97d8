"""Markers of transactions, which nobody delivers, are passed with the records that they end."""

import time

from tests.runtime.logs.words import DEADLINE, E0, E1, PLENTY, texts, to, write


def test_a_transaction_is_passed_with_its_records_before_the_broker_has_told_an_end(log):
    write(log.open_producer("writer", group="group"), *to(E0, "a"), *to(E1, "b", "c"))
    reader = log.open_reader({E0: 0, E1: 0})
    found: list[str] = []
    while len(found) < 3:
        found += texts(reader.poll(records_max=10, bytes_max=PLENTY, timeout=DEADLINE))
    assert sorted(found) == ["a", "b", "c"]
    assert [reader.position(E0), reader.position(E1)] == [2, 3]


def test_a_reader_that_was_put_back_counts_from_there(log):
    producer = log.open_producer("writer", group="group")
    for word in "abc":
        write(producer, *to(E0, word))
    reader = log.open_reader({E0: 0})
    found: list[str] = []
    while len(found) < 3:
        found += texts(reader.poll(records_max=10, bytes_max=PLENTY, timeout=DEADLINE))
    assert reader.position(E0) == 6
    reader.assign({E0: 2})
    assert reader.position(E0) == 2
    assert texts(reader.poll(records_max=1, bytes_max=PLENTY, timeout=DEADLINE)) == ["b"]
    assert reader.position(E0) == 3


def test_an_open_transaction_behind_what_was_read_is_not_passed_until_it_has_ended(log):
    """What it holds may become true yet; of what was aborted nothing is delivered, and all of it is passed."""
    write(log.open_producer("writer", group="group"), *to(E0, "a"))
    other = log.open_producer("other", group="group")
    other.begin()
    other.send(to(E0, "b", "c"))
    other.flush()
    write(log.open_producer("writer", group="group"), *to(E0, "d"))
    reader = log.open_reader({E0: 0})
    assert texts(reader.poll(records_max=10, bytes_max=PLENTY, timeout=DEADLINE)) == ["a"]
    assert reader.poll(records_max=10, bytes_max=PLENTY, timeout=0.5) == []
    assert (reader.position(E0), log.end_offset(E0)) == (2, 6)
    other.abort()
    assert texts(reader.poll(records_max=10, bytes_max=PLENTY, timeout=DEADLINE)) == ["d"]
    deadline = time.monotonic() + DEADLINE
    while reader.position(E0) < log.end_offset(E0):
        assert reader.poll(records_max=10, bytes_max=PLENTY, timeout=0.1) == []
        assert time.monotonic() < deadline
    assert reader.position(E0) == 7
