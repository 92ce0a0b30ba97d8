"""A Kafka for tests: one broker that all workers share, and brokers of one's own to kill, freeze and start again.

TIDEWHEEL_TEST_BOOTSTRAP names a broker that runs already, in a container or elsewhere. Otherwise the first worker that
needs one has deploy/kafka start it, in a process that ends it when the last worker has gone, however that one ended.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from deploy.kafka.broker import Cluster, Unavailable, alone
from tests.support.waiting import eventually

GIVEN = "TIDEWHEEL_TEST_BOOTSTRAP"
ROOT = Path(__file__).parents[2]
SECONDS = 60  # A deadline for what takes a moment, not a measure.
GROUPS = 6  # whose names differ in the last character, by one: as many partitions as deploy/kafka gives positions
# The one broker of all workers is not declared dead when tests keep its processors busy for some seconds: there is none
# to take over, and Kafka 4.4 writes no markers of transactions to partitions without a leader (KAFKA-20734). Readers of
# committed records would stand still for ever there, and what was aborted could be seen later.
STEADY = {"broker.session.timeout.ms": "120000"}
FIXTURES = {"broker", "topic_prefix", "own_broker", "three_brokers"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test that asks for a broker by name is slow, wherever it lives."""
    for item in items:
        if FIXTURES & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The addresses of a broker for these tests, the same for all workers: see `topic_prefix`."""
    if given := os.environ.get(GIVEN):
        coordinate(given)
        yield given
        return
    run = tmp_path_factory.getbasetemp()
    with shared((run.parent if "PYTEST_XDIST_WORKER" in os.environ else run) / "kafka") as bootstrap:
        yield bootstrap


@pytest.fixture
def topic_prefix(broker: str) -> Iterator[str]:
    """What this test's topics, groups and transactional ids begin with, and nobody else's; its topics go with it."""
    prefix = f"test-{uuid.uuid4().hex[:12]}."
    yield prefix
    delete_topics(broker, prefix)


@pytest.fixture(scope="module")
def own_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A broker that the tests of one file may kill and freeze; each leaves it running for the next."""
    with started(tmp_path_factory.mktemp("kafka"), brokers=1) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def three_brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster of which the tests of one file may kill and freeze a part; each leaves it whole for the next."""
    with started(tmp_path_factory.mktemp("kafka"), brokers=3) as cluster:
        yield cluster


@contextlib.contextmanager
def started(data: Path, *, brokers: int) -> Iterator[Cluster]:
    """A cluster of one's own, gone afterwards with its data; the test fails where there can be none."""
    cluster = Cluster(data, brokers=brokers)
    try:
        cluster.start()
    except Unavailable as why:
        _fail(why)
    try:
        coordinate(cluster.bootstrap)
        yield cluster
    finally:
        for node in cluster.nodes:  # Their data goes with them. Asked to stop, the last of three waits for a quorum.
            node.kill()
        cluster.stop()
        shutil.rmtree(data)


def coordinate(bootstrap: str) -> None:
    """Return when every group has a coordinator: a broker makes the topic of positions when it is first asked for one.

    Until it is there a client hears that there is none, and whoever hears so three times in a transaction asks no more
    (see `runtime.logs.kafka.punctual`). On a busy machine that was the first test's end.
    """
    for number in range(GROUPS):
        is_coordinated = partial(_is_coordinated, bootstrap, f"coordinated-{number}")
        eventually(is_coordinated, within=SECONDS, what="every group has a coordinator")


def _is_coordinated(bootstrap: str, group: str) -> bool:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    try:
        consumer.committed([TopicPartition("nothing", 0)], timeout=SECONDS)
    except KafkaException:
        return False
    else:
        return True
    finally:
        consumer.close()


def delete_topics(bootstrap: str, prefix: str) -> None:
    """Delete every topic whose name begins so.

    The controller answers before the brokers have heard of it. A topic that is asked for meanwhile is still there, and
    whoever wants it made finds nothing to do: so wait until no broker that is asked names them any more.
    """
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topics = _named(admin, prefix)
    if topics:
        for deleted in admin.delete_topics(topics, operation_timeout=SECONDS).values():
            deleted.result(SECONDS)
    eventually(lambda: not _named(admin, prefix), within=SECONDS, what=f"the broker names no {prefix}* any more")


def _named(admin: AdminClient, prefix: str) -> list[str]:
    return [topic for topic in admin.list_topics(timeout=SECONDS).topics if topic.startswith(prefix)]


def _fail(why: object) -> None:
    pytest.fail(f"{why}\n(Or name a broker that runs already in {GIVEN}.)", pytrace=False)


# --- one broker for all workers -----------------------------------------------------------------------------------
#
# Each worker shares a lock on the file `users`. The process that runs the broker waits to have it alone, and then ends:
# a lock goes when its holder does, even if that is killed.


@contextlib.contextmanager
def shared(folder: Path) -> Iterator[str]:
    """The broker in this folder, started by whoever comes first; its addresses."""
    folder.mkdir(exist_ok=True)
    bootstrap = folder / "bootstrap"
    with (folder / "users").open("w") as users:
        fcntl.flock(users, fcntl.LOCK_SH)
        with alone(folder / "starting"):
            if not bootstrap.exists():
                _start_host(folder)
        yield bootstrap.read_text(encoding="utf-8")


def _start_host(folder: Path) -> None:
    """Return when the broker serves; its process is no child of ours, and of a session that Ctrl-C does not end."""
    command = [sys.executable, "-m", "tests.support.kafka", str(folder)]
    with (folder / "said").open("w+") as said:
        subprocess.run(
            command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True, check=True
        )
        said.seek(0)
        if not (folder / "bootstrap").exists():
            _fail(said.read())


def start(folder: Path) -> None:
    """Leave a process that runs a broker, once that serves or cannot: it ends with the thread that starts it."""
    served, serves = os.pipe()
    if os.fork() == 0:
        os.close(served)
        host(folder, serves)
    else:
        os.close(serves)
        os.read(served, 1)  # nothing: closed by the other, or by its end


def host(folder: Path, serves: int) -> None:
    """Run a broker until nobody uses it."""
    with (folder / "users").open("w") as users:
        with Cluster(folder / "data", settings=STEADY) as cluster:
            coordinate(cluster.bootstrap)
            (folder / "bootstrap").write_text(cluster.bootstrap, encoding="utf-8")
            os.close(serves)
            fcntl.flock(users, fcntl.LOCK_EX)
            (folder / "bootstrap").unlink()
        shutil.rmtree(folder / "data")


if __name__ == "__main__":
    try:
        start(Path(sys.argv[1]))
    except Unavailable as error:
        sys.exit(str(error))
