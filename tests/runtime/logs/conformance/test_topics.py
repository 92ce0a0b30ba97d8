"""What a log knows of its topics."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from runtime.log import LogError, UnknownTopic
from runtime.record import TopicPartition
from schemas.topics import Cleanup
from tests.runtime.logs.words import E0, EVENTS, OTHERS, SPECS, STATE, drain, read, texts, to, write


def test_a_created_topic_has_its_partitions_and_its_line_of_the_table(log):
    assert log.topics() == {"events": EVENTS, "others": OTHERS, "state": STATE}
    assert (log.partitions("events"), log.partitions("state")) == (3, 2)


def test_creating_again_leaves_a_topic_and_its_records_as_they_are(log):
    identity = log.topic_id("events")
    log.append(to(E0, "kept"))
    log.create(SPECS)
    assert log.topic_id("events") == identity
    assert read(log, E0) == ["kept"]


def test_another_partition_count_is_refused_with_the_name_of_the_topic_and_nothing_is_created(empty_log):
    empty_log.create({EVENTS: 3})
    with pytest.raises(LogError, match="events"):
        empty_log.create({OTHERS: 3, EVENTS: 4})
    assert empty_log.partitions("events") == 3
    assert set(empty_log.topics()) == {"events"}


def test_another_way_of_cleaning_up_is_refused(log):
    with pytest.raises(LogError, match="events"):
        log.create({replace(EVENTS, cleanup=Cleanup.COMPACT): 3})


def test_topics_that_are_created_later_do_not_disturb_those_that_exist(log):
    log.append(to(E0, "early"))
    log.create({**SPECS, replace(OTHERS, name="late"): 2})
    log.create({replace(OTHERS, name="later"): 1})
    late, later = TopicPartition("late", 0), TopicPartition("later", 0)
    log.append([*to(late, "a"), *to(later, "b")])
    assert read(log, E0, late, later) == ["early", "a", "b"]


def test_every_topic_and_every_log_has_an_id_of_its_own(log):
    assert len({log.topic_id("events"), log.topic_id("others"), log.topic_id("state"), log.cluster_id}) == 4


@pytest.mark.parametrize("missing", [TopicPartition("nowhere", 0), TopicPartition("events", 3)])
def test_a_topic_or_partition_that_does_not_exist_is_named_by_whoever_meets_it(log, missing):
    producer = log.open_producer("writer", group="group")
    producer.begin()
    attempts: list[Callable[[], object]] = [
        lambda: log.begin_offset(missing),
        lambda: log.end_offset(missing),
        lambda: log.open_reader({missing: 0}),
        lambda: log.append(to(missing, "lost")),
        lambda: producer.send(to(missing, "lost")),
        lambda: producer.commit({missing: 1}),
    ]
    for attempt in attempts:
        with pytest.raises(UnknownTopic, match=missing.topic):
            attempt()


def test_a_partition_that_was_never_written_to_begins_and_ends_at_0(log):
    assert (log.begin_offset(E0), log.end_offset(E0)) == (0, 0)


def test_the_end_lies_behind_the_last_committed_record(log):
    last = log.append(to(E0, "a", "b", "c")).offsets[-1]
    assert log.end_offset(E0) == last + 1


def test_a_reader_reaches_the_end_also_behind_what_was_aborted(log):
    producer = log.open_producer("writer", group="group")
    write(producer, *to(E0, "a", "b"))
    producer.begin()
    producer.send(to(E0, "dropped"))
    producer.abort()
    reader, end = log.open_reader({E0: 0}), log.end_offset(E0)
    assert texts(drain(reader, {E0: end})) == ["a", "b"]
    assert reader.position(E0) >= end
