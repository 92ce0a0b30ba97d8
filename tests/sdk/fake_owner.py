"""A queue's owners on Kafka as a worker meets them: it reads reports from `attempts` and writes to inboxes.

It writes as the real one does, in transactions, so that inboxes have gaps; and it takes only reports that the real one
would not refuse.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import Any, Self
from uuid import uuid4

import orjson
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from dispatcher import inputs
from runtime.record import Record
from schemas import codec, identity, topics
from schemas.faults import Refused
from schemas.internal import HandOut, LeaseNotice, QueueLayout, RunLogged
from schemas.topics import Layout
from tests.sdk.fake_server import Queue, leases
from tidewheel import Kafka

SHARDS = 4
SHARD_OF = {"default": 3, "other": 2}  # where Java's partitioner puts them
SECONDS = 60  # for a broker on a busy machine,
ASK_SECONDS = 10  # and for one question to it


class KafkaQueue(Queue):
    """The owner of one queue on the topics of a namespace."""

    def __init__(self, kafka: Kafka, name: str = "default") -> None:
        super().__init__()
        self.kafka = kafka
        self.name = name
        self.records: list[Record] = []  # of `reports`, in the same order
        self.refused: list[Refused] = []
        self.options = {"kafka": kafka, "queue": name}
        self.environment = {"TIDEWHEEL_BOOTSTRAP": kafka.bootstrap, "TIDEWHEEL_NAMESPACE": kafka.namespace}
        self._leases: dict[str, str] = {}  # by the proof that their lines carry
        self._stopping = False

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        await asyncio.to_thread(self._open)
        self._thread = threading.Thread(target=self._read)
        self._thread.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._stopping = True
        await asyncio.to_thread(self._thread.join)
        assert self.refused == [], "the real owner would not take these reports"

    def _open(self) -> None:
        config: Any = {"bootstrap.servers": self.kafka.bootstrap, "log_level": 0}
        self._consumer = Consumer(config | {"group.id": "owner", "enable.auto.commit": False})
        places = [
            TopicPartition(self.kafka.namespace + topic, number)
            for topic in (topics.ATTEMPTS, topics.LOGS)
            for number in range(SHARDS)
        ]
        for each in places:
            ends = self._consumer.get_watermark_offsets(each, timeout=SECONDS)
            assert ends is not None
            each.offset = ends[1]
        self._consumer.assign(places)
        # Under an id that another had a moment ago, its last transaction may be waited for: half a second each time.
        id_ = f"{self.kafka.namespace}{self.name}-{uuid4().hex[:12]}"
        self._producer = Producer(config | {"transactional.id": id_, "linger.ms": 0})
        self._producer.init_transactions(SECONDS)

    # --- reports ---

    def _read(self) -> None:
        while not self._stopping:
            message = self._consumer.poll(0.1)
            if message is not None and message.error() is None:
                topic = (message.topic() or "").removeprefix(self.kafka.namespace)
                place = (topic, message.partition() or 0, message.offset() or 0)
                record = Record(*place, message.key(), message.value(), (), datetime.now(UTC))
                hear = self._hear if topic == topics.ATTEMPTS else self._hear_lines
                asyncio.run_coroutine_threadsafe(hear(record), self._loop)
        self._consumer.close()

    async def _hear(self, record: Record) -> None:
        try:
            inputs.read(record, Layout(shard=SHARDS), record.partition)
        except Refused as refused:
            self.refused.append(refused)
        said = orjson.loads(record.value or b"")["data"]
        if said["queue"] != self.name:
            return
        async with self._changed:
            self.records.append(record)
            self.reports.append(said)
            self.told += [("finished", lease) for lease in leases(self.reports[-1], "finished")]
            self._changed.notify_all()

    async def _hear_lines(self, record: Record) -> None:
        """Lines of an attempt, where whoever shows them looks for them."""
        fact = codec.read_fact(record.value or b"")
        assert isinstance(fact, RunLogged)
        assert (record.key, record.partition) == (
            fact.run_id.encode(), identity.partition_of(fact.run_id, SHARDS)
        )  # fmt: skip
        data = orjson.loads(record.value or b"")["data"]
        lease = self._leases.get(fact.proof, "")
        async with self._changed:
            self.told.append(("log", lease))
            self.logs.append({**data, "lease": lease})
            self._changed.notify_all()

    # --- post ---

    async def give(self, *handouts: dict[str, Any], prompt: bool = False, **answer: Any) -> list[str]:
        """As `Queue.give`, to the incarnation that reported last. An inbox knows no other way than one."""
        assert not answer, "nothing is said besides what is written to the inbox"
        more = {"lease_key": "k", "handed_out_at": "2026-03-08T02:00:00Z"}
        given = [{**each, **(await self._newest(each["shard"])), **more} for each in handouts]
        self._leases |= {identity.log_proof(each["lease"]): each["lease"] for each in handouts}
        await self.write(*((HandOut.TYPE, each) for each in given))
        return [handout["lease"] for handout in handouts]

    async def say(self, **answer: Any) -> None:
        """As `Queue.say`. What is lost and what is not known are one word here."""
        about = await self._newest()
        ended = [*answer.pop("lost", ()), *answer.pop("unknown", ())]
        await self.write((LeaseNotice.TYPE, {"queue": self.name, "ended": ended, **answer, **about}))

    async def tell(self, *layouts: dict[str, Any]) -> None:
        """As `Queue.tell`, in every inbox."""
        told = [{**each, "queue": self.name, "told_at": "2026-03-08T02:00:00Z"} for each in layouts]
        await self.write(*((QueueLayout.TYPE, {**each, "inbox": n}) for each in told for n in range(topics.INBOXES)))

    async def write(self, *events: tuple[str, dict[str, Any]]) -> None:
        """Write these (type, data) to the inboxes that they name, in one transaction."""
        await asyncio.to_thread(self._write, events)

    def _write(self, events: tuple[tuple[str, dict[str, Any]], ...]) -> None:
        self._producer.begin_transaction()
        for type_, data in events:
            event = {"specversion": "1.0", "id": "1", "source": "test", "type": type_, "data": data}
            topic = self.kafka.namespace + topics.dispatch_topic(self.name)
            key = data.get("incarnation") or f"{data['queue']}/{data['shard']}"
            self._producer.produce(topic, orjson.dumps(event), key, data["inbox"])
        self._producer.commit_transaction(SECONDS)

    async def _newest(self, shard: int = 0) -> dict[str, Any]:
        report = await self.until(lambda: self.in_shard(shard) and self.in_shard(shard)[-1])
        return {"incarnation": report["incarnation"], "inbox": report["inbox"]}


@contextmanager
def workers_topics(bootstrap: str, *queues: str) -> Iterator[Kafka]:
    """What workers of these queues need, in a namespace of its own; gone afterwards."""
    kafka = made(bootstrap, *queues)
    yield kafka
    delete(kafka, topics.ATTEMPTS, topics.LOGS, *map(topics.dispatch_topic, queues))


def made(bootstrap: str, *queues: str) -> Kafka:
    """What workers of these queues need, in a namespace of its own, on brokers that are thrown away themselves."""
    kafka = Kafka(bootstrap=bootstrap, namespace=f"workers-{uuid4().hex[:12]}.")
    create(
        kafka,
        {
            topics.ATTEMPTS: SHARDS,
            topics.LOGS: SHARDS,
            **{topics.dispatch_topic(queue): topics.INBOXES for queue in queues},
        },
    )
    return kafka


def create(kafka: Kafka, counts: dict[str, int]) -> None:
    """Make topics with so many partitions; return when each has its leader."""
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    wanted = [NewTopic(kafka.namespace + topic, count, 1) for topic, count in counts.items()]
    ask = partial(admin.create_topics, wanted, request_timeout=ASK_SECONDS)
    insist(ask, unless=KafkaError.TOPIC_ALREADY_EXISTS)
    deadline = time.monotonic() + SECONDS
    while not all(map(_serves, _ends(admin, wanted))):
        assert time.monotonic() < deadline, "the new topics are not served"


def _ends(admin: AdminClient, wanted: list[NewTopic]) -> Iterable[Future[Any]]:
    places = [TopicPartition(topic.topic, number) for topic in wanted for number in range(topic.num_partitions)]
    latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
    return admin.list_offsets(dict.fromkeys(places, latest), request_timeout=SECONDS).values()


def _serves(end: Future[Any]) -> bool:
    return end.exception(SECONDS) is None


def delete(kafka: Kafka, *names: str) -> None:
    """Delete topics."""
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    ask = partial(admin.delete_topics, [kafka.namespace + name for name in names], request_timeout=ASK_SECONDS)
    insist(ask, unless=KafkaError.UNKNOWN_TOPIC_OR_PART)


def insist(ask: Callable[[], dict[str, Future[None]]], *, unless: int) -> None:
    """Ask until all is done: a broker that has just woken up may swallow a question."""
    for _ in range(SECONDS // ASK_SECONDS):
        errors = [future.exception(SECONDS) for future in ask().values()]
        if all(error is None or error.args[0].code() == unless for error in errors):
            return
    raise AssertionError(f"not done within {SECONDS} s: {errors}")
