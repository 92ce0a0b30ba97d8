"""What compaction takes away is nothing that a live read model still shows."""

from datetime import timedelta

from runtime.logs.simulated import SimulatedLog
from schemas import topics
from simulation.clock import ManualClock
from tests.projections import histories
from tests.projections.histories import START, at, current, everything, tombstone, version
from tests.projections.memory import Memory

INPUTS = (topics.SCHEDULES, topics.VERSIONS)
WORDS = [
    histories.record(current("report", 1), sequence=1),
    histories.record(version("report", 1), sequence=1),
    histories.record(current("report", 2), sequence=2),
    histories.record(version("report", 1, to=at(5)), sequence=2),
    histories.record(version("report", 2), sequence=2),
    tombstone(topics.SCHEDULES, "acme/report", sequence=3),
    tombstone(topics.VERSIONS, "acme/report/1", sequence=4),
    histories.record(current("load", 1), sequence=5),
    histories.record(version("load", 1), sequence=5),
]


def read_by_now(log: SimulatedLog) -> Memory:
    memory = Memory()
    memory.take(everything(log, INPUTS))
    return memory


def test_a_read_model_made_anew_has_what_was_deleted_for_as_long_as_the_live_one():
    """The live one keeps such rows for the history's 30 days."""
    clock = ManualClock(START)
    log = SimulatedLog(1, clock)
    histories.create_topics(log)
    log.append(WORDS)
    live = read_by_now(log)
    assert [row["state"] for _, row in sorted(live.tables["schedules"].items())] == ["active", "deleted"]
    clock.advance(timedelta(days=29))
    log.maintain()
    assert read_by_now(log).tables == live.tables
    clock.advance(timedelta(days=2))
    log.maintain()
    assert {key[1] for key in read_by_now(log).tables["schedules"]} == {"load"}
