"""A worker's way through the log itself, and the only place of the SDK that knows Kafka's client.

    report ──▶ `attempts`, at the queue's shard ──▶ owner
    lines  ──▶ `logs`, by the run ──▶ who shows them
    post   ◀── `dispatch.<queue>`, at the incarnation's inbox ◀── owner

Reports are plain idempotent records. The inbox is read by assignment, from where it ended before the first report; no
group, no committed position and no transaction stands between worker and owner, so who comes or goes disturbs nobody.

The client blocks, so two threads wait for it: one reads the inbox, one hears what became of reports. All they find
goes to the event loop, in order.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
    libversion,
)

from tidewheel.brokers import Kafka, consumer_config, producer_config
from tidewheel.clock import boottime
from tidewheel.errors import KafkaUnusable, TidewheelError, Unreachable
from tidewheel.holdings import Report
from tidewheel.logs.capture import Chunk
from tidewheel.transport import InboxLost, Post
from tidewheel.transports import records
from tidewheel.transports.reading import Reading
from tidewheel.wire import Answer

_LOG = logging.getLogger("tidewheel.worker")

LIBRDKAFKA_MIN = (2, 15, 0)  # Older ones lost messages, offsets or assignments in ways that no setting prevents.
ANSWER_SECONDS = 5.0  # for one question; a broker that needs longer is as good as away
LOOK_SECONDS = 1.0  # for where an inbox ends: meanwhile it is not read
SLICE_SECONDS = 0.2  # A wait for records cannot be ended from outside; a wish or the end is noticed within it.
BATCH_RECORDS = 500  # taken at once when more than one has come
CLOSE_SECONDS = 1.0  # Threads are daemons: one that still waits for a broker ends with the process.

# What says of the way to the inbox, and not of what stands in it: the client tries again by itself. A topic that is
# said to be unknown may be one that a broker has not heard of yet, as it has just started.
PASSING = frozenset({
    KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001 -- its public name: the client's own errors begin with an underscore
    KafkaError._TRANSPORT,  # noqa: SLF001 -- as above
    KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001 -- as above
    KafkaError._UNKNOWN_TOPIC,  # noqa: SLF001 -- as above
    KafkaError.COORDINATOR_NOT_AVAILABLE,  # A consumer looks for the coordinator of a group that it never joins.
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
})  # fmt: skip


class KafkaTransport:
    """`Transport`. KafkaUnusable when the installed client cannot be used so."""

    def __init__(self, kafka: Kafka, queue: str, shard: int = 0) -> None:
        check_version(*libversion())
        self.place = f"Kafka at {kafka.bootstrap}"
        self._queue, self._shard = queue, shard
        self._topic = kafka.namespace + records.ATTEMPTS
        self._inbox = KafkaInbox(kafka, queue)
        self._kafka = kafka
        self._sender = Sender(kafka)
        self._log_sender: Sender | None = None  # made when a run first writes: reports wait behind no lines
        self._log_partitions = 0

    @property
    def inbox(self) -> KafkaInbox:
        """See `Transport`."""
        return self._inbox

    async def report(self, report: Report) -> Answer:
        """See `Transport.report`. What the owner has to say comes to the inbox."""
        partition = records.shard_of(self._queue, self._inbox.partitions, self._shard)
        value = records.report(report, self._queue, datetime.now(UTC), self._shard)
        await self._sender.send(self._topic, partition, report.incarnation.encode(), value)
        return Answer()

    async def log(self, chunks: Sequence[Chunk]) -> Mapping[str, str]:
        """See `Transport.log`. Nobody is asked whose lease it is: who reads the log judges by the proof."""
        topic = self._kafka.namespace + records.LOGS
        sender = self._log_sender = self._log_sender or Sender(self._kafka)
        self._log_partitions = self._log_partitions or await sender.partitions(topic)
        await asyncio.gather(*(self._log(sender, topic, chunk) for chunk in chunks))
        return {}

    async def _log(self, sender: Sender, topic: str, chunk: Chunk) -> None:
        partition = records.partition_of(chunk.run_id, self._log_partitions)
        await sender.send(topic, partition, chunk.run_id.encode(), records.logged(chunk, datetime.now(UTC)))

    async def close(self) -> None:
        """See `Transport.close`."""
        senders = [self._sender.close()] + ([] if self._log_sender is None else [self._log_sender.close()])
        await asyncio.gather(*senders, self._inbox.close())


def check_version(text: str, version: int) -> None:
    """KafkaUnusable for a librdkafka that is too old; `version` as it counts itself, 0xMMmmrrpp."""
    found = (version >> 24 & 0xFF, version >> 16 & 0xFF, version >> 8 & 0xFF)
    if found < LIBRDKAFKA_MIN:
        wanted = ".".join(map(str, LIBRDKAFKA_MIN))
        raise KafkaUnusable(
            f"librdkafka {text} is too old: {wanted} is needed; upgrade confluent-kafka to 2.16 or newer"
        )


# --- the inbox ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Wish:
    """Whose inbox is to be read, and who waits until it is."""

    incarnation: str
    opened: asyncio.Future[None]


class KafkaInbox:
    """`Inbox`. `partitions` is how many `attempts` has, known once an inbox was opened."""

    def __init__(self, kafka: Kafka, queue: str) -> None:
        self.partitions = 0
        self._queue = queue
        self._place = f"Kafka at {kafka.bootstrap}"
        self._begin = kafka.namespace
        self._topic = kafka.namespace + records.dispatch(queue)
        self._said = ""  # the last word of the client on why nothing comes
        self._consumer = _made(Consumer, consumer_config(kafka) | {"error_cb": self._note})
        self._loop = asyncio.get_running_loop()
        self._opened = ""
        self._found: deque[Post | Exception] = deque()  # at most what is handed out; notices are repeated, not heaped
        self._arrived = asyncio.Event()
        self._wishes: deque[_Wish] = deque()
        self._wish: _Wish | None = None  # being fulfilled,
        self._until = 0.0  # in time, or not
        self._reading: Reading | None = None
        self._come = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="tidewheel-inbox", daemon=True)
        self._thread.start()

    async def open(self, incarnation: str) -> None:
        """See `Inbox.open`."""
        if incarnation == self._opened:
            return
        wish = _Wish(incarnation, self._loop.create_future())
        self._wishes.append(wish)
        self._come.set()
        await wish.opened

    async def receive(self) -> Post:
        """See `Inbox.receive`."""
        while not self._found:
            self._arrived.clear()
            await self._arrived.wait()
        found = self._found.popleft()
        if isinstance(found, Exception):
            raise found
        return found

    @property
    def is_current(self) -> bool:
        """See `Inbox.is_current`."""
        reading = self._reading
        return reading is not None and reading.is_current(boottime())

    async def close(self) -> None:
        """Stop reading."""
        self._stopping = True
        self._come.set()
        await asyncio.to_thread(self._thread.join, CLOSE_SECONDS)

    # --- the thread ---

    def _run(self) -> None:
        try:
            while not self._stopping:
                self._step()
        except Exception as error:  # noqa: BLE001 -- whatever it was: a worker that hears nothing must end, and say why
            self._call(self._put, error)
        finally:
            self._consumer.close()

    def _step(self) -> None:
        if self._wishes:
            self._fulfil(self._wishes.pop())
        elif self._reading is not None:
            self._read(self._reading)
        else:
            self._come.wait()
            self._come.clear()

    def _fulfil(self, wish: _Wish) -> None:
        self._wishes.clear()  # Only the newest is still waited for.
        self._reading, self._wish = None, wish
        try:
            self._consumer.unassign()
            self.partitions = self._partitions(self._begin + records.ATTEMPTS)
            self._check_topic()
            place = TopicPartition(self._topic, records.inbox_of(wish.incarnation))
            asked_at = boottime()
            end = self._end(place, ANSWER_SECONDS)
            self._consumer.assign([TopicPartition(place.topic, place.partition, end)])
            self._reading, self._until = Reading(wish.incarnation, end, asked_at), boottime() + ANSWER_SECONDS
        except KafkaException as exception:
            with suppress(KafkaException):
                self._consumer.poll(0)  # The client says what is wrong only to one who listens.
            self._lose(f"{self._place} cannot be asked: {_text(exception.args[0])}{self._because}")
        except Unreachable as error:
            self._lose(str(error))

    def _read(self, reading: Reading) -> None:
        current_at = reading.current_at
        try:
            messages = self._messages()
        except KafkaException as exception:
            self._lose(f"the inbox cannot be read: {_text(exception.args[0])}")
            return
        for message in messages:
            lost = self._take(reading, message, current_at)
            if lost:
                self._lose(lost)
                return
        now = boottime()
        if self._wish is not None and now > self._until:
            self._lose(f"the inbox cannot be read{self._because}")
        elif reading.is_begun and reading.is_due(now):
            self._look(reading)

    def _messages(self) -> Iterable[Message]:
        first = self._consumer.poll(SLICE_SECONDS)
        return () if first is None else (first, *self._consumer.consume(BATCH_RECORDS, 0))

    def _take(self, reading: Reading, message: Message, current_at: float) -> str:
        """Take over what came; why the inbox can't be read on, or nothing."""
        error, offset = message.error(), message.offset()
        if error is None:
            key = message.key()
            if key == reading.incarnation.encode() or records.is_of_all(key, self._queue):
                self._deliver(reading.incarnation, message.value() or b"", current_at)
            reading.passed((offset or 0) + 1)
        elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 -- its public name
            reading.passed(offset or 0)
            self._begun(reading)
        elif message.topic() == self._topic and error.code() not in PASSING:
            return f"the inbox cannot be read: {_text(error)}"
        else:
            self._note(error)
        return ""

    def _begun(self, reading: Reading) -> None:
        if not reading.is_begun and self._wish is not None:
            reading.is_begun, self._said = True, ""
            self._call(self._open_to, self._wish)
            self._wish = None

    def _deliver(self, incarnation: str, value: bytes, current_at: float) -> None:
        try:
            answer = records.post(value)
        except (KeyError, TypeError, ValueError, AttributeError) as error:  # Its lease ends by itself.
            _LOG.error("a record of the inbox cannot be understood (%r): is the server newer?", error)
            return
        if answer is not None:
            self._call(self._put, Post(incarnation=incarnation, answer=answer, current_at=current_at))

    def _look(self, reading: Reading) -> None:
        """Ask where the inbox ends. While nobody answers we are not known to be there."""
        asked_at = boottime()
        try:
            end = self._end(TopicPartition(self._topic, records.inbox_of(reading.incarnation)), LOOK_SECONDS)
        except (KafkaException, Unreachable):
            return
        if end < reading.position:
            self._lose(f"the inbox ends at {end} and was read up to {reading.position}: it was made anew or cut")
        else:
            reading.ends_at(end, asked_at)

    def _lose(self, reason: str) -> None:
        """Read no more. Who waits for the inbox may try again; an incarnation that relied on it is over."""
        self._reading = None
        with suppress(KafkaException):
            self._consumer.unassign()
        if self._wish is None:
            self._call(self._put, InboxLost(reason))
        else:
            self._call(_fail, self._wish.opened, Unreachable(reason))
            self._wish = None

    # --- questions of the thread ---

    def _check_topic(self) -> None:
        found = self._partitions(
            self._topic, f"; make the queue's inboxes with: tidewheel admin topics create --queue {self._queue}"
        )
        if found != records.INBOXES:
            raise Unreachable(f"topic {self._topic} has {found} partitions, not {records.INBOXES}")

    def _partitions(self, topic: str, remedy: str = "") -> int:
        """How many partitions the topic has; Unreachable, with the remedy, when there is none."""
        found = self._consumer.list_topics(topic, timeout=ANSWER_SECONDS).topics[topic]
        if found.error is None:
            return len(found.partitions)
        if found.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            raise Unreachable(f"there is no topic {topic}{remedy}")
        raise Unreachable(f"topic {topic}: {_text(found.error)}")

    def _end(self, place: TopicPartition, seconds: float) -> int:
        found = self._consumer.get_watermark_offsets(place, timeout=seconds)
        if found is None:
            raise Unreachable(f"no answer within {seconds} s{self._because}")
        end: int = found[1]
        return end

    def _note(self, error: KafkaError) -> None:
        self._said = _text(error)

    @property
    def _because(self) -> str:
        return f" ({self._said})" if self._said else ""

    # --- in the loop ---

    def _call(self, function: Callable[..., None], *arguments: Any) -> None:
        with suppress(RuntimeError):  # The loop is closed: nobody waits any more.
            self._loop.call_soon_threadsafe(function, *arguments)

    def _open_to(self, wish: _Wish) -> None:
        """What was found for the incarnation before is of no use to this one."""
        self._found.clear()
        self._opened = wish.incarnation
        if not wish.opened.done():
            wish.opened.set_result(None)

    def _put(self, found: Post | Exception) -> None:
        self._found.append(found)
        self._arrived.set()


# --- reports ------------------------------------------------------------------------------------------------------


class Sender:
    """Sends records, each once and in order; returns when the log has them."""

    def __init__(self, kafka: Kafka) -> None:
        self._config = producer_config(kafka) | {"error_cb": lambda _error: None}
        self._client = _made(Producer, self._config)
        self._loop = asyncio.get_running_loop()
        self._stopping = self._failed = False
        self._thread = threading.Thread(target=self._serve, name="tidewheel-reports", daemon=True)
        self._thread.start()

    async def send(self, topic: str, partition: int, key: bytes, value: bytes) -> None:
        """`Unreachable` when it is not known to be there, `TidewheelError` when it can't be."""
        sent = self._loop.create_future()

        def told(error: KafkaError | None, _message: Message) -> None:
            with suppress(RuntimeError):  # The loop is closed: nobody waits any more.
                self._loop.call_soon_threadsafe(_settle, sent, None if error is None else self._translated(error))

        try:
            self._client.produce(topic, value, key, partition, on_delivery=told)
        except BufferError as error:
            raise Unreachable("the brokers take nothing") from error
        except KafkaException as exception:
            raise self._translated(exception.args[0]) from exception
        await sent

    async def partitions(self, topic: str) -> int:
        """How many partitions a topic has; Unreachable when that cannot be known now."""
        try:
            found = (await asyncio.to_thread(self._client.list_topics, topic, ANSWER_SECONDS)).topics[topic]
        except KafkaException as exception:
            raise Unreachable(f"the brokers cannot be asked: {_text(exception.args[0])}") from exception
        if found.error is not None:
            raise Unreachable(f"topic {topic}: {_text(found.error)}")
        return len(found.partitions)

    async def close(self) -> None:
        """Stop; what is on its way may arrive or not."""
        self._stopping = True
        await asyncio.to_thread(self._thread.join, CLOSE_SECONDS)

    def _serve(self) -> None:
        while not self._stopping:
            self._client.poll(SLICE_SECONDS)
            if self._failed:
                self._replace()
        _discard(self._client)

    def _replace(self) -> None:
        """A client that has failed for good: what it has not sent is said again, by another."""
        failed, self._client, self._failed = self._client, _made(Producer, self._config), False
        _discard(failed)

    def _translated(self, error: KafkaError) -> TidewheelError:
        if error.code() == KafkaError.MSG_SIZE_TOO_LARGE:
            return TidewheelError(f"the report is too large for the log: {_text(error)}")
        self._failed = self._failed or error.fatal()
        return Unreachable(f"a report was not delivered: {_text(error)}")


def _made(kind: Callable[[Any], Any], config: Any) -> Any:
    """A client; KafkaUnusable tells of a property that it does not know. It is silent: errors say what there is."""
    try:
        return kind({**config, "log_level": 0})
    except KafkaException as exception:
        raise KafkaUnusable(f"Kafka's client refuses its settings: {_text(exception.args[0])}") from exception


def _discard(client: Producer) -> None:
    """Let go of a client and of all that it has not sent: else its last reference would wait for that."""
    with suppress(KafkaException):
        client.purge(blocking=False)
        client.poll(0)


def _settle(future: asyncio.Future[None], error: TidewheelError | None) -> None:
    if error is not None:
        _fail(future, error)
    elif not future.done():
        future.set_result(None)


def _fail(future: asyncio.Future[None], error: TidewheelError) -> None:
    if not future.done():
        future.set_exception(error)


def _text(error: KafkaError) -> str:
    return f"{error.name()}: {error.str()}"
