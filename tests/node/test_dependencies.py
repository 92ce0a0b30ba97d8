"""A schedule that follows others, through the whole line on an embedded log, with owners of different partitions."""

from __future__ import annotations

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
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from pathlib import Path

SOON = 30.0
PARTITIONS = 4
JOB = {"target": {"type": "task", "name": "t"}, "deadline": "PT1S"}  # nobody works: each run expires after a second
FOLLOWING = {"after": [{"schedule": "load", "mode": "run", "condition": "failed"}], "job": JOB}


class Quiet:
    """A logger that nobody reads."""

    def info(self, _name: str, **_fields: object) -> None: ...

    warning = error = info


def put(log: EmbeddedLog, name: str, definition: dict[str, Any]) -> None:
    data = {"tenant": "acme", "name": name, "definition": definition}
    event = {"specversion": "1.0", "id": name, "source": "test", "type": "tidewheel.schedule.put.v1", "data": data}
    partition = identity.partition_of(f"acme/{name}", PARTITIONS)
    log.append([Outgoing(topics.SCHEDULE_CHANGES, partition, None, orjson.dumps(event))])


def runs_of(log: EmbeddedLog, schedule: str) -> list[dict[str, Any]]:
    """What was created on `run-events`, each once."""
    places = [TopicPartition(topics.RUN_EVENTS, number) for number in range(PARTITIONS)]
    reader = log.open_reader({place: log.begin_offset(place) for place in places})
    found: dict[str, dict[str, Any]] = {}
    while batch := reader.poll(records_max=1000, bytes_max=1 << 20, timeout=0.0):
        for record in batch:
            event = orjson.loads(record.value or b"")
            if event["type"] == "tidewheel.run.created.v1" and event["data"]["schedule"] == schedule:
                found[event["data"]["run_id"]] = event["data"]
    reader.close()
    return list(found.values())


def test_every_expired_run_of_another_partition_is_followed_by_one_and_the_audit_agrees(tmp_path: Path) -> None:
    log = EmbeddedLog(tmp_path / "log", SystemClock())
    layout = topics.Layout(schedule=PARTITIONS, shard=PARTITIONS)
    log.create({spec: layout.partitions(spec.family) for spec in topics.topic_table(topics.Retention())})
    roles = Roles(
        log, SystemClock(), Telemetry(logger=Quiet()), state=tmp_path / "state", layout=layout,
        retention=topics.Retention(), accept_clock_after=None, member="m", catch_up_rate="100/s",
    )  # fmt: skip
    services = [roles.scheduler(), roles.dispatcher()]
    for service in services:
        service.start()
    assert all(service.ready(SOON) for service in services)
    assert identity.partition_of("acme/load", PARTITIONS) != identity.partition_of("acme/report", PARTITIONS)
    put(log, "report", FOLLOWING)
    put(log, "load", {"trigger": {"cron": "* * * * * *"}, "overlap": {"policy": "allow_all"}, "job": JOB})
    eventually(lambda: len(runs_of(log, "report")) >= 3, within=SOON, what="three runs that follow")
    for service in services:
        assert service.stop(SOON)
    loaded = {run["run_id"] for run in runs_of(log, "load")}
    followed = runs_of(log, "report")
    assert len({run["upstream"]["run_id"] for run in followed}) == len(followed)
    assert {run["upstream"]["run_id"] for run in followed} <= loaded
    assert {(run["cause"], tuple(run["chain"]), run.get("nominal_time")) for run in followed} == {
        ("dependency", ("load",), None)
    }
    report = judge(gather(LogSource(log)))
    assert report.offenders == {}
    assert report.created == len(loaded)
    log.close()
