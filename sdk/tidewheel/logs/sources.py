"""Where lines come from: Python's logging, and what is printed in this process.

Who writes is known by a context variable, which tasks of the loop and threads of the worker carry. A thread that a task
starts by itself carries none (`asyncio.to_thread` and `contextvars.copy_context().run` do): of such a thread only what
it says through `ctx.log` is known to be of its run.
"""

from __future__ import annotations

import contextlib
import io
import logging
import sys
from collections.abc import Iterator
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, TextIO

from tidewheel.logs.capture import Capture

CURRENT: ContextVar[Capture | None] = ContextVar("tidewheel_capture", default=None)

OWN = frozenset({"tidewheel.run", "tidewheel.worker"})  # whose name says nothing in a run's own log
_FORMAT = logging.Formatter()


class Listening(logging.Handler):
    """A handler at the root of Python's logging: what loggers let through goes to whose run it is said in."""

    def __init__(self) -> None:
        super().__init__()
        self._users = 0
        self._running: dict[tuple[str, str, int], Capture] = {}

    def begin(self, capture: Capture) -> None:
        """Know it by its run, for who says it in a thread of its own."""
        self._running[_name(capture)] = capture

    def end(self, capture: Capture) -> None:
        """Forget it."""
        if self._running.get(_name(capture)) is capture:
            del self._running[_name(capture)]

    def start(self) -> None:
        """Listen, for one worker more."""
        self._users += 1
        if self._users == 1:
            logging.getLogger().addHandler(self)

    def stop(self) -> None:
        """For one worker less."""
        self._users -= 1
        if self._users == 0:
            logging.getLogger().removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """See `logging.Handler.emit`. Whatever is wrong with a record, its task goes on."""
        self._stand_in(record)
        capture = CURRENT.get() or self._of_run(record)
        if capture is None:
            return
        try:
            text = _FORMAT.format(record)
        except Exception as error:  # noqa: BLE001 -- arguments that do not fit, or whose text can't be had
            text = (
                f"a log record that cannot be formatted ({type(error).__name__}), of {record.pathname}:{record.lineno}"
            )
        text = text.removeprefix(f"[{capture.handout.run['run_id']}] ")
        text = text if record.name in OWN else f"{record.name}: {text}"
        capture.write("log", text, level=record.levelname, at=datetime.fromtimestamp(record.created, UTC))

    def _of_run(self, record: logging.LogRecord) -> Capture | None:
        """Whoever logs may have fields of these names for something else, of any type."""
        said: Any = record.__dict__
        tenant, run_id, attempt = said.get("tenant"), said.get("run_id"), said.get("attempt")
        if not (isinstance(tenant, str) and isinstance(run_id, str) and isinstance(attempt, int)):
            return None
        return self._running.get((tenant, run_id, attempt))

    def _stand_in(self, record: logging.LogRecord) -> None:
        """Where nobody has set up logging, warnings go to standard error, as they would without us."""
        last = logging.lastResort
        if logging.getLogger().handlers == [self] and last is not None and record.levelno >= last.level:
            last.handle(record)


LISTENING = Listening()


def _name(capture: Capture) -> tuple[str, str, int]:
    run = capture.handout.run
    return str(run["tenant"]), str(run["run_id"]), capture.handout.attempt


class Tee(io.TextIOBase):
    """A stream of this process: what is printed in a run goes to its log besides."""

    def __init__(self, stream: TextIO, name: str) -> None:
        self._stream, self._name = stream, name

    def write(self, text: str, /) -> int:
        """See `io.TextIOBase.write`."""
        capture = CURRENT.get()
        if capture is not None and isinstance(text, str):
            capture.print(self._name, text)
        return self._stream.write(text)

    # The base class has both, as None, and so hides those of the stream.
    @property
    def encoding(self) -> str:  # type: ignore[override]
        """See `io.TextIOBase.encoding`."""
        return self._stream.encoding

    @property
    def errors(self) -> str | None:  # type: ignore[override]
        """See `io.TextIOBase.errors`."""
        return self._stream.errors

    def writable(self) -> bool:
        """It is."""
        return True

    def flush(self) -> None:
        """See `io.TextIOBase.flush`."""
        self._stream.flush()

    def isatty(self) -> bool:
        """See `io.TextIOBase.isatty`."""
        return self._stream.isatty()

    def fileno(self) -> int:
        """See `io.TextIOBase.fileno`."""
        return self._stream.fileno()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def printing() -> Iterator[None]:
    """In this block prints of runs are heard. For who owns the process: it changes `sys.stdout` and `sys.stderr`."""
    before = sys.stdout, sys.stderr
    tees = Tee(before[0], "stdout"), Tee(before[1], "stderr")
    sys.stdout, sys.stderr = tees
    try:
        yield
    finally:
        if (sys.stdout, sys.stderr) == tees:
            sys.stdout, sys.stderr = before
