"""What a team writes that knows Kafka and CloudEvents, and has nothing of Tidewheel installed."""

from __future__ import annotations

import json
import time
import uuid
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, Message, Producer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

SECONDS = 30.0  # a deadline for what takes a moment
JAVA = {"partitioner": "murmur2_random"}  # what Java's producers do
LIBRDKAFKA: dict[str, str] = {}  # CRC32, unless told otherwise

Place = tuple[str, int, int]


class Publisher:
    """A producer, structured or binary, with keys or without."""

    def __init__(
        self, bootstrap: str, topic: str, *, settings: Mapping[str, str] = JAVA, binary: bool = False, keys: bool = True
    ) -> None:
        config = {"bootstrap.servers": bootstrap, "message.max.bytes": 2_000_000, **settings}
        self._producer = Producer(config)
        self._topic, self._binary, self._keys = topic, binary, keys

    def publish(self, event: dict[str, Any]) -> Place:
        """Where the event stands."""
        data = event["data"]
        key = f"{data['tenant']}/{data['name']}" if self._keys else None
        if not self._binary:
            return self.send(json.dumps(event).encode(), key)
        attributes = {f"ce_{name}": str(value) for name, value in event.items() if name != "data"}
        headers = attributes | {"content-type": event.get("datacontenttype", "application/json")}
        return self.send(json.dumps(data).encode(), key, headers)

    def send(self, value: bytes | None, key: str | None = None, headers: Mapping[str, str] | None = None) -> Place:
        """Where the record stands."""
        delivered: list[Message] = []

        def note(error: object, message: Message) -> None:
            assert error is None, error
            delivered.append(message)

        self._producer.produce(self._topic, value, key, headers=dict(headers or {}), on_delivery=note)
        assert self._producer.flush(SECONDS) == 0
        (message,) = delivered
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        assert topic is not None and partition is not None and offset is not None  # noqa: PT018
        return topic, partition, offset


class Follower:
    """A consumer in a group of its own, which drops event ids that it knows, and reads only what is committed."""

    def __init__(self, bootstrap: str, topic: str, *, group: str) -> None:
        self.events: list[dict[str, Any]] = []
        self.origins: list[str] = []  # of all records that have one, also of those that were dropped
        self._known: set[str] = set()
        self._consumer = Consumer({
            "bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest",
            "enable.auto.commit": False, "isolation.level": "read_committed",
        })  # fmt: skip
        self._consumer.subscribe([topic])

    def until(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The first event that is wanted, among those that came or will come."""
        seen = 0
        deadline = time.monotonic() + SECONDS
        while True:
            for event in self.events[seen:]:
                if wanted(event["data"]):
                    return event
            seen = len(self.events)
            assert time.monotonic() < deadline, f"not among {[event['data'] for event in self.events]}"
            self._take()

    def all(self, **fields: Any) -> list[dict[str, Any]]:
        """The data of every event so far whose fields are these."""
        return [data for data in self._data() if fields.items() <= data.items()]

    def close(self) -> None:
        """Say how far we are, and leave."""
        if self.events:
            self._consumer.commit(asynchronous=False)
        self._consumer.close()

    def _data(self) -> Iterator[dict[str, Any]]:
        return (event["data"] for event in self.events)

    def _take(self) -> None:
        message = self._consumer.poll(0.2)
        if message is None or message.error() is not None:
            return
        headers: Any = message.headers() or ()
        self.origins += [text.decode() for name, text in headers if name == "tw-origin"]
        event = _event(message.value() or b"")
        if event is not None and event["id"] not in self._known:
            self._known.add(event["id"])
            self.events.append(event)


def _event(value: bytes) -> dict[str, Any] | None:
    """None for what is no structured event: where everyone may write, anything may stand."""
    try:
        event = json.loads(value)
    except ValueError:
        return None
    return event if isinstance(event, dict) and "id" in event else None


def command(kind: str, data: dict[str, Any], **attributes: Any) -> dict[str, Any]:
    """A command of an event id that nobody has used."""
    return {
        "specversion": "1.0", "id": uuid.uuid4().hex, "source": "/orders", "type": f"tidewheel.{kind}.v1",
        "datacontenttype": "application/json", "data": data, **attributes,
    }  # fmt: skip
