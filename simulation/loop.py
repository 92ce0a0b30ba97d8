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
from typing import Any, TypeVarTuple

from greenlet import getcurrent, greenlet

Arguments = TypeVarTuple("Arguments")
Due = tuple[Callable[..., None], tuple[Any, ...]]  # what is to be called, and with what

NEVER = float("inf")
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
    thawed_at: float = 0.0  # when it last went on
    tasks: list[Task] = field(default_factory=list)
    held_back: list[Due] = field(default_factory=list)  # what became due while it was frozen
    nudges: list[Callable[[], None]] = field(default_factory=list)  # each ends a wait that nothing else would end

    def nudge(self) -> None:
        """Let what waits in it look around: it was asked for something that does not wake it by itself."""
        for wake in self.nudges:
            wake()


@dataclass(slots=True, eq=False)
class Task:
    """Blocking code that takes turns. `failure` is what ended it before its end, unless it was killed."""

    name: str
    machine: Machine
    done: bool = False
    failure: BaseException | None = None
    turns: greenlet | None = None
    waits: int = 0  # counts its waits: a wake-up that comes for an earlier one is void
    until: float = NEVER  # when its present wait ends by itself
    looked_at: float = NEVER  # when that is looked at: one look at a time, for most waits are ended before


class Loop:
    """Runs tasks and callbacks in virtual time. `seconds` is how much of it has passed."""

    def __init__(self, chance: Random) -> None:
        self.seconds = 0.0
        self.turns = 0
        self._random = chance.random
        self._due: list[tuple[float, float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._count = 0
        self._main = getcurrent()
        self._running: Task | None = None
        self._machines: dict[Machine, None] = {}

    # --- from outside ---------------------------------------------------------------------------------------------

    def spawn(self, name: str, body: Callable[[], None], machine: Machine) -> Task:
        """Begin a task; its first turn comes later, at the present instant."""
        task = Task(name, machine)
        machine.tasks = [other for other in machine.tasks if not other.done]
        machine.tasks.append(task)
        self._machines[machine] = None
        task.turns = greenlet(lambda: self._live(task, body), parent=self._main)
        self.wake(task)
        return task

    def later(self, seconds: float, do: Callable[[*Arguments], None], *arguments: *Arguments) -> None:
        """Call `do` after so many seconds; it must not wait."""
        at = self.seconds + seconds if seconds > 0.0 else self.seconds
        self._count = count = self._count + 1
        heappush(self._due, (at, self._random(), count, do, arguments))

    def run(self, seconds: float) -> None:
        """Let so many seconds pass. An error of a callback comes out here."""
        until, due = self.seconds + seconds, self._due
        switches = 0
        while due and due[0][0] <= until:
            at, _, _, do, arguments = heappop(due)
            switches = switches + 1 if at == self.seconds else 0
            if switches > SWITCHES_MAX:
                raise Stuck(f"{switches} turns at {at:.3f} s, the last of {do}")
            self.seconds = at
            self.turns += 1
            do(*arguments)
        self.seconds = until

    def freeze(self, machine: Machine) -> None:
        """Stop a process where it is."""
        machine.frozen = True

    def thaw(self, machine: Machine) -> None:
        """Let it go on; it does not know that time has passed."""
        machine.frozen, machine.thawed_at = False, self.seconds
        held_back, machine.held_back = machine.held_back, []
        for do, arguments in held_back:
            self.later(0.0, do, *arguments)

    def kill(self, machine: Machine) -> None:
        """End a process at once; from a task, also one of its own, its tasks end as soon as that gives its turn."""
        machine.alive = False
        machine.held_back = []
        if self._running is None:
            self._end_all(machine)
        else:  # Who ended now would give its turn to the loop, and never to the one that runs.
            self.later(0.0, self._end_all, machine)

    def close(self) -> None:
        """End all who are still there: what a task holds stays in memory until then, and with it all it belongs to."""
        for machine in list(self._machines):
            self.kill(machine)

    def _end_all(self, machine: Machine) -> None:
        for task in list(machine.tasks):
            self._end(task)

    # --- from within a task ---------------------------------------------------------------------------------------

    def sleep(self, seconds: float) -> None:
        """Wait."""
        task = self._current()
        self._end_wait(task, seconds)
        self._give_turn(task)

    def wait(self, signal: Signal, timeout: float | None) -> None:
        """See `Signal.wait`."""
        task = self._current()
        signal.waiting.append((task, task.waits))
        if timeout is not None:
            self._end_wait(task, timeout)
        self._give_turn(task)

    def current(self) -> Task:
        """The task that calls."""
        return self._current()

    def pause(self) -> None:
        """Wait for `go_on`, or `wake`; who comes back looks whether it was for what he waits for."""
        self._give_turn(self._current())

    def _current(self) -> Task:
        assert self._running is not None, "only a task can wait"
        if not self._running.machine.alive:
            raise Killed
        return self._running

    def _give_turn(self, task: Task) -> None:
        self._main.switch()
        task.waits += 1
        task.until = NEVER
        if not task.machine.alive:
            raise Killed

    # --- turns ----------------------------------------------------------------------------------------------------

    def wake(self, task: Task) -> None:
        """Give a task its turn, at this instant and not before who calls has given his away."""
        self.later(0.0, self._turn, task, task.waits)

    def go_on(self, task: Task) -> None:
        """As `wake`, for the last deed of a callback: there the task has its turn at once."""
        if self._running is None:
            self._turn(task, task.waits)
        else:
            self.wake(task)

    def _end_wait(self, task: Task, seconds: float) -> None:
        task.until = self.seconds + max(0.0, seconds)
        self._look_at(task)

    def _look_at(self, task: Task) -> None:
        """See to it that the wait of a task is looked at when its time is up, or before."""
        if task.until < task.looked_at:
            task.looked_at = task.until
            self._count += 1
            heappush(self._due, (task.until, self._random(), self._count, self._look, (task, task.until)))

    def _look(self, task: Task, at: float) -> None:
        if at != task.looked_at:
            return  # There has been, or will be, another look.
        task.looked_at = NEVER
        if task.until <= self.seconds:
            self._turn(task, task.waits)
        else:
            self._look_at(task)

    def _turn(self, task: Task, waits: int) -> None:
        if task.done or task.waits != waits:
            return
        if task.machine.frozen:
            task.machine.held_back.append((self._turn, (task, waits)))
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
        if self.waiting:
            for task in self._all():
                self._loop.wake(task)

    def set_and_go_on(self) -> None:
        """As `set`, for the last deed of a callback: see `Loop.go_on`."""
        self._set = True
        if self.waiting:
            for task in self._all():
                self._loop.go_on(task)

    def _all(self) -> list[Task]:
        waiting, self.waiting = self.waiting, []
        return [task for task, waits in waiting if task.waits == waits]

    def clear(self) -> None:
        """Unset it."""
        self._set = False

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is set, or so many seconds. Whether it is set."""
        if not self._set:
            self._loop.wait(self, timeout)
            if self.waiting:  # The time was up.
                self.waiting = [(task, waits) for task, waits in self.waiting if task.waits == waits]
        return self._set
