"""What the brokers know of topics: made from the topic table, and remembered for some seconds.

A topic that was seen once is never called unknown afterwards, and one that was not seen is asked for several times
before it is: a broker that has just started answers before it knows all topics.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import replace
from datetime import timedelta
from threading import Lock
from typing import NamedTuple, TypeVar

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import (
    AdminClient,
    ConfigResource,
    NewTopic,
    ResourceType,
    TopicDescription,
)

from runtime.log import LogError, UnknownTopic
from runtime.logs.kafka.errors import Passing, error_of, translated, translating
from runtime.logs.kafka.settings import RECORD_BYTES_MAX, KafkaSettings
from runtime.logs.keeping import TOMBSTONES_KEPT
from schemas.topics import Cleanup, Family, TopicSpec

ANSWER_SECONDS = 10.0  # for one question; a broker that needs longer is as good as away
FRESH_SECONDS = 10.0  # how long what was asked is believed; a topic's incarnation is asked for with every commit
RENEWED_SECONDS = 5.0  # then it is asked for again in passing, so that commits find it fresh and wait for no answer
CREATED_SECONDS = 30.0  # for every broker to hear of a new topic
ABSENT_TRIES = 3  # how often absence is asked for, over half a second, before it is believed
ABSENT_PAUSE = 0.25
MOVING_PAUSE = 0.05

# A superseded record stays this long, so that an owner who comes back finds the transactions behind its store complete.
CHANGELOG_LAG = timedelta(hours=1)
# Only closed segments are trimmed and compacted. An eighth of the retention is kept too long at most.
SEGMENT_SHARE = 8
SEGMENT_MIN, SEGMENT_MAX = timedelta(minutes=10), timedelta(days=1)
COMPACTED_SEGMENT = timedelta(hours=1)
COMPACTED_SEGMENT_BYTES = 64 * 1024 * 1024  # what a restore reads at most of a segment that is not compacted yet
DIRTY_RATIO = "0.2"  # compacted when a fifth is new: a restore reads little more than there is

T = TypeVar("T")


class Known(NamedTuple):
    """A topic that exists: how many partitions, which incarnation."""

    partitions: int
    id: str


def topic_config(spec: TopicSpec, settings: KafkaSettings) -> dict[str, str]:
    """How a topic is made, from its line in the topic table."""
    config = {
        "cleanup.policy": spec.cleanup.value,
        "message.timestamp.type": "LogAppendTime" if spec.log_append_time else "CreateTime",
        "max.message.bytes": str(RECORD_BYTES_MAX),
        "min.insync.replicas": str(settings.min_insync_replicas),
        "unclean.leader.election.enable": "false",
    }
    if spec.cleanup is Cleanup.DELETE:
        retention = spec.retention
        segment = SEGMENT_MAX if retention is None else min(max(retention / SEGMENT_SHARE, SEGMENT_MIN), SEGMENT_MAX)
        return config | {
            "retention.ms": "-1" if retention is None else _milliseconds(retention),
            "retention.bytes": "-1",
            "segment.ms": _milliseconds(segment),
        }
    return config | {
        "min.compaction.lag.ms": _milliseconds(lag_of(spec)),
        "delete.retention.ms": _milliseconds(TOMBSTONES_KEPT),
        "min.cleanable.dirty.ratio": DIRTY_RATIO,
        "segment.ms": _milliseconds(COMPACTED_SEGMENT),
        "segment.bytes": str(COMPACTED_SEGMENT_BYTES),
    }


def lag_of(spec: TopicSpec) -> timedelta:
    """How long what is superseded in a compacted topic stays at least."""
    return spec.retention or (CHANGELOG_LAG if spec.internal else timedelta(0))


def described(name: str, config: Mapping[str, str], declared: TopicSpec | None) -> TopicSpec:
    """A topic's line in the table: what the brokers say of it, and what only we know."""
    cleanup = Cleanup.COMPACT if "compact" in config["cleanup.policy"] else Cleanup.DELETE
    kept = int(config["retention.ms"])
    retention = None if kept < 0 else timedelta(milliseconds=kept)
    if cleanup is Cleanup.COMPACT:
        retention = None if declared is None else declared.retention
    known = declared or TopicSpec(name=name, key="", family=Family.ONE, cleanup=cleanup, retention=retention)
    append_time = config["message.timestamp.type"] == "LogAppendTime"
    return replace(known, cleanup=cleanup, retention=retention, log_append_time=append_time)


def _milliseconds(span: timedelta) -> str:
    return str(span // timedelta(milliseconds=1))


class Topics:
    """The topics of one namespace; from any thread."""

    def __init__(self, admin: AdminClient, settings: KafkaSettings) -> None:
        self._admin = admin
        self._settings = settings
        self._lock = Lock()
        self._known: dict[str, tuple[float, Known]] = {}  # others may add to it while it is walked: walk a copy
        self._absent: dict[str, float] = {}
        self._declared: dict[str, TopicSpec] = {}
        self._agreed: dict[TopicSpec, int] = {}  # what exists as it was wanted
        self._renewal: tuple[float, Mapping[str, Future[TopicDescription]]] = (0.0, {})  # when asked, what by name

    # --- asking ---------------------------------------------------------------------------------------------------

    def topic(self, name: str) -> Known:
        """What is known of a topic; `UnknownTopic` when it does not exist, LogError when nobody answers."""
        entry = self._known.get(name)
        now = time.monotonic()
        if entry is not None and now - entry[0] < FRESH_SECONDS:
            return entry[1]
        if now - self._absent.get(name, -FRESH_SECONDS) < ABSENT_PAUSE * ABSENT_TRIES:
            raise UnknownTopic(f"there is no topic {name}")
        return self._ask_again(name, entry and entry[1])

    def check(self, name: str, partition: int) -> None:
        """`UnknownTopic` for a partition that does not exist."""
        if not 0 <= partition < self.topic(name).partitions:
            raise UnknownTopic(f"there is no partition {partition} of topic {name}")

    def renew(self) -> None:
        """Take what has been answered, and ask for all that is known in one question; waits for nothing.

        What is not answered well here becomes old, and is asked for by whoever needs it: it hears what is wrong.
        """
        asked_at, answers = self._renewal
        if not all(future.done() for future in answers.values()):
            return
        for name, future in answers.items():
            if future.exception() is None and self._known[name][0] < asked_at:
                self._known[name] = (asked_at, _known(future.result()))
        now, self._renewal, known = time.monotonic(), (0.0, {}), self._known.copy()
        if min((at for at, _ in known.values()), default=now) <= now - RENEWED_SECONDS:
            begin = len(self._settings.namespace)
            wires = TopicCollection([self._settings.namespace + name for name in known])
            futures = self._admin.describe_topics(wires, request_timeout=ANSWER_SECONDS)
            self._renewal = (now, {wire[begin:]: future for wire, future in futures.items()})

    def all(self) -> Mapping[str, TopicSpec]:
        """Every topic of the namespace that is not the brokers' own."""
        with translating("asking for the topics"):
            listed = self._admin.list_topics(timeout=ANSWER_SECONDS).topics
        begin = self._settings.namespace
        names = sorted(name.removeprefix(begin) for name in listed if name.startswith(begin) and name[:2] != "__")
        return {
            name: described(name, config, self._declared.get(name)) for name, config in self._configs(names).items()
        }

    def _ask_again(self, name: str, before: Known | None) -> Known:
        try:
            found = self._described(name)
        except LogError:
            if before is None:
                raise
            self._believe_again()
            return before
        if found is None and before is not None:
            raise LogError(f"topic {name} was there and is not: deleted, or a broker that has not heard of it yet")
        for _ in range(ABSENT_TRIES - 1):
            if found is not None:
                break
            time.sleep(ABSENT_PAUSE)
            found = self._described(name)
        if found is None:
            self._absent[name] = time.monotonic()
            raise UnknownTopic(f"there is no topic {name}")
        self._known[name] = (time.monotonic(), found)
        return found

    def _believe_again(self) -> None:
        """Nobody answers; what we know is as good as it was, and writing will tell.

        All of it: asked about one topic after another, we would wait as often as there are topics.
        """
        now = time.monotonic()
        for name, (_, known) in self._known.copy().items():
            self._known[name] = (now, known)

    def _described(self, name: str) -> Known | None:
        wire = self._settings.namespace + name
        futures = self._admin.describe_topics(TopicCollection([wire]), request_timeout=ANSWER_SECONDS)
        try:
            description = futures[wire].result(ANSWER_SECONDS)
        except KafkaException as exception:
            error = error_of(exception)
            if error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                return None
            raise translated(error, f"asking for topic {name}") from exception
        except TimeoutError as error:
            raise LogError(f"asking for topic {name}: no answer within {ANSWER_SECONDS} s") from error
        return _known(description)

    def _configs(self, names: Iterable[str]) -> dict[str, dict[str, str]]:
        resources = [ConfigResource(ResourceType.TOPIC, self._settings.namespace + name) for name in names]
        if not resources:
            return {}
        futures = self._admin.describe_configs(resources, request_timeout=ANSWER_SECONDS)
        found = {}
        for resource, future in futures.items():
            entries = answer(future, f"asking for {resource.name}")
            assert entries is not None, "no error is expected here"
            name = resource.name.removeprefix(self._settings.namespace)
            found[name] = {entry.name: entry.value for entry in entries.values()}
        return found

    # --- creating -------------------------------------------------------------------------------------------------

    def create(self, specs: Mapping[TopicSpec, int]) -> None:
        """See `Log.create`; returns when the new topics can be written to."""
        with self._lock:
            wanted = {spec: count for spec, count in specs.items() if self._agreed.get(spec) != count}
            if not wanted:  # Queues are created with every look at them.
                return
            there = self._existing(wanted)
            new = {spec: count for spec, count in wanted.items() if spec.name not in there}
            self._declared |= {spec.name: spec for spec in wanted}
            self._make(new)
            for spec, count in new.items():
                self._await(spec.name, count)
            self._agreed |= wanted

    def _existing(self, specs: Mapping[TopicSpec, int]) -> set[str]:
        """Those that exist as they should; LogError for one that exists otherwise."""
        with translating("asking for the topics"):
            listed = self._admin.list_topics(timeout=ANSWER_SECONDS).topics
        there = {spec: count for spec, count in specs.items() if self._settings.namespace + spec.name in listed}
        configs = self._configs(spec.name for spec in there)
        for spec, count in there.items():
            found = len(listed[self._settings.namespace + spec.name].partitions)
            if found != count:
                raise LogError(f"topic {spec.name} has {found} partitions, not {count}")
            cleanup = described(spec.name, configs[spec.name], spec).cleanup
            if cleanup is not spec.cleanup:
                raise LogError(f"topic {spec.name} is kept by {cleanup}, not by {spec.cleanup}")
        return {spec.name for spec in there}

    def _make(self, specs: Mapping[TopicSpec, int]) -> None:
        if not specs:
            return
        topics = [
            NewTopic(
                self._settings.namespace + spec.name,
                count,
                self._settings.replication_factor,
                config=topic_config(spec, self._settings),
            )
            for spec, count in specs.items()
        ]
        for name, future in self._admin.create_topics(topics, request_timeout=ANSWER_SECONDS).items():
            answer(future, f"creating topic {name}", unless=KafkaError.TOPIC_ALREADY_EXISTS)

    def _await(self, name: str, count: int) -> None:
        """Wait until the topic is known; another process that made it at the same time must have agreed with us."""
        deadline = time.monotonic() + CREATED_SECONDS
        while True:
            found = self._described(name)
            if found is not None and found.partitions != count:
                raise LogError(f"topic {name} has {found.partitions} partitions, not {count}")
            if found is not None:
                self._known[name] = (time.monotonic(), found)
                self._absent.pop(name, None)
                return
            if time.monotonic() > deadline:
                raise LogError(f"topic {name} was created and is not there after {CREATED_SECONDS} s")
            time.sleep(ABSENT_PAUSE / 10)


def _known(description: TopicDescription) -> Known:
    assert description.topic_id is not None, "every broker that we speak to names incarnations"
    return Known(len(description.partitions), str(description.topic_id))


def patiently(ask: Callable[[], T], *, between: Callable[[], None] = lambda: None) -> T:
    """The answer, asking again for some seconds while a leader or a coordinator is moving; `between` two questions."""
    deadline = time.monotonic() + ANSWER_SECONDS
    while True:
        try:
            return ask()
        except Passing:
            if time.monotonic() > deadline:
                raise
            time.sleep(MOVING_PAUSE)
            between()


def answer(future: Future[T], what: str, *, unless: int | None = None) -> T | None:
    """What was asked for, waiting a bounded time; None for the one error that is none here."""
    try:
        return future.result(ANSWER_SECONDS)
    except KafkaException as exception:
        error = error_of(exception)
        if error.code() == unless:
            return None
        raise translated(error, what) from exception
    except TimeoutError as error:
        raise LogError(f"{what}: no answer within {ANSWER_SECONDS} s") from error
