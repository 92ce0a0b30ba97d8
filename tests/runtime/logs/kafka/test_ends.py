"""Ends that are asked for quickly: the same as the administrator's, or none."""

import socket
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import OffsetSpec

from runtime.logs.kafka.ends import Ends
from runtime.logs.kafka.settings import KafkaSettings, ends_config
from tests.runtime.logs.words import E0, E1, to, write

PATIENCE = 30.0  # a machine that is full answers late; that is no concern of these tests


def test_an_end_is_behind_what_is_still_open(log, broker, topic_prefix):
    """Where readers get to now would be before it, and a reader that got there would not have read all there is."""
    producer = log.open_producer("writer", group="group")
    write(producer, *to(E0, "committed"))  # and the marker behind it
    producer.begin()
    producer.send(to(E0, "open"))
    producer.flush()
    assert log.end_offset(E1) == 0  # What has just been made may have no leader yet: this waits for it.
    ends = Ends(KafkaSettings(bootstrap=broker), seconds=PATIENCE)
    topic = topic_prefix + E0.topic
    assert ends.ask([(topic, 0), (topic, 1)]) == {(topic, 0): 3, (topic, 1): 0}
    assert log.end_offsets([E0, E1]) == log._offsets([E0, E1], OffsetSpec.latest()) == {E0: 3, E1: 0}  # type: ignore[no-untyped-call]
    producer.close()


def test_a_partition_that_is_not_there_is_nobodys_to_tell_of_quickly(log, broker, topic_prefix):
    ends = Ends(KafkaSettings(bootstrap=broker), seconds=PATIENCE)
    assert ends.ask([(topic_prefix + E0.topic, 0), (topic_prefix + "absent", 0)]) is None


@pytest.fixture
def nobody() -> Iterator[KafkaSettings]:
    """Brokers that are away."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield KafkaSettings(bootstrap=f"127.0.0.1:{taken.getsockname()[1]}")


def test_brokers_that_are_away_are_not_waited_for(nobody):
    assert Ends(nobody).ask([("events", 0)]) is None


def test_what_the_client_complains_of_is_taken_from_it(nobody):
    """Nobody polls it otherwise."""
    heard: list[str] = []
    ends = Ends(nobody)
    ends.tend()  # There is none yet.
    ends._consumer = Consumer(ends_config(nobody) | {"error_cb": lambda error: heard.append(error.name())})
    while not heard:
        ends.tend()
    assert heard[0] in {"_TRANSPORT", "_ALL_BROKERS_DOWN"}


def test_who_is_let_go_of_is_made_anew_for_a_late_question(log, broker, topic_prefix):
    """A thread may be about to ask while the log is closed."""
    ends, place = Ends(KafkaSettings(bootstrap=broker), seconds=PATIENCE), (topic_prefix + E0.topic, 0)
    assert log.end_offset(E0) == 0  # As above.
    assert ends.ask([place]) == {place: 0}
    ends.close()
    assert ends.ask([place]) == {place: 0}
