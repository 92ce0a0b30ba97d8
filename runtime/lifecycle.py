"""One contract for everything that lives long: start, ready, stop.

`start` returns at once. `ready` waits until the service does its work, and says False when it failed or stopped
first. `stop` asks it to end and waits; it may be called at any time, from any thread, any number of times, also
before `start`. `failure` is what ended a service that nobody stopped.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable


class Service(Protocol):
    """Something long-lived."""

    @property
    def name(self) -> str:
        """What it is called in logs and errors."""
        ...

    @property
    def failure(self) -> BaseException | None:
        """What ended the service although nobody stopped it."""
        ...

    def start(self) -> None:
        """Begin; returns at once."""
        ...

    def ready(self, timeout: float) -> bool:
        """Whether the service does its work, waiting at most `timeout` seconds."""
        ...

    def stop(self, timeout: float) -> bool:
        """End; whether it had ended within `timeout` seconds."""
        ...


class Running:
    """What the body of a service sees of its own life."""

    def __init__(self) -> None:
        self.stopping = threading.Event()
        self._ready = threading.Event()

    def ready(self) -> None:
        """Say that the service does its work."""
        self._ready.set()


class ThreadService:
    """A service whose body runs in a thread of its own.

    `body` gets a `Running`, calls its `ready` once it works, and returns soon after `stopping` is set. `interrupt`
    is called by `stop` after that, to wake a body that waits for something else.
    """

    def __init__(
        self,
        name: str,
        body: Callable[[Running], None],
        *,
        interrupt: Callable[[], None] = lambda: None,
        failed: Callable[[BaseException], None] = lambda _error: None,
    ) -> None:
        self.name = name
        self._body = body
        self._interrupt = interrupt
        self._failed = failed
        self._running = Running()
        self._ended = threading.Event()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._failure: BaseException | None = None

    @property
    def failure(self) -> BaseException | None:
        """See `Service.failure`."""
        return self._failure

    def start(self) -> None:
        """See `Service.start`; a second call, or one after `stop`, changes nothing."""
        with self._changed:
            if self._thread is not None or self._running.stopping.is_set():
                return
            self._thread = threading.Thread(target=self._run, name=self.name, daemon=True)
            self._thread.start()

    def ready(self, timeout: float) -> bool:
        """See `Service.ready`."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_ready() or self._ended.is_set(), timeout)
            return self._is_ready() and not self._ended.is_set()

    def stop(self, timeout: float) -> bool:
        """See `Service.stop`."""
        with self._changed:
            self._running.stopping.set()
            if self._thread is None:
                self._ended.set()
            self._changed.notify_all()
        self._interrupt()
        return self._ended.wait(timeout)

    def stopped(self, timeout: float) -> bool:
        """Whether it has ended, asked to or not, waiting at most `timeout` seconds."""
        return self._ended.wait(timeout)

    def _is_ready(self) -> bool:
        return self._running._ready.is_set()  # noqa: SLF001 -- the other half of one small object

    def _run(self) -> None:
        try:
            self._body(_Announcing(self._running, self._changed))
        except BaseException as error:  # noqa: BLE001 -- whatever ended the body is what `failure` must tell
            self._failure = error
            self._failed(error)
        finally:
            with self._changed:
                self._ended.set()
                self._changed.notify_all()


class _Announcing(Running):
    """A `Running` that also tells those who wait."""

    def __init__(self, running: Running, changed: threading.Condition) -> None:
        self.stopping = running.stopping
        self._ready = running._ready  # noqa: SLF001 -- the other half of one small object
        self._changed = changed

    def ready(self) -> None:
        with self._changed:
            self._ready.set()
            self._changed.notify_all()


class Threaded:
    """A service that does its work in a `ThreadService` of its own, which it makes as `_thread`."""

    _thread: ThreadService

    @property
    def name(self) -> str:
        """See `Service.name`."""
        return self._thread.name

    @property
    def failure(self) -> BaseException | None:
        """See `Service.failure`."""
        return self._thread.failure

    def start(self) -> None:
        """See `Service.start`."""
        self._thread.start()

    def ready(self, timeout: float) -> bool:
        """See `Service.ready`."""
        return self._thread.ready(timeout)

    def stop(self, timeout: float) -> bool:
        """See `Service.stop`."""
        return self._thread.stop(timeout)

    def stopped(self, timeout: float) -> bool:
        """See `ThreadService.stopped`."""
        return self._thread.stopped(timeout)


PAUSE_SECONDS_MIN, PAUSE_SECONDS_MAX = 0.1, 10.0  # what is back is noticed within the longest


def persevere(
    running: Running, work: Callable[[], None], *, against: type[Exception], told: Callable[[Exception], None]
) -> None:
    """Do `work` until it returns, again after each error of the kind `against`, with a pause that grows while it fails.

    Returns early when the service is stopping; `told` hears of each error.
    """
    pause = PAUSE_SECONDS_MIN
    while not running.stopping.is_set():
        began = time.monotonic()
        try:
            work()
        except against as error:
            told(error)
            pause = PAUSE_SECONDS_MIN if time.monotonic() - began > PAUSE_SECONDS_MAX else pause
            running.stopping.wait(pause)
            pause = min(pause * 2, PAUSE_SECONDS_MAX)
        else:
            return
