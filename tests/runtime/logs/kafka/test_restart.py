"""What holds across a broker that is killed and started again."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from deploy.kafka.broker import Cluster
from runtime.clock import SystemClock
from runtime.log import LogError
from runtime.logs.kafka.log import KafkaLog
from runtime.logs.kafka.settings import KafkaSettings
from runtime.logs.kafka.topics import FRESH_SECONDS
from tests.runtime.logs.words import E0, SPECS, drain, texts, to, write
from tests.support.segments import told

# A transaction must outlive the broker's absence. One whose time is over by then is aborted at once, before its
# partitions have leaders again; Kafka 4.4 takes a partition without a leader for one that is gone, writes no marker
# there, and with the writer's next commit what was aborted is seen.
LONG = timedelta(seconds=60)


@pytest.fixture
def log(own_broker: Cluster) -> Iterator[KafkaLog]:
    settings = KafkaSettings(
        bootstrap=own_broker.bootstrap, replication_factor=1, min_insync_replicas=1, session_timeout=LONG
    )
    opened = KafkaLog(settings, SystemClock())
    opened.create(SPECS)
    yield opened
    opened.close()


def test_a_broker_is_killed_and_comes_back(log, own_broker):
    """Topics are not forgotten, readers go on, and a transaction that was open is whole or absent.

    One test, as starting a broker takes its time.
    """
    identity = log.topic_id("events")
    reader, producer = log.open_reader({E0: 0}), log.open_producer("writer", group="group")
    write(producer, *to(E0, "before"))
    assert texts(drain(reader, {E0: log.end_offset(E0)})) == ["before"]
    producer.begin()
    producer.send(to(E0, "a", "b"))
    producer.flush()

    own_broker.nodes[0].kill()
    known = log._topics._known
    log._topics._known = {name: (asked - FRESH_SECONDS, there) for name, (asked, there) in known.items()}
    assert (log.partitions("events"), log.topic_id("events")) == (3, identity)
    assert reader.poll(records_max=9, bytes_max=999, timeout=0.1) == []

    own_broker.nodes[0].start()
    own_broker.wait_ready()
    log.end_offset(E0)  # Its leader answers.
    while log._ends.ask([("events", 0)]) is None:
        pass  # Without the administrator's patience it answers soon again.
    error = ""
    try:
        producer.commit({E0: 1})
        outcomes = [["a", "b"]]
    except LogError as failed:
        error, outcomes = str(failed), [[], ["a", "b"]]
    producer.close()
    write(log.open_producer("writer", group="group"), *to(E0, "after"))
    log.append(to(E0, "appended"))
    seen = texts(drain(reader, {E0: log.end_offset(E0)}))
    assert seen[-2:] == ["after", "appended"]
    assert seen[:-2] in outcomes
    files = told(own_broker.nodes[0].folder, "events", "__consumer_offsets")
    assert "events-0 0-0 records of 0 epoch 0 in a transaction\nevents-0 1 commit of 0 epoch 0\n" in files
    # Torn, there would be a marker in one place that is missing in the other.
    positions = {E0: 1} if seen[:-2] == ["a", "b"] else {}
    assert log.committed("group", [E0]) == positions, f"{error}\n{files}"
    assert log.topic_id("events") == identity
