"""The attempts a worker is making: begins tasks, asks them to stop, and says how each ended.

Coroutines run in the worker's loop, plain functions in a thread, either in a process of its own where it is to be
isolated. Everything here is called from the loop; a thread
only calls the task and hands the ending back.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from tidewheel import calling, wire
from tidewheel.clock import boottime
from tidewheel.context import RunContext
from tidewheel.errors import PayloadMisfit
from tidewheel.isolated import Isolated
from tidewheel.logs.capture import Capture
from tidewheel.logs.sources import CURRENT
from tidewheel.targets.offers import Target, wanted
from tidewheel.tasks import Task
from tidewheel.threads import ThreadPool
from tidewheel.wire import HandOut

_LOG = logging.getLogger("tidewheel.worker")

STUCK_SECONDS = 60.0  # after it was asked to stop a task counts as one that never will


@dataclass(slots=True, eq=False)
class Attempt:
    """One attempt under way. `stopped` is the outcome to report if it ends because it was asked to."""

    handout: HandOut
    context: RunContext
    asked: bool = False
    stopped: str | None = None
    coroutine: asyncio.Task[bytes | None] | None = None
    process: Isolated | None = None
    asked_at: float = 0.0

    def stop(self, outcome: str | None) -> None:
        """Ask the task to stop, once: a second cancellation would break into its clean-up. None: tell nobody."""
        if self.asked:
            return
        self.asked, self.stopped, self.asked_at = True, outcome, boottime()
        self.context.ask_to_stop()
        if self.process is not None:
            self.process.interrupt()
        if self.coroutine is not None:
            self.coroutine.cancel()


@dataclass(slots=True)
class Attempts:
    """All attempts under way, by lease. `on_end` hears how each hand-out ended: an entry for the report, or None."""

    tasks: Mapping[str, Task | Target]
    slots: int
    on_end: Callable[[HandOut, bytes | None], None]
    listen: Callable[[HandOut], Capture | None] = lambda _handout: None  # who keeps what an attempt writes
    slots_max: int = 0  # that there may ever be, where `slots` may grow
    idle: asyncio.Event = field(default_factory=asyncio.Event)
    _under_way: dict[str, Attempt] = field(default_factory=dict)
    _threads: ThreadPool = field(init=False)

    def __post_init__(self) -> None:
        self._threads = ThreadPool(max(self.slots, self.slots_max))
        self.idle.set()

    @property
    def free(self) -> int:
        """Slots without a task in them. A thread that was asked to stop and does not keeps its slot."""
        return max(0, self.slots - len(self._under_way))

    @property
    def busy(self) -> int:
        """How many are under way."""
        return len(self._under_way)

    def stuck(self, now: float) -> int:
        """How many tasks were asked to stop long ago and have not: nothing but the end of the process frees them."""
        return sum(attempt.asked and now - attempt.asked_at > STUCK_SECONDS for attempt in self._under_way.values())

    def begin(self, handout: HandOut) -> bool:
        """Call the task of a hand-out; False when it ended before it could be called."""
        task = self.tasks.get(wanted(handout.target))
        if task is None:
            message = (
                f"this worker has no task for the target {dict(handout.target)}; it has {', '.join(sorted(self.tasks))}"
            )
            self.on_end(handout, wire.failed(handout.lease, "UnknownTask", message))
            return False
        context = RunContext(handout)
        try:
            arguments, keywords = task.arguments(context, handout)
        except PayloadMisfit as misfit:
            self.on_end(handout, wire.failed(handout.lease, "PayloadMisfit", str(misfit)))
            return False
        attempt = Attempt(handout, context)
        self._under_way[handout.lease] = attempt
        self.idle.clear()
        within = contextvars.copy_context()
        within.run(CURRENT.set, self.listen(handout))
        if isinstance(task, Task) and task.in_process:
            attempt.process = Isolated(handout, task, context)
            self._submit(attempt, partial(within.run, attempt.process.run))
        elif task.is_async:
            attempt.coroutine = asyncio.create_task(calling.awaited(handout, task, arguments, keywords), context=within)
            attempt.coroutine.add_done_callback(partial(self._coroutine_ended, attempt))
        else:
            self._submit(attempt, partial(within.run, calling.called, handout, task, arguments, keywords))
        return True

    def _submit(self, attempt: Attempt, call: Callable[[], bytes | None]) -> None:
        self._threads.submit(partial(self._call_in_thread, asyncio.get_running_loop(), attempt, call))

    def stop(self, lease: str, outcome: str | None) -> None:
        """Ask one attempt to stop, if it is under way."""
        attempt = self._under_way.get(lease)
        if attempt is not None:
            attempt.stop(outcome)

    def stop_all(self, outcome: str | None) -> None:
        """Ask every attempt to stop."""
        for attempt in list(self._under_way.values()):
            attempt.stop(outcome)

    def abandon(self, outcome: str) -> list[str]:
        """Give up on what did not stop: its ending, if there ever is one, is told to nobody."""
        left = list(self._under_way.values())
        for attempt in left:
            if attempt.process is not None:
                attempt.process.kill()
            is_lost = attempt.asked and attempt.stopped is None
            self._ended(attempt, None if is_lost else wire.stopped(attempt.handout.lease, outcome))
        return [attempt.handout.lease for attempt in left]

    def close(self) -> None:
        """Let the threads end."""
        self._threads.close()

    def _coroutine_ended(self, attempt: Attempt, task: asyncio.Task[bytes | None]) -> None:
        lease = attempt.handout.lease
        if not task.cancelled():
            self._ended(attempt, task.result() or self._stopped_entry(attempt))
        elif attempt.asked:
            self._ended(attempt, self._stopped_entry(attempt))
        else:
            self._ended(attempt, wire.failed(lease, "CancelledError", "the task cancelled itself"))

    def _call_in_thread(
        self, loop: asyncio.AbstractEventLoop, attempt: Attempt, call: Callable[[], bytes | None]
    ) -> None:
        entry = call()
        try:
            loop.call_soon_threadsafe(self._thread_ended, attempt, entry)
        except RuntimeError:
            _LOG.warning("run %s ended after the worker did: its outcome is told to nobody", attempt.context.run_id)

    def _thread_ended(self, attempt: Attempt, entry: bytes | None) -> None:
        self._ended(attempt, entry or self._stopped_entry(attempt))

    def _stopped_entry(self, attempt: Attempt) -> bytes | None:
        lease = attempt.handout.lease
        if not attempt.asked:
            return wire.failed(lease, "RunCancelled", "the task raised RunCancelled without having been asked to stop")
        return None if attempt.stopped is None else wire.stopped(lease, attempt.stopped)

    def _ended(self, attempt: Attempt, entry: bytes | None) -> None:
        if self._under_way.pop(attempt.handout.lease, None) is None:
            return  # abandoned
        if not self._under_way:
            self.idle.set()
        self.on_end(attempt.handout, entry)
