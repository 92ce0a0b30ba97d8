"""Scheduler and dispatcher over an embedded log of several partitions, and what tests put in and read out."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import orjson

from node.audit.evidence import gather
from node.audit.judgement import judge
from node.audit.source import LogSource
from node.roles import Roles
from runtime.clock import SystemClock
from runtime.logs.embedded import EmbeddedLog
from runtime.record import Outgoing, TopicPartition
from runtime.telemetry import Telemetry
from schemas import identity, topics

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from node.audit.report import Report

SOON = 30.0
PARTITIONS = 4
JOB = {"target": {"type": "task", "name": "t"}, "deadline": "PT1S"}  # nobody works: each run expires after a second


class Quiet:
    """A logger that nobody reads."""

    def info(self, _name: str, **_fields: object) -> None: ...

    warning = error = info


def put(log: EmbeddedLog, name: str, definition: dict[str, Any]) -> None:
    data = {"tenant": "acme", "name": name, "definition": definition}
    event = {"specversion": "1.0", "id": name, "source": "test", "type": "tidewheel.schedule.put.v1", "data": data}
    partition = identity.partition_of(f"acme/{name}", PARTITIONS)
    log.append([Outgoing(topics.SCHEDULE_CHANGES, partition, None, orjson.dumps(event))])


def told(log: EmbeddedLog, type_: str, schedule: str) -> list[dict[str, Any]]:
    """Events of a kind on `run-events`, each once."""
    places = [TopicPartition(topics.RUN_EVENTS, number) for number in range(PARTITIONS)]
    reader = log.open_reader({place: log.begin_offset(place) for place in places})
    found: dict[str, dict[str, Any]] = {}
    while batch := reader.poll(records_max=1000, bytes_max=1 << 20, timeout=0.0):
        for record in batch:
            event = orjson.loads(record.value or b"")
            if event["type"] == f"tidewheel.{type_}.v1" and event["data"]["schedule"] == schedule:
                found[event["id"]] = event["data"]
    reader.close()
    return list(found.values())


@contextmanager
def opened(tmp_path: Path) -> Iterator[EmbeddedLog]:
    """A log with all topics."""
    log = EmbeddedLog(tmp_path / "log", SystemClock())
    layout = topics.Layout(schedule=PARTITIONS, shard=PARTITIONS)
    log.create({spec: layout.partitions(spec.family) for spec in topics.topic_table(topics.Retention())})
    yield log
    log.close()


@contextmanager
def running(log: EmbeddedLog, tmp_path: Path) -> Iterator[None]:
    """Scheduler and dispatcher at work on it; behind the block they have stopped."""
    roles = Roles(
        log, SystemClock(), Telemetry(logger=Quiet()), state=tmp_path / "state",
        layout=topics.Layout(schedule=PARTITIONS, shard=PARTITIONS), retention=topics.Retention(),
        accept_clock_after=None, member="m", catch_up_rate="100/s",
    )  # fmt: skip
    services = [roles.scheduler(), roles.dispatcher()]
    for service in services:
        service.start()
    assert all(service.ready(SOON) for service in services)
    yield
    for service in services:
        assert service.stop(SOON)


def judged(log: EmbeddedLog) -> Report:
    """What the audit says of it."""
    return judge(gather(LogSource(log)))
