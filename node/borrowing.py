"""A child process to which we lend the log: a log in a folder has one process, and an interpreter does one thing at a
time.

It is told what to do by its first message, asks of the log whatever it needs (`runtime.logs.lending`), and has a word
now and then. A byte on its standard input asks it for one. When that closes, however its holder ended, it ends at once;
it does so too when nobody is at the other end of its lines: without its log it is of no use, and is started again.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from abc import abstractmethod
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any, NoReturn

from node.children import ChildProcess
from runtime.logs.lending import Lender
from runtime.logs.lent import LentLog
from runtime.logs.line import Line, pair

if TYPE_CHECKING:
    from collections.abc import Callable

    from runtime.logs.lending import Lendable
    from runtime.telemetry import Telemetry

# Who has a word ten times a second, or once, and says nothing for so long hangs, or waits for its database or its disk;
# it is told and not killed, for what it is at may take that long and would never be done.
SILENT_SECONDS = 30.0


class Borrower(ChildProcess):
    """Keeps such a child running: `python -m MODULE`. A service (`runtime.lifecycle`).

    As many of its threads as there are `askers` may ask something of the log at a time.
    """

    def __init__(
        self, name: str, module: str, log: Lendable, orders: object, telemetry: Telemetry, *, askers: int,
        drain: float, seconds: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        # `-P`: the folder where we were started has modules of others, some with our names.
        super().__init__(name, (sys.executable, "-P", "-m", module), telemetry, drain=drain)
        self._log, self._orders, self._askers, self._seconds = log, orders, askers, seconds
        self._heard_at = 0.0  # its last word, or its start
        self._moved = threading.Condition()

    @abstractmethod
    def _hear(self, word: Any) -> None:
        """A word of the child's."""

    @abstractmethod
    def _hear_end(self, problem: str) -> None:
        """It has ended, and with it whatever it said."""

    @property
    def _silence(self) -> str | None:
        """That it has said nothing for long."""
        child, silent = self._child, self._seconds() - self._heard_at
        if child is None or child.returncode is not None or silent <= SILENT_SECONDS:
            return None
        return f"the {self.name}'s process {child.pid} has said nothing for {silent:.0f} s"

    def _ask_for_a_word(self) -> None:
        child = self._child
        if child is not None and child.stdin is not None:
            with suppress(OSError, ValueError):  # it has ended: the next one begins with all there is
                child.stdin.write(b"!")
                child.stdin.flush()

    def _spawn(self) -> subprocess.Popen[bytes]:
        self._heard_at = self._seconds()
        with ExitStack() as given:
            ours, theirs = zip(*(pair() for _ in range(1 + self._askers)), strict=True)
            for end in theirs:
                given.callback(end.close)
            numbers = [end.fileno() for end in theirs]
            child = subprocess.Popen(  # noqa: S603 -- our own program
                (*self._command, ",".join(map(str, numbers))),
                stdin=subprocess.PIPE,
                pass_fds=numbers,
                start_new_session=True,  # Ctrl-C is for the parent: it ends its children in order
            )
        with suppress(OSError):  # it has ended already, which `_run` sees
            ours[0].send(self._orders)
        threading.Thread(target=self._serve, args=(ours,), name=f"{self.name}'s log", daemon=True).start()
        return child

    def _serve(self, lines: tuple[Line, ...]) -> None:
        """Until one of the two ends: the child ends with its lines, whatever ended us."""
        try:
            Lender(self._log, self._hear_word).serve(lines, name=self.name)
        finally:
            self._hear_end(f"the {self.name}'s process has ended; it is started again")

    def _hear_word(self, word: Any) -> None:
        self._heard_at = self._seconds()
        self._hear(word)


# ---------------------------------------------------------------------------------------------- in the child itself


def borrowed() -> tuple[Any, LentLog]:
    """What our parent wants of us, and its log."""
    lines = [Line.of(int(number)) for number in sys.argv[1].split(",")]
    return lines[0].receive(), LentLog(lines, gone=end_at_once)


def listen(asked: Callable[[], None]) -> None:
    """Call whenever our parent wants a word of us, and end with it; in a thread of its own."""

    def wait() -> None:
        while os.read(sys.stdin.fileno(), 1024):
            asked()
        end_at_once()

    threading.Thread(target=wait, name="holder", daemon=True).start()


def end_at_once() -> NoReturn:
    """As by a kill: what was not committed never was."""
    os._exit(1)
