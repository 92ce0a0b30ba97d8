"""Where partitions end, asked quickly: each owner asks for it before it decides anything by the time.

Kafka's administrator makes a future and an event of each place, and hands every answer through a thread of its own:
600 µs of processor time a question. A consumer's own question is one call and costs a third of that. It has none of
the administrator's patience while leaders move or connections come about: who hears nothing here asks that one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from threading import Lock

import confluent_kafka
from confluent_kafka import OFFSET_END, Consumer

from runtime.logs.kafka.errors import RAISED, error_of
from runtime.logs.kafka.settings import KafkaSettings, ends_config

QUICK_SECONDS = 1.0  # a leader that is there answers within milliseconds
SAYINGS_MAX = 100  # taken at a time; while brokers are away it complains some times a minute

Place = tuple[str, int]  # a topic as the brokers know it, and a partition


class Ends:
    """One client of a process, made with the first question; from any thread."""

    def __init__(self, settings: KafkaSettings, *, seconds: float = QUICK_SECONDS) -> None:
        self._settings = settings
        self._seconds = seconds
        self._lock = Lock()
        self._consumer: Consumer | None = None

    def ask(self, places: Iterable[Place]) -> Mapping[Place, int] | None:
        """The high watermarks; None where not every leader has answered at once."""
        wanted = [confluent_kafka.TopicPartition(topic, partition, OFFSET_END) for topic, partition in places]
        try:
            found = self._opened().offsets_for_times(wanted, timeout=self._seconds)
        except RAISED as exception:
            error_of(exception)  # raised again, where it is not the client's
            return None
        if any(place.error is not None or place.offset < 0 for place in found):
            return None
        return {(place.topic, place.partition): place.offset for place in found}

    def tend(self) -> None:
        """Take what the client has to say by itself, so that it does not pile up; from any thread, now and then."""
        if (consumer := self._consumer) is not None:
            consumer.consume(SAYINGS_MAX, 0)

    def close(self) -> None:
        """Let go of the client: who is asking just now still hears the answer, and it goes with the last of them."""
        with self._lock:
            self._consumer = None

    def _opened(self) -> Consumer:
        with self._lock:
            if self._consumer is None:
                self._consumer = Consumer(ends_config(self._settings))
            return self._consumer
