"""Records of a producer on their way: queued by partition, one batch of each in flight, repeated until all is known.

A batch is repeated as it was, with its sequence number, so that brokers write it once. What has not arrived in its time
has failed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

from runtime.logs.kafka.settings import RECORD_BYTES_MAX
from runtime.record import Outgoing, TopicPartition
from simulation.kafka.client import MOVED_SECONDS, PASSING, Host, Message, error, failure
from simulation.kafka.network import Connection
from simulation.kafka.partition import Written
from simulation.kafka.protocol import NONE, Answer, Batch, Code, Identity, Produce

BATCH_RECORDS = 10_000  # of one partition in one request
BATCH_BYTES = 1024 * 1024
APART_SHARE = 0.125  # of requests in which each partition goes by itself, as in most versions of the client
BYTES_MAX = 64 * 1024 * 1024  # as our adapter sets it: who is further ahead waits

Report = Callable[[Any, Any], None]


class Sending(NamedTuple):
    """A record on its way, who is told of it, and the second after which it is given up."""

    record: Outgoing
    report: Report
    until: float
    size: int
    created_ms: int


class Flight(NamedTuple):
    """A batch that was sent and is not told of."""

    batch: Batch
    producer: Identity
    sent: Sequence[Sending]


class Outbox:
    """`lost` hears of each batch that failed, `moved` of every answer. Of transactions, reports wait for `serve`."""

    def __init__(
        self, host: Host, connection: Connection, transactional_id: str | None, *, socket_seconds: float,
        lost: Callable[[Code], None], moved: Callable[[], None],
    ) -> None:  # fmt: skip
        self.count = 0  # records that are neither told of nor failed
        self.failed = 0
        self.flying: dict[TopicPartition, Flight] = {}
        self.reports: list[tuple[Report, Message]] = []
        self._host, self._connection, self._id = host, connection, transactional_id
        self._socket_seconds, self._lost, self._moved = socket_seconds, lost, moved
        self._chance = host.network.chance(host.machine.name)
        self.waiting: dict[TopicPartition, deque[Sending]] = {}  # by where it is to be sent
        self._sequences: dict[TopicPartition, int] = {}
        self._places: dict[tuple[str, int], TopicPartition] = {}  # each is made once
        self._size = 0

    def put(self, record: Outgoing, report: Report, seconds: float) -> None:
        """Take a record; BufferError when there are too many."""
        size = len(record.value or b"") + len(record.key or b"")
        if size > RECORD_BYTES_MAX:
            raise failure(Code.MSG_SIZE_TOO_LARGE, "Unable to produce message")
        if self._size + size > BYTES_MAX:
            raise BufferError("Local: Queue full")
        host, place = self._host, self._places.get(record[:2])
        if place is None:
            place = self._places[record[:2]] = TopicPartition(record.topic, record.partition)
        sending = Sending(record, report, host.loop.seconds + seconds, size, host.now_ms())
        self.waiting.setdefault(place, deque()).append(sending)
        self.count += 1
        self._size += size

    def send(self, producer: Identity, places: Iterable[TopicPartition]) -> None:
        """Send what waits for these places, one batch of each at a time."""
        free = [place for place in places if place in self.waiting and place not in self.flying]
        batches = [self._next(producer, place) for place in free]
        if len(batches) > 1 and self._chance.random() < APART_SHARE:
            for batch in batches:
                self._send(producer, [batch])
        elif batches:
            self._send(producer, batches)

    def begin_anew(self) -> None:
        """Sequence numbers begin at 0 with another producer id or epoch."""
        self._sequences.clear()

    def give_up_old(self) -> bool:
        """What has waited too long for its turn has failed; whether anything has."""
        now, failed = self._host.loop.seconds, self.failed
        for place, queue in list(self.waiting.items()):
            while queue and queue[0].until <= now:
                self._fail(queue.popleft(), Code.MSG_TIMED_OUT)
            if not queue:
                del self.waiting[place]
        return self.failed > failed

    def purge(self, code: Code) -> None:
        """Whatever was not sent has failed."""
        waiting, self.waiting = self.waiting, {}
        for queue in waiting.values():
            for sending in queue:
                self._fail(sending, code)

    def serve(self) -> int:
        """Make the reports that wait for it."""
        reports, self.reports = self.reports, []
        for report, message in reports:
            report(message.error(), message)
        return len(reports)

    def _next(self, producer: Identity, place: TopicPartition) -> Batch:
        queue, size = self.waiting[place], 0
        taken: list[Sending] = []
        while queue and len(taken) < BATCH_RECORDS and (not taken or size + queue[0].size <= BATCH_BYTES):
            taken.append(queue.popleft())
            size += taken[-1].size
        if not queue:
            del self.waiting[place]
        sequence = self._sequences.get(place, 0)
        self._sequences[place] = sequence + len(taken)
        batch = Batch(place, sequence, [sending.record for sending in taken], taken[0].created_ms, size)
        self.flying[place] = Flight(batch, producer, taken)
        return batch

    def _send(self, producer: Identity, batches: Sequence[Batch]) -> None:
        if not self._connection.closed:
            answered = partial(self._answered, producer, batches)
            self._connection.send(Produce(self._id, producer, batches), answered, self._socket_seconds)

    def _answered(self, producer: Identity, batches: Sequence[Batch], answer: Answer) -> None:
        results = answer.value if answer.code is NONE else [Written(answer.code)] * len(batches)
        again, now = [], self._host.loop.seconds
        for batch, written in zip(batches, results, strict=True):
            flight = self.flying.get(batch.partition)
            if flight is None or flight.batch is not batch:
                continue
            if written.code in PASSING and flight.sent[0].until > now:
                again.append(batch)
                continue
            del self.flying[batch.partition]
            if written.code is NONE:
                self._arrived(flight, written)
            else:
                self._failed(flight, Code.MSG_TIMED_OUT if written.code in PASSING else written.code)
        if again:
            self._host.later(MOVED_SECONDS, partial(self._send, producer, again))
        self._moved()

    def _arrived(self, flight: Flight, written: Written) -> None:
        place, milliseconds = flight.batch.partition, written.milliseconds
        for offset, sending in enumerate(flight.sent, written.offset):
            self._report(sending, Message(place, offset, milliseconds))

    def _failed(self, flight: Flight, code: Code) -> None:
        for sending in flight.sent:
            self._fail(sending, code)
        self._lost(code)

    def _fail(self, sending: Sending, code: Code) -> None:
        self.failed += 1
        place = TopicPartition(sending.record.topic, sending.record.partition)
        self._report(sending, Message(place, problem=error(code)))

    def _report(self, sending: Sending, message: Message) -> None:
        self.count -= 1
        self._size -= sending.size
        if self._id is None:
            sending.report(message.error(), message)
        else:
            self.reports.append((sending.report, message))
