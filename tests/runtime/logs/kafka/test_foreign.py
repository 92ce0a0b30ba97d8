"""What others write to a topic is read as it is, or costs itself."""

from typing import cast

from confluent_kafka import Message, Producer

from runtime.logs.kafka.reading import headers_of
from tests.runtime.logs.words import DEADLINE, E0, PLENTY


def test_a_header_without_a_value_is_none(log, broker, topic_prefix):
    """Kafka tells both apart, and clients of some languages write what they have no value for."""
    producer = Producer({"bootstrap.servers": broker})
    producer.produce(topic_prefix + "events", b"a", partition=0, headers=[("trace", None), ("span", b"1")])
    assert producer.flush(DEADLINE) == 0
    (record,) = log.open_reader({E0: 0}).poll(records_max=10, bytes_max=PLENTY, timeout=DEADLINE)
    assert (record.value, record.headers) == (b"a", (("span", b"1"),))


class Unspeakable:
    """A message with a header whose name is b"\xff": the client sets an error, and returns something all the same."""

    def headers(self) -> None:
        raise SystemError("<method 'headers' of 'confluent_kafka.cimpl.Message' objects> returned a result ...")


def test_of_a_record_whose_headers_nobody_can_say_the_rest_is_read():
    assert headers_of(cast("Message", Unspeakable())) == ()
