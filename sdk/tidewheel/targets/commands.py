"""One command as a process: payload in, output and exit code out, ended when its run is.

    worker ──▶ guardian ──▶ command ──▶ whatever it starts, all in one group of processes
                  └─ hears of the worker's death, and kills

Exit code 0 succeeds. Any other fails the attempt as `exit:N`, a signal as `signal:N`, and a program that cannot be
started as `CommandUnusable`. A command whose run is cancelled, whose lease is lost or whose worker goes down is sent
SIGTERM, with its whole group, and SIGKILL after its grace.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Self

from tidewheel import jsontext
from tidewheel.context import RunContext
from tidewheel.logs.sources import CURRENT
from tidewheel.targets import facts
from tidewheel.targets.offers import COMMAND, Target, TargetFailed
from tidewheel.targets.settings import Command
from tidewheel.wire import HandOut

GUARDIAN = str(Path(__file__).with_name("guardian.py"))
OUTPUT_BYTES_MAX = 4096  # of each stream that are kept, the last ones: where a command says what went wrong
READ_BYTES = 64 * 1024


def targets(commands: Mapping[str, Command]) -> Iterable[Target]:
    """The allowed commands, as runs are given to them."""
    for command in commands.values():
        yield Target(name=COMMAND + command.name, function=Runner(command).run)


class Runner:
    """Runs one command of the allow-list, as often as runs name it."""

    def __init__(self, command: Command) -> None:
        self._command = command

    async def run(self, context: RunContext, handout: HandOut) -> dict[str, Any]:
        """The exit code and the end of the output; TargetFailed when that is not a success."""
        command = self._command
        if command.tenants and context.tenant not in command.tenants:
            message = f"this worker does not run command {command.name!r} for tenant {context.tenant!r}"
            raise TargetFailed("CommandUnusable", message)
        payload = jsontext.dumps(dict(handout.payload))
        async with _Process(command, facts.variables(handout), payload) as process:
            ended = await process.ended()
        return _judged(command, ended, process.out, process.err)


def _judged(command: Command, ended: Mapping[str, Any], out: _Tail, err: _Tail) -> dict[str, Any]:
    match ended:
        case {"exit": 0}:
            return {"exit_code": 0, "output": out.text, "output_bytes": out.size}
        case {"exit": int(code)}:
            raise TargetFailed(f"exit:{code}", f"command {command.name!r} ended with {code}: {err.text or out.text}")
        case {"signal": int(number)}:
            said = f"command {command.name!r} was ended by {_signal_name(number)}: {err.text or out.text}"
            raise TargetFailed(f"signal:{number}", said)
        case {"unusable": str(why)}:
            raise TargetFailed("CommandUnusable", f"command {command.name!r} cannot be run: {why}")
        case _:
            raise TargetFailed("CommandUnusable", f"the guardian of command {command.name!r} ended without a word")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time one
        return f"signal {number}"


class _Process:
    """A command under way with its guardian. When the block is left it has ended, and all that it started."""

    def __init__(self, command: Command, variables: Mapping[str, str], payload: bytes) -> None:
        self._command, self._payload = command, payload
        user = command.user
        spec = {
            "argv": command.argv,
            "env": {**command.env, **variables},
            "cwd": command.cwd,
            "limits": dict(command.limits),
            "user": None if user is None else (user.uid, user.gid, user.groups),
        }
        self._spec = jsontext.dumps(spec) + b"\n"

    async def __aenter__(self) -> Self:
        control, self._control = os.pipe()
        self._status, status = os.pipe()
        try:
            self._guardian = await asyncio.create_subprocess_exec(
                sys.executable, "-I", "-S", GUARDIAN, str(control), str(status),
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
                pass_fds=(control, status), start_new_session=True, env={}, cwd="/",
            )  # fmt: skip
        except BaseException:
            os.close(self._control)
            os.close(self._status)
            raise
        finally:
            os.close(control)
            os.close(status)
        self._begin()
        return self

    def _begin(self) -> None:
        guardian, self.out, self.err = self._guardian, _Tail("stdout"), _Tail("stderr")
        assert guardian.stdin is not None
        assert guardian.stdout is not None
        assert guardian.stderr is not None
        with contextlib.suppress(BrokenPipeError):  # A guardian that died says no word: that is noticed.
            os.write(self._control, self._spec)  # It fits the empty pipe.
        self._feeding = asyncio.create_task(_feed(guardian.stdin, self._payload))
        self._reading = [
            asyncio.create_task(self.out.follow(guardian.stdout)),
            asyncio.create_task(self.err.follow(guardian.stderr)),
        ]

    async def ended(self) -> Mapping[str, Any]:
        """How it ended, once it has; its output is in `out` and `err` then."""
        await asyncio.wait(self._reading)
        await self._guardian.wait()
        said = os.read(self._status, 4096)
        return jsontext.loads(said) if said else {}

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is not None and self._guardian.returncode is None:
                await self._ask_to_end()
        finally:
            os.close(self._control)  # From here on the guardian kills.
            self._feeding.cancel()
            await self._guardian.wait()
            await asyncio.wait([self._feeding, *self._reading])
            os.close(self._status)

    async def _ask_to_end(self) -> None:
        """Give it its grace. Its output is read on: it may have to say something before it can end."""
        with contextlib.suppress(TimeoutError, BrokenPipeError):
            os.write(self._control, b"t")
            async with asyncio.timeout(self._command.grace_seconds):
                await self._guardian.wait()


class _Tail:
    """The end of a stream, whose length alone is counted beyond that. The run's log hears all of it."""

    def __init__(self, stream: str) -> None:
        self._stream, self._capture = stream, CURRENT.get()
        self._kept = b""
        self.size = 0

    async def follow(self, stream: asyncio.StreamReader) -> None:
        """Read to the end, whatever comes: a command that nobody reads would stand still."""
        while more := await stream.read(READ_BYTES):
            self.size += len(more)
            if self._capture is not None:
                self._capture.output(self._stream, more)
            self._kept = (self._kept + more)[-OUTPUT_BYTES_MAX:]

    @property
    def text(self) -> str:
        """What is kept, as text."""
        return self._kept.decode("utf-8", "replace")


async def _feed(stdin: asyncio.StreamWriter, payload: bytes) -> None:
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # A command need not read what it is told.
        stdin.write(payload)
        await stdin.drain()
        stdin.close()
        await stdin.wait_closed()
