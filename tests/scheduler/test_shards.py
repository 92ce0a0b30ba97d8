"""Which shard of its queue a run goes to, and what follows when a queue is given another number of them."""

from __future__ import annotations

from typing import Any

from schemas import codec, topics
from schemas.facts import CatalogEntry, RunCancelRequested, RunCreated
from schemas.internal import RunInquired
from tests.scheduler.harness import Shell, definition

LAYOUT = topics.Layout(schedule=1, shard=4)
NOW = "2024-01-01T10:00:10"
ALL: dict[str, Any] = {"overlap": {"policy": "allow_all"}}


def declare(shell: Shell, shards: int | None, queue: str = "default") -> None:
    """The catalog says of a queue that it has so many shards; None: nothing any more."""
    adopt(shell, "queue", "_", queue, None if shards is None else {"shards": shards})


def adopt(shell: Shell, kind: str, tenant: str, name: str, body: dict[str, Any] | None) -> None:
    """The catalog says so."""
    entry = CatalogEntry(kind=kind, tenant=tenant, name=name, version=1, changed_at=shell.now, definition=body)
    _, value = codec.encode(entry, source="x", time=shell.now)
    shell.record(topics.CATALOG, codec.parse(value), tw_seq="scheduler-0-1")


def shards_of(shell: Shell, *names: str) -> list[int]:
    return [shell.last_run(name).shard for name in names]


def sharded(shards: int | None = 4) -> Shell:
    shell = Shell(NOW, layout=LAYOUT)
    declare(shell, shards)
    return shell


def held(key: str) -> dict[str, Any]:
    body = definition()
    body["job"]["concurrency"] = {"key": key, "limit": 1}
    return body


def test_the_runs_of_a_queue_are_spread_over_its_shards_by_their_schedules():
    shell = sharded()
    for name in ("s", "t", "u", "v"):
        shell.put(name, definition(**ALL))
    shell.until("2024-01-01T10:02:30")
    assert shards_of(shell, "s", "t", "u", "v") == [2, 1, 1, 0]
    assert [run.shard for run in shell.all(RunCreated, "s")] == [2, 2]


def test_runs_of_one_concurrency_key_are_in_one_shard_whatever_their_schedules():
    shell = sharded()
    shell.put("t", held("db-1"))
    shell.put("v", held("db-1"))
    shell.until("2024-01-01T10:01:30")
    assert shards_of(shell, "t", "v") == [2, 2]


def test_each_shard_has_a_partition_and_what_is_said_of_a_run_stands_behind_it():
    """murmur2 of `default` is 3 of four: its shards 0, 1, 2 are in partitions 3, 0, 1."""
    shell = sharded()
    for name in ("s", "t", "v"):
        shell.put(name)
        shell.send("ScheduleTrigger", name=name)
        shell.send("RunCancel", name=name, run_id=shell.last_run(name).run_id)
    shell.until("2024-01-01T10:10:30")
    places = {
        (type(output.fact), output.fact.schedule): output.partition
        for output in shell.outputs
        if output.topic == topics.RUNS and isinstance(output.fact, RunCreated | RunCancelRequested)
    }
    for name, partition in (("s", 1), ("t", 0), ("v", 3)):
        assert {places[RunCreated, name], places[RunCancelRequested, name]} == {partition}
    asked = {output.partition for output in shell.outputs if isinstance(output.fact, RunInquired)}
    assert asked == {0, 1, 3}


def test_a_queue_that_is_not_declared_or_has_one_shard_puts_all_in_the_first():
    for shards in (None, 1):
        shell = sharded(shards)
        shell.put("s")
        shell.until("2024-01-01T10:01:30")
        assert shards_of(shell, "s") == [0]


def test_another_number_of_shards_counts_for_runs_that_are_created_then():
    shell = sharded()
    declare(shell, 4, "other")
    shell.put("s", definition(**ALL))
    shell.until("2024-01-01T10:01:30")
    declare(shell, 1)
    shell.until("2024-01-01T10:02:30")
    declare(shell, 4)
    shell.reload()
    shell.until("2024-01-01T10:03:30")
    declare(shell, None)
    shell.until("2024-01-01T10:04:30")
    assert [run.shard for run in shell.all(RunCreated)] == [2, 0, 2, 0]


def test_a_tenant_that_may_have_less_than_the_queue_has_shards_is_in_as_many_as_it_may_have_runs():
    """With a limit of one they are all in the first shard, whose portion of the limit that is."""
    shell = sharded()
    for name in ("s", "t", "u", "v"):
        shell.put(name, definition(**ALL))
    quotas = {"default": {"running": 1}, "*": {"running": 2}}
    adopt(shell, "tenant", "acme", "_", {"quota": {"queues": quotas}})
    shell.until("2024-01-01T10:01:30")
    assert shards_of(shell, "s", "t", "u", "v") == [0, 0, 0, 0]
    adopt(shell, "tenant", "acme", "_", {"quota": {"queues": {"*": {"running": 9, "queued": 2}}}})
    shell.until("2024-01-01T10:02:30")
    assert shards_of(shell, "s", "t", "u", "v") == [0, 1, 1, 0]
    adopt(shell, "tenant", "acme", "_", {"quota": {"queues": {"*": {"running": 4, "queued": 0}}}})
    shell.until("2024-01-01T10:03:30")
    assert shards_of(shell, "s", "t", "u", "v") == [2, 1, 1, 0]


def test_whoever_gives_a_queue_another_number_of_shards_is_told_what_that_means():
    shell = Shell(NOW, layout=LAYOUT)
    warning = (
        "/shards: {} before, {} for runs from now on; until the others have ended, a concurrency key may have as many "
        "as its limit at work in two shards"
    )
    for shards, expected in ((1, []), (3, [warning.format(1, 3)]), (3, []), (2, [warning.format(3, 2)])):
        shell.send("QueuePut", tenant="_", name="mail", definition={"shards": shards})
        assert shell.answer().body["warnings"] == expected
    put = [entry for entry in shell.to(topics.CATALOG) if isinstance(entry, CatalogEntry)]
    assert [(entry.definition or {})["shards"] for entry in put] == [1, 3, 2]
