"""Commands that a worker allows: how they are called, what counts as success, and that nothing of them is left over."""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.sdk.fake_server import DEADLINE_SECONDS, over_http, run
from tests.support.waiting import eventually
from tidewheel import Worker
from tidewheel.targets import settings
from tidewheel.targets.settings import Command, Settings

pytestmark = [pytest.mark.anyio, over_http]

SH = "/bin/sh"  # of the tests: a worker starts none by itself


def script(text: str, **fields: Any) -> Command:
    """A command of the allow-list that a shell reads."""
    return Command(name="it", argv=(SH, "-c", text), **fields)


def named(name: str = "it", payload: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    """A run of a command."""
    job = {"queue": "default", "target": {"type": "command", "name": name}, "payload": payload or {}}
    return run("", job=job, **fields)


@pytest.fixture
async def allow(queue):
    """Start a worker that allows the given commands."""
    workers = []

    async def allow(*commands: Command, grace_seconds: float = 0.0) -> Worker:
        worker = Worker(**queue.options, name="w1", grace_seconds=grace_seconds)
        worker.serve(Settings(commands={command.name: command for command in commands}))
        await worker.start()
        workers.append(worker)
        return worker

    yield allow
    for worker in workers:
        if worker.running:
            await worker.stop()


def alive(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def gone(*pids: int) -> None:
    """Wait for the end of processes, while the server goes on serving."""
    await asyncio.to_thread(
        eventually, lambda: not any(map(alive, pids)), within=DEADLINE_SECONDS, what=f"{pids} have ended"
    )


async def numbers(path: Path, count: int) -> list[int]:
    """The numbers that a command writes into a file, one a line, once they are there."""

    def written() -> list[int]:
        return list(map(int, path.read_text().split())) if path.exists() else []

    await asyncio.to_thread(
        eventually, lambda: len(written()) == count, within=DEADLINE_SECONDS, what=f"{path} has {count}"
    )
    return written()


async def test_a_worker_announces_the_commands_it_allows(queue, allow):
    await allow(script("true"), Command(name="other", argv=("/bin/true",)))
    report = await queue.until(lambda: queue.reports and queue.reports[0])
    assert report["tasks"] == ["command:it", "command:other"]


async def test_the_payload_comes_on_standard_input_and_the_output_is_the_result(queue, allow):
    await allow(script("cat"))
    [lease] = await queue.hand_out(named(payload={"day": "2026-03-08"}))
    assert await queue.finished(lease) == {
        "lease": lease,
        "outcome": "succeeded",
        "result": {"exit_code": 0, "output": '{"day":"2026-03-08"}', "output_bytes": 20},
    }


async def test_the_facts_of_the_run_stand_in_the_environment_and_nothing_of_the_workers_does(queue, allow, monkeypatch):
    monkeypatch.setenv("WORKERS_OWN", "secret")
    await allow(Command(name="it", argv=("/usr/bin/env",), env={"PATH": "/bin", "PGHOST": "db"}))
    again = {"attempt": 2, "may_have_run": True}
    [lease] = await queue.hand_out(named(interval_from="2026-03-07T02:00:00Z", handout=again))
    output = (await queue.finished(lease))["result"]["output"]
    assert sorted(output.splitlines()) == [
        "PATH=/bin",
        "PGHOST=db",
        "TIDEWHEEL_ATTEMPT=2",
        "TIDEWHEEL_FENCING_TOKEN=1",
        "TIDEWHEEL_IDEMPOTENCY_KEY=nightly.20260308T020000Z",
        "TIDEWHEEL_INTERVAL_FROM=2026-03-07T02:00:00Z",
        "TIDEWHEEL_MAY_HAVE_RUN=true",
        "TIDEWHEEL_NOMINAL_TIME=2026-03-08T02:00:00Z",
        "TIDEWHEEL_RUN_ID=nightly.20260308T020000Z",
        "TIDEWHEEL_SCHEDULE=nightly",
        "TIDEWHEEL_TENANT=acme",
    ]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("echo no disk >&2; exit 3", {"type": "exit:3", "message": "command 'it' ended with 3: no disk\n"}),
        ("kill -TERM $$", {"type": "signal:15", "message": "command 'it' was ended by SIGTERM: "}),
    ],
)
async def test_any_exit_code_but_zero_and_any_signal_fail_the_attempt_by_a_name_of_their_own(queue, allow, text, error):
    await allow(script(text))
    [lease] = await queue.hand_out(named())
    assert await queue.finished(lease) == {"lease": lease, "outcome": "failed", "error": error}


async def test_a_program_that_cannot_be_started_fails_the_attempt_and_says_why(queue, allow):
    await allow(Command(name="it", argv=("/no/such/program",)))
    [lease] = await queue.hand_out(named())
    error = (await queue.finished(lease))["error"]
    assert error["type"] == "CommandUnusable"
    assert "No such file or directory: '/no/such/program'" in error["message"]


async def test_a_command_that_serves_some_tenants_is_refused_to_others(queue, allow):
    await allow(script("true", tenants=frozenset({"umbrella"})))
    [lease] = await queue.hand_out(named())
    error = (await queue.finished(lease))["error"]
    assert error == {"type": "CommandUnusable", "message": "this worker does not run command 'it' for tenant 'acme'"}


async def test_of_much_output_the_end_is_kept_and_the_whole_is_read(queue, allow):
    await allow(script("i=0; while [ $i -lt 20000 ]; do echo 0123456789; i=$((i+1)); done; echo end"))
    [lease] = await queue.hand_out(named())
    result = (await queue.finished(lease))["result"]
    assert (result["output_bytes"], len(result["output"]), result["output"][-4:]) == (220_004, 4096, "end\n")


async def test_a_command_that_does_not_read_its_payload_is_not_held_up(queue, allow):
    await allow(script("exit 0"))
    [lease] = await queue.hand_out(named(payload={"text": "x" * 60_000}))
    assert (await queue.finished(lease))["outcome"] == "succeeded"


async def test_what_a_command_leaves_behind_ends_with_it_even_in_a_session_of_its_own(queue, allow, tmp_path):
    pids = tmp_path / "pids"
    await allow(script(f"sleep 600 & echo $! >> {pids}; setsid sh -c 'echo $$ >> {pids}; exec sleep 600' & sleep 0.2"))
    [lease] = await queue.hand_out(named())
    assert (await queue.finished(lease))["outcome"] == "succeeded"
    await gone(*await numbers(pids, 2))


async def test_a_cancelled_run_is_asked_by_sigterm_and_may_clean_up(queue, allow, tmp_path):
    ready, cleaned = tmp_path / "ready", tmp_path / "cleaned"
    await allow(
        script(f"trap 'echo 1 > {cleaned}; exit 1' TERM; echo $$ > {ready}; sleep 600 & wait", grace_seconds=20)
    )
    [lease] = await queue.hand_out(named())
    [pid] = await numbers(ready, 1)
    await queue.say(cancelled=[lease])
    assert await queue.finished(lease) == {"lease": lease, "outcome": "cancelled"}
    assert (await numbers(cleaned, 1), alive(pid)) == ([1], False)


async def test_a_command_that_ignores_sigterm_is_killed_after_its_grace_with_all_it_started(queue, allow, tmp_path):
    pids = tmp_path / "pids"
    await allow(
        script(f"trap '' TERM; echo $$ >> {pids}; sleep 600 & echo $! >> {pids}; wait; wait", grace_seconds=0.2)
    )
    [lease] = await queue.hand_out(named())
    found = await numbers(pids, 2)
    await queue.say(lost=[lease])
    await gone(*found)


async def test_limits_are_set_before_the_command_begins(queue, allow):
    await allow(
        script("ulimit -t; ulimit -n; ulimit -v; ulimit -c", limits={"cpu": 7, "open_files": 33, "memory": 2**30})
    )
    [lease] = await queue.hand_out(named())
    assert (await queue.finished(lease))["result"]["output"] == "7\n33\n1048576\n0\n"


async def test_a_command_runs_as_the_user_that_the_file_names(queue, allow):
    """Only a worker that runs as root can change the user; any other runs it as itself, and the file says so."""
    root = os.geteuid() == 0
    user = settings._user("nobody") if root else None
    await allow(script("id -u", user=user))
    [lease] = await queue.hand_out(named())
    expected = user.uid if user is not None else os.geteuid()
    assert (await queue.finished(lease))["result"]["output"] == f"{expected}\n"


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
async def test_a_command_never_outlives_its_worker_however_that_ends(queue, tmp_path, how):
    pids = tmp_path / "pids"
    (tmp_path / "targets.yaml").write_text(
        f'commands: {{it: {{argv: [{SH}, -c, "echo $$ >> {pids}; setsid sleep 600 & echo $! >> {pids}; wait"],'
        f" {'user: root' if os.geteuid() == 0 else ''}}}}}"
    )
    start = "from tidewheel.cli import main; main()"
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", start, "worker", "--targets", "targets.yaml", "--grace", "0",
        cwd=tmp_path, env={"PYTHONPATH": str(Path(__file__).parents[2] / "sdk"), **queue.environment},
    )  # fmt: skip
    try:
        await queue.hand_out(named())
        found = await numbers(pids, 2)
        child.send_signal(how)
        await gone(*found)
    finally:
        if child.returncode is None:
            child.kill()
        await child.wait()
