"""What services wait with, as tasks of one machine in virtual time: `runtime.lifecycle.Threads`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

from simulation.loop import Loop, Machine, Signal, Task


class Flag(Signal):
    """A `Signal` that may be looked at without giving the turn away."""

    def wait(self, timeout: float | None = None) -> bool:
        """As `Signal.wait`; who has no time does not wait."""
        if timeout is not None and timeout <= 0:
            return self.is_set()
        return super().wait(timeout)


class Turnstile:
    """As `threading.Condition`. Tasks take turns, so nobody has to be kept out."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._changed = Flag(loop)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        return None

    def wait_for(self, predicate: Callable[[], bool], timeout: float | None = None) -> bool:
        """Wait until the predicate holds, looking after each notice. Whether it does."""
        until = None if timeout is None else self._loop.seconds + timeout
        while not predicate():
            left = None if until is None else until - self._loop.seconds
            if left is not None and left <= 0:
                return False
            self._changed.clear()
            self._changed.wait(left)
        return True

    def notify_all(self) -> None:
        """Let all who wait look again."""
        self._changed.set()


class LoopThreads:
    """`runtime.lifecycle.Threads` of one machine. What it started is kept: an error in it must not go unseen."""

    def __init__(self, loop: Loop, machine: Machine) -> None:
        self._loop, self._machine = loop, machine
        self.tasks: list[Task] = []

    def start(self, name: str, body: Callable[[], None]) -> None:
        """See `Threads.start`."""
        self.tasks.append(self._loop.spawn(name, body, self._machine))

    def event(self) -> Flag:
        """See `Threads.event`."""
        return Flag(self._loop)

    def condition(self) -> Turnstile:
        """See `Threads.condition`."""
        return Turnstile(self._loop)

    def seconds(self) -> float:
        """See `Threads.seconds`."""
        return self._loop.seconds
