"""How a real server is watched: the stream of its events, over a kill, and the figures that Prometheus takes."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.server import Server
from tests.support.waiting import eventually
from tidewheel import Client

pytestmark = pytest.mark.slow

ACME = "/v1/tenants/acme"
WITHIN_SECONDS = 60
RUNS = 6


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path)
    server.start()
    yield server
    server.close()


def put(server: Server) -> None:
    """A schedule of a yearly report, whose runs are made by hand."""
    job = {"queue": "default", "target": {"type": "task", "name": "nobody.has.it"}}
    made = server.http.put(f"{ACME}/schedules/report", json={"trigger": {"cron": "0 0 1 1 *"}, "job": job})
    assert made.status_code == 201, made.text


def trigger(server: Server) -> str:
    made = server.http.post(f"{ACME}/schedules/report:trigger", json={})
    assert made.status_code == 201, made.text
    run_id: str = made.json()["run_id"]
    return run_id


def figures(server: Server) -> dict[str, float]:
    rows = [line.rpartition(" ") for line in server.http.get("/metrics").text.splitlines() if line[:1] != "#"]
    return {series: float(value) for series, _, value in rows}


def test_a_stream_goes_on_over_the_death_of_its_server_and_misses_nothing(server):
    put(server)
    seen: list[str] = []
    enough = threading.Event()

    def watch() -> None:
        with Client(server.url, "acme") as client:
            for event in client.events(schedule="report", type_="run.created", last=0):
                seen.append(event.body["data"]["run_id"])
                if len(seen) == RUNS:
                    enough.set()
                    return

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    eventually(lambda: figures(server).get("tidewheel_event_streams") == 1, within=WITHIN_SECONDS, what="it is read")
    made = [trigger(server) for _ in range(2)]
    eventually(lambda: len(seen) == 2, within=WITHIN_SECONDS, what="the first two are seen")
    server.kill()
    server.start()
    made += [trigger(server) for _ in range(RUNS - 2)]
    assert enough.wait(WITHIN_SECONDS), seen
    assert seen == made


def test_the_command_shows_what_happened_and_goes_on_behind_a_cursor(server):
    put(server)
    made = [trigger(server) for _ in range(3)]
    shown = server.run("events", "--schedule", "acme/report", "--type", "run.created")
    assert shown.returncode == 0, shown.stderr
    assert [line.split()[-1] for line in shown.stdout.splitlines()] == made
    lines = server.run("events", "--tenant", "acme", "--type", "run.created", "--json").stdout.splitlines()
    found = [json.loads(line) for line in lines]
    assert [each["data"]["run_id"] for each in found] == made
    rest = server.run("events", "--tenant", "acme", "--type", "run.created", "--json", "--cursor", found[0]["cursor"])
    assert [json.loads(line)["data"]["run_id"] for line in rest.stdout.splitlines()] == made[1:]


def test_prometheus_is_told_of_what_was_done_and_of_what_waits(server):
    put(server)
    for _ in range(3):
        trigger(server)
    found: dict[str, float] = {}

    def told() -> bool:
        found.update(figures(server))
        return sum(value for series, value in found.items() if series.startswith("tidewheel_runs_queued{")) == 3

    eventually(told, within=WITHIN_SECONDS, what=lambda: f"three runs wait: {found}")
    assert found['tidewheel_runs_created_total{cause="manual",tenant="acme"}'] == 3
    assert found['tidewheel_role_partitions{role="scheduler"}'] == 4
    assert found['tidewheel_restore_records_left{partition="3",role="scheduler"}'] == 0
    assert found["tidewheel_read_model_as_of_timestamp_seconds"] > 0
