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
    from types import TracebackType


class Event(Protocol):
    """As `threading.Event`."""

    def is_set(self) -> bool: ...
    def set(self) -> None: ...
    def wait(self, timeout: float | None = None) -> bool: ...


class Condition(Protocol):
    """As `threading.Condition`."""

    def __enter__(self) -> object: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> object: ...
    def wait_for(self, predicate: Callable[[], bool], timeout: float | None = None) -> bool: ...
    def notify_all(self) -> None: ...


class Threads(Protocol):
    """How services run beside each other and wait: threads of the system, or tasks of a simulation."""

    def start(self, name: str, body: Callable[[], None]) -> None:
        """Run `body` beside the caller."""
        ...

    def event(self) -> Event:
        """A new one, not set."""
        ...

    def condition(self) -> Condition:
        """A new one."""
        ...

    def seconds(self) -> float:
        """Seconds of a clock that never goes back, to measure how long something took."""
        ...


class SystemThreads:
    """`Threads` of the system."""

    def start(self, name: str, body: Callable[[], None]) -> None:
        """See `Threads.start`."""
        threading.Thread(target=body, name=name, daemon=True).start()

    def event(self) -> Event:
        """See `Threads.event`."""
        return threading.Event()

    def condition(self) -> Condition:
        """See `Threads.condition`."""
        return threading.Condition()

    def seconds(self) -> float:
        """See `Threads.seconds`."""
        return time.monotonic()


SYSTEM: Threads = SystemThreads()


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

    def __init__(self, threads: Threads = SYSTEM) -> None:
        self.stopping = threads.event()
        self._ready = threads.event()

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
        threads: Threads = SYSTEM,
    ) -> None:
        self.name = name
        self._body = body
        self._interrupt = interrupt
        self._failed = failed
        self._threads = threads
        self._running = Running(threads)
        self._ended = threads.event()
        self._changed = threads.condition()
        self._started = False
        self._failure: BaseException | None = None

    @property
    def failure(self) -> BaseException | None:
        """See `Service.failure`."""
        return self._failure

    def start(self) -> None:
        """See `Service.start`; a second call, or one after `stop`, changes nothing."""
        with self._changed:
            if self._started or self._running.stopping.is_set():
                return
            self._started = True
            self._threads.start(self.name, self._run)

    def ready(self, timeout: float) -> bool:
        """See `Service.ready`."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_ready() or self._ended.is_set(), timeout)
            return self._is_ready() and not self._ended.is_set()

    def stop(self, timeout: float) -> bool:
        """See `Service.stop`."""
        with self._changed:
            self._running.stopping.set()
            if not self._started:
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

    def __init__(self, running: Running, changed: Condition) -> None:
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
    running: Running, work: Callable[[], None], *, against: type[Exception], told: Callable[[Exception], None],
    seconds: Callable[[], float] = time.monotonic,
) -> None:  # fmt: skip
    """Do `work` until it returns, again after each error of the kind `against`, with a pause that grows while it fails.

    Returns early when the service is stopping; `told` hears of each error.
    """
    pause = PAUSE_SECONDS_MIN
    while not running.stopping.is_set():
        began = seconds()
        try:
            work()
        except against as error:
            told(error)
            pause = PAUSE_SECONDS_MIN if seconds() - began > PAUSE_SECONDS_MAX else pause
            running.stopping.wait(pause)
            pause = min(pause * 2, PAUSE_SECONDS_MAX)
        else:
            return
