"""Retention and compaction: what goes, what stays, and what a reader is told."""

from dataclasses import replace
from datetime import timedelta

import pytest

from runtime.log import OffsetOutOfRange
from runtime.record import Outgoing, TopicPartition
from tests.runtime.logs.words import (
    E0,
    E1,
    IN_PROCESS,
    O0,
    PLENTY,
    S0,
    S1,
    START,
    STATE,
    drain,
    keep_house,
    read,
    records_of,
    texts,
    to,
    tombstone,
    write,
)

# Brokers do this by their own clock, as `runtime.logs.kafka.topics` tells them to.
pytestmark = pytest.mark.parametrize("empty_log", IN_PROCESS, indirect=True)

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)


def test_records_younger_than_the_retention_stay(log, clock):
    log.append(to(E0, "a"))
    clock.advance(HOUR)
    keep_house(log)
    assert read(log, E0) == ["a"]
    assert log.begin_offset(E0) == 0


def test_records_older_than_the_retention_go_and_the_partition_begins_behind_them(log, clock):
    log.append(to(E0, "old", "old"))
    clock.advance(HOUR)
    young = log.append(to(E0, "young")).offsets[0]
    clock.advance(30 * MINUTE)
    keep_house(log)
    begin = log.begin_offset(E0)
    assert 2 <= begin <= young
    assert read(log, E0, start=begin) == ["young"]


def test_each_topic_has_its_own_retention(log, clock):
    log.append([*to(E0, "one hour"), *to(O0, "one day")])
    clock.advance(2 * HOUR)
    keep_house(log)
    assert log.begin_offset(E0) == log.end_offset(E0)
    assert read(log, O0) == ["one day"]


def test_a_reader_whose_position_was_trimmed_away_is_told_and_the_others_go_on(log, clock):
    log.append(to(E0, "old"))
    reader = log.open_reader({E0: 0, E1: 0})
    clock.advance(2 * HOUR)
    log.append([*to(E0, "young"), *to(E1, "elsewhere")])
    keep_house(log)
    with pytest.raises(OffsetOutOfRange, match="events-0"):
        reader.poll(records_max=10, bytes_max=PLENTY, timeout=0)
    reader.unassign([E0])
    assert texts(drain(reader, {E1: log.end_offset(E1)})) == ["elsewhere"]


def test_offsets_and_append_times_go_on_when_everything_was_trimmed(log, clock):
    last = log.append(to(E0, "a", "b")).offsets[-1]
    clock.advance(2 * HOUR)
    keep_house(log)
    assert log.begin_offset(E0) == log.end_offset(E0) > last
    clock.instant = START - HOUR
    end = log.end_offset(E0)
    assert log.append(to(E0, "c")).offsets[0] >= end
    (record,) = records_of(log, E0, start=end)
    assert record.appended_at == START


def test_a_superseded_record_goes_and_the_last_of_each_key_stays(log, clock):
    log.append([*to(S0, "a1", key="a"), *to(S0, "b1", key="b"), *to(S0, "a2", key="a"), *to(S1, "other", key="a")])
    clock.advance(HOUR)
    keep_house(log)
    assert read(log, S0) == ["b1", "a2"]
    assert read(log, S1) == ["other"]


def test_compaction_goes_on_where_it_stopped(log, clock):
    for round_ in range(5):
        log.append([*to(S0, f"a{round_}", key="a"), *to(S0, f"b{round_}", key=f"b{round_ % 2}")])
        clock.advance(HOUR)
        keep_house(log)
    assert read(log, S0) == ["b3", "a4", "b4"]


def test_compaction_leaves_the_offsets_of_those_who_stay_and_does_not_move_the_beginning(log, clock):
    offsets = log.append([*to(S0, "a1", key="a"), *to(S0, "b1", key="b"), *to(S0, "a2", key="a")]).offsets
    clock.advance(HOUR)
    keep_house(log)
    assert [record.offset for record in records_of(log, S0)] == list(offsets[1:])
    assert log.begin_offset(S0) == 0


def test_a_reader_passes_over_what_was_compacted_away(log, clock):
    offsets = log.append(to(S0, *[f"a{number}" for number in range(10)], key="a")).offsets
    reader = log.open_reader({S0: offsets[3]})
    clock.advance(HOUR)
    keep_house(log)
    assert texts(drain(reader, {S0: log.end_offset(S0)}))[-1] == "a9"
    assert read(log, S0, start=offsets[5]) == ["a9"]


def test_a_record_just_written_is_not_compacted(log, clock):
    log.append(to(S0, "a1", "a2", key="a"))
    keep_house(log)
    assert read(log, S0) == ["a1", "a2"]


def test_a_tombstone_stays_for_a_day_so_that_readers_learn_of_it(log, clock):
    log.append([*to(S0, "a1", key="a"), *tombstone(S0, "a"), *to(S0, "b1", key="b")])
    clock.advance(23 * HOUR)
    keep_house(log)
    assert read(log, S0) == ["-", "b1"]
    clock.advance(2 * HOUR)
    keep_house(log)
    assert read(log, S0) == ["b1"]


def test_what_is_superseded_or_deleted_stays_for_as_long_as_its_topic_says_at_least(log, clock):
    kept = TopicPartition("kept", 0)
    log.create({replace(STATE, name="kept", retention=72 * HOUR): 1})
    log.append(
        [*to(kept, "a1", "a2", key="a"), *to(kept, "b1", key="b"), *tombstone(kept, "b"), *to(kept, "c", key="c")]
    )
    clock.advance(71 * HOUR)
    keep_house(log)
    assert read(log, kept) == ["a1", "a2", "b1", "-", "c"]
    clock.advance(2 * HOUR)
    keep_house(log)
    assert read(log, kept) == ["a2", "c"]


def test_a_key_that_comes_back_after_its_tombstone_stays(log, clock):
    log.append([*to(S0, "a1", key="a"), *tombstone(S0, "a")])
    clock.advance(HOUR)
    keep_house(log)
    log.append([*to(S0, "a2", key="a"), *to(S0, "b1", key="b")])
    clock.advance(48 * HOUR)
    keep_house(log)
    assert read(log, S0) == ["a2", "b1"]
    log.append([*to(S0, "a3", key="a"), *to(S0, "c1", key="c")])
    clock.advance(HOUR)
    keep_house(log)
    assert read(log, S0) == ["b1", "a3", "c1"]


def test_the_last_record_stays_even_as_an_old_tombstone_so_that_its_offset_is_never_given_again(log, clock):
    last = log.append([*to(S0, "a1", key="a"), *tombstone(S0, "a")]).offsets[-1]
    clock.advance(48 * HOUR)
    keep_house(log)
    assert read(log, S0) == ["-"]
    assert log.append(to(S0, "b1", key="b")).offsets[0] > last
    keep_house(log)
    assert read(log, S0) == ["b1"]


def test_records_without_a_key_are_superseded_by_nothing(log, clock):
    log.append([Outgoing("state", 0, None, b"x"), Outgoing("state", 0, None, b"y"), *to(S0, "a", key="a")])
    clock.advance(48 * HOUR)
    keep_house(log)
    assert read(log, S0) == ["x", "y", "a"]


def test_compaction_and_transactions_do_not_disturb_each_other(log, clock):
    producer = log.open_producer("writer", group="group")
    for number in range(20):
        write(producer, *to(S0, f"a{number}", key="a"), *to(S0, f"k{number}", key=f"k{number % 3}"))
        clock.advance(10 * MINUTE)
        keep_house(log)
    clock.advance(HOUR)
    keep_house(log)
    assert sorted(read(log, S0)) == ["a19", "k17", "k18", "k19"]
