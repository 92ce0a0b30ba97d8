"""No commit waits for a coordinator that is not there longer than a transaction may last."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from runtime.clock import SystemClock
from runtime.log import LogError
from runtime.logs.kafka.log import KafkaLog
from runtime.logs.kafka.settings import KafkaSettings
from tests.runtime.logs.words import E0, SPECS, read, to, write
from tests.support.proxy import (
    ADD_OFFSETS,
    ADD_PARTITIONS,
    FIND_COORDINATOR,
    NO_COORDINATOR,
    PRODUCE,
    Fate,
    Proxy,
    Rule,
    proxied,
)

NOBODY = Rule(key=FIND_COORDINATOR, fate=Fate.ANSWER, lasting=True, answer=NO_COORDINATOR)


@pytest.fixture
def proxy(broker: str) -> Iterator[Proxy]:
    with proxied(broker) as found:
        yield found


@pytest.fixture
def log(proxy: Proxy, topic_prefix: str) -> Iterator[KafkaLog]:
    settings = KafkaSettings(
        bootstrap=proxy.bootstrap, namespace=topic_prefix, replication_factor=1, min_insync_replicas=1,
        session_timeout=timedelta(seconds=2),
    )  # fmt: skip
    opened = KafkaLog(settings, SystemClock())
    opened.create(SPECS)
    yield opened
    opened.close()


def test_positions_that_no_coordinator_takes_are_an_error_and_the_successor_finds_nothing_of_it(log, proxy):
    """Three times the client is told that there is none; it would not ask again while its connections hold."""
    assert log.committed("group", [E0]) == {}  # The broker has made its topic of positions by now.
    producer = log.open_producer("writer", group="group")
    proxy.add(NOBODY)
    with pytest.raises(LogError, match="positions: _TIMED_OUT"):
        write(producer, *to(E0, "a"), positions={E0: 1})
    producer.close()
    proxy.clear()
    write(log.open_producer("writer", group="group"), *to(E0, "b"), positions={E0: 2})
    assert read(log, E0) == ["b"]
    assert log.committed("group", [E0]) == {E0: 2}


def test_a_coordinator_hears_of_positions_when_it_has_written_down_where_records_go(log, proxy):
    """Asked for both at once it refuses one of them, and is asked again only after a while."""
    producer = log.open_producer("writer", group="group")
    proxy.every(PRODUCE, Fate.DROP)
    with pytest.raises(LogError):
        write(producer, *to(E0, "a"), positions={E0: 1})
    producer.close()
    assert (proxy.seen(ADD_PARTITIONS), proxy.seen(ADD_OFFSETS)) == (1, 0)
