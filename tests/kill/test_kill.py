"""A server that is killed again and again loses no run and doubles none."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.support.server import Server
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SCHEDULES = 200
KILLS = 5
OUTCOMES_BETWEEN = 400  # some two seconds of all schedules: the kill falls into the middle of the work


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path)
    server.start()
    yield server
    server.close()


def put_every_second(server: Server, number: int) -> None:
    answer = server.http.put(
        f"/v1/tenants/storm/schedules/s{number:03d}",
        json={
            "trigger": {"cron": "* * * * * *"},
            "overlap": {"policy": "allow_all"},
            "catch_up": {"policy": "all", "limit": 1000},
            "job": {"target": {"type": "task", "name": "kill.count"}, "lease": "5s", "retry": {"initial": "1s"}},
        },
    )
    assert answer.status_code == 201, answer.text


def in_the_midst_of_work(server: Server) -> Iterator[int]:
    """All schedules are put; then as often as something is to be killed, each time after some outcomes more."""
    for number in range(SCHEDULES):
        put_every_second(server, number)
    for kill in range(KILLS):
        seen = server.end_offset("tidewheel.run-outcomes")
        eventually(
            lambda seen=seen: server.end_offset("tidewheel.run-outcomes") >= seen + OUTCOMES_BETWEEN,  # type: ignore[misc]
            within=60,
            what="the line works between two kills",
        )
        yield kill


def nothing_is_open(server: Server) -> bool:
    answer = server.http.get("/v1/runs", params={"state": "open", "limit": 1})
    assert answer.status_code == 200, answer.text
    runs: list[object] = answer.json()["runs"]
    return not runs


def assert_nothing_is_lost_or_doubled(server: Server) -> None:
    """Behind the last kill: every run has its outcome, and the audit finds nothing."""
    paused = server.run("schedules", "pause", "--tenant", "storm", "--all")
    assert paused.returncode == 0, paused.stderr
    eventually(lambda: nothing_is_open(server), within=60, what="every run has its outcome after the last restart")
    audit = server.run("audit", "--json")
    found = json.loads(audit.stdout)
    assert audit.returncode == 0, audit.stdout + audit.stderr
    assert (found["missing"], found["duplicated"], found["double_outcomes"], found["open_runs"]) == (0, 0, 0, 0)
    assert found["created"] >= KILLS * OUTCOMES_BETWEEN
    assert found["due"] == found["created"] + sum(found["skipped"].values()) + sum(found["pending"].values())


@pytest.mark.timeout(300)
def test_kill_9_of_the_server_loses_and_doubles_nothing(server: Server) -> None:
    """200 schedules due every second, kill -9 every few seconds; after the last restart everything settles within
    60 s, and the audit finds 0 missing, 0 duplicated, 0 double outcomes and 0 open runs.
    """
    for _ in in_the_midst_of_work(server):
        server.kill()
        server.start()
    assert_nothing_is_lost_or_doubled(server)


@pytest.mark.timeout(300)
def test_kill_9_of_the_dispatcher_s_process_loses_and_doubles_nothing(server: Server) -> None:
    """The server goes on and starts another one, which goes on where the log says."""
    for _ in in_the_midst_of_work(server):
        server.kill_child("node.role_child")
        eventually(lambda: not server.is_ready(), within=60, what="the server says so")
        eventually(server.is_ready, within=60, what="another one works")
    assert_nothing_is_lost_or_doubled(server)


def test_a_stopped_folder_is_audited_without_a_server(server: Server) -> None:
    """`audit --data` reads what a stopped server left, and finds nothing wrong."""
    put_every_second(server, 1)
    eventually(lambda: server.end_offset("tidewheel.run-outcomes") >= 2, within=30, what="two runs have outcomes")
    assert server.stop() == 0
    audit = server.run("audit", "--data", str(server.data), "--json")
    assert audit.returncode == 0, audit.stdout + audit.stderr
    assert json.loads(audit.stdout)["created"] >= 2


def test_a_second_server_on_the_same_folder_is_refused(server: Server, tmp_path: Path) -> None:
    """It says which process has the folder, and exits 1."""
    second = server.run("dev", "--data", str(server.data), "--port", "0")
    assert second.returncode == 1
    assert "is in use by process" in second.stderr + second.stdout
    assert tmp_path.exists()
