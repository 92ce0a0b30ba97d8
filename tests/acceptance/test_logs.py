"""What a run writes, through the whole line: a real server, a real worker, a real command.

On the embedded log the worker speaks HTTP. On Kafka it writes the topic itself, and nobody stands between.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from confluent_kafka.admin import AdminClient

from deploy.kafka.broker import free_port
from schemas import topics
from tests.storm.fleet import Member
from tests.support.server import ROOT, TIDEWHEEL, Server
from tests.support.waiting import eventually

pytestmark = pytest.mark.slow

WITHIN_SECONDS = 60
AS_ROOT = "user: root" if os.geteuid() == 0 else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A server, where a worker finds its queue, and how the log of its runs is called."""

    url: str
    queue: str
    worker: Sequence[str]
    http: httpx.Client


@pytest.fixture(params=["embedded", "kafka"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Line]:
    with on_kafka(request, tmp_path) if request.param == "kafka" else embedded(tmp_path) as line:
        yield line


@contextmanager
def embedded(folder: Path) -> Iterator[Line]:
    server = Server(folder)
    try:
        server.start()
        yield Line(url=server.url, queue="logs", worker=("--url", server.url), http=server.http)
    finally:
        server.close()


@contextmanager
def on_kafka(request: pytest.FixtureRequest, folder: Path) -> Iterator[Line]:
    """Afterwards it was the worker that wrote the topic, without its lease, and the rows' own group that read it."""
    bootstrap, namespace = request.getfixturevalue("broker"), request.getfixturevalue("topic_prefix")
    port, config = free_port(1), folder / "tidewheel.toml"
    config.write_text(
        f'bootstrap = "{bootstrap}"\nnamespace = "{namespace}"\npartitions = 1\nport = {port}\n'
        "replication_factor = 1\nmin_insync_replicas = 1\n"
    )
    topics_of_a_queue = [TIDEWHEEL, "admin", "topics", "create", "--queue", "default", "--config", str(config)]
    subprocess.run(topics_of_a_queue, cwd=ROOT, check=True)
    command = [TIDEWHEEL, "serve", "--config", str(config), "--data", str(folder / "data")]
    serving, url = Member("server", command, folder / "server.log"), f"http://127.0.0.1:{port}"
    serving.start()
    try:
        eventually(serving.is_ready, within=WITHIN_SECONDS, what="the server is ready")
        with httpx.Client(base_url=url, timeout=30) as http:
            worker = ("--bootstrap", bootstrap, "--namespace", namespace)
            yield Line(url=url, queue="default", worker=worker, http=http)
            records = http.get(f"/v1/log/{topics.LOGS}/0", params={"limit": 100}).json()["records"]
        assert {record["value"]["source"] for record in records} == {"tidewheel/worker"}
        assert not any("lease" in record["value"]["data"] for record in records)
        group = f"{namespace}tidewheel.log-projector"
        admin = AdminClient({"bootstrap.servers": bootstrap})
        assert len(admin.describe_consumer_groups([group])[group].result(30).members) == 1
    finally:
        serving.ask_to_stop()
        ended = serving.wait(30)
    assert ended == 0, serving.output.read_text()


def logs(server: Line, path: str, **query: Any) -> dict[str, Any]:
    answer = server.http.get(f"{path}/logs", params=query)
    return answer.json() if answer.is_success else {"lines": [], "complete": False}


def texts(server: Line, path: str) -> list[tuple[int, str, str]]:
    return [(line["attempt"], line["stream"], line["text"]) for line in logs(server, path)["lines"]]


def until_read(server: Line, path: str, attempt: int) -> None:
    begun = (attempt, "stdout", f"begun {attempt}")
    eventually(lambda: begun in texts(server, path), within=WITHIN_SECONDS, what=f"attempt {attempt} is read")


def test_a_command_is_read_while_it_runs_attempt_by_attempt_and_without_its_secret(server, tmp_path):
    gate, targets = tmp_path / "gate", tmp_path / "targets.yaml"
    os.mkfifo(gate)
    script = f"echo begun $TIDEWHEEL_ATTEMPT; cat {gate} > /dev/null; echo $DB_PASSWORD >&2; exit 3"
    targets.write_text(
        f"commands: {{it: {{argv: [/bin/sh, -c, '{script}'], env: {{DB_PASSWORD: hunter2-and-more}}, {AS_ROOT}}}}}"
    )
    job = {
        "queue": server.queue, "target": {"type": "command", "name": "it"}, "log_retention": "P2D",
        "retry": {"max_attempts": 2, "initial": "PT0.1S", "max": "PT0.1S"},
    }  # fmt: skip
    put = server.http.put("/v1/tenants/acme/schedules/it", json={"trigger": {"cron": "0 0 1 1 *"}, "job": job})
    assert put.is_success, put.text
    run_id = server.http.post("/v1/tenants/acme/schedules/it:trigger", json={}).json()["run_id"]
    path = f"/v1/tenants/acme/runs/{run_id}"
    command = [TIDEWHEEL, "worker", "--targets", str(targets), "--queue", server.queue, "--grace", "1", *server.worker]
    worker = subprocess.Popen(command, cwd=ROOT)
    try:
        for attempt in (1, 2):
            until_read(server, path, attempt)
            assert server.http.get(path).json()["state"] == "running"
            gate.write_text("go")
        eventually(lambda: logs(server, path)["complete"], within=WITHIN_SECONDS, what="the log is complete")
    finally:
        worker.terminate()
        worker.wait(30)
    found = texts(server, path)
    assert [line for line in found if line[1] != "log"] == [
        (1, "stdout", "begun 1"), (1, "stderr", "***"), (2, "stdout", "begun 2"), (2, "stderr", "***"),
    ]  # fmt: skip
    assert [line[0] for line in found if line[1] == "log"] == [1, 2]  # how each failed
    shown = subprocess.run(
        [TIDEWHEEL, "runs", "logs", f"acme/{run_id}", "--follow", "--stream", "stdout", "--attempt", "2"],
        cwd=ROOT, env=os.environ | {"TIDEWHEEL_URL": server.url}, capture_output=True, text=True, check=True,
        timeout=WITHIN_SECONDS,
    )  # fmt: skip
    assert shown.stdout.splitlines()[0] == "attempt 2"
    assert shown.stdout.splitlines()[1].endswith("stdout  begun 2")
    assert server.http.get(path).json()["job"]["log_retention"] == "P2D"
