"""A worker as a process of its own: signals, and a parent that goes away."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sdk.fake_server import DEADLINE_SECONDS, over_http, run

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

SDK = Path(__file__).parents[2] / "sdk"
MODULE = """\
import threading
from tidewheel import Worker

worker = Worker(name="w1", grace_seconds=30)

@worker.task("wait")
def wait():
    return open("go-on").read()

@worker.task("stubborn")
def stubborn():
    threading.Event().wait(60)
"""


@pytest.fixture
async def spawn(queue, tmp_path):
    """Start a Python process that finds the module `tasks` and the queue; it is killed when the test is over."""
    (tmp_path / "tasks.py").write_text(MODULE)
    os.mkfifo(tmp_path / "go-on")
    children = []

    def spawn(*arguments):
        with (tmp_path / "stderr").open("wb") as stderr:
            child = subprocess.Popen(
                [sys.executable, *arguments],
                cwd=tmp_path,
                env={"PYTHONPATH": str(SDK), **queue.environment},
                stdin=subprocess.PIPE,
                stderr=stderr,
            )
        children.append(child)
        return child

    yield spawn
    for child in children:
        child.kill()
        child.wait()
        assert child.stdin is not None
        child.stdin.close()


async def ended(child: subprocess.Popen[bytes]) -> int:
    """The exit code; the server goes on serving meanwhile."""
    return await asyncio.to_thread(child.wait, DEADLINE_SECONDS)


async def test_sigterm_lets_a_worker_finish_what_it_holds(queue, spawn, tmp_path):
    child = spawn("-c", "from tasks import worker; worker.run()")
    [lease] = await queue.hand_out(run("wait"))
    await queue.reported("started", lease)
    child.send_signal(signal.SIGTERM)
    await queue.until(lambda: queue.reports[-1]["draining"])
    (tmp_path / "go-on").write_text("done")
    assert (await queue.finished(lease))["result"] == "done"
    assert await ended(child) == 0


async def test_one_ctrl_c_that_arrives_twice_is_one(queue, spawn, tmp_path):
    child = spawn("-c", "from tasks import worker; worker.run()")
    [lease] = await queue.hand_out(run("wait"))
    await queue.reported("started", lease)
    child.send_signal(signal.SIGINT)
    child.send_signal(signal.SIGINT)
    await queue.until(lambda: queue.reports[-1]["draining"])
    (tmp_path / "go-on").write_text("done")
    assert (await queue.finished(lease))["result"] == "done"
    assert await ended(child) == 0


async def test_a_second_signal_ends_a_worker_at_once(queue, spawn):
    child = spawn("-c", "from tasks import worker; worker.run()")
    [lease] = await queue.hand_out(run("stubborn"))
    await queue.reported("started", lease)
    child.send_signal(signal.SIGTERM)
    await queue.until(lambda: queue.reports[-1]["draining"])
    first = len(queue.reports)
    await queue.until(lambda: len(queue.reports) > first)  # idle reports are seconds apart
    child.send_signal(signal.SIGTERM)
    assert await ended(child) == -signal.SIGTERM


async def test_a_function_that_never_ends_does_not_keep_a_drained_process(queue, spawn):
    child = spawn("-c", "from tasks import worker; worker.configure(grace_seconds=0); worker.run()")
    [lease] = await queue.hand_out(run("stubborn"))
    await queue.reported("started", lease)
    child.send_signal(signal.SIGTERM)
    assert await queue.finished(lease) == {"lease": lease, "outcome": "interrupted"}
    assert await ended(child) == 0


async def test_a_worker_whose_name_was_taken_exits_with_a_message(queue, spawn, tmp_path):
    child = spawn("-c", "from tasks import worker; worker.run()")
    await queue.until(lambda: queue.reports)
    await queue.say(incarnation_ended=True, ended_by="abc123")
    assert await ended(child) == 1
    assert "replaced by another process of the same name (incarnation abc123)" in (tmp_path / "stderr").read_text()


async def test_a_supervised_worker_ends_with_whoever_holds_its_standard_input(queue, spawn):
    child = spawn("-m", "tidewheel.supervised", "tasks:worker", "--slots", "3")
    report = await queue.until(lambda: queue.reports and queue.reports[0])
    assert report["slots"] == 3
    child.stdin.close()
    assert await ended(child) == 1


async def test_the_command_line_says_whom_the_worker_speaks_to(queue, spawn):
    url, bootstrap, namespace = (f"TIDEWHEEL_{name}" for name in ("URL", "BOOTSTRAP", "NAMESPACE"))
    flags = {url: "--url", bootstrap: "--bootstrap", namespace: "--namespace"}
    words = [word for name, value in queue.environment.items() for word in (flags[name], value)]
    queue.environment.clear()
    spawn("-c", "from tidewheel.cli import main; main()", "worker", "tasks:worker", "--slots", "3", *words)
    report = await queue.until(lambda: queue.reports and queue.reports[0])
    assert report["slots"] == 3


@over_http
async def test_a_worker_without_a_module_calls_http_endpoints_and_nothing_else(queue, spawn):
    spawn("-c", "from tidewheel.cli import main; main()", "worker")
    report = await queue.until(lambda: queue.reports and queue.reports[0])
    assert report["tasks"] == ["http:"]


@over_http
async def test_a_child_of_a_server_speaks_http_to_it_whatever_the_environment_says_of_kafka(queue, spawn):
    queue.environment["TIDEWHEEL_BOOTSTRAP"] = "127.0.0.1:1"
    spawn("-m", "tidewheel.supervised", "tasks:worker")
    await queue.until(lambda: queue.reports)


@over_http
async def test_a_worker_process_imports_the_library_and_nothing_of_the_server(queue, spawn):
    child = spawn("-c", """\
import sys
import tidewheel.supervised
foreign = {"api", "dispatcher", "node", "projections", "runtime", "scheduler", "schemas", "simulation"}
foreign |= {"confluent_kafka"}  # an extra, which only a worker on Kafka needs
sys.exit(sorted(foreign & {name.split(".")[0] for name in sys.modules}) or None)
""")  # fmt: skip
    assert await ended(child) == 0
