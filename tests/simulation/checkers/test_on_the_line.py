"""The judges read what the production shell really writes, and find nothing wrong with a line that works."""

from datetime import UTC, datetime, timedelta

import pytest

from runtime.logs.simulated import SimulatedLog
from runtime.record import Outgoing, TopicPartition
from schemas import topics
from simulation.checkers import judge
from simulation.clock import ManualClock
from simulation.evidence import POISON, Committed, Evidence, StoreContents, marker
from simulation.line import Line, fail, succeed

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
OBSERVED = {  # what a line has no part of stays unobserved: a read model
    "I1", "I2", "I3", "I4", "I5", "I6", "I7", "I8", "I9", "I10", "I11", "I12", "I14",
    "I15", "I16", "I17", "I18", "I19", "I20", "I21", "I22",
}  # fmt: skip


def schedule(tenant: str, **more: object) -> dict[str, object]:
    return {
        "tenant": tenant,
        "name": "works",
        "definition": {
            "trigger": {"cron": "*/10 * * * * *"},
            "labels": {"of": marker(tenant)},
            "overlap": {"policy": "allow_all"},
            "job": {"target": {"type": "task", "name": "work"}, "retry": {"initial": "1s", "jitter": "none"}},
        }
        | more,
    }


@pytest.fixture(scope="module")
def evidence() -> Evidence:
    """Two tenants: runs succeed, fail for good, and one is cancelled; a bad record, an unknown type."""
    clock = ManualClock(NOON)
    line = Line(SimulatedLog(1, clock), clock)
    worker = line.worker()
    line.command("schedule.put", schedule("acme"))
    line.command("schedule.put", schedule("umbrella"))
    line.command("schedule.paint", {"tenant": "acme", "name": "works"})
    line.log.append([Outgoing(topics.SCHEDULE_CHANGES, 0, b"", b"\xff", ((POISON, b"bytes"),))])
    line.advance(timedelta(seconds=20))
    worker.task = fail
    line.command("schedule.trigger", {"tenant": "acme", "name": "works"})
    line.advance(timedelta(seconds=15))
    worker.task, worker.slots = succeed, 0
    line.advance(timedelta(seconds=10))
    line.command("run.cancel", {"tenant": "acme", "name": "works", "run_id": "works.20260301T120040Z"})
    line.settle()
    worker.slots = 100
    for tenant in ("acme", "umbrella"):
        line.command("schedule.pause", {"tenant": tenant, "name": "works"})
    line.advance(timedelta(seconds=10))
    return gathered(line)


def gathered(line: Line) -> Evidence:
    records: dict[TopicPartition, list[Committed]] = {}
    for topic in line.log.topics():
        records |= {TopicPartition(topic, number): [] for number in range(line.log.partitions(topic))}
        for record in line.records(topic):
            committed = Committed(record.offset, record.key, record.value, record.headers, record.appended_at)
            records[TopicPartition(topic, record.partition)].append(committed)
    stores = (
        StoreContents(role=role, partition=number, machine="here", entries=tuple(store.scan(b"", b"~")), owned=True)
        for (role, number), store in line.stores.items()
    )
    return Evidence(
        faults_off_at=NOON,
        rested_at=line.clock.now(),
        records={place: tuple(there) for place, there in records.items()},
        positions={role: line.log.committed(role, list(records)) for role in ("scheduler", "dispatcher")},
        stores=tuple(stores),
        owners=dict.fromkeys(line.stores, "here"),
        canaries=("hunter2",),
    )


def test_nothing_is_wrong_with_a_line_that_works(evidence):
    assert [str(violation) for violation in judge(evidence).violations] == []


def test_each_judge_has_looked_at_what_the_line_did(evidence):
    assert {id_ for id_, count in judge(evidence).observed.items() if count} == OBSERVED
