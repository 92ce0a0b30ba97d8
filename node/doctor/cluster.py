"""Asks the brokers. Who may not be asked, or does not answer, is a finding too."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from datetime import datetime

from node.admin import drift, wanted
from node.doctor import brokers
from node.doctor.finding import Finding, note, ok, wrong
from node.settings import ClusterSettings
from runtime.log import LogError
from runtime.logs.kafka import administration
from runtime.logs.kafka.administration import Administration, Broker, Cluster, FoundTopic

ABORTED_SECONDS = 2.0  # within which brokers abort what has had its time
BROKERS_MAX = 50  # asked one by one; a cluster of more than that has a doctor of its own


def examine(settings: ClusterSettings, now: datetime) -> Iterator[Finding]:
    """Everything that can be asked of a cluster."""
    yield ok(administration.versions())
    if not settings.read_model:
        yield note(
            "the read model is SQLite: right for a cluster of one node, as each node would hold its own part only",
            'read_model = "postgresql://user@host/database", the same on all nodes',
        )
    try:
        asked = Administration(settings.log)
        cluster = asked.cluster()
    except LogError as error:
        yield wrong(
            str(error),
            "look at `bootstrap`, and at `kafka` for how to be let in; an address that you did not give is one that a "
            "broker advertises (advertised.listeners)",
        )
        return
    yield ok(f"cluster {cluster.name} answers at {settings.bootstrap}")
    yield brokers.enough_brokers(len(cluster.brokers), settings.log)
    yield from _brokers(asked, cluster, settings)
    yield from _topics(asked, settings, now)


def _brokers(asked: Administration, cluster: Cluster, settings: ClusterSettings) -> Iterator[Finding]:
    """Each at the address that it advertises, which is where clients will go; what they have in common, once."""
    said: set[Finding] = set()
    for broker in cluster.brokers[:BROKERS_MAX]:
        try:
            config = asked.broker_config(broker)
        except LogError as error:
            yield _silent(broker, error)
            continue
        yield ok(f"broker {broker.number} answers at {broker.address}")
        for finding in (brokers.generation(config), *brokers.broker_settings(config, settings.log)):
            if finding not in said:
                said.add(finding)
                yield finding


def _silent(broker: Broker, error: LogError) -> Finding:
    if "AUTHORIZATION" in str(error):
        return note(
            f"broker {broker.number} ({broker.address}) does not tell its settings: {error}",
            "ask as a principal that may DescribeConfigs of the cluster",
        )
    return wrong(
        f"broker {broker.number} does not answer at {broker.address}: {error}",
        "it is down, or advertises an address that cannot be reached from here (advertised.listeners)",
    )


def _topics(asked: Administration, settings: ClusterSettings, now: datetime) -> Iterator[Finding]:
    try:
        found = asked.topics()
        ours = wanted.wanted(settings, wanted.queues_in(found))
        there: list[FoundTopic] = [found[topic.name] for topic in ours if topic.name in found]
        own = asked.brokers_own()
        newest = asked.newest(there)
    except LogError as error:
        yield note(f"the topics cannot be looked at: {error}", "ask as a principal that may DescribeConfigs of them")
        return
    yield from brokers.drifted(drift.compare(ours, found), len(ours))
    yield from brokers.health((*there, *own.values()))
    yield from brokers.brokers_own(own, settings.log)
    yield brokers.clocks(newest, now)
    yield from _open_transactions(asked, there, settings)


def _open_transactions(
    asked: Administration, topics: Sequence[FoundTopic], settings: ClusterSettings
) -> Iterator[Finding]:  # fmt: skip
    """Two looks, if the first one finds any under way."""
    try:
        before = asked.open_since(topics)
        if before:
            time.sleep(settings.log.transaction_ms / 1000 + ABORTED_SECONDS)
            yield from brokers.open_transactions(before, asked.open_since(topics))
    except LogError as error:
        yield note(f"open transactions cannot be looked for: {error}", "ask again when all partitions have a leader")
