"""A log on the broker of all tests, with the topics that tests of logs speak of."""

from collections.abc import Iterator

import pytest

from runtime.clock import SystemClock
from runtime.logs.kafka.log import KafkaLog
from runtime.logs.kafka.settings import KafkaSettings
from tests.runtime.logs.words import SPECS


@pytest.fixture
def log(broker: str, topic_prefix: str) -> Iterator[KafkaLog]:
    settings = KafkaSettings(bootstrap=broker, namespace=topic_prefix, replication_factor=1, min_insync_replicas=1)
    opened = KafkaLog(settings, SystemClock())
    opened.create(SPECS)
    yield opened
    opened.close()
