"""The one transactional writer of an id, on Kafka.

A transaction that ends in doubt is not followed by another one of the same epoch (`doubt`): if it is known to be
committed, the client is replaced before the next `begin`; if that is not known, LogError says so, and whoever opens the
partition anew finds the truth in the log. A writer that met an error can only be closed. What a broker was told and
the successor does not want is aborted by the successor's first call.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from threading import Lock
from typing import Any

import confluent_kafka
from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, KafkaError, Message, Producer

from runtime.log import LogError
from runtime.logs.kafka import doubt
from runtime.logs.kafka.claim import Claim
from runtime.logs.kafka.errors import RAISED, MovedOn, Remedy, error_of, remedy, translated
from runtime.logs.kafka.punctual import PunctualProducer
from runtime.logs.kafka.reading import instant
from runtime.logs.kafka.settings import KafkaSettings, owner_config
from runtime.logs.kafka.topics import Topics
from runtime.logs.producing import Commit
from runtime.record import Outgoing, TopicPartition

INIT_SECONDS = 15.0  # ending a predecessor's transaction takes the broker some milliseconds, a new coordinator seconds
HEARTBEATS_HEARD = 2  # within so many we hear of a new generation, or are no member any more
GENERATIONS_MAX = 3  # that one transaction may meet: with a fourth, the group has no peace for us

Place = tuple[str, int]


class Deliveries:
    """Where the records of a transaction stand, as the broker tells it: within a partition in the order of sending."""

    def __init__(self) -> None:
        self._offsets: dict[Place, list[int]] = defaultdict(list)
        self._stamps: dict[Place, tuple[int, int]] = {}  # of the last record in each place: what kind, and when
        self.error: Any = None

    def note(self, error: Any, message: Message) -> None:
        """`on_delivery`."""
        if error is not None:
            self.error = self.error or error
            return
        place: Place = (message.topic(), message.partition())  # type: ignore[assignment]
        self._offsets[place].append(message.offset())  # type: ignore[arg-type]
        self._stamps[place] = message.timestamp()

    def receipt(self, sent: Sequence[Place], now: Callable[[], datetime], *, tells_time: bool = False) -> Commit:
        """For records that were sent to these places in this order, all of which have arrived."""
        offsets = {place: iter(found) for place, found in self._offsets.items()}
        latest = max((milliseconds for _, milliseconds in self._stamps.values()), default=-1)
        return Commit(
            offsets=[next(offsets[place]) for place in sent],
            appended_at=now() if latest < 0 else instant(latest),
            told_at=self._told_at(sent[-1]) if sent and tells_time else None,
        )

    def _told_at(self, place: Place) -> datetime | None:
        """The broker's time, if it said it; a topic that keeps the time of its writers would only repeat ours."""
        kind, milliseconds = self._stamps[place]
        return instant(milliseconds) if kind == TIMESTAMP_LOG_APPEND_TIME and milliseconds >= 0 else None


class KafkaProducer:
    """`Producer`. `claim` is our right to the partition, where a group shares them out."""

    epoch: int
    tells_time = marks_ends = True
    # Of which kind the client is, and whose time it lives in; a simulation has its own of both.
    client: Callable[..., Producer] = PunctualProducer
    monotonic: Callable[[], float] = staticmethod(time.monotonic)

    def __init__(
        self, settings: KafkaSettings, topics: Topics, transactional_id: str, *, membership: Callable[[], bytes],
        claim: Claim | None, now: Callable[[], datetime], doubts: Callable[[doubt.Seen], str] = doubt.doubt,
        replaced: Callable[[str, str], None] = lambda _id, _reason: None,
    ) -> None:  # fmt: skip
        self._settings = settings
        self._seconds = settings.transaction_ms / 1000  # of one transaction
        self._topics = topics
        self._id = transactional_id
        self._claim = claim
        self._membership = membership
        self._now = now
        self._doubts = doubts
        self._replaced = replaced
        self._busy = Lock()  # while the client is used between transactions
        self._sent: list[Outgoing] | None = None
        self._flushes: list[int] = []  # how many had been sent at each flush
        self._deliveries = Deliveries()
        self._tainted = ""
        self._broken: LogError | None = None
        self._closed = False
        self._client: Producer | None = None
        self._open_client()

    # --- the port -------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """See `Producer.begin`."""
        with self._busy:
            client = self._usable()
            if self._sent is not None:
                raise LogError(f"producer {self._id} has a transaction open already")
            self._check_claim()
            if self._tainted:
                client = self._replace()
            self._call("begin", client.poll, 0)
            self._watch.begin()
            self._call("begin", client.begin_transaction)
            self._sent, self._flushes, self._deliveries = [], [], Deliveries()

    def send(self, records: Iterable[Outgoing]) -> None:
        """See `Producer.send`."""
        client, sent = self._open()
        added = list(records)
        for place in dict.fromkeys(record[:2] for record in added):
            self._topics.check(*place)
        for record in added:
            self._produce(client, record)
        sent += added

    def flush(self) -> None:
        """See `Producer.flush`."""
        client, sent = self._open()
        self._check_claim()
        self._flush(client)
        self._flushes.append(len(sent))

    def commit(self, positions: Mapping[TopicPartition, int]) -> Commit:
        """See `Producer.commit`; whatever happens, the transaction is over.

        A coordinator that is still writing down a partition refuses positions, or the other way round, and is asked
        again 5 to 20 ms later. So where no partition is known to it yet, records go first.
        """
        client, sent = self._open()
        try:
            for partition in positions:
                self._topics.check(*partition)
        except LogError:
            self.abort()
            raise
        with self._busy:
            self._sent = None
            if not self._flushes:
                self._flush(client)
            self._send_positions(client, sent, positions)
            self._flush(client)
            self._end("commit", client.commit_transaction)
            places = [(self._settings.namespace + record.topic, record.partition) for record in sent]
            return self._deliveries.receipt(places, self._now, tells_time=self.tells_time)

    def abort(self) -> None:
        """See `Producer.abort`."""
        client, _ = self._open()
        with self._busy:
            self._sent = None
            self._end("abort", client.abort_transaction)

    def close(self) -> None:
        """See `Producer.close`."""
        if self._sent is not None and self._broken is None:
            with suppress(LogError):  # The successor's first call, or the broker after its time, aborts what is open.
                self.abort()
        with self._busy:
            self._closed = True
            self._drop_client()

    def tend(self) -> None:
        """Take what an idle client has to say, so that it does not pile up; from any thread, now and then."""
        if self._busy.acquire(blocking=False):
            try:
                client = self._client
                if client is not None and self._sent is None:
                    with suppress(*RAISED):  # The next `begin` is told so as well.
                        client.poll(0)
            finally:
                self._busy.release()

    # --- a transaction --------------------------------------------------------------------------------------------

    def _produce(self, client: Producer, record: Outgoing) -> None:
        deadline = 0.0
        while True:
            try:
                client.produce(
                    self._settings.namespace + record.topic, record.value, record.key, record.partition,
                    on_delivery=self._deliveries.note, headers=list(record.headers),
                )  # fmt: skip
                return
            except BufferError:  # More is on its way than the client may hold: wait for some to arrive.
                deadline = deadline or self.monotonic() + self._seconds
                if self.monotonic() > deadline:
                    raise self._break(LogError(f"producer {self._id}: the brokers take nothing")) from None
                self._call("send", client.poll, 0.05)
            except RAISED as exception:
                error = _told_by(client) or error_of(exception)
                raise self._break(translated(error, f"producer {self._id}, send")) from exception

    def _flush(self, client: Producer) -> None:
        left = self._call("flush", client.flush, self._seconds)
        error = self._deliveries.error
        if error is not None:
            raise self._break(translated(error, f"producer {self._id}, send"))
        if left:
            raise self._break(LogError(f"producer {self._id}: {left} records or reports did not arrive in time"))

    def _send_positions(
        self, client: Producer, sent: Sequence[Outgoing], positions: Mapping[TopicPartition, int]
    ) -> None:
        """Send the positions, quoting our membership; once more when the group has moved on and we are still in it."""
        self._check_claim()
        if not positions:
            return
        wanted = [
            confluent_kafka.TopicPartition(self._settings.namespace + partition.topic, partition.partition, position)
            for partition, position in positions.items()
        ]
        for left in reversed(range(GENERATIONS_MAX)):
            membership = self._membership() if self._claim is None else self._claim.membership()
            try:
                client.send_offsets_to_transaction(wanted, membership, self._seconds)
            except RAISED as exception:
                error, what = error_of(exception), f"producer {self._id}, positions"
                if self._claim is None or not left or not isinstance(translated(error, what), MovedOn):
                    raise self._break(translated(error, what)) from exception
                self._settle(self._claim, membership)
                self._repeat(client, sent)
            else:
                return

    def _settle(self, claim: Claim, refused: bytes) -> None:
        try:
            claim.settle(refused, HEARTBEATS_HEARD * self._settings.session_ms / 4000)
        except LogError as error:
            raise self._break(error) from None

    def _repeat(self, client: Producer, sent: Sequence[Outgoing]) -> None:
        """The same transaction anew: a broker has refused it, and the partition has been ours all the while."""
        self._end("abort", client.abort_transaction)
        if self._tainted:
            raise self._break(LogError(f"producer {self._id}: a rebalance and an abort in doubt: {self._tainted}"))
        self._watch.begin()
        self._call("begin", client.begin_transaction)
        self._deliveries = Deliveries()
        for count, record in enumerate(sent):
            if count in self._flushes:
                self._flush(client)
            self._produce(client, record)

    def _end(self, what: str, end: Callable[[float], None]) -> None:
        """Commit or abort, as often as the client wants it called within twice the transaction's time."""
        began, repeated = self.monotonic(), False
        deadline = began + 2 * self._seconds
        while True:
            try:
                end(self._seconds)
                break
            except RAISED as exception:
                error = error_of(exception)
                if remedy(error) is not Remedy.AGAIN or self.monotonic() > deadline:
                    raise self._break(translated(error, f"producer {self._id}, {what}")) from exception
                repeated = True
        seconds = self.monotonic() - began
        assert self._client is not None, "it has just answered"
        self._call(what, self._client.poll, 0)  # what it has to say of this transaction
        self._tainted = self._doubts(self._watch.seen(seconds=seconds, repeated=repeated))

    # --- the client -----------------------------------------------------------------------------------------------

    def _open_client(self) -> None:
        """Make a client and take the id over: whoever had it before is refused from now on."""
        self._check_claim()
        self._watch = watch = doubt.Watch()
        callbacks = {"error_cb": watch.error, "stats_cb": watch.statistics}
        self._client = client = self.client(owner_config(self._settings, self._id) | callbacks, logger=watch)
        try:
            self._call("init", client.init_transactions, INIT_SECONDS)
            self._call("init", client.poll, 0)
            epoch = watch.epoch()
            if epoch is None:
                raise self._break(LogError("Kafka's client logs in a form unknown to this version: it names no epoch"))
            self.epoch = epoch + 1
        except LogError:
            self._drop_client()
            raise

    def _replace(self) -> Producer:
        reason, self._tainted = self._tainted, ""
        self._drop_client()
        self._open_client()
        self._replaced(self._id, reason)
        return self._usable()

    def _drop_client(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            discard(client)

    def _usable(self) -> Producer:
        if self._closed:
            raise LogError(f"producer {self._id} is closed")
        if self._broken is not None:
            raise type(self._broken)(f"producer {self._id} has failed and can only be closed: {self._broken}")
        assert self._client is not None, "neither closed nor broken"
        return self._client

    def _open(self) -> tuple[Producer, list[Outgoing]]:
        client = self._usable()
        if self._sent is None:
            raise LogError(f"producer {self._id} has no transaction open")
        return client, self._sent

    def _check_claim(self) -> None:
        if self._claim is not None:
            self._claim.check()

    def _call(self, what: str, function: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except RAISED as exception:
            raise self._break(translated(error_of(exception), f"producer {self._id}, {what}")) from exception

    def _break(self, error: LogError) -> LogError:
        """What is kept of it is a copy: the error itself comes to hold all it passes through, the client among it."""
        self._broken = type(error)(str(error))
        return error


def _told_by(client: Producer) -> KafkaError | None:
    """What a client has died of, if it has: when it refuses a record it says only that something was fatal."""
    try:
        client.begin_transaction()
    except RAISED as exception:
        error = error_of(exception)
        return error if error.fatal() else None
    raise AssertionError("a transaction was open")


def discard(client: Producer) -> None:
    """Let go of a client and of all that it has not sent: its last reference may go after this without a wait."""
    with suppress(*RAISED):  # It has told us before.
        client.purge(blocking=False)
        client.poll(0)
