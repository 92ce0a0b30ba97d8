"""A task in a process of its own: what it does to its memory is its own affair, and it can be killed.

    worker's thread ── spawns, waits ──▶ process ── imports the task's module, calls it
          ◀── log records, progress, how it ended; what it prints, and what it starts does ──
          ── stop ──▶ `ctx.cancelled`; SIGKILL to its whole group after a grace

A process is made for each attempt, and forks nothing of the worker: a client that the worker uses would not survive
that. Where there is fork(2), it is forked from a server that has imported this library and nothing of the tasks: so it
costs some milliseconds instead of an interpreter's start. That server has the environment of the moment at which it
was started, so each process is given its worker's, with what a command would be told about its run. The process ends
with its worker: the server does, and Linux kills what it has forked; and everywhere a thread in it looks out for that.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import io
import logging
import logging.handlers
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
from functools import partial
from multiprocessing.connection import Connection, wait
from typing import Any, Self

from tidewheel import calling, wire
from tidewheel.context import RunContext
from tidewheel.logs.capture import Capture
from tidewheel.logs.sources import CURRENT
from tidewheel.targets.facts import variables
from tidewheel.tasks import Task
from tidewheel.wire import HandOut

GRACE_SECONDS = 5.0  # from asking to killing: a lease that was lost may be given away in a third of its time
LOOK_SECONDS = 1.0  # whether it lives: what it forked may hold its end of the pipe open
READ_BYTES = 64 * 1024  # as much as a pipe holds
REST_MAX = 1024 * 1024  # that is heard after its end
NAME = "tidewheel-isolated"
_FORKS = "forkserver" in multiprocessing.get_all_start_methods()
_MAKING: Any = multiprocessing.get_context("forkserver" if _FORKS else "spawn")
_PRELOADED = ["tidewheel.isolated", "tidewheel.worker"]
_SET_DEATH_SIGNAL = 1  # of prctl(2)
_LOG = logging.getLogger("tidewheel.worker")


def check(task: Task) -> None:
    """ValueError when another process could not find the task's function."""
    try:
        pickle.dumps(task.function)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ValueError(
            f"task {task.name!r}: isolate='process' needs a function that its module has under its name: {error}"
        ) from error


def prepare() -> None:
    """Start what processes are forked from: it takes a third of a second of a core, which the first attempts would pay.

    Nobody waits for it. Without fork(2) there is nothing to start.
    """
    if _FORKS:
        from multiprocessing import forkserver  # noqa: PLC0415 -- not everywhere

        _MAKING.set_forkserver_preload(_PRELOADED)
        forkserver.ensure_running()


def refuse_inside() -> None:
    """RuntimeError in a task's process: its module would start a worker each time it is imported."""
    if multiprocessing.current_process().name == NAME:
        raise RuntimeError("put worker.run() under `if __name__ == '__main__':`: tasks in processes import this module")


class Isolated:
    """One attempt in its process. `run` is called in a thread, `interrupt` and `kill` by anyone."""

    def __init__(self, handout: HandOut, task: Task, context: RunContext) -> None:
        self._handout, self._context = handout, context
        self._ours, theirs = _MAKING.Pipe()
        self._bell, self._rope = _MAKING.Pipe(duplex=False)
        self._printed: dict[Any, tuple[str, int]] = {}  # what it writes to its standard streams comes here
        outputs = []
        for name, descriptor in (("stdout", 1), ("stderr", 2)):
            reading, writing = _MAKING.Pipe(duplex=False)
            self._printed[reading] = (name, descriptor)
            outputs.append(writing)
        self._theirs: tuple[Connection[Any, Any], ...] = (theirs, *outputs)
        self._capture: Capture | None = None
        arguments = (theirs, tuple(outputs), task, handout, logging.getLogger().getEffectiveLevel())
        self._process = _MAKING.Process(target=_serve, args=arguments, name=NAME)
        self._kill_at: float | None = None
        self._killed = self._is_over = False

    def run(self) -> bytes | None:
        """How the attempt ended, as `calling.called` says it."""
        self._capture = CURRENT.get()
        try:
            self._start()
            return self._follow()
        except Exception as error:  # noqa: BLE001 -- whatever keeps a process from being made fails the attempt
            return calling.failure(self._handout, error)
        finally:
            self._end()
            self._hear_the_rest()
            for end in (self._ours, self._bell, self._rope, *self._printed, *self._theirs):
                end.close()

    def interrupt(self) -> None:
        """Ask it to stop."""
        with contextlib.suppress(OSError):  # It is over.
            self._rope.send_bytes(b"stop")

    def kill(self) -> None:
        """End it now, and what it has started."""
        self._killed = True
        if (pid := self._process.pid) is not None and not self._is_over:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)  # It may not have its group yet.

    def _end(self) -> None:
        """Kill what is left, while the number of the process is its own or was just now; then take its exit code."""
        self.kill()
        if self._process.pid is not None:
            self._process.join()
        self._is_over = True

    def _start(self) -> None:
        if self._killed:
            raise RuntimeError("the worker ended before the process was made")
        prepare()  # A server that has ended since is started again.
        self._process.name = _Name(NAME, {**os.environ, **variables(self._handout)})
        self._process.start()
        for end in self._theirs:
            end.close()  # so that its end is heard

    def _follow(self) -> bytes | None:
        sources: list[Any] = [self._ours, self._bell, *self._printed]
        while True:
            left = LOOK_SECONDS if self._kill_at is None else max(0.0, self._kill_at - time.monotonic())
            ready = wait(sources, min(left, LOOK_SECONDS))
            if self._kill_at is not None and time.monotonic() >= self._kill_at:
                _LOG.warning("run %s did not stop in time: its process is killed", self._context.run_id)
                return None
            if self._bell in ready:
                self._ask(sources)
            for source in ready:
                if source in self._printed and not self._hear(source):
                    sources.remove(source)
            if self._ours in ready:
                try:
                    kind, value = self._ours.recv()
                except (EOFError, OSError):
                    return self._died()
                if kind == "ended":
                    ended: bytes | None = value
                    return ended
                self._note(kind, value)
            elif not self._process.is_alive():
                return self._died()

    def _ask(self, sources: list[Any]) -> None:
        self._bell.recv_bytes()
        sources.remove(self._bell)
        self._kill_at = time.monotonic() + GRACE_SECONDS
        with contextlib.suppress(OSError):
            self._ours.send("stop")

    def _note(self, kind: str, value: Any) -> None:
        if kind == "progress":
            self._context.progress = value
        elif isinstance(value, logging.LogRecord):
            logging.getLogger(value.name).handle(value)

    def _hear(self, source: Any) -> bool:
        """Some of what it printed: on to where the worker prints, and to the run's log. False when that is all."""
        try:
            data = os.read(source.fileno(), READ_BYTES)
        except (BlockingIOError, OSError):
            return False
        name, descriptor = self._printed[source]
        with contextlib.suppress(OSError):  # Nobody reads what the worker prints: the task goes on.
            os.write(descriptor, data)
        if self._capture is not None:
            self._capture.output(name, data)
        return bool(data)

    def _hear_the_rest(self) -> None:
        """What was printed before the end; something that it left behind may hold the stream open."""
        for source in self._printed:
            os.set_blocking(source.fileno(), False)
            for _ in range(REST_MAX // READ_BYTES):
                if not self._hear(source):
                    break

    def _died(self) -> bytes | None:
        self._end()
        if self._kill_at is not None:
            return None
        message = f"the task's process ended without a word, with exit code {self._process.exitcode}"
        return wire.failed(self._handout.lease, "ProcessDied", message)


class _Name(str):
    """The name of a process, which brings its environment.

    The name is the first that a new process reads, before the worker's main module and the task's are imported there.
    """

    __slots__ = ("_environment",)
    _environment: dict[str, str]

    def __new__(cls, name: str, environment: dict[str, str]) -> Self:
        self = super().__new__(cls, name)
        self._environment = environment
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _named, (str(self), self._environment)


# --- in the process --------------------------------------------------------------------------------------------------


def _named(name: str, environment: dict[str, str]) -> str:
    if multiprocessing.current_process().name != name:  # It is read again with what is to be called.
        os.environ.clear()
        os.environ.update(environment)
        if hasattr(time, "tzset"):
            time.tzset()
    return name


class _Context(RunContext):
    """The context of a task in its process: progress goes to the worker, and so does the word to stop come."""

    __slots__ = ("_say",)

    def __init__(self, handout: HandOut, say: Any) -> None:
        super().__init__(handout)
        self._say = say

    def heartbeat(self, progress: Any = None) -> None:
        if progress is not None:
            self._say(("progress", progress))
        super().heartbeat(progress)


class _Forward(logging.handlers.QueueHandler):
    """Log records go to the worker, whose handlers know where they belong."""

    def enqueue(self, record: logging.LogRecord) -> None:
        self.queue(("log", record))  # type: ignore[operator]


def _serve(
    connection: Connection[Any, Any], outputs: tuple[Connection[Any, Any], ...], task: Task, handout: HandOut,
    level: int,
) -> None:  # fmt: skip
    _end_with_worker()
    _print_to(outputs)
    lock = threading.Lock()

    def say(message: Any) -> None:
        with lock:
            connection.send(message)

    root = logging.getLogger()
    root.setLevel(level)
    root.handlers = [_Forward(say)]  # type: ignore[arg-type]
    context = _Context(handout, say)
    arguments, keywords = task.arguments(context, handout)
    if task.is_async:
        entry = asyncio.run(_await(connection, context, partial(calling.awaited, handout, task, arguments, keywords)))
    else:
        threading.Thread(target=_hear_stop, args=(connection, context.ask_to_stop), daemon=True).start()
        entry = calling.called(handout, task, arguments, keywords)
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    say(("ended", entry))


async def _await(connection: Connection[Any, Any], context: RunContext, call: Any) -> bytes | None:
    loop, task = asyncio.get_running_loop(), asyncio.ensure_future(call())

    def stop() -> None:
        context.ask_to_stop()
        loop.call_soon_threadsafe(task.cancel)

    threading.Thread(target=_hear_stop, args=(connection, stop), daemon=True).start()
    try:
        entry: bytes | None = await task
    except asyncio.CancelledError:
        if context.cancelled:
            return None
        return wire.failed(context.lease, "CancelledError", "the task cancelled itself")
    return entry


def _print_to(outputs: tuple[Connection[Any, Any], ...]) -> None:
    """Standard output and error go to the worker: of this process, and of whatever it starts."""
    for output, stream, descriptor in zip(outputs, (sys.stdout, sys.stderr), (1, 2), strict=True):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
        os.dup2(output.fileno(), descriptor)
        output.close()
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(line_buffering=True)  # what is printed can be read while the task runs


def _hear_stop(connection: Connection[Any, Any], stop: Any) -> None:
    with contextlib.suppress(EOFError, OSError, RuntimeError):
        connection.recv()
        stop()


def _end_with_worker() -> None:
    os.setsid()  # Ctrl-C at the terminal is the worker's, and all that the task starts can be killed at once.
    if _FORKS:
        _let_the_server_go()
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_SET_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    worker = multiprocessing.parent_process()
    assert worker is not None
    threading.Thread(target=_wait_for_workers_end, args=(worker.sentinel,), daemon=True).start()


def _let_the_server_go() -> None:
    """The server stays for as long as somebody holds this: the worker alone should."""
    from multiprocessing import forkserver  # noqa: PLC0415 -- not everywhere

    server: Any = forkserver._forkserver  # noqa: SLF001
    if (held := getattr(server, "_forkserver_alive_fd", None)) is not None:
        os.close(held)
        server._forkserver_alive_fd = None  # noqa: SLF001


def _wait_for_workers_end(sentinel: int) -> None:
    wait([sentinel])
    os.killpg(0, signal.SIGKILL)
