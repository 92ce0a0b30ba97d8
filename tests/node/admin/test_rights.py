"""The rights of the guide for operators, on a broker that asks everybody who they are (SCRAM) and denies by default.

A scheduler does its work with them. A worker reads its inbox and reports, and can neither open a transaction, which
would hold up a partition, nor write what only owners write. What runs write it sends, and reads nobody's.
"""

from __future__ import annotations

import asyncio
import shutil
import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from deploy.kafka.broker import Cluster, free_port
from runtime.clock import SystemClock
from runtime.logs.kafka.log import KafkaLog
from runtime.logs.kafka.settings import KafkaSettings
from runtime.record import Outgoing
from schemas import codec, topics
from simulation.clock import ManualClock
from tests.runtime.shell import LAYOUT, NOON, Shell
from tests.runtime.toy import Add
from tidewheel.brokers import Kafka
from tidewheel.logs.capture import Chunk
from tidewheel.transports.kafka import KafkaTransport

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from confluent_kafka import Message

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

SECONDS = 60.0
PASSWORD = "correct horse"
INBOX = topics.dispatch_topic("default")
READ, WRITE, DESCRIBE = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE
SCHEDULER_READS = (
    topics.SCHEDULE_CHANGES, topics.RUN_OUTCOMES, topics.LINKS, topics.CATALOG, topics.OPERATIONS,
    topics.changelog_topic("scheduler"),
)  # fmt: skip
SCHEDULER_WRITES = (
    topics.SCHEDULE_CHANGES, topics.RUNS, topics.RUN_EVENTS, topics.SCHEDULES, topics.CATALOG, topics.VERSIONS,
    topics.REJECTIONS, topics.REPLIES, topics.LINKS, topics.changelog_topic("scheduler"),
)  # fmt: skip


DISPATCHER_WRITES = (
    INBOX, topics.RUN_EVENTS, topics.RUN_OUTCOMES, topics.DEAD_LETTERS, topics.REJECTIONS, topics.REPLIES,
    topics.WORKERS,
)  # fmt: skip
PROJECTORS = {"projector": topics.WORKERS, "log-projector": topics.LOGS}  # each with a topic that it reads


class Guarded:
    """One broker: whoever comes by the first port may do all, by the second what was granted to their name."""

    def __init__(self, cluster: Cluster, port: int) -> None:
        self.cluster = cluster
        self.bootstrap = f"127.0.0.1:{port}"
        self.admin = AdminClient({"bootstrap.servers": cluster.bootstrap})

    def introduce(self, name: str, grants: Iterable[AclBinding]) -> None:
        credential = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        made = self.admin.alter_user_scram_credentials(
            [UserScramCredentialUpsertion(name, credential, PASSWORD.encode())]
        )
        for future in [*made.values(), *self.admin.create_acls(list(grants)).values()]:
            future.result(SECONDS)

    def client(self, name: str) -> dict[str, str]:
        return {
            "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-512", "sasl.username": name,
            "sasl.password": PASSWORD,
        }  # fmt: skip

    def settings(self, bootstrap: str, properties: Mapping[str, str]) -> KafkaSettings:
        return KafkaSettings(
            bootstrap=bootstrap, namespace="", replication_factor=1, min_insync_replicas=1, properties=properties
        )


def on_topic(name: str, topic: str, operation: AclOperation) -> AclBinding:
    return granted(name, ResourceType.TOPIC, topic, operation)


def granted(
    name: str, kind: ResourceType, what: str, operation: AclOperation,
    pattern: ResourcePatternType = ResourcePatternType.LITERAL,
) -> AclBinding:  # fmt: skip
    return AclBinding(kind, what, pattern, f"User:{name}", "*", operation, AclPermissionType.ALLOW)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """With every topic, and the principals `scheduler` and `worker`."""
    data, port, sasl = tmp_path_factory.mktemp("guarded"), free_port(1), free_port(1)
    listeners = f"PLAINTEXT://127.0.0.1:{port},GUARDED://127.0.0.1:{sasl}"
    settings = {
        "listeners": f"{listeners},CONTROLLER://127.0.0.1:{port + 100}",
        "advertised.listeners": listeners,
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,GUARDED:SASL_PLAINTEXT",
        "listener.name.guarded.sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "listener.name.guarded.scram-sha-512.sasl.jaas.config":
            "org.apache.kafka.common.security.scram.ScramLoginModule required;",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }  # fmt: skip
    with Cluster(data, port=port, settings=settings) as cluster:
        site = Guarded(cluster, sasl)
        with closing(KafkaLog(site.settings(cluster.bootstrap, {}), SystemClock())) as log:
            log.create({spec: LAYOUT.partitions(spec.family) for spec in topics.topic_table(topics.Retention())})
            log.create({topics.dispatch_spec("default", topics.Retention()): 1})
        reads = [on_topic("scheduler", topic, READ) for topic in SCHEDULER_READS]
        writes = [on_topic("scheduler", topic, WRITE) for topic in SCHEDULER_WRITES]
        group = [granted("scheduler", ResourceType.GROUP, "tidewheel.scheduler", READ)]
        ids = [
            granted(
                "scheduler", ResourceType.TRANSACTIONAL_ID, "tidewheel.scheduler.", each, ResourcePatternType.PREFIXED
            )
            for each in (WRITE, DESCRIBE)
        ]
        describes = [
            granted("scheduler", ResourceType.TOPIC, topics.PREFIX, each, ResourcePatternType.PREFIXED)
            for each in (DESCRIBE, AclOperation.DESCRIBE_CONFIGS)
        ]
        site.introduce("scheduler", [*reads, *writes, *describes, *group, *ids])
        written = [on_topic("worker", topic, WRITE) for topic in (topics.ATTEMPTS, topics.LOGS)]
        site.introduce("worker", [on_topic("worker", INBOX, READ), *written])
        site.introduce("dispatcher", [on_topic("dispatcher", topic, WRITE) for topic in DISPATCHER_WRITES])
        reads = [on_topic("projector", topic, READ) for topic in (topics.WORKERS, topics.LOGS)]
        groups = [granted("projector", ResourceType.GROUP, f"tidewheel.{name}", READ) for name in PROJECTORS]
        site.introduce("projector", [*reads, *groups])
        yield site
    shutil.rmtree(data)


def sent(producer: Producer, topic: str) -> int | None:
    """How the broker took a record; None: it has it."""
    answers: list[int | None] = []

    def answered(error: KafkaError | None, _message: Message) -> None:
        answers.append(None if error is None else error.code())

    producer.produce(topic, b"x", b"key", partition=0, on_delivery=answered)
    producer.flush(SECONDS)
    (answer,) = answers
    return answer


def test_a_scheduler_does_its_work_with_the_rights_that_the_guide_gives_it(guarded: Guarded) -> None:
    settings = guarded.settings(guarded.bootstrap, guarded.client("scheduler"))
    with closing(KafkaLog(settings, SystemClock())) as log:
        with closing(KafkaLog(guarded.settings(guarded.cluster.bootstrap, {}), SystemClock())) as upstream:
            shell = Shell(log, ManualClock(NOON))
            upstream.append(shell_inputs())
        deadline = time.monotonic() + SECONDS
        while not shell.core.decided:
            assert time.monotonic() < deadline
            shell.processor.step(1.0)
        assert [name for name, _, _ in shell.core.decided] == ["a"]
        shell.processor.close()


def shell_inputs() -> list[Outgoing]:
    return [Outgoing(topics.SCHEDULE_CHANGES, 0, b"k", codec.dump(Add(name="a")))]


def test_a_worker_reports_and_reads_its_inbox(guarded: Guarded) -> None:
    config = guarded.client("worker") | {"bootstrap.servers": guarded.bootstrap}
    assert sent(Producer(config), topics.ATTEMPTS) is None
    assert sent(Producer({"bootstrap.servers": guarded.cluster.bootstrap}), INBOX) is None
    with closing(Consumer(config | {"group.id": "none", "enable.auto.commit": "false"})) as inbox:
        inbox.assign([TopicPartition(INBOX, 0, 0)])
        errors = [message.error() for message in (inbox.poll(SECONDS), inbox.poll(SECONDS)) if message is not None]
    refused = [error.code() for error in errors if error is not None]
    assert len(errors) == 2
    assert refused == [KafkaError.GROUP_AUTHORIZATION_FAILED], "it has no right to its group, and does without"


def test_a_worker_sends_what_its_runs_write(guarded: Guarded) -> None:
    chunk = Chunk(lease="default.0.7.key", run_id="a.m-1", retention=None, first=0, lines=(b'{"line":0}',))

    async def send() -> Mapping[str, str]:
        transport = KafkaTransport(Kafka(bootstrap=guarded.bootstrap, properties=guarded.client("worker")), "default")
        try:
            return await transport.log([chunk])
        finally:
            await transport.close()

    assert asyncio.run(send()) == {}


def test_a_worker_cannot_read_what_other_runs_wrote(guarded: Guarded) -> None:
    assert refusal(guarded, "worker", topics.LOGS, "none") == KafkaError.TOPIC_AUTHORIZATION_FAILED


def refusal(guarded: Guarded, name: str, topic: str, group: str) -> int | None:
    """How the broker refuses to let a topic be read; None: something came."""
    config = guarded.client(name) | {"bootstrap.servers": guarded.bootstrap, "group.id": group}
    with closing(Consumer(config | {"auto.offset.reset": "earliest"})) as reader:
        if group == "none":
            reader.assign([TopicPartition(topic, 0, 0)])
        else:
            reader.subscribe([topic])
        deadline = time.monotonic() + SECONDS
        while (message := reader.poll(1.0)) is None or _is_of_the_group(message):
            assert time.monotonic() < deadline
        error = message.error()
    return None if error is None else error.code()


def _is_of_the_group(message: Message) -> bool:
    """A reader without a group does without."""
    error = message.error()
    return error is not None and error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED


@pytest.mark.parametrize(("group", "topic"), PROJECTORS.items())
def test_a_projector_reads_in_its_groups_and_writes_nothing(guarded: Guarded, group: str, topic: str) -> None:
    assert sent(Producer({"bootstrap.servers": guarded.cluster.bootstrap}), topic) is None
    assert refusal(guarded, "projector", topic, f"tidewheel.{group}") is None
    producer = Producer(guarded.client("projector") | {"bootstrap.servers": guarded.bootstrap})
    assert sent(producer, topic) == KafkaError.TOPIC_AUTHORIZATION_FAILED


def test_a_dispatcher_lists_workers_and_writes_no_logs(guarded: Guarded) -> None:
    producer = Producer(guarded.client("dispatcher") | {"bootstrap.servers": guarded.bootstrap})
    assert sent(producer, topics.WORKERS) is None
    assert sent(producer, topics.LOGS) == KafkaError.TOPIC_AUTHORIZATION_FAILED


def test_a_worker_cannot_open_a_transaction(guarded: Guarded) -> None:
    """Not one of its own, and not an owner's, whom it would fence."""
    for id_ in ("worker-1", "tidewheel.scheduler.0"):
        config = guarded.client("worker") | {"bootstrap.servers": guarded.bootstrap, "transactional.id": id_}
        with pytest.raises(KafkaException) as refused:
            Producer(config).init_transactions(SECONDS)
        assert refused.value.args[0].code() == KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


@pytest.mark.parametrize("topic", [topics.RUNS, topics.RUN_OUTCOMES, topics.OPERATIONS, topics.WORKERS, INBOX])
def test_a_worker_cannot_write_what_only_owners_and_operators_write(guarded: Guarded, topic: str) -> None:
    producer = Producer(guarded.client("worker") | {"bootstrap.servers": guarded.bootstrap})
    assert sent(producer, topic) == KafkaError.TOPIC_AUTHORIZATION_FAILED
