"""Two processes share a topic of others: what moves from one to the other goes on once."""

from __future__ import annotations

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from node.ingress import Binding, IngressService, of_others
from runtime.clock import SystemClock
from runtime.logs.kafka.log import KafkaLog
from runtime.logs.kafka.settings import KafkaSettings
from runtime.telemetry import Telemetry
from schemas import topics
from tests.strangers.clients import LIBRDKAFKA, Follower, Place, Publisher, command
from tests.support.waiting import eventually

SECONDS = 30.0


@pytest.fixture
def orders(broker: str, topic_prefix: str) -> str:
    """A topic of others, beside ours."""
    log = KafkaLog(
        KafkaSettings(bootstrap=broker, namespace=topic_prefix, replication_factor=1, min_insync_replicas=1),
        SystemClock(),
    )
    wanted = {topics.SCHEDULE_CHANGES, topics.REJECTIONS}
    log.create({spec: 4 for spec in topics.topic_table(topics.Retention()) if spec.name in wanted})
    log.close()
    admin = AdminClient({"bootstrap.servers": broker})
    for made in admin.create_topics([NewTopic(f"{topic_prefix}orders", 6, 1)]).values():
        made.result(SECONDS)
    return f"{topic_prefix}orders"


def test_partitions_that_move_lose_and_double_nothing(broker: str, topic_prefix: str, orders: str) -> None:
    """The second joins while there is work, then the first leaves; each record goes on once."""
    clock, binding = SystemClock(), Binding(topic=orders, tenant="acme", namespace=topic_prefix, partitions=4)
    settings = KafkaSettings(bootstrap=broker, namespace=topic_prefix, replication_factor=1, min_insync_replicas=1)
    logs = [KafkaLog(of_others(settings), clock) for _ in range(2)]
    first, second = (
        IngressService(binding, log, member=f"m{number}", clock=clock, telemetry=Telemetry())
        for number, log in enumerate(logs)
    )
    publisher = Publisher(broker, orders, settings=LIBRDKAFKA, keys=False)
    places: list[Place] = []

    def publish_until(partitions: int, service: IngressService) -> bool:
        places.append(publisher.publish(command("schedule.pause", {"tenant": "acme", "name": f"s{len(places)}"})))
        return len(service.partitions()) == partitions and all(each.ready(0) for each in service.partitions())

    first.start()
    eventually(lambda: publish_until(6, first), within=SECONDS, what="the first has all")
    second.start()
    eventually(lambda: publish_until(3, second), within=SECONDS, what="the second has half")
    assert first.stop(SECONDS)
    eventually(lambda: publish_until(6, second), within=SECONDS, what="the second has all")
    changes = Follower(broker, f"{topic_prefix}tidewheel.schedule-changes", group=f"{topic_prefix}reader")
    changes.until(lambda _data: len(changes.events) == len(places))
    assert second.stop(SECONDS)
    changes.close()
    for log in logs:
        log.close()
    assert sorted(changes.origins) == sorted(f"{topic}-{partition}-{offset}" for topic, partition, offset in places)
