"""The topics that settings ask for, as a broker would describe them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from node.settings import ClusterSettings
from runtime.logs.kafka.topics import topic_config
from schemas import topics
from schemas.frozen import frozen
from schemas.topics import TopicSpec

DISPATCH = topics.dispatch_topic("")


@frozen
class WantedTopic:
    """A topic as it should be."""

    name: str
    partitions: int
    replicas: int
    config: Mapping[str, str]


def specs(settings: ClusterSettings, queues: Iterable[str]) -> dict[TopicSpec, int]:
    """The topic table and the inboxes of these queues, with their partition counts."""
    lines = (*topics.topic_table(settings.retention), *_inboxes(settings, queues))
    return {line: settings.layout.partitions(line.family) for line in lines}


def wanted(settings: ClusterSettings, queues: Iterable[str]) -> tuple[WantedTopic, ...]:
    """The same, as a broker would describe them."""
    return tuple(
        WantedTopic(
            name=spec.name,
            partitions=count,
            replicas=settings.replication_factor,
            config=topic_config(spec, settings.log),
        )
        for spec, count in specs(settings, queues).items()
    )


def queues_in(names: Iterable[str]) -> set[str]:
    """The queues that have inboxes among these topics."""
    return {name.removeprefix(DISPATCH) for name in names if name.startswith(DISPATCH)}


def _inboxes(settings: ClusterSettings, queues: Iterable[str]) -> list[TopicSpec]:
    return [topics.dispatch_spec(queue, settings.retention) for queue in sorted(set(queues))]
