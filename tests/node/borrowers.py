"""What tests do to a child process that has the log from its parent."""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from runtime.logs.line import Line, pair
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

    from node.projector_process import ProjectorProcess
    from node.role_process import RoleProcess

SECONDS = 30.0
HANGS_SECONDS = 0.5  # that a child which cannot hear is given for its end, before it is killed


def wait_until_silence_is_told(service: ProjectorProcess | RoleProcess, child: int, now: list[float]) -> None:
    """Turn the clock on until a child that was stopped is said to hang."""

    def is_said_later() -> bool:
        """A word of it may have been under way."""
        now[0] += 31.0
        return f"the {service.name}'s process {child} has said nothing for" in str(service.problem)

    eventually(is_said_later, within=SECONDS, what="that it hangs is said")


@contextmanager
def started(module: str, orders: object, *, askers: int) -> Iterator[tuple[subprocess.Popen[bytes], tuple[Line, ...]]]:
    """Such a child, and our ends of its lines, on which it has its orders; the test waits for its end."""
    ours, theirs = zip(*(pair() for _ in range(1 + askers)), strict=True)
    numbers = [end.fileno() for end in theirs]
    child = subprocess.Popen(
        [sys.executable, "-P", "-m", module, ",".join(map(str, numbers))], stdin=subprocess.PIPE,
        pass_fds=numbers, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    for end in theirs:
        end.close()
    ours[0].send(orders)
    yield child, ours
    assert child.stdin is not None
    child.stdin.close()
