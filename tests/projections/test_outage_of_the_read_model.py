"""Scheduling does not know the read model: while that is away runs are made and done; later its rows tell of them."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from tests.support.postgres import LocalServer
from tests.support.server import Server
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

OUTCOMES = "tidewheel.run-outcomes"
EVERY_SECOND = {
    "trigger": {"cron": "* * * * * *"},
    "overlap": {"policy": "allow_all"},
    "job": {"target": {"type": "task", "name": "kill.count"}},
}


@pytest.fixture
def database() -> Iterator[LocalServer]:
    database = LocalServer(Path(tempfile.mkdtemp(prefix="tidewheel-pg-")))
    database.create()
    database.start()
    yield database
    database.stop()
    database.remove()


@pytest.fixture
def server(tmp_path: Path, database: LocalServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("TIDEWHEEL_READ_MODEL", database.url)
    server = Server(tmp_path)
    server.start()
    yield server
    server.close()


class Answering(Server):
    """Taken for started as soon as it answers, whatever it says of itself."""

    def is_ready(self) -> bool:
        with contextlib.suppress(httpx.HTTPError):
            return self.http.get("/healthz").status_code == 200
        return False


def put(server: Server, name: str) -> int:
    return server.http.put(f"/v1/tenants/acme/schedules/{name}", json=EVERY_SECOND).status_code


def succeeded(server: Server, schedule: str) -> int:
    answer = server.http.get("/v1/runs", params={"schedule": schedule, "state": "succeeded", "limit": 500})
    return len(answer.json()["runs"]) if answer.status_code == 200 else 0


@pytest.mark.slow
def test_runs_are_made_and_done_while_the_database_is_away_and_its_rows_catch_up(
    server: Server, database: LocalServer
) -> None:
    assert put(server, "before") == 201
    eventually(lambda: succeeded(server, "before") > 0, within=30, what="rows tell of a run")
    database.stop()
    assert put(server, "meanwhile") == 201
    done = server.end_offset(OUTCOMES)
    eventually(lambda: server.end_offset(OUTCOMES) >= done + 6, within=30, what="runs are done without the database")
    assert "projector" in server.http.get("/readyz").json()["unready"]
    database.start()
    eventually(lambda: succeeded(server, "meanwhile") >= 3, within=30, what="rows tell of what was done meanwhile")
    eventually(server.is_ready, within=30, what="the node is ready again")


@pytest.mark.slow
def test_a_node_that_starts_while_the_database_is_away_makes_and_does_runs_all_the_same(
    tmp_path: Path, database: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEWHEEL_READ_MODEL", database.url)
    database.stop()
    server = Answering(tmp_path)
    server.start()
    assert put(server, "early") == 201
    eventually(lambda: server.end_offset(OUTCOMES) >= 3, within=30, what="runs are done without the database")
    assert "OperationalError" in server.http.get("/readyz").json()["unready"]["projector"]
    database.start()
    eventually(lambda: succeeded(server, "early") >= 3, within=30, what="rows tell of them")
    server.close()
