"""Commands and HTTP endpoints through the whole line: a real server on the embedded log, a real worker, real runs."""

from __future__ import annotations

import base64
import hmac
import os
import secrets
import signal
import subprocess
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.sdk.fake_server import Request, Response, in_thread
from tests.support.server import ROOT, TIDEWHEEL, Server
from tests.support.waiting import eventually

pytestmark = pytest.mark.slow

WITHIN_SECONDS = 60
AS_ROOT = "user: root" if os.geteuid() == 0 else ""
ENDED = {"succeeded", "failed", "timed_out", "cancelled", "dead_lettered", "expired"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("targets")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    server = Server(folder)
    server.start()
    yield server
    server.close()


class Worker:
    """A `tidewheel worker` of a queue, as a process."""

    def __init__(self, server: Server, queue: str, targets: Path) -> None:
        command = [TIDEWHEEL, "worker", "--targets", str(targets), "--queue", queue, "--slots", "4", "--grace", "1"]
        self.process = subprocess.Popen(command, cwd=ROOT, env=os.environ | {"TIDEWHEEL_URL": server.url})

    def end(self, how: signal.Signals = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.process.send_signal(how)
        return self.process.wait(30)


@pytest.fixture
def targets(folder: Path) -> Path:
    return folder / "targets.yaml"


@pytest.fixture
def work(server: Server, targets: Path, request: pytest.FixtureRequest) -> Iterator[Worker]:
    """A worker with the file of targets, on a queue of the test's own."""
    workers: list[Worker] = []

    def work(text: str) -> Worker:
        targets.write_text(text)
        workers.append(Worker(server, queue_of(request), targets))
        return workers[-1]

    yield work  # type: ignore[misc]
    for worker in workers:
        worker.end()


@pytest.fixture
def trigger(server: Server, request: pytest.FixtureRequest) -> Any:
    """Put a schedule with a target, trigger a run of it by hand; returns the run's path."""

    def trigger(target: dict[str, Any], **job: Any) -> str:
        name = queue_of(request)
        body = {"trigger": {"cron": "0 0 1 1 *"}, "job": {"queue": name, "target": target, **job}}
        put = server.http.put(f"/v1/tenants/acme/schedules/{name}", json=body)
        assert put.status_code in {200, 201}, put.text
        made = server.http.post(f"/v1/tenants/acme/schedules/{name}:trigger", json={})
        assert made.is_success, made.text
        return f"/v1/tenants/acme/runs/{made.json()['run_id']}"

    return trigger


def queue_of(request: pytest.FixtureRequest) -> str:
    return str(request.node.name)[:60].replace("[", "-").replace("]", "")


def ended(server: Server, path: str) -> dict[str, Any]:
    """The run, once it has."""
    found: dict[str, Any] = {}

    def over() -> bool:
        response = server.http.get(path)
        found.update(response.json())
        return response.is_success and found.get("state") in ENDED

    eventually(over, within=WITHIN_SECONDS, what=lambda: f"{path} has ended: {found}")
    return found


def test_a_run_of_a_command_waits_for_a_worker_that_allows_it_and_has_its_output_as_result(server, work, trigger):
    run = trigger({"type": "command", "name": "hello"}, payload={"to": "you"})
    work(f"commands: {{hello: {{argv: [/bin/cat], {AS_ROOT}}}}}")
    found = ended(server, run)
    assert (found["state"], found["attempts"][0]["state"]) == ("succeeded", "succeeded")
    assert found["result"] == {"exit_code": 0, "output": '{"to":"you"}', "output_bytes": 12}


def test_never_on_names_the_exit_codes_that_are_not_tried_again(server, work, trigger):
    work(f"commands: {{usage: {{argv: [/bin/sh, -c, 'exit 64'], {AS_ROOT}}}}}")
    run = trigger({"type": "command", "name": "usage"}, retry={"never_on": ["exit:64"]})
    found = ended(server, run)
    assert (found["state"], len(found["attempts"]), found["error"]["type"]) == ("failed", 1, "exit:64")


class Endpoint:
    """An HTTP endpoint on this machine, with a scripted answer to each request in turn; the last one stays."""

    def __init__(self, *script: Response) -> None:
        self.script = list(script)
        self.requests: list[Request] = []

    def __call__(self, request: Request) -> Response:
        self.requests.append(request)
        return self.script.pop(0) if len(self.script) > 1 else self.script[0]


def allowing(url: str, more: str = "") -> str:
    """A file of targets that lets this machine's endpoint be called."""
    port = url.rpartition(":")[2]
    return f"http: {{allow: [127.0.0.0/8], plain: true, ports: [{port}], answer_within: 1s{more}}}"


def test_b_o29_an_endpoint_is_called_again_until_it_says_2xx_with_the_same_id_each_time(server, work, trigger):
    endpoint = Endpoint(Response(status=500), Response(status=429, headers={"Retry-After": "2"}), Response({"rows": 3}))
    with in_thread(endpoint) as url:
        work(allowing(url))
        retry = {"max_attempts": 5, "initial": "PT0.1S", "jitter": "none"}
        run = trigger({"type": "http", "url": f"{url}/hook"}, payload={"a": 1}, retry=retry)
        found = ended(server, run)
    assert (found["state"], found["result"]) == ("succeeded", {"status": 200, "body": {"rows": 3}})
    errors = [(attempt.get("error") or {}).get("type") for attempt in found["attempts"]]
    assert errors == ["http:500", "http:429", None]
    headers = [request.headers for request in endpoint.requests]
    assert {each["webhook-id"] for each in headers} == {run.rpartition("/")[2]}
    assert [each["tidewheel-attempt"] for each in headers] == ["1", "2", "3"]
    assert [each["tidewheel-may-have-run"] for each in headers] == ["false", "true", "true"]
    tokens = [int(each["tidewheel-fencing-token"]) for each in headers]
    assert tokens == sorted(set(tokens))
    finished, started = (
        datetime.fromisoformat(found["attempts"][i][at]) for i, at in ((1, "finished_at"), (2, "handed_out_at"))
    )
    assert started - finished >= timedelta(seconds=2)


def test_b_o29_an_endpoint_that_says_404_is_not_asked_again(server, work, trigger):
    endpoint = Endpoint(Response({"title": "no such hook"}, status=404))
    with in_thread(endpoint) as url:
        work(allowing(url))
        found = ended(server, trigger({"type": "http", "url": f"{url}/hook"}))
    assert (found["state"], found["error"]["type"], len(endpoint.requests)) == ("failed", "http:404", 1)


@pytest.mark.parametrize(
    ("said", "state", "result"),
    [
        ({"outcome": "succeeded", "result": {"rows": 3}}, "succeeded", {"rows": 3}),
        ({"outcome": "failed", "error": {"type": "NoStock", "message": "none left"}}, "failed", None),
    ],
)
def test_an_endpoint_that_says_202_completes_the_run_later(server, work, trigger, said, state, result):
    endpoint = Endpoint(Response(status=202))
    with in_thread(endpoint) as url:
        worker = work(allowing(url, f", completion_url: '{server.url}'"))
        run = trigger({"type": "http", "url": f"{url}/hook"}, retry={"max_attempts": 1})
        eventually(lambda: bool(endpoint.requests), within=WITHIN_SECONDS, what="the endpoint was called")
        eventually(lambda: server.http.get(run).json()["state"] == "running", within=WITHIN_SECONDS, what="it runs")
        completion = endpoint.requests[0].headers["tidewheel-completion-url"]
        assert server.http.post(completion, json=said).status_code == 200
        found = ended(server, run)
        assert (found["state"], found.get("result"), len(found["attempts"])) == (state, result, 1)
        assert server.http.post(completion, json=said).status_code == 200  # again, when the first answer got lost
        assert (worker.end(), len(endpoint.requests)) == (0, 1)


def test_b_o19_a_run_that_lasts_many_leases_is_one_attempt_whoever_joins_meanwhile(server, work, trigger, tmp_path):
    """B-O18, trial A: nothing fails. The run lasts three leases, and another worker comes while it is under way.

    A worker lets go of what was not renewed for two thirds of a lease: four seconds, which a busy machine has to spare.
    """
    begun = tmp_path / "begun"
    allowed = f"commands: {{long: {{argv: [/bin/sh, -c, 'echo $$ >> {begun}; sleep 20'], {AS_ROOT}}}}}"
    work(allowed)
    run = trigger({"type": "command", "name": "long"}, lease="PT6S")
    eventually(begun.exists, within=WITHIN_SECONDS, what="the command has begun")
    work(allowed)
    found = ended(server, run)
    assert (found["state"], len(found["attempts"]), len(begun.read_text().split())) == ("succeeded", 1, 1)


def test_b_o13_a_cancelled_run_of_a_command_is_asked_and_its_end_is_the_runs(server, work, trigger, tmp_path):
    begun = tmp_path / "begun"
    text = f"trap 'exit 1' TERM; echo $$ > {begun}; sleep 600 & wait"
    work(f'commands: {{slow: {{argv: [/bin/sh, -c, "{text}"], {AS_ROOT}}}}}')
    run = trigger({"type": "command", "name": "slow"})
    eventually(lambda: begun.exists() and bool(begun.read_text()), within=WITHIN_SECONDS, what="the command has begun")
    eventually(lambda: server.http.get(run).json()["state"] == "running", within=WITHIN_SECONDS, what="it runs")
    assert server.http.post(f"{run}:cancel").is_success
    found = ended(server, run)
    assert (found["state"], len(found["attempts"])) == ("cancelled", 1)
    eventually(
        lambda: not Path(f"/proc/{begun.read_text().strip()}").exists(), within=WITHIN_SECONDS, what="it is gone"
    )


def test_a_run_that_takes_longer_than_its_timeout_ends_with_its_command(server, work, trigger, tmp_path):
    begun = tmp_path / "begun"
    work(f"commands: {{slow: {{argv: [/bin/sh, -c, 'echo $$ > {begun}; exec sleep 600'], {AS_ROOT}}}}}")
    run = trigger({"type": "command", "name": "slow"}, timeout="PT2S", retry={"max_attempts": 1})
    found = ended(server, run)
    assert (found["state"], found["attempts"][0]["state"]) == ("timed_out", "timed_out")
    eventually(
        lambda: not Path(f"/proc/{begun.read_text().strip()}").exists(), within=WITHIN_SECONDS, what="it is gone"
    )


def test_a_signed_run_can_be_checked_by_its_endpoint_and_its_secret_stands_nowhere(server, work, trigger, folder):
    key = secrets.token_bytes(32)
    secret = base64.b64encode(key).decode()
    (folder / "secret").write_text(f"whsec_{secret}")
    endpoint = Endpoint(Response({"ok": True}))
    with in_thread(endpoint) as url:
        work(allowing(url, f", secrets: {{acme/billing: {{file: {folder / 'secret'}}}}}"))
        run = trigger({"type": "http", "url": f"{url}/hook", "secret": "billing"}, payload={"a": 1})
        assert ended(server, run)["state"] == "succeeded"
    [request] = endpoint.requests
    content = f"{request.headers['webhook-id']}.{request.headers['webhook-timestamp']}.".encode() + request.body
    signature = base64.b64encode(hmac.digest(key, content, "sha256")).decode()
    assert request.headers["webhook-signature"] == f"v1,{signature}"
    for topic in ("runs", "run-events", "run-outcomes", "schedules", "versions", "attempts"):
        for partition in range(4):
            assert secret not in server.http.get(f"/v1/log/{topic}/{partition}").text
    assert secret not in server.http.get(run).text


def test_a_command_whose_worker_was_killed_is_run_again_elsewhere_and_told_so(server, work, trigger, tmp_path):
    """B-O18, the worker's side of it: what the dead worker had started is dead too."""
    pids = tmp_path / "pids"
    text = f"echo $$ $TIDEWHEEL_ATTEMPT $TIDEWHEEL_MAY_HAVE_RUN >> {pids}; [ $TIDEWHEEL_ATTEMPT = 2 ] || sleep 600"
    allowed = f"commands: {{once: {{argv: [/bin/sh, -c, '{text}'], {AS_ROOT}}}}}"
    run = trigger({"type": "command", "name": "once"}, lease="PT2S")
    first = work(allowed)
    eventually(pids.exists, within=WITHIN_SECONDS, what="the command has begun")
    first.end(signal.SIGKILL)
    work(allowed)
    found = ended(server, run)
    lines = [line.split() for line in pids.read_text().splitlines()]
    assert (found["state"], [line[1:] for line in lines]) == ("succeeded", [["1", "false"], ["2", "true"]])
    assert not Path(f"/proc/{lines[0][0]}").exists()
