"""A name of a worker has one process: a part of I6."""

from typing import Any

from simulation.checkers import names
from tests.simulation.checkers.given import Given, calm, created, ended, event, handed_out, told


def reported(incarnation: str, worker: str = "worker-1") -> dict[str, Any]:
    return event("worker.reported", queue="default", shard=0, worker=worker, incarnation=incarnation)


def over(offset: int) -> dict[str, Any]:
    return ended(offset, "lost", queue="default", shard=0, incarnation="incarnation-1")


def found(*facts: dict[str, Any]) -> list[str]:
    given = Given()
    given.transaction("dispatcher", "12:00:05", [reported("incarnation-1"), handed_out(created(), 0), *facts])
    return told(names.check(given.evidence()))


def test_a_calm_history_has_no_failures():
    assert told(names.check(calm().evidence())) == []


def test_who_takes_a_name_leaves_nothing_to_whoever_had_it():
    assert found(over(0), reported("incarnation-2")) == []
    assert found(reported("incarnation-1")) == []
    assert found(reported("incarnation-2", "worker-2")) == []


def test_leases_that_are_left_to_a_former_process_of_the_name_are_found():
    assert found(reported("incarnation-2")) == [
        "I6 dispatcher-changelog-0@0: incarnation-2 has the name worker-1, and 1 leases are left to incarnation-1"
    ]
