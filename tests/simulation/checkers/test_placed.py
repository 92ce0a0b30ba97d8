"""Runs are in the shard that definitions give them: a part of I20."""

from typing import Any

from simulation.checkers import placed
from tests.simulation.checkers.given import JOB, Given, calm, created, event, told


def adopted(kind: str, tenant: str, name: str, definition: dict[str, Any] | None) -> dict[str, Any]:
    entry = {"kind": kind, "tenant": tenant, "name": name, "version": 1, "definition": definition}
    return event("catalog.adopted", subject="scheduler/0", role="scheduler", partition=0, offset=1, entries=[entry])


def queue(shards: int | None) -> dict[str, Any]:
    return adopted("queue", "_", "default", None if shards is None else {"shards": shards})


def quota(**given: int) -> dict[str, Any]:
    return adopted("tenant", "acme", "_", {"quota": {"queues": {"*": given}}})


def found(*facts: dict[str, Any]) -> list[str]:
    given = Given()
    given.transaction("scheduler", "12:00:05", facts)
    return told(placed.check(given.evidence()))


def test_a_calm_history_has_one_shard():
    assert told(placed.check(calm().evidence())) == []


def test_a_run_in_a_shard_that_the_queue_has_not_is_found():
    assert found(queue(3), created(shard=2)) == []
    said = (
        "I20 scheduler-changelog-0@0: acme: run s.20260301T120005Z is in shard 2 of default, where its tenant is in {}"
    )
    assert found(queue(2), created(shard=2)) == [said.format(2)]
    assert found(queue(3), queue(None), created(shard=2)) == [said.format(1)]
    assert found(queue(3), quota(running=2), created(shard=2)) == [said.format(2)]
    assert found(queue(3), quota(running=9, queued=1), created(shard=2)) == [said.format(1)]
    assert found(queue(3), quota(running=9, queued=0), created(shard=2)) == []


def test_runs_of_a_key_or_a_schedule_in_two_shards_are_found():
    """Unless the queue was made another size between them."""
    keyed = JOB | {"concurrency": {"key": "db", "limit": 1}}
    first, second = created("12:00:05", shard=1, job=keyed), created("12:00:06", shard=2, job=keyed)
    said = (
        "I20 scheduler-changelog-0@0: acme: run s.20260301T120006Z is in shard 2 of default, where db was in 1 before"
    )
    assert found(queue(3), first, second) == [said]
    assert found(queue(3), first, queue(4), second) == []
    said = said.replace("db was", "s was")
    assert found(queue(3), created("12:00:05", shard=1), created("12:00:06", shard=2)) == [said]
