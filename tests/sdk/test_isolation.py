"""Tasks in processes of their own, and what becomes of a worker whose tasks do not stop."""

import asyncio
import logging
import os
import signal
import sys
import threading
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

import pytest

from tests.sdk import isolated_tasks
from tests.sdk.fake_server import DEADLINE_SECONDS, over_http, run
from tests.sdk.test_commands import gone, numbers
from tidewheel import Worker, WorkerStuck, attempts, isolated

pytestmark = [pytest.mark.anyio, over_http]


@pytest.fixture
async def isolate(queue):
    """Start a worker whose tasks run in processes."""
    workers = []

    async def isolate(*functions, grace_seconds=0.0):
        worker = Worker(**queue.options, name="w1", grace_seconds=grace_seconds)
        for function in functions:
            worker.task(function.__name__, isolate="process")(function)
        await worker.start()
        workers.append(worker)
        return worker

    yield isolate
    for worker in workers:
        if worker.running:
            await worker.stop()


async def test_each_attempt_has_a_memory_of_its_own_and_its_words_come_through(queue, isolate, caplog):
    caplog.set_level(logging.INFO)
    await isolate(isolated_tasks.remember)
    pids = set()
    for _ in range(2):
        [lease] = await queue.hand_out(run("remember", {"day": "x"}))
        result = (await queue.finished(lease))["result"]
        pids.add(result.pop("pid"))
        assert result == {"run": "nightly.20260308T020000Z", "day": "x", "calls": 1}
    assert (len(pids), os.getpid() in pids, isolated_tasks.memory) == (2, False, [])
    said = [record.message for record in caplog.records if record.name == "tidewheel.run"]
    assert said[:2] == [
        "[nightly.20260308T020000Z] remembering x",
        "[nightly.20260308T020000Z] progress: {'done': 1}",
    ]


async def test_what_processes_are_forked_from_is_started_with_the_worker_that_needs_it(queue, isolate):
    """To start it costs a third of a second of a core, when the first attempts, and all beside them, would wait."""
    server: Any = forkserver._forkserver
    server._stop()
    worker = Worker(**queue.options, name="w0")
    worker.task("remember")(isolated_tasks.remember)
    await worker.start()
    await worker.stop()
    assert server._forkserver_pid is None
    await isolate(isolated_tasks.remember)
    assert server._forkserver_pid is not None


async def test_each_attempt_has_the_environment_of_its_worker_as_it_is_when_it_starts(queue, isolate, monkeypatch):
    await isolate(isolated_tasks.look_around)
    run_ = {"TIDEWHEEL_RUN_ID": "nightly.20260308T020000Z"}
    for mark, other, attempt in (("one", "there", 1), ("two", None, 2)):
        monkeypatch.setenv("MARK", mark)
        monkeypatch.delenv("OTHER", raising=False) if other is None else monkeypatch.setenv("OTHER", other)
        [lease] = await queue.hand_out(run("look_around", handout={"attempt": attempt}))
        seen = (await queue.finished(lease))["result"]
        assert seen == {"first": mark, "MARK": mark, "OTHER": other, "TIDEWHEEL_ATTEMPT": str(attempt), **run_}
    assert "TIDEWHEEL_RUN_ID" not in os.environ


async def test_a_coroutine_can_be_isolated_too(queue, isolate):
    await isolate(isolated_tasks.gently)
    [lease] = await queue.hand_out(run("gently", handout={"attempt": 2}))
    assert (await queue.finished(lease))["result"] == 2


async def test_what_it_raises_is_its_error(queue, isolate):
    await isolate(isolated_tasks.fail)
    [lease] = await queue.hand_out(run("fail"))
    assert (await queue.finished(lease))["error"] == {"type": "ValueError", "message": "no such day"}


@pytest.mark.parametrize(("function", "code"), [(isolated_tasks.die, -9), (isolated_tasks.crash, -11)])
async def test_a_process_that_dies_fails_its_attempt_and_not_the_worker(queue, isolate, function, code):
    await isolate(function, isolated_tasks.gently)
    [lease] = await queue.hand_out(run(function.__name__))
    assert (await queue.finished(lease))["error"] == {
        "type": "ProcessDied",
        "message": f"the task's process ended without a word, with exit code {code}",
    }
    [other] = await queue.hand_out(run("gently"))
    assert (await queue.finished(other))["outcome"] == "succeeded"


@pytest.mark.parametrize("function", [isolated_tasks.listen, isolated_tasks.for_ever])
async def test_one_that_listens_stops_when_its_run_is_cancelled(queue, isolate, tmp_path, function):
    file = tmp_path / "pid"
    await isolate(function)
    [lease] = await queue.hand_out(run(function.__name__, {"file": str(file)}))
    [pid] = await numbers(file, 1)
    await queue.say(cancelled=[lease])
    assert await queue.finished(lease) == {"lease": lease, "outcome": "cancelled"}
    await gone(pid)


async def test_one_that_does_not_listen_is_killed_after_its_grace_with_all_it_started(
    queue, isolate, tmp_path, monkeypatch
):
    monkeypatch.setattr(isolated, "GRACE_SECONDS", 0.1)
    file = tmp_path / "pids"
    await isolate(isolated_tasks.stubborn)
    [lease] = await queue.hand_out(run("stubborn", {"file": str(file)}))
    pids = await numbers(file, 2)
    await queue.say(cancelled=[lease])
    assert await queue.finished(lease) == {"lease": lease, "outcome": "cancelled"}
    await gone(*pids)


async def test_a_drain_leaves_no_process_behind(queue, isolate, tmp_path, monkeypatch):
    monkeypatch.setattr("tidewheel.session.STOP_SECONDS", 0.05)
    file = tmp_path / "pids"
    worker = await isolate(isolated_tasks.stubborn)
    [lease] = await queue.hand_out(run("stubborn", {"file": str(file)}))
    pids = await numbers(file, 2)
    await worker.stop()
    assert await queue.finished(lease) == {"lease": lease, "outcome": "interrupted"}
    await gone(*pids)


MODULE = """\
import ctypes, os, pathlib, threading
from tidewheel import Worker

worker = Worker(name="w1")

@worker.task("stubborn", isolate="process")
def stubborn():
    pathlib.Path("pid").write_text(f"{os.getpid()}")
    threading.Event().wait()

@worker.task("deaf", isolate="process")
def deaf():
    pathlib.Path("pid").write_text(f"{os.getpid()}")
    ctypes.PyDLL(None).pause()  # in C, and no other thread has its turn

if __name__ == "__main__":
    worker.run()
"""


@pytest.mark.slow
@pytest.mark.parametrize("task", ["stubborn", "deaf"])
@pytest.mark.parametrize("arguments", [["tasks.py"], ["-m", "tidewheel.supervised", "tasks:worker"]])
async def test_an_isolated_task_dies_with_its_worker(queue, tmp_path, arguments, task):
    (tmp_path / "tasks.py").write_text(MODULE)
    environment = {"PYTHONPATH": str(Path(__file__).parents[2] / "sdk"), **queue.environment}
    worker = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, cwd=tmp_path, env=environment, stdin=asyncio.subprocess.PIPE
    )
    try:
        await queue.hand_out(run(task))
        [pid] = await numbers(tmp_path / "pid", 1)
        worker.send_signal(signal.SIGKILL)
        await gone(pid)
    finally:
        if worker.returncode is None:
            worker.kill()
        await worker.wait()


# --- tasks that do not stop ---


async def test_a_worker_whose_slots_are_held_by_what_does_not_stop_drains_and_ends(queue, monkeypatch):
    """Its supervisor starts a new one, which has all its slots."""
    monkeypatch.setattr(attempts, "STUCK_SECONDS", 0.0)
    monkeypatch.setattr("tidewheel.session.STOP_SECONDS", 0.05)
    go_on = threading.Event()
    worker = Worker(**queue.options, name="w1", slots=2, grace_seconds=0.0)
    worker.task("it")(lambda: go_on.wait(DEADLINE_SECONDS))
    await worker.start()
    [lease] = await queue.hand_out(run("it"))
    await queue.reported("started", lease)
    await queue.say(lost=[lease])
    with pytest.raises(WorkerStuck, match="1 of 2 slots are held by tasks that were asked to stop and did not"):
        await asyncio.wait_for(worker.wait(), DEADLINE_SECONDS)
    assert not worker.running
    go_on.set()
