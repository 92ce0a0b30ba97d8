"""Virtual time and tasks that take turns: whatever runs in a simulation runs here, one at a time, in a chosen order.

A task is ordinary blocking code in a greenlet of its own. Where it would wait (`sleep`, `Signal.wait`) it gives its
turn away, and time moves to the next instant at which somebody has something to do. Who is first among those of one
instant is drawn from the seed, so that every order has its chance and each seed has one.

A task belongs to a machine, which may be frozen (its tasks take no turn; time passes) or killed (they end where they
stand with `Killed`, which no code of ours may catch, and whatever they still do on their way out reaches nobody).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from heapq import heappop, heappush
from random import Random

from greenlet import getcurrent, greenlet

SWITCHES_MAX = 200_000  # at one instant: more means that tasks keep each other busy without time ever passing


class Killed(BaseException):
    """The process is gone."""


class Stuck(Exception):
    """Tasks keep each other busy and time stands still."""


@dataclass(slots=True, eq=False)
class Machine:
    """What runs, freezes and dies together: a process."""

    name: str
    frozen: bool = False
    alive: bool = True
    tasks: list[Task] = field(default_factory=list)
    held_back: list[Callable[[], None]] = field(default_factory=list)  # what became due while it was frozen


@dataclass(slots=True, eq=False)
class Task:
    """Blocking code that takes turns. `failure` is what ended it before its end, unless it was killed."""

    name: str
    machine: Machine
    done: bool = False
    failure: BaseException | None = None
    turns: greenlet | None = None
    waits: int = 0  # counts its waits: a wake-up that comes for an earlier one is void


class Loop:
    """Runs tasks and callbacks in virtual time. `seconds` is how much of it has passed."""

    def __init__(self, chance: Random) -> None:
        self.seconds = 0.0
        self.turns = 0
        self._chance = chance
        self._due: list[tuple[float, float, int, Callable[[], None]]] = []
        self._count = 0
        self._main = getcurrent()
        self._running: Task | None = None

    # --- from outside ---------------------------------------------------------------------------------------------

    def spawn(self, name: str, body: Callable[[], None], machine: Machine) -> Task:
        """Begin a task; its first turn comes later, at the present instant."""
        task = Task(name, machine)
        machine.tasks = [other for other in machine.tasks if not other.done]
        machine.tasks.append(task)
        task.turns = greenlet(lambda: self._live(task, body), parent=self._main)
        self.wake(task, 0.0)
        return task

    def later(self, seconds: float, do: Callable[[], None]) -> None:
        """Call `do` after so many seconds; it must not wait."""
        self._count += 1
        heappush(self._due, (self.seconds + max(0.0, seconds), self._chance.random(), self._count, do))

    def run(self, seconds: float) -> None:
        """Let so many seconds pass. An error of a callback comes out here."""
        until = self.seconds + seconds
        instant, switches = self.seconds, 0
        while self._due and self._due[0][0] <= until:
            at, _, _, do = heappop(self._due)
            instant, switches = (instant, switches + 1) if at == instant else (at, 0)
            if switches > SWITCHES_MAX:
                raise Stuck(f"{switches} turns at {at:.3f} s, the last of {do}")
            self.seconds = at
            self.turns += 1
            do()
        self.seconds = until

    def freeze(self, machine: Machine) -> None:
        """Stop a process where it is."""
        machine.frozen = True

    def thaw(self, machine: Machine) -> None:
        """Let it go on; it does not know that time has passed."""
        machine.frozen = False
        held_back, machine.held_back = machine.held_back, []
        for do in held_back:
            self.later(0.0, do)

    def kill(self, machine: Machine) -> None:
        """End a process at once; from a task, also one of its own, its tasks end as soon as that gives its turn."""
        machine.alive = False
        machine.held_back = []
        if self._running is None:
            self._end_all(machine)
        else:  # Who ended now would give its turn to the loop, and never to the one that runs.
            self.later(0.0, lambda: self._end_all(machine))

    def _end_all(self, machine: Machine) -> None:
        for task in list(machine.tasks):
            self._end(task)

    # --- from within a task ---------------------------------------------------------------------------------------

    def sleep(self, seconds: float) -> None:
        """Wait."""
        task = self._current()
        self.wake(task, seconds)
        self._give_turn(task)

    def wait(self, signal: Signal, timeout: float | None) -> None:
        """See `Signal.wait`."""
        task = self._current()
        signal.waiting.append((task, task.waits))
        if timeout is not None:
            self.wake(task, timeout)
        self._give_turn(task)

    def _current(self) -> Task:
        assert self._running is not None, "only a task can wait"
        if not self._running.machine.alive:
            raise Killed
        return self._running

    def _give_turn(self, task: Task) -> None:
        self._main.switch()
        task.waits += 1
        if not task.machine.alive:
            raise Killed

    # --- turns ----------------------------------------------------------------------------------------------------

    def wake(self, task: Task, seconds: float) -> None:
        """Give a task its turn after so many seconds, unless it has had it by then."""
        waits = task.waits
        self.later(seconds, lambda: self._turn(task, waits))

    def _turn(self, task: Task, waits: int) -> None:
        if task.done or task.waits != waits:
            return
        if task.machine.frozen:
            task.machine.held_back.append(lambda: self._turn(task, waits))
            return
        self._switch(task)

    def _switch(self, task: Task) -> None:
        assert task.turns is not None
        before, self._running = self._running, task
        try:
            task.turns.switch()
        finally:
            self._running = before

    def _end(self, task: Task) -> None:
        """Let a task of a dead process fall through its own clean-up, at once."""
        if not task.done and task.turns is not None:
            if not task.turns:
                task.done = True  # it had not begun
                return
            self._switch(task)

    def _live(self, task: Task, body: Callable[[], None]) -> None:
        try:
            with suppress(Killed):
                body()
        except BaseException as error:  # noqa: BLE001 -- whatever ended it is what `failure` must tell
            task.failure = error
        finally:
            task.done = True


class Signal:
    """As `threading.Event`, in virtual time."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._set = False
        self.waiting: list[tuple[Task, int]] = []

    def is_set(self) -> bool:
        """Whether it is set."""
        return self._set

    def set(self) -> None:
        """Set it, and wake all who wait."""
        self._set = True
        waiting, self.waiting = self.waiting, []
        for task, waits in waiting:
            if task.waits == waits:
                self._loop.wake(task, 0.0)

    def clear(self) -> None:
        """Unset it."""
        self._set = False

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is set, or so many seconds. Whether it is set."""
        if not self._set:
            self._loop.wait(self, timeout)
            self.waiting = [(task, waits) for task, waits in self.waiting if task.waits == waits]
        return self._set
