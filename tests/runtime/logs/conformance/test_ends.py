"""Where several partitions end, in one question."""

import pytest

from runtime.log import UnknownTopic
from runtime.record import TopicPartition
from tests.runtime.logs.words import E0, E1, O0, drain, texts, to, write


def test_the_ends_of_many_partitions_are_those_of_each(log):
    log.append([*to(E0, "a", "b"), *to(O0, "c")])
    ends = log.end_offsets([E0, E1, O0])
    assert ends == {E0: log.end_offset(E0), E1: log.end_offset(E1), O0: log.end_offset(O0)}
    assert ends[E0] - ends[E1] == 2


def test_the_end_of_what_does_not_exist_is_asked_for_in_vain(log):
    with pytest.raises(UnknownTopic):
        log.end_offsets([E0, TopicPartition("absent", 0)])


def test_up_to_where_all_is_decided_is_how_far_readers_get(log):
    """What is open stands behind it, if the log has it already."""
    producer, other = log.open_producer("writer", group="group"), log.open_producer("other", group="group")
    write(other, *to(E0, "a"))
    producer.begin()
    producer.send(to(E0, "open"))
    producer.flush()
    write(other, *to(E0, "b"))
    reader = log.open_reader({E0: 0})
    while reader.position(E0) < (stable := log.stable_offset(E0)):
        reader.poll(records_max=9, bytes_max=999, timeout=0.1)
    assert reader.position(E0) == stable
    producer.commit({})
    drain(reader, {E0: log.end_offset(E0)})
    assert log.stable_offset(E0) == log.end_offset(E0) > stable


def test_who_asks_for_the_undecided_gets_all_that_the_log_has(log):
    """What is open may be among it, and holds nothing up."""
    producer = log.open_producer("writer", group="group")
    producer.begin()
    producer.send(to(E0, "open"))
    producer.flush()
    log.append(to(E0, "a", "b"))
    end = log.end_offset(E0)
    found = texts(drain(log.open_undecided({E0: 0}), {E0: end}))
    assert [text for text in found if text != "open"] == ["a", "b"]
    assert found.count("open") == (log.stable_offset(E0) < end)
    producer.abort()


def test_where_what_does_not_exist_is_decided_is_asked_for_in_vain(log):
    with pytest.raises(UnknownTopic):
        log.stable_offset(TopicPartition("absent", 0))
