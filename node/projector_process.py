"""The projector beside a server, in a child process: folding rows takes nothing from those who decide.

All else of a server shares one interpreter, which does one thing at a time; rows are a third of the work, and nobody's
start waits for them. The child reads the log through us (`node.lent`): a log in a folder has one process.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime
from multiprocessing import Pipe
from typing import TYPE_CHECKING

from node.children import ChildProcess
from node.lent import Lender, Standing
from node.projector_child import STOP_SECONDS, Orders
from projections import batch
from projections.projector import inputs_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from multiprocessing.connection import Connection

    from runtime.log import Log
    from runtime.record import TopicPartition
    from runtime.telemetry import Telemetry

DRAIN_SECONDS = STOP_SECONDS + 2.0  # then it is killed
# It has a word ten times a second, after a batch, and after each failure. Who says nothing for so long hangs, or waits
# for its database; it is told and not killed, for a table that is made anew may take that long and would never be.
SILENT_SECONDS = 30.0


class ProjectorProcess(ChildProcess):
    """Keeps a projector running. A service (`runtime.lifecycle`), and `api.services.Progress` from what it is told."""

    def __init__(
        self, log: Log, orders: Orders, telemetry: Telemetry, *, seconds: Callable[[], float] = time.monotonic
    ) -> None:  # fmt: skip
        # `-P`: the folder where we were started has modules of others, some with our names.
        command = (sys.executable, "-P", "-m", "node.projector_child")
        super().__init__("projector", command, telemetry, drain=DRAIN_SECONDS)
        self._log, self._orders, self._seconds = log, orders, seconds
        self._moved = threading.Condition()
        self._standing = Standing({}, datetime.fromtimestamp(0, UTC), ready=False, problem=None)
        self._heard_at = 0.0  # its last word, or its start
        self._hurried = False  # somebody waits for rows, and the child knows
        self._callbacks: tuple[Callable[[], None], ...] = ()

    @property
    def problem(self) -> str | None:
        """What the projector is up against; that it has ended, or says nothing any more."""
        child, silent = self._child, self._seconds() - self._heard_at
        if child is not None and child.returncode is None and silent > SILENT_SECONDS:
            return f"the projector's process {child.pid} has said nothing for {silent:.0f} s"
        return self._standing.problem

    @property
    def as_of(self) -> datetime:
        """See `Progress.as_of`."""
        return self._standing.as_of

    def ready(self, timeout: float) -> bool:
        """Whether the rows have followed the log to where it ended when the child began."""
        with self._moved:
            return self._moved.wait_for(lambda: self._standing.ready, timeout)

    def inputs(self) -> list[TopicPartition]:
        """See `Progress.inputs`."""
        return inputs_of(self._log)

    def reached(self, targets: Mapping[TopicPartition, int]) -> bool:
        """See `Progress.reached`. Whoever asks before they are there waits for them; after each batch it asks again."""
        with self._moved:
            positions = self._standing.positions
            reached = all(positions.get(place, 0) >= offset for place, offset in targets.items())
            if not (reached or self._hurried):
                self._hurried = True
                self._hurry()
        return reached

    def on_progress(self, callback: Callable[[], None]) -> Callable[[], None]:
        """See `Progress.on_progress`."""
        with self._moved:
            self._callbacks = (*self._callbacks, callback)
        return lambda: self._silence(callback)

    def _silence(self, callback: Callable[[], None]) -> None:
        with self._moved:
            self._callbacks = tuple(known for known in self._callbacks if known is not callback)

    # --- the child ------------------------------------------------------------------------------------------------

    def _spawn(self) -> subprocess.Popen[bytes]:
        self._heard_at = self._seconds()
        ours, theirs = Pipe()
        with theirs:
            child = subprocess.Popen(  # noqa: S603 -- our own program
                (*self._command, str(theirs.fileno())),
                stdin=subprocess.PIPE,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,  # Ctrl-C is for the parent: it ends its children in order
            )
        with suppress(OSError):  # it has ended already, which `_run` sees
            ours.send(self._orders)
        threading.Thread(target=self._serve, args=(ours,), name="projector's log", daemon=True).start()
        return child

    def _serve(self, pipe: Connection) -> None:
        """Until one of the two ends: the child ends with the pipe, whatever ended us."""
        try:
            Lender(self._log, (*batch.INPUTS, *batch.LOG_INPUTS), self._hear).serve(pipe)
        finally:
            problem = "the projector's process has ended; it is started again"
            self._hear(self._standing._replace(ready=False, problem=problem))

    def _hear(self, standing: Standing) -> None:
        with self._moved:
            as_of = max(standing.as_of, self._standing.as_of)  # a child that has just begun has no idea of it
            self._standing, self._hurried, self._heard_at = standing._replace(as_of=as_of), False, self._seconds()
            self._moved.notify_all()
            callbacks = self._callbacks
        for callback in callbacks:
            callback()

    def _hurry(self) -> None:
        child = self._child
        if child is not None and child.stdin is not None:
            with suppress(OSError, ValueError):  # it has ended: the next one begins with all there is
                child.stdin.write(b"!")
                child.stdin.flush()
