"""What an administrator asks of a cluster: its brokers, its topics as they are, and how to set them right.

Nothing here is needed to run; `KafkaLog` makes and finds its topics itself. Each question has a bounded time.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection, TopicPartition, libversion
from confluent_kafka import version as client_version
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ClusterMetadata,
    ConfigEntry,
    ConfigResource,
    OffsetSpec,
    ResourceType,
    TopicDescription,
)

from runtime.log import LogError
from runtime.logs.kafka.errors import error_of, translating
from runtime.logs.kafka.reading import instant
from runtime.logs.kafka.settings import KafkaSettings, admin_config, check, check_version
from runtime.logs.kafka.topics import ANSWER_SECONDS, CREATED_SECONDS, Topics, answer
from schemas.frozen import frozen
from schemas.topics import TopicSpec

ASKED_AT_ONCE = 500  # topics in one request: some hundred kilobytes of answer
LOOK_SECONDS = 0.1  # between looks whether what was altered is told
PATIENCE = (
    1.0,
    2.0,
    7.0,
)  # for the first answer; short at first, as it is known early that every connection is refused
BROKERS_OWN = ("__consumer_offsets", "__transaction_state")


class Away(LogError):
    """No broker answers."""


@frozen
class Broker:
    """A broker as the cluster advertises it."""

    number: int
    address: str


@frozen
class Cluster:
    """Who answered, and who is told to clients."""

    name: str
    brokers: tuple[Broker, ...]


@frozen
class FoundTopic:
    """A topic as it is. `replicas` and `in_sync` are those of the partition that has the fewest."""

    name: str
    wire: str  # its name with the namespace
    partitions: int
    replicas: int
    in_sync: int
    leaderless: tuple[int, ...]  # partitions that nobody leads at the moment
    config: Mapping[str, str]


def versions() -> str:
    """The client in this process."""
    return f"confluent-kafka {client_version()}, librdkafka {libversion()[0]}"


class Administration:
    """The topics of one namespace and the brokers that have them. LogError as `KafkaLog` raises it."""

    def __init__(self, settings: KafkaSettings) -> None:
        text, number = libversion()
        check_version(number, text)
        check(settings)
        self._settings = settings
        self._trouble = ""
        self._refused = False
        config: dict[str, Any] = admin_config(settings) | {"error_cb": self._note}
        with translating("making a client of Kafka"):
            self._admin = AdminClient(config)

    # --- the cluster ----------------------------------------------------------------------------------------------

    def cluster(self) -> Cluster:
        """The cluster and its brokers; `Away` when none answers."""
        found = self._metadata()
        nodes = sorted(found.brokers.values(), key=lambda node: node.id)
        brokers = tuple(Broker(number=node.id, address=f"{node.host}:{node.port}") for node in nodes)
        return Cluster(name=found.cluster_id or "", brokers=brokers)

    def broker_config(self, broker: Broker) -> Mapping[str, str]:
        """How a broker is set. It alone is asked, at its advertised address: LogError when it does not answer there."""
        resource = ConfigResource(ResourceType.BROKER, str(broker.number))
        return self._configs([resource])[resource.name]

    # --- topics ---------------------------------------------------------------------------------------------------

    def topics(self) -> Mapping[str, FoundTopic]:
        """Every topic of the namespace, by its name without it."""
        begin = self._settings.namespace
        listed = self._metadata().topics
        names = sorted(name for name in listed if name.startswith(begin) and name[:2] != "__")
        return {name.removeprefix(begin): found for name, found in self._found(names).items()}

    def brokers_own(self) -> Mapping[str, FoundTopic]:
        """The topics of positions and transactions, which a cluster makes when they are first used."""
        return self._found(BROKERS_OWN)

    def create(self, specs: Mapping[TopicSpec, int]) -> None:
        """Make these; see `Log.create`."""
        Topics(self._admin, self._settings).create(specs)

    def alter(self, topic: str, config: Mapping[str, str]) -> None:
        """Set these of a topic's settings and leave the others; returns when a broker tells them."""
        entries = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in config.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, self._settings.namespace + topic, incremental_configs=entries)
        for future in self._admin.incremental_alter_configs([resource], request_timeout=ANSWER_SECONDS).values():
            answer(future, f"altering topic {topic}")
        told = ConfigResource(ResourceType.TOPIC, resource.name)
        deadline = time.monotonic() + CREATED_SECONDS
        while not config.items() <= self._configs([told])[told.name].items():
            if time.monotonic() > deadline:
                raise LogError(f"topic {topic} was altered and is as before after {CREATED_SECONDS:.0f} s")
            time.sleep(LOOK_SECONDS)

    def open_since(self, topics: Iterable[FoundTopic]) -> Mapping[tuple[str, int], int]:
        """The partitions that have a transaction under way, and where the oldest of it begins: no reader gets further.

        That is the last stable offset where it is behind the end.
        """
        places = self._led(topics)
        ends = self._offsets(places, IsolationLevel.READ_UNCOMMITTED)
        stable = self._offsets(places, IsolationLevel.READ_COMMITTED)
        begin = len(self._settings.namespace)
        return {
            (place.topic[begin:], place.partition): stable[place] for place in places if stable[place] < ends[place]
        }

    def newest(self, topics: Iterable[FoundTopic]) -> datetime | None:
        """The latest instant at which a broker appended a record to any of these; None when they hold none."""
        newest_of_all: Any = OffsetSpec.max_timestamp()  # type: ignore[no-untyped-call]
        asked = dict.fromkeys(self._led(topics), newest_of_all)
        futures = self._admin.list_offsets(asked, request_timeout=ANSWER_SECONDS)
        answers = [answer(future, "asking for the newest records") for future in futures.values()]
        newest = max((found.timestamp for found in answers if found is not None), default=-1)
        return instant(newest) if newest >= 0 else None

    # --- asking ---------------------------------------------------------------------------------------------------

    def _led(self, topics: Iterable[FoundTopic]) -> list[TopicPartition]:
        """The partitions of these that somebody leads."""
        return [
            TopicPartition(topic.wire, partition)
            for topic in topics
            for partition in range(topic.partitions)
            if partition not in topic.leaderless
        ]

    def _offsets(self, places: list[TopicPartition], isolation: IsolationLevel) -> dict[TopicPartition, int]:
        latest: Any = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        futures = self._admin.list_offsets(
            dict.fromkeys(places, latest), isolation_level=isolation, request_timeout=ANSWER_SECONDS
        )
        answers = {place: answer(future, f"asking for the end of {place.topic}") for place, future in futures.items()}
        return {place: found.offset for place, found in answers.items() if found is not None}

    def _metadata(self) -> ClusterMetadata:
        """Of whichever broker answers first: `Away`, with what the client met, when none does."""
        for seconds in PATIENCE:
            try:
                return self._admin.list_topics(timeout=seconds)
            except KafkaException as exception:
                error = exception
            self._admin.poll(0)
            if self._refused:
                break
        why = self._trouble or error_of(error).str()
        raise Away(f"no broker answers at {self._settings.bootstrap}: {why}") from error

    def _note(self, error: KafkaError) -> None:
        """What the client meets in the background: why one connection could not be had, or that none could."""
        if error.code() == KafkaError._ALL_BROKERS_DOWN:  # noqa: SLF001 -- its public name
            self._refused = True
        else:
            self._trouble = error.str()

    def _found(self, names: Iterable[str]) -> dict[str, FoundTopic]:
        """Those that exist, by their name on the wire."""
        wanted = list(names)
        found: dict[str, FoundTopic] = {}
        for start in range(0, len(wanted), ASKED_AT_ONCE):
            described = self._described(wanted[start : start + ASKED_AT_ONCE])
            configs = self._configs([ConfigResource(ResourceType.TOPIC, name) for name in described])
            found |= {name: self._topic(name, described[name], configs[name]) for name in described}
        return found

    def _described(self, names: list[str]) -> dict[str, TopicDescription]:
        futures = self._admin.describe_topics(TopicCollection(names), request_timeout=ANSWER_SECONDS)
        answers = {
            name: answer(future, f"asking for topic {name}", unless=KafkaError.UNKNOWN_TOPIC_OR_PART)
            for name, future in futures.items()
        }
        return {name: found for name, found in answers.items() if found is not None}

    def _configs(self, resources: list[ConfigResource]) -> dict[str, dict[str, str]]:
        if not resources:
            return {}
        with translating("asking for settings"):
            futures = self._admin.describe_configs(resources, request_timeout=ANSWER_SECONDS)
        found = {}
        for resource, future in futures.items():
            entries = answer(future, f"asking for the settings of {resource.name}") or {}
            found[resource.name] = {entry.name: entry.value for entry in entries.values() if entry.value is not None}
        return found

    def _topic(self, wire: str, topic: TopicDescription, config: Mapping[str, str]) -> FoundTopic:
        return FoundTopic(
            name=wire.removeprefix(self._settings.namespace),
            wire=wire,
            partitions=len(topic.partitions),
            replicas=min(len(partition.replicas) for partition in topic.partitions),
            in_sync=min(len(partition.isr) for partition in topic.partitions),
            leaderless=tuple(
                partition.id for partition in topic.partitions if partition.leader is None or partition.leader.id < 0
            ),
            config=config,
        )
