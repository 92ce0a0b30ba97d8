"""What is left to do in a cluster without faults: looked at from outside, in the broker's partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from projections.projector import HISTORY
from runtime.record import TopicPartition
from schemas import topics
from simulation.cluster.node import INPUTS, partitions_of

if TYPE_CHECKING:
    from simulation.cluster.world import World

TOLD_MAX = 5  # things of a kind that are named


def left(world: World) -> str:
    """What has not drained yet; nothing when all has."""
    return _not_working(world) or _not_projected(world) or _unread(world) or _held(world) or _open_runs(world)


def _not_working(world: World) -> str:
    owned: dict[tuple[str, int], int] = {}
    for node in world.nodes:
        if not (node.wanted or node.runs):
            continue
        if node.process is None or not node.runs:
            return f"{node.name} does not run"
        for service in node.process.service.partitions():
            if service.failure is not None:
                return f"{service.name} has failed: {service.failure}"
            if not service.ready(0):
                return f"{service.name} of {node.name} does not work: {service.problem or 'not opened'}"
            number = int(service.name.rpartition("-")[2])
            owned[node.role, number] = owned.get((node.role, number), 0) + 1
    for role in INPUTS:
        for number in range(partitions_of(role, world.site.layout)):
            if owned.get((role, number), 0) != 1:
                return f"{role} partition {number} has {owned.get((role, number), 0)} owners"
    return ""


def _not_projected(world: World) -> str:
    shares = world.broker.groups.group(world.settings.named(HISTORY.name)).shares.values()
    missing = set(range(world.site.layout.schedule)).difference(*shares)
    return f"partitions {sorted(missing)} are given to no projector" if missing else ""


def _unread(world: World) -> str:
    for role, inputs in INPUTS.items():
        positions = world.broker.groups.group(world.settings.named(role)).positions
        for number in range(partitions_of(role, world.site.layout)):
            for topic in (inputs.lead, *inputs.companions):
                place = TopicPartition(topic, number)
                partition = world.broker.partition(place)
                last = partition.records[-1].offset if partition is not None and partition.records else -1
                if positions.get(place, 0) <= last:
                    return f"{role} has read {topic} {number} up to {positions.get(place, 0)}, it reaches to {last}"
    return ""


def _open_runs(world: World) -> str:
    created = _runs(world, topics.RUN_EVENTS, "tidewheel.run.created.v1")
    finished = _runs(world, topics.RUN_OUTCOMES, "tidewheel.run.finished.v1")
    open_ = sorted(created - finished)
    return f"{len(open_)} runs have no outcome: {open_[:TOLD_MAX]}" if open_ else ""


def _held(world: World) -> str:
    for worker in world.workers:
        if worker.process is None or not worker.runs:
            return f"{worker.name} does not run"
        if worker.process.attempts.busy or worker.process.holdings.held:
            return f"{worker.name} holds {worker.process.holdings.held[:TOLD_MAX]}"
    return ""


def _runs(world: World, topic: str, type_: str) -> set[tuple[str, str]]:
    """Tenant and id of the runs that events of a type are about."""
    mark = type_.encode()
    found = set()
    for number in range(world.site.layout.schedule):
        partition = world.broker.partition(TopicPartition(topic, number))
        assert partition is not None, "created at the beginning"
        for record in (*partition.gone, *partition.records):
            if record.value is not None and mark in record.value[:400] + record.value[-400:]:
                document = orjson.loads(record.value)
                if document["type"] == type_:
                    found.add((document["data"]["tenant"], document["data"]["run_id"]))
    return found
