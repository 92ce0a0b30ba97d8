"""Waiting for another process, which gives no signal but its answers."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

BETWEEN_SECONDS = 0.05


def eventually(holds: Callable[[], bool], *, within: float, what: str | Callable[[], str]) -> None:
    """Return as soon as `holds`; AssertionError saying `what`, asked then, when it does not within these seconds."""
    deadline = time.monotonic() + within
    pause = threading.Event()
    while not holds():
        assert time.monotonic() < deadline, f"not within {within} s: {what if isinstance(what, str) else what()}"
        pause.wait(BETWEEN_SECONDS)
