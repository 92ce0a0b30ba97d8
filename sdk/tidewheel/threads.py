"""A bounded pool of threads for tasks that are plain functions.

Its threads are daemons, unlike those of `concurrent.futures`: a task that never stops must not keep the process
from ending after its drain.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue


class ThreadPool:
    """Runs at most `size` calls at once; threads are started when first needed."""

    def __init__(self, size: int, *, name: str = "tidewheel-task") -> None:
        self._size = size
        self._name = name
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._busy = 0
        self._lock = threading.Lock()

    def submit(self, call: Callable[[], None]) -> None:
        """Run `call` in a thread; it must not raise. Callers bound how much they submit (a worker: its slots)."""
        with self._lock:
            self._busy += 1
            grow = self._busy > len(self._threads) and len(self._threads) < self._size
            if grow:
                name = f"{self._name}-{len(self._threads)}"
                self._threads.append(threading.Thread(target=self._serve, name=name, daemon=True))
        self._calls.put(call)
        if grow:
            self._threads[-1].start()

    def close(self) -> None:
        """Let threads end after what they do now. Does not wait for them."""
        for _ in self._threads:
            self._calls.put(None)

    def _serve(self) -> None:
        while (call := self._calls.get()) is not None:
            try:
                call()
            finally:
                with self._lock:
                    self._busy -= 1
