"""Of a transaction of which a broker has refused something, nothing more is sent, wherever that stood."""

import time

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from runtime.log import LogError, Producer
from runtime.logs.kafka.log import KafkaLog
from tests.runtime.logs.words import DEADLINE, E0, E1, E2, read, to, write

BYTES_MAX = 500_000  # of a batch; the client makes batches of a megabyte
LARGE = to(E0, "l" * 900_000)  # fills one by itself


@pytest.fixture(autouse=True)
def _a_topic_with_small_records(log, broker, topic_prefix):
    entry = ConfigEntry("max.message.bytes", str(BYTES_MAX), incremental_operation=AlterConfigOpType.SET)
    topic = ConfigResource(ResourceType.TOPIC, topic_prefix + E0.topic, incremental_configs=[entry])
    client = AdminClient({"bootstrap.servers": broker})
    client.incremental_alter_configs([topic])[topic].result(DEADLINE)
    assert until_refused(log), "the broker takes it still"


def until_refused(log: KafkaLog) -> bool:
    """Brokers hear of a topic's new settings a little later than they say so."""
    give_up_at = time.monotonic() + DEADLINE
    while time.monotonic() < give_up_at:
        try:
            log.append(to(E2, "l" * 900_000))
        except LogError:
            return True
    return False


@pytest.mark.parametrize("behind", [[], to(E0, "s" * 300_000)], ids=["the last", "another behind it"])
def test_behind_a_record_that_is_refused_nothing_is_sent(log, behind):
    producer = log.open_producer("writer", group="group")
    producer.begin()
    producer.send([*LARGE, *behind])
    with pytest.raises(LogError):
        go_on(producer)
    producer.close()
    write(log.open_producer("writer", group="group"), *to(E1, "by the successor"))
    assert (read(log, E0), read(log, E1)) == ([], ["by the successor"])


def test_a_transaction_with_a_record_that_is_refused_is_not_committed(log):
    producer = log.open_producer("writer", group="group")
    producer.begin()
    producer.send([*LARGE, *to(E0, "s" * 300_000), *to(E1, "beside it")])
    with pytest.raises(LogError):
        producer.commit({E1: 5})
    assert (read(log, E0), read(log, E1), log.committed("group", [E1])) == ([], [], {})


def go_on(producer: Producer) -> None:
    """As an owner does behind its decision; whether the flush or what follows is refused makes no difference."""
    producer.flush()
    producer.send(to(E1, "what must come behind it"))
