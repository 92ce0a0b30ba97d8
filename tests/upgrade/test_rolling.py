"""Processes with different time zone data: who has older ones than a partition follows stands back."""

from __future__ import annotations

import subprocess
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from runtime.clock import SystemClock
from runtime.host import PartitionService, RoleService
from runtime.logs.embedded import EmbeddedLog
from runtime.partition import Inputs, Partition
from runtime.processor import Processor, World
from runtime.stores.memory import MemoryStore
from runtime.telemetry import Telemetry
from scheduler import SchedulerCore
from scheduler.occurrences import tz_version
from schemas import topics
from tests.support import timezones
from tests.support.server import ROOT, TIDEWHEEL, Server
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

SOON = 60.0
LAYOUT = topics.Layout(schedule=2, shard=2)
INPUTS = Inputs(lead=topics.SCHEDULE_CHANGES, companions=(topics.RUN_OUTCOMES,), references=(topics.CATALOG,))


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedLog]:
    log = EmbeddedLog(tmp_path / "log", SystemClock())
    log.create({spec: LAYOUT.partitions(spec.family) for spec in topics.topic_table(topics.Retention())})
    yield log
    log.close()


def role(log: EmbeddedLog, version: str) -> RoleService:
    """A process's share of the scheduler, which decides by a database of that version."""
    telemetry = Telemetry()

    def make(number: int, joined: Any) -> PartitionService:
        def processor() -> Processor:
            world = World(clock=SystemClock(), entropy=lambda: bytes(16), telemetry=telemetry)
            partition = Partition(role="scheduler", number=number, inputs=INPUTS, layout=LAYOUT)
            return Processor(SchedulerCore(LAYOUT, number, version), partition, joined, MemoryStore(), world)

        return PartitionService("scheduler", number, processor, telemetry)

    return RoleService("scheduler", topics.SCHEDULE_CHANGES, log, member=version, make=make, telemetry=telemetry)


def works_and_ends(share: RoleService) -> None:
    """It takes its partitions, decides something there, and gives them back."""
    share.start()
    assert share.ready(SOON)
    eventually(lambda: not any(map(_is_new, share.partitions())), within=SOON, what="all have decided something")
    assert share.stop(SOON)


def _is_new(partition: PartitionService) -> bool:
    return not partition.ready(0)


def test_who_has_older_data_than_a_partition_follows_leaves_the_group_and_says_which_are_wanted(
    log: EmbeddedLog,
) -> None:
    """It has no partition any more, keeps none from those who can, and does not end: its other roles go on."""
    works_and_ends(role(log, "2026f"))
    older = role(log, "2026e")
    older.start()
    wanted = "follows tz database 2026f, this process has 2026e: install tzdata 2026f or newer here"
    eventually(lambda: wanted in (older.problem or ""), within=SOON, what="it says so")
    eventually(lambda: older.partitions() == (), within=SOON, what="it has given its partitions back")
    assert not older.ready(0)
    assert older.failure is None
    newer = role(log, "2026g")
    works_and_ends(newer)
    assert older.stop(SOON)


def test_two_processes_one_with_older_data_that_takes_the_folder_of_the_other_over(tmp_path: Path) -> None:
    """It answers, is not ready, and `/readyz` says why; the one with the newer data goes on where it stopped."""
    server = Server(tmp_path)
    server.start()
    put(server, "before")
    assert server.stop() == 0
    older = timezones.environment(timezones.package(tmp_path / "older", "2022e"))
    with process(server, older):
        eventually(lambda: "scheduler" in unready(server), within=SOON, what="it says what is not ready")
        assert f"install tzdata {tz_version()} or newer here" in unready(server)["scheduler"]
        assert server.http.get("/healthz").status_code == httpx.codes.OK
    server.start()
    put(server, "after")
    server.close()


@contextmanager
def process(server: Server, environment: Mapping[str, str]) -> Iterator[None]:
    """`tidewheel dev` on a server's folder and port, with an environment of its own."""
    command = [TIDEWHEEL, "dev", "--data", str(server.data), "--port", str(server.port)]
    quiet = subprocess.DEVNULL
    running = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=quiet, stderr=quiet)
    yield
    running.terminate()
    running.wait(SOON)


def put(server: Server, name: str) -> None:
    definition = {"trigger": {"cron": "0 2 * * *"}, "job": {"target": {"type": "task", "name": "x"}}}
    assert server.http.put(f"/v1/tenants/acme/schedules/{name}", json=definition).status_code == httpx.codes.CREATED


def unready(server: Server) -> Mapping[str, str]:
    """What `/readyz` says is not ready."""
    with suppress(httpx.HTTPError):
        told: Mapping[str, str] = server.http.get("/readyz").json()["unready"]
        return told
    return {}
