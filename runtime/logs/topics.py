"""The topics of an embedded log: what is stored of them, and how they come back when it is opened."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import fields
from datetime import timedelta
from typing import Any, NamedTuple

import orjson

from runtime.log import LogError, UnknownTopic
from runtime.logs import layout
from runtime.logs.partition import Partition
from runtime.record import TopicPartition
from runtime.stores.database import Database
from schemas.topics import Cleanup, Family, TopicSpec

TOPICS_MAX = 65_535  # A topic's number has two bytes; only queues add topics while the log lives.


class Topic(NamedTuple):
    """A topic that exists."""

    spec: TopicSpec
    number: int
    id: str
    partitions: tuple[Partition, ...]


class Topics:
    """Every topic and partition by name. Additions are whole: a name is either absent or complete."""

    def __init__(self, stored: Iterator[Topic]) -> None:
        self._topics: dict[str, Topic] = {}
        self._partitions: dict[tuple[str, int], Partition] = {}
        for topic in stored:
            self.add(topic)

    def add(self, topic: Topic) -> None:
        """Add a topic, or replace what its specification says."""
        for partition in topic.partitions:
            self._partitions[partition.name] = partition
        self._topics[topic.spec.name] = topic

    def all(self) -> Mapping[str, Topic]:
        """Every topic by name, as of now."""
        return self._topics.copy()

    def topic(self, name: str) -> Topic:
        """A topic, or `UnknownTopic`."""
        try:
            return self._topics[name]
        except KeyError:
            raise UnknownTopic(f"there is no topic {name}") from None

    def partition(self, name: tuple[str, int]) -> Partition:
        """A partition, or `UnknownTopic`."""
        try:
            return self._partitions[name]
        except KeyError:
            raise UnknownTopic(f"there is no partition {name[1]} of topic {name[0]}") from None

    def wanted(self, specs: Mapping[TopicSpec, int]) -> list[Topic]:
        """The topics as they should be, known and new ones; LogError for one that exists otherwise."""
        number = max((topic.number for topic in self._topics.values()), default=-1)
        topics = []
        for spec, count in specs.items():
            known = self._topics.get(spec.name)
            if known is None:
                number += 1
                topics.append(_new_topic(spec, number, count))
            else:
                topics.append(_agreed(known, spec, count))
        if number > TOPICS_MAX:
            raise LogError(f"a log has at most {TOPICS_MAX + 1} topics")
        return topics

    def partitions(self) -> list[Partition]:
        """Every partition, as of now."""
        return list(self._partitions.values())


def stored_topics(database: Database) -> Iterator[Topic]:
    """What was created before."""
    for key, value in database.scan(layout.TOPIC, layout.after(layout.TOPIC)):
        name = key[len(layout.TOPIC) :].decode()
        stored = orjson.loads(value)
        spec = _decode_spec(name, stored["spec"])
        number = stored["number"]
        partitions = tuple(
            _stored_partition(database, TopicPartition(name, index), number) for index in range(stored["partitions"])
        )
        yield Topic(spec, number, stored["id"], partitions)


def encode_topic(topic: Topic) -> bytes:
    """What `stored_topics` reads."""
    spec = {item.name: getattr(topic.spec, item.name) for item in fields(topic.spec)}
    spec["retention"] = topic.spec.retention and topic.spec.retention.total_seconds()
    return orjson.dumps(
        {"number": topic.number, "id": topic.id, "partitions": len(topic.partitions), "spec": spec},
    )


def _decode_spec(name: str, stored: dict[str, Any]) -> TopicSpec:
    retention = stored["retention"]
    return TopicSpec(
        name=name,
        key=stored["key"],
        family=Family(stored["family"]),
        cleanup=Cleanup(stored["cleanup"]),
        retention=None if retention is None else timedelta(seconds=retention),
        internal=stored["internal"],
        log_append_time=stored["log_append_time"],
    )


def _stored_partition(database: Database, name: TopicPartition, topic_number: int) -> Partition:
    place = layout.place(topic_number, name.partition)
    beginning = database.get(layout.BEGIN + place)
    begin, appended_ms = layout.unpack_beginning(beginning) if beginning else (0, 0)
    records = layout.RECORD + place
    last = next(database.scan(records, layout.after(records), reverse=True), None)
    if last is None:
        return Partition(name, topic_number, begin=begin, end=begin, appended_ms=appended_ms)
    end = layout.offset_in(last[0]) + 1
    return Partition(name, topic_number, begin=begin, end=end, appended_ms=layout.appended_ms_of(last[1]))


def _new_topic(spec: TopicSpec, number: int, count: int) -> Topic:
    names = [TopicPartition(spec.name, index) for index in range(count)]
    partitions = tuple(Partition(name, number, begin=0, end=0, appended_ms=0) for name in names)
    return Topic(spec, number, os.urandom(8).hex(), partitions)


def _agreed(known: Topic, spec: TopicSpec, count: int) -> Topic:
    if len(known.partitions) != count:
        raise LogError(f"topic {spec.name} has {len(known.partitions)} partitions, not {count}")
    if known.spec.cleanup is not spec.cleanup:
        raise LogError(f"topic {spec.name} is kept by {known.spec.cleanup}, not by {spec.cleanup}")
    return known._replace(spec=spec)
