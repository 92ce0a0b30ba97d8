"""What Kafka's client says of its own accord, in a bounded number of lines.

A client whose brokers are away says so many times a second, and a process has some dozens of clients.
"""

from __future__ import annotations

import logging
import time
from threading import Lock

QUIET_SECONDS = 10.0  # for how long a thing that was said is not said again, by whichever client


class Sayings:
    """The logger of clients; from any thread. A line says how many like it were swallowed before it."""

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        self._lock = Lock()
        self._said: dict[tuple[int, str], tuple[float, int]] = {}  # by level and facility: some dozens there are

    def log(self, level: int, _format: str, facility: str, client: str, text: str) -> None:
        """What the client calls."""
        now = time.monotonic()
        with self._lock:
            last, swallowed = self._said.get((level, facility), (now - QUIET_SECONDS, 0))
            quiet = now - last < QUIET_SECONDS
            self._said[level, facility] = (last, swallowed + 1) if quiet else (now, 0)
        if not quiet:
            more = f" ({swallowed} like it before)" if swallowed else ""
            self._logger.log(level, "%s %s: %s%s", client, facility, text, more)
