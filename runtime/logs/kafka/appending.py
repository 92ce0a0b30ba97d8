"""Appends without transactions: one idempotent client for all threads, each call waits for its own records."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from threading import Event, Lock
from typing import Any

from confluent_kafka import Message, Producer

from runtime.lifecycle import Running, ThreadService
from runtime.log import LogError
from runtime.logs.kafka.errors import RAISED, error_of, translated
from runtime.logs.kafka.producing import Deliveries, discard
from runtime.logs.kafka.settings import KafkaSettings, appender_config
from runtime.logs.producing import Commit
from runtime.record import Outgoing

WAIT_SECONDS = 35.0  # a little longer than the client tries; then even its report of a failure has not come
POLL_SECONDS = 0.1


class Batch:
    """The records of one call, and what became of them."""

    def __init__(self, count: int) -> None:
        self.deliveries = Deliveries()
        self.done = Event()
        self._open = count
        if not count:
            self.done.set()

    def note(self, error: Any, message: Message) -> None:
        """`on_delivery`; from one thread."""
        self.deliveries.note(error, message)
        self._open -= 1
        if not self._open:
            self.done.set()


class Appender:
    """Sends from any thread; a thread of its own takes the reports and hands each to the call that waits for it."""

    def __init__(self, settings: KafkaSettings, now: Callable[[], datetime], logger: Any) -> None:
        self._settings = settings
        self._now = now
        self._logger = logger
        self._lock = Lock()
        self._client: Producer | None = None
        self._failed: list[Producer] = []  # to be let go by the one thread that takes reports
        self._thread = ThreadService("kafka-append", self._serve)

    def append(self, records: Sequence[Outgoing]) -> Commit:
        """See `Log.append`."""
        client, batch = self._started(), Batch(len(records))
        for record in records:
            self._produce(client, record, batch)
        if not batch.done.wait(WAIT_SECONDS):
            raise LogError("append: no answer from the brokers; the records may be there or not")
        error = batch.deliveries.error
        if error is not None:
            if error.fatal():
                self._replace(client)
            raise translated(error, "append")
        places = [(self._settings.namespace + record.topic, record.partition) for record in records]
        return batch.deliveries.receipt(places, self._now)

    def close(self) -> None:
        """What is on its way may arrive or not, as when a process ends."""
        self._thread.stop(WAIT_SECONDS)
        with self._lock:
            left, self._client, self._failed = [*self._failed, self._client], None, []
        for client in left:
            if client is not None:
                discard(client)

    def _started(self) -> Producer:
        with self._lock:
            if self._client is None:
                self._client = Producer(appender_config(self._settings), logger=self._logger)
                self._thread.start()
            return self._client

    def _replace(self, client: Producer) -> None:
        """Give up a client that has failed for good; the next call makes another."""
        with self._lock:
            if self._client is client:
                self._client = None
                self._failed.append(client)

    def _produce(self, client: Producer, record: Outgoing, batch: Batch) -> None:
        deadline = time.monotonic() + WAIT_SECONDS
        while True:
            try:
                client.produce(
                    self._settings.namespace + record.topic, record.value, record.key, record.partition,
                    on_delivery=batch.note, headers=list(record.headers),
                )  # fmt: skip
                return
            except BufferError:
                if time.monotonic() > deadline:
                    raise LogError("append: the brokers take nothing") from None
                time.sleep(POLL_SECONDS / 10)
            except RAISED as exception:
                error = error_of(exception)
                if error.fatal():
                    self._replace(client)
                raise translated(error, "append") from exception

    def _serve(self, running: Running) -> None:
        running.ready()
        while not running.stopping.is_set():
            client = self._client
            while self._failed:
                discard(self._failed.pop())
            if client is None:
                running.stopping.wait(POLL_SECONDS)
            else:
                with suppress(*RAISED):  # A fatal error: each record that it meets is told so as well.
                    client.poll(POLL_SECONDS)
