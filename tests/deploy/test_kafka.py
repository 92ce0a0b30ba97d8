"""The Kafka for development: it starts, keeps its data, ends with its starter, and says what it lacks."""

import contextlib
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic

from deploy.kafka.broker import Cluster, Unavailable, brokers_known_to
from tests.support.kafka import shared
from tests.support.waiting import eventually

STARTER = Path(__file__).parents[2] / "deploy" / "kafka" / "broker.py"
TEMPLATE = STARTER.with_name("server.properties")
SECONDS = 60  # A deadline, not a measure.
TOPIC = "notes"

pytestmark = pytest.mark.timeout(300)  # A guard: three brokers on two cores that others use too take their time.


# --- what it says when something is missing -----------------------------------------------------------------------


def test_without_java_it_says_which_java_to_install(tmp_path):
    done = start_to_end(tmp_path, {"PATH": str(tmp_path)})
    assert done.returncode == 1
    assert done.stderr == "Kafka needs Java 17 or newer and there is none: install it (Debian: default-jre-headless)\n"


def test_with_a_java_that_is_too_old_it_says_so(tmp_path):
    program(tmp_path / "java", 'echo "java.lang.UnsupportedClassVersionError: kafka/tools/StorageTool" >&2; exit 1')
    done = start_to_end(tmp_path, {"PATH": f"{tmp_path}:{os.environ['PATH']}", "KAFKA_LIBS": str(tmp_path)})
    assert done.returncode == 1
    assert done.stderr.startswith("Kafka needs Java 17 or newer, and this one is older")


def test_where_somebody_listens_already_it_says_which_port_is_taken(tmp_path, own_broker):
    taken = str(own_broker.nodes[0].port)
    done = start_to_end(tmp_path, dict(os.environ), "--port", taken)
    assert done.returncode == 1
    assert done.stderr == f"port {taken} is taken: stop who listens there, or choose another port\n"


def test_a_folder_is_that_of_one_cluster_at_a_time(own_broker):
    with pytest.raises(Unavailable, match="is that of a cluster which runs already: choose another folder"):
        Cluster(own_broker.data).start()


def test_without_maven_and_without_jars_it_says_how_to_get_either(tmp_path):
    program(tmp_path / "java", "exit 0")
    done = start_to_end(tmp_path, {"PATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")})
    assert done.returncode == 1
    assert done.stderr == (
        "Kafka's jars are fetched with Maven and there is none: install it (Debian: maven), "
        "or set KAFKA_LIBS to the libs folder of a Kafka that you have\n"
    )


def test_a_test_that_needs_a_broker_fails_where_there_can_be_none(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(pytest.fail.Exception, match="Kafka needs Java 17 or newer and there is none"), shared(tmp_path):
        pass


# --- its jars -----------------------------------------------------------------------------------------------------


def test_two_that_start_at_once_fetch_the_jars_once(tmp_path):
    environment = with_maven(tmp_path, 'echo fetched >> "$CALLS"; mkdir "$libs"; : > "$libs/kafka.jar"')
    both = [fetch(environment) for _ in range(2)]
    assert [process.communicate(timeout=SECONDS)[1] for process in both] == ["", ""]
    assert (tmp_path / "calls").read_text() == "fetched\n"
    assert [path.name for path in (tmp_path / "cache" / "tidewheel" / "kafka-4.4.0").iterdir()] == ["kafka.jar"]


def test_jars_that_could_not_all_be_fetched_are_no_jars(tmp_path):
    environment = with_maven(tmp_path, 'mkdir "$libs"; : > "$libs/half.jar"; echo "no route to the mirror" >&2; exit 1')
    process = fetch(environment)
    assert "no route to the mirror" in process.communicate(timeout=SECONDS)[1]
    assert process.returncode == 1
    assert [path.name for path in (tmp_path / "cache" / "tidewheel").iterdir()] == ["kafka.lock"]


# --- its life -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_starter_prints_an_address_that_answers_and_ends_its_broker_when_told_to(tmp_path):
    with starter(tmp_path) as process:
        address = first_line(process)
        assert brokers_known_to(address) == 1
        process.send_signal(signal.SIGTERM)
        assert process.wait(SECONDS) == 0
        assert brokers_known_to(address) == 0


@pytest.mark.slow
def test_a_broker_ends_with_a_starter_that_is_killed(tmp_path):
    with starter(tmp_path) as process:
        address = first_line(process)
        process.kill()
        eventually(lambda: brokers_known_to(address) == 0, within=SECONDS, what="the broker is gone")


def test_a_frozen_broker_is_silent_until_it_is_thawed(own_broker):
    node = own_broker.nodes[0]
    node.freeze()
    assert node.is_running
    assert brokers_known_to(node.address) == 0
    node.thaw()
    eventually(lambda: brokers_known_to(node.address) == 1, within=SECONDS, what="it answers again")


def test_every_setting_of_the_template_is_one_that_kafka_knows_and_follows(own_broker):
    written = dict(line.split("=", 1) for line in TEMPLATE.read_text().splitlines() if line and line[0] != "#")
    known = configuration(own_broker, "broker", "1")
    settings = {key: value for key, value in written.items() if "$" not in value}
    assert {key: known.get(key) for key in settings} == settings


def test_a_killed_broker_has_what_it_acknowledged_when_it_is_started_again(own_broker):
    create_topic(own_broker)
    write(own_broker, b"before")
    own_broker.nodes[0].kill()
    own_broker.start()
    write(own_broker, b"after")
    assert read(own_broker, 2) == [b"before", b"after"]


def test_of_three_brokers_one_may_be_lost_and_no_acknowledged_record_with_it(three_brokers):
    create_topic(three_brokers)
    assert configuration(three_brokers, "topic", TOPIC)["min.insync.replicas"] == "2"
    write(three_brokers, b"three")
    three_brokers.nodes[0].kill()
    write(three_brokers, b"two")
    three_brokers.nodes[1].kill()
    with pytest.raises(KafkaException):
        write(three_brokers, b"one is too few", patience_seconds=3)
    three_brokers.start()
    assert read(three_brokers, 2) == [b"three", b"two"]


@pytest.mark.slow
def test_all_who_test_share_a_broker_that_ends_with_the_last_of_them(tmp_path):
    with shared(tmp_path) as first:
        with shared(tmp_path) as second:
            assert second == first
        assert brokers_known_to(first) == 1
    eventually(lambda: brokers_known_to(first) == 0, within=SECONDS, what="the broker is gone")


# --- a person at the terminal -------------------------------------------------------------------------------------


def start_to_end(folder: Path, environment: dict[str, str], *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(STARTER), "--data", str(folder / "data"), "--port", "0", *options]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False)


@contextlib.contextmanager
def starter(folder: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, str(STARTER), "--data", str(folder / "data"), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.terminate()


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def fetch(environment: dict[str, str]) -> subprocess.Popen[str]:
    command = [sys.executable, str(STARTER), "--fetch"]
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)


def with_maven(folder: Path, does: str) -> dict[str, str]:
    """An environment with an empty cache and a Maven that only `does` this, where `$libs` is the folder to fill."""
    program(folder / "mvn", f'for argument; do libs="${{argument#-DoutputDirectory=}}"; done; {does}')
    path = f"{folder}:{os.environ['PATH']}"
    return {"PATH": path, "XDG_CACHE_HOME": str(folder / "cache"), "CALLS": str(folder / "calls")}


def program(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


# --- a client -----------------------------------------------------------------------------------------------------


def create_topic(cluster: Cluster) -> None:
    """With as many copies as the cluster makes of its own accord; return when every node knows it."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    for created in admin.create_topics([NewTopic(TOPIC, num_partitions=1, replication_factor=-1)]).values():
        created.result(SECONDS)
    for node in cluster.nodes:
        eventually(partial(knows_topic, node.address), within=SECONDS, what=f"{node.address} knows the topic")


def knows_topic(address: str) -> bool:
    return TOPIC in AdminClient({"bootstrap.servers": address}).list_topics(timeout=SECONDS).topics


def write(cluster: Cluster, value: bytes, *, patience_seconds: int = SECONDS) -> None:
    """Return when the record is acknowledged; KafkaException when it is not."""
    failed: list[KafkaError] = []

    def delivered(error: KafkaError | None, _message: object) -> None:
        if error is not None:
            failed.append(error)

    settings = {"bootstrap.servers": cluster.bootstrap, "acks": "all", "message.timeout.ms": patience_seconds * 1000}
    producer = Producer(settings)
    producer.produce(TOPIC, value, partition=0, on_delivery=delivered)
    assert producer.flush(patience_seconds + SECONDS) == 0
    if failed:
        raise KafkaException(failed[0])


def read(cluster: Cluster, count: int) -> list[bytes | None]:
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "reader", "enable.auto.commit": False})
    try:
        consumer.assign([TopicPartition(TOPIC, 0, 0)])
        return [message.value() for message in consumer.consume(count, timeout=SECONDS)]
    finally:
        consumer.close()


def configuration(cluster: Cluster, kind: str, name: str) -> dict[str, str]:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    resource = ConfigResource(ConfigResource.Type[kind.upper()], name)
    entries = admin.describe_configs([resource])[resource].result(SECONDS)
    return {key: entry.value for key, entry in entries.items()}
