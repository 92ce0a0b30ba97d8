"""Workers of `dev`, in a child process: a bad task cannot take the scheduler down.

The child has only the SDK imported. It ends when this process does, also by kill -9: it reads a pipe that nobody
writes to, and ends at its end. A child that exits by itself is started again, after a pause that grows.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

from runtime.lifecycle import Threaded, ThreadService
from runtime.telemetry import Event, Telemetry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runtime.lifecycle import Running

PAUSE_SECONDS_MAX = 30.0
DRAIN_SECONDS = 10.0  # what a child has for ending its runs, then it is killed


class WorkerProcess(Threaded):
    """One child process that runs the workers of one module. A service (`runtime.lifecycle`)."""

    def __init__(self, target: str, url: str, telemetry: Telemetry, *, slots: int, log_level: str) -> None:
        self._target, self._url, self._telemetry = target, url, telemetry
        self._options = ("--slots", str(slots), "--log-level", log_level)
        self._child: subprocess.Popen[bytes] | None = None
        self._thread = ThreadService(f"workers {target}", self._run, interrupt=self._interrupt)

    def _run(self, running: Running) -> None:
        pause = 0.5
        while not running.stopping.is_set():
            child = self._child = self._spawn()
            self._telemetry.info(Event.WORKERS_STARTED, target=self._target, pid=child.pid)
            running.ready()
            while child.poll() is None and not running.stopping.wait(0.2):
                pass
            if running.stopping.is_set():
                _end(child)
                return
            self._telemetry.warning(Event.WORKERS_EXITED, target=self._target, code=child.returncode, again_in=pause)
            running.stopping.wait(pause)
            pause = min(pause * 2, PAUSE_SECONDS_MAX)

    def _spawn(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(  # noqa: S603 -- our own interpreter and module; the target came by --tasks
            self._command(),
            stdin=subprocess.PIPE,
            env=os.environ | {"TIDEWHEEL_URL": self._url},
            start_new_session=True,  # Ctrl-C is for the server: it ends its workers in order
        )

    def _command(self) -> Sequence[str]:
        return (sys.executable, "-m", "tidewheel.supervised", self._target, *self._options)

    def _interrupt(self) -> None:
        child = self._child
        if child is not None and child.poll() is None:
            child.terminate()


def _end(child: subprocess.Popen[bytes]) -> None:
    """Let the child end its runs, then end it."""
    child.terminate()
    try:
        child.wait(DRAIN_SECONDS)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
