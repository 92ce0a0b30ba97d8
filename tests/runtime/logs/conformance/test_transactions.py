"""Transactions: whole or not at all, by one writer at a time."""

from threading import Thread

import pytest

from runtime.log import Fenced, Log, LogError
from runtime.record import Record, TopicPartition
from tests.runtime.logs.words import E0, E1, E2, IN_PROCESS, O0, PLENTY, S0, read, records_of, texts, to, write


def test_nothing_is_seen_of_a_transaction_before_its_commit(log):
    producer = log.open_producer("writer", group="group")
    reader = log.open_reader({E0: 0, O0: 0})
    producer.begin()
    producer.send(to(E0, "a"))
    producer.flush()
    producer.send(to(O0, "b"))
    assert reader.poll(records_max=10, bytes_max=PLENTY, timeout=0) == []
    assert (reader.position(E0), reader.position(O0)) == (0, 0)


def test_a_commit_shows_all_records_in_all_partitions_and_says_where_they_stand(log):
    producer = log.open_producer("writer", group="group")
    sent = [*to(E0, "a"), *to(E1, "b"), *to(E0, "c"), *to(S0, "d")]
    offsets = write(producer, *sent)
    found = {
        (record.topic, record.partition, record.offset): record.value
        for p in (E0, E1, S0)
        for record in records_of(log, p)
    }
    assert [found[record.topic, record.partition, offset] for record, offset in zip(sent, offsets, strict=True)] == [
        b"a", b"b", b"c", b"d",
    ]  # fmt: skip


def test_a_receipt_names_the_latest_append_time(log):
    producer = log.open_producer("writer", group="group")
    producer.begin()
    producer.send([*to(E0, "a"), *to(E1, "b")])
    latest = producer.commit({}).appended_at
    assert latest == max(record.appended_at for partition in (E0, E1) for record in records_of(log, partition))


def test_a_receipt_tells_when_the_last_record_was_taken_where_the_log_has_a_clock_of_its_own(log):
    producer = log.open_producer("writer", group="group")
    producer.begin()
    producer.send([*to(E1, "a"), *to(E0, "b")])
    receipt = producer.commit({})
    assert receipt.told_at == (records_of(log, E0)[-1].appended_at if producer.tells_time else None)


@pytest.mark.parametrize("empty_log", IN_PROCESS, indirect=True)
def test_a_receipt_has_the_time_of_the_clock(log, clock):
    producer = log.open_producer("writer", group="group")
    producer.begin()
    producer.send(to(E0, "a"))
    assert producer.commit({}).appended_at == clock.instant


def test_an_aborted_transaction_is_never_seen_and_the_next_one_is(log):
    producer = log.open_producer("writer", group="group")
    producer.begin()
    producer.send(to(E0, "dropped"))
    producer.abort()
    write(producer, *to(E0, "kept"))
    assert read(log, E0) == ["kept"]


def test_closing_a_producer_drops_what_is_open_and_may_happen_twice(log):
    producer = log.open_producer("writer", group="group")
    producer.begin()
    producer.send(to(E0, "dropped"))
    producer.close()
    producer.close()
    assert read(log, E0) == []
    with pytest.raises(LogError, match="closed"):
        producer.begin()


def test_the_steps_of_a_transaction_have_an_order(log):
    producer = log.open_producer("writer", group="group")
    for out_of_order in (lambda: producer.send([]), lambda: producer.commit({}), producer.abort, producer.flush):
        with pytest.raises(LogError, match="writer"):
            out_of_order()
    producer.begin()
    with pytest.raises(LogError, match="writer"):
        producer.begin()


def test_a_transaction_may_hold_positions_and_nothing_else(log):
    producer = log.open_producer("writer", group="group")
    assert write(producer, positions={E0: 0}) == []
    assert write(producer) == []
    assert log.committed("group", [E0]) == {E0: 0}


def test_positions_are_committed_with_the_transaction_and_belong_to_the_group(log):
    producer = log.open_producer("writer", group="group")
    write(producer, *to(E0, "a"), positions={O0: 7, E1: 3})
    write(producer, positions={O0: 9})
    assert log.committed("group", [O0, E1, E2]) == {O0: 9, E1: 3}
    assert log.committed("another", [O0, E1]) == {}


def test_positions_of_an_aborted_transaction_were_never_said(log):
    producer = log.open_producer("writer", group="group")
    write(producer, positions={O0: 7})
    producer.begin()
    producer.abort()
    assert log.committed("group", [O0]) == {O0: 7}


def test_a_successor_fences_the_open_transaction_of_its_predecessor(log):
    old = log.open_producer("writer", group="group")
    write(old, *to(E0, "before"))
    old.begin()
    old.send(to(E0, "open"))
    new = log.open_producer("writer", group="group")
    with pytest.raises(Fenced):
        old.commit({O0: 5})
    write(new, *to(E0, "after"))
    assert read(log, E0) == ["before", "after"]
    assert log.committed("group", [O0]) == {}


def test_a_fenced_producer_cannot_commit_what_it_begins_and_its_end_is_final(log):
    old, open_ = log.open_producer("writer", group="group"), log.open_producer("writer", group="group")
    open_.begin()
    log.open_producer("writer", group="group")
    with pytest.raises(Fenced, match="writer"):
        write(old, *to(E0, "late"))
    with pytest.raises(Fenced, match="writer"):
        open_.commit({E1: 7})
    with pytest.raises(Fenced, match="writer"):
        old.begin()
    assert read(log, E0) == []
    assert log.committed("group", [E1]) == {}


@pytest.mark.parametrize("empty_log", IN_PROCESS, indirect=True)
def test_in_this_process_whatever_a_fenced_producer_tries_next_raises(log):
    old, open_ = log.open_producer("writer", group="group"), log.open_producer("writer", group="group")
    open_.begin()
    log.open_producer("writer", group="group")
    for attempt in (old.begin, lambda: open_.send(to(E0, "late")), open_.flush):
        with pytest.raises(Fenced, match="writer"):
            attempt()
    assert read(log, E0) == []


def test_epochs_of_an_id_grow_and_other_ids_are_untouched(log):
    first, other = log.open_producer("writer", group="group"), log.open_producer("other", group="group")
    second = log.open_producer("writer", group="group")
    assert second.epoch > first.epoch
    write(other, *to(E0, "undisturbed"))
    assert read(log, E0) == ["undisturbed"]


def test_appends_from_many_threads_are_all_there_each_in_the_order_of_its_thread(log):
    def append(name):
        for number in range(25):
            log.append(to(E0, f"{name}{number}"))

    threads = [Thread(target=append, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seen = read(log, E0)
    for name in "abcd":
        assert [value for value in seen if value.startswith(name)] == [f"{name}{number}" for number in range(25)]


def test_transactions_of_many_threads_are_seen_whole_each_in_the_order_of_its_thread(log):
    seen = transactions_of_many_threads(log)
    for name in "abcd":
        there, elsewhere = ([text for text in texts(seen[partition]) if text[0] == name] for partition in (E0, E1))
        assert elsewhere == [f"{name}{number}" for number in range(25)]
        assert there == [text for text in elsewhere for _ in range(2)]


@pytest.mark.parametrize("empty_log", IN_PROCESS, indirect=True)
def test_in_this_process_transactions_stand_one_behind_the_other_in_all_partitions(log):
    seen = transactions_of_many_threads(log)
    assert texts(seen[E0])[0::2] == texts(seen[E0])[1::2]
    assert texts(seen[E0])[0::2] == texts(seen[E1])


def transactions_of_many_threads(log: Log) -> dict[TopicPartition, list[Record]]:
    """What a reader sees of four threads with 25 transactions each: two records in one partition, one in another."""

    def transact(name):
        producer = log.open_producer(name, group=name)
        for number in range(25):
            write(producer, *to(E0, f"{name}{number}", f"{name}{number}"), *to(E1, f"{name}{number}"))

    threads = [Thread(target=transact, args=(name,)) for name in "abcd"]
    reader = log.open_reader({E0: 0, E1: 0})
    for thread in threads:
        thread.start()
    seen: dict[TopicPartition, list[Record]] = {E0: [], E1: []}
    while sum(map(len, seen.values())) < 300:
        for record in reader.poll(records_max=PLENTY, bytes_max=PLENTY, timeout=1):
            seen[TopicPartition(record.topic, record.partition)].append(record)
    for thread in threads:
        thread.join()
    return seen


@pytest.mark.parametrize("empty_log", IN_PROCESS, indirect=True)
def test_append_times_never_decrease_even_when_the_clock_goes_back(log, clock):
    before = clock.instant
    log.append(to(E0, "a"))
    clock.instant = before.replace(hour=9)
    assert log.append([*to(E0, "b"), *to(E1, "c")]).appended_at == before
    clock.instant = before.replace(hour=13)
    log.append(to(E0, "d"))
    hours = {
        text: record.appended_at.hour for p in (E0, E1) for record in records_of(log, p) for text in texts([record])
    }
    assert hours == {"a": 12, "b": 12, "c": 9, "d": 13}
