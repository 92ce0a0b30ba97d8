"""How long the fuzz looks, and what it calls a hang.

`make fuzz EXAMPLES=5000` looks deeper than the default run: so many examples of each property.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from hypothesis import HealthCheck, settings

EXAMPLES = int(os.environ.get("EXAMPLES") or 0)
# What is read in milliseconds has this long, in seconds of this process's own time: a busy machine makes nothing late.
HANG_SECONDS = 10.0


class Hung(BaseException):
    """One input took longer than any honest one could. No `except Exception` of the code under test eats it."""


def examples(by_default: int) -> Callable[[Any], Any]:
    """So many examples of a property in the default run, and as many as were asked for in a deeper one."""
    return settings(
        max_examples=EXAMPLES or by_default,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much],
    )


@contextmanager
def no_hang(seconds: float = HANG_SECONDS) -> Iterator[None]:
    """Fail loudly when the block computes for so long; patterns that backtrack are interrupted too."""

    def hung(_signal: int, _frame: FrameType | None) -> None:
        raise Hung(f"still computing after {seconds} seconds of processor time")

    before = signal.signal(signal.SIGVTALRM, hung)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
