"""Listens to clients that nobody else calls: what they have to say would pile up while their partition is idle.

One that fails is told once and left alone, as whoever needs it hears of it as well; the others are listened to on.
"""

from __future__ import annotations

import logging
from threading import Lock
from typing import Protocol
from weakref import WeakSet

from runtime.lifecycle import Running, ThreadService

PAUSE_SECONDS = 1.0  # a client has statistics to tell once a second
STOP_SECONDS = 5.0

_log = logging.getLogger(__name__)


class Talkative(Protocol):
    """Has something to say now and then."""

    def tend(self) -> None:
        """Take it; from any thread."""
        ...


class Tending:
    """One thread for all of them; it starts with the first, and forgets who is gone."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._known: WeakSet[Talkative] = WeakSet()
        self._thread = ThreadService("kafka-tend", self._tend)

    def add(self, one: Talkative) -> None:
        """Listen to this one too."""
        with self._lock:
            self._known.add(one)
        self._thread.start()

    def close(self) -> None:
        """Listen no more."""
        self._thread.stop(STOP_SECONDS)

    def _tend(self, running: Running) -> None:
        running.ready()
        while not running.stopping.wait(PAUSE_SECONDS):
            with self._lock:
                known = list(self._known)
            for one in known:
                try:
                    one.tend()
                except Exception:  # noqa: BLE001 -- whatever it is, it is not the others'
                    _log.exception("a client of Kafka is listened to no longer")
                    with self._lock:
                        self._known.discard(one)
