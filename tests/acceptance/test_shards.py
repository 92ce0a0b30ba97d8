"""Queues with several shards, through the whole line: on the embedded log, and on Kafka with an owner for each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.storm.fleet import Fleet
from tests.support.server import Server
from tests.support.waiting import eventually

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]  # A guard: nine processes start and end on two cores.

WITHIN_SECONDS = 120
SHARDS = 3
SCHEDULES = 12
TWICE = {0: 12, 1: 4, 2: 8}  # where two runs of each schedule are, by the hashes of their names
NEVER = {"cron": "0 0 29 2 *"}


class Line:
    """What is asked of a server."""

    def __init__(self, http: httpx.Client, task: str) -> None:
        self.http, self._task = http, task

    def put(self, path: str, definition: dict[str, Any]) -> dict[str, Any]:
        answer = self.http.put(path, json=definition)
        assert answer.is_success, answer.text
        said: dict[str, Any] = answer.json()
        return said

    def shards(self, number: int, **more: Any) -> dict[str, Any]:
        return self.put("/v1/queues/default", {"shards": number, **more})

    def schedules(self) -> None:
        for number in range(SCHEDULES):
            job = {"target": {"type": "task", "name": self._task}}
            body = {"trigger": NEVER, "overlap": {"policy": "allow_all"}, "job": job}
            self.put(f"/v1/tenants/acme/schedules/s{number}", body)

    def trigger(self, times: int) -> list[str]:
        """Runs of each schedule; their ids."""
        return [self._one(f"s{number}") for _ in range(times) for number in range(SCHEDULES)]

    def _one(self, schedule: str) -> str:
        answer = self.http.post(f"/v1/tenants/acme/schedules/{schedule}:trigger", json={"overlap": "allow_all"})
        assert answer.is_success, answer.text
        return str(answer.json()["run_id"])

    def run(self, run_id: str) -> dict[str, Any]:
        answer = self.http.get(f"/v1/tenants/acme/runs/{run_id}")
        found: dict[str, Any] = answer.json() if answer.is_success else {}
        return found

    def backlog(self) -> dict[str, Any]:
        found: dict[str, Any] = self.http.get("/v1/queues/default/backlog").json()
        return found

    def until_all_succeeded(self, runs: list[str]) -> None:
        done: set[str] = set()

        def all_did() -> bool:
            done.update(each for each in runs if each not in done and self.run(each).get("outcome") == "succeeded")
            return len(done) == len(runs)

        eventually(all_did, within=WITHIN_SECONDS, what="all runs have succeeded")

    def until_spread(self, expected: dict[int, int]) -> None:
        def is_spread() -> bool:
            seen = {each["shard"]: each["waiting"] for each in self.backlog()["shards"] if each["waiting"]}
            return seen == expected

        eventually(is_spread, within=WITHIN_SECONDS, what=f"runs wait as {expected}")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path, slots=8)
    server.start()
    yield server
    server.close()


def test_runs_are_spread_over_three_shards_and_all_are_done_also_when_the_queue_is_made_smaller(server):
    line = Line(server.http, "kill.count")
    line.shards(SHARDS)
    line.schedules()
    line.until_all_succeeded(line.trigger(2))
    line.shards(SHARDS, paused={"note": "to look at what waits"})
    waiting = line.trigger(2)
    line.until_spread(TWICE)
    said = line.shards(1)
    assert [each.partition(":")[0] for each in said["warnings"]] == ["/shards"]
    line.until_all_succeeded([*waiting, *line.trigger(1)])
    assert line.backlog()["shards"] == [{"shard": 0, "waiting": 0, "running": 0}]


@pytest.fixture
def fleet(broker: str, topic_prefix: str, tmp_path: Path) -> Iterator[Fleet]:
    """Three dispatchers for three partitions, so each owns a shard; one worker over HTTP, two on Kafka."""
    roles = {"scheduler": 1, "dispatcher": 3, "projector": 1}
    fleet = Fleet(tmp_path, broker, namespace=topic_prefix, roles=roles, workers=3, slots=4, partitions=3)
    fleet.start()
    yield fleet
    fleet.stop()


def test_on_kafka_each_of_three_owners_has_a_shard(fleet: Fleet):
    with httpx.Client(base_url=fleet.url, timeout=30) as http:
        line = Line(http, "storm.work")
        line.shards(SHARDS)
        line.put("/v1/tenants/acme", {"quota": {"queues": {"default": {"running": 5}}}})
        line.schedules()
        line.shards(SHARDS, paused={"note": "to look at what waits"})
        waiting = line.trigger(2)
        line.until_spread(TWICE)
        line.shards(SHARDS)
        line.until_all_succeeded(waiting)
