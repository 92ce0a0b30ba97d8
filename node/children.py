"""Child processes: whatever happens in one cannot take this process down.

A child ends when its parent does, also by kill -9: it reads a pipe that nobody writes to, and ends at its end
(`tidewheel.supervised.end_with_holder`). One that exits by itself is started again, after a pause that grows.
"""

from __future__ import annotations

import os
import subprocess
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from runtime.lifecycle import Threaded, ThreadService
from runtime.telemetry import Event, Telemetry

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from runtime.lifecycle import Running

PAUSE_SECONDS_MIN, PAUSE_SECONDS_MAX = 0.5, 30.0
LOOK_SECONDS = 0.2
STEADY_SECONDS = 60.0  # who lived that long did not fail at its start: the pause begins anew


class ChildProcess(Threaded):
    """One child process, kept running. A service (`runtime.lifecycle`).

    `drain` is what a child has, in seconds, for ending its work before it is killed.
    """

    def __init__(
        self, name: str, command: Sequence[str], telemetry: Telemetry, *, drain: float,
        environment: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        self._command, self._environment = tuple(command), dict(environment or {})
        self._telemetry, self.drain = telemetry, drain
        self._child: subprocess.Popen[bytes] | None = None
        self._thread = ThreadService(name, self._run)

    def _run(self, running: Running) -> None:
        pause = PAUSE_SECONDS_MIN
        while not running.stopping.is_set():
            began = time.monotonic()
            ended = self._live(running)
            if running.stopping.is_set():
                return
            if time.monotonic() - began > STEADY_SECONDS:
                pause = PAUSE_SECONDS_MIN
            self._telemetry.warning(Event.CHILD_EXITED, child=self.name, again_in=pause, **ended)
            running.stopping.wait(pause)
            pause = min(pause * 2, PAUSE_SECONDS_MAX)

    def _live(self, running: Running) -> Mapping[str, object]:
        """One child, to its end; how that came."""
        try:
            child = self._child = self._spawn()
        except OSError as error:  # no memory, too many processes or files: that may be over in a moment
            return {"code": None, "reason": str(error)}
        self._telemetry.info(Event.CHILD_STARTED, child=self.name, pid=child.pid)
        running.ready()
        while child.poll() is None and not running.stopping.wait(LOOK_SECONDS):
            pass
        if running.stopping.is_set():
            self._end(child)
        _let_go(child)
        return {"code": child.returncode}

    def _spawn(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(  # noqa: S603 -- our own program; what varies came by our own command line
            self._command,
            stdin=subprocess.PIPE,
            env=os.environ | self._environment,
            start_new_session=True,  # Ctrl-C is for the parent: it ends its children in order
        )

    def _end(self, child: subprocess.Popen[bytes]) -> None:
        """Let the child end its work, then end it. It is told once: a second word would mean at once."""
        child.terminate()
        try:
            child.wait(self.drain)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def _let_go(child: subprocess.Popen[bytes]) -> None:
    """Close our end of the pipe to one that has ended."""
    if child.stdin is not None:
        with suppress(OSError):  # what it did not read any more
            child.stdin.close()
