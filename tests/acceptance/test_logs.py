"""What a run writes, through the whole line: a real server on the embedded log, a real worker, a real command."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.server import ROOT, TIDEWHEEL, Server
from tests.support.waiting import eventually

pytestmark = pytest.mark.slow

WITHIN_SECONDS = 60
AS_ROOT = "user: root" if os.geteuid() == 0 else ""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path)
    server.start()
    yield server
    server.close()


def logs(server: Server, path: str, **query: Any) -> dict[str, Any]:
    answer = server.http.get(f"{path}/logs", params=query)
    return answer.json() if answer.is_success else {"lines": [], "complete": False}


def texts(server: Server, path: str) -> list[tuple[int, str, str]]:
    return [(line["attempt"], line["stream"], line["text"]) for line in logs(server, path)["lines"]]


def until_read(server: Server, path: str, attempt: int) -> None:
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
        "queue": "logs", "target": {"type": "command", "name": "it"}, "log_retention": "P2D",
        "retry": {"max_attempts": 2, "initial": "PT0.1S", "max": "PT0.1S"},
    }  # fmt: skip
    put = server.http.put("/v1/tenants/acme/schedules/it", json={"trigger": {"cron": "0 0 1 1 *"}, "job": job})
    assert put.is_success, put.text
    run_id = server.http.post("/v1/tenants/acme/schedules/it:trigger", json={}).json()["run_id"]
    path = f"/v1/tenants/acme/runs/{run_id}"
    command = [TIDEWHEEL, "worker", "--targets", str(targets), "--queue", "logs", "--grace", "1"]
    worker = subprocess.Popen(command, cwd=ROOT, env=os.environ | {"TIDEWHEEL_URL": server.url})
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
