"""Runs that wait, in the order in which they are handed out.

One queue for each lane and task, because a run can only go to a worker that has its task: the head of each queue is
all that need be looked at, whatever stands behind it. Within a queue: by the instant from which a run may be handed
out, then in order of creation.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from dispatcher.ordered import SortedQueue
from dispatcher.run import OpenRun
from dispatcher.timers import Timers

QueueKey = tuple[str, str]  # lane, task
Entry = tuple[datetime, int, OpenRun]  # not before, number, run: never compared beyond the number, which is its own


def entry_of(run: OpenRun) -> Entry:
    """Where a run stands in its queue."""
    return run.not_before, run.number, run


class Waiting:
    """All queues of a shard, and which of them could give a run to a worker, and when."""

    def __init__(self, is_able: Callable[[str], bool]) -> None:
        self._is_able = is_able
        self.queues: dict[QueueKey, SortedQueue[Entry]] = {}  # none of them is empty
        self._by_task: dict[str, dict[QueueKey, None]] = {}
        self._openings: Timers[QueueKey] = Timers(self._opens_at)

    def add(self, run: OpenRun) -> None:
        """A run waits from now on."""
        key = (run.lane, run.task)
        queue = self.queues.get(key)
        if queue is None:
            queue = self.queues[key] = SortedQueue()
            self._by_task.setdefault(run.task, {})[key] = None
        queue.add(entry_of(run))
        if self._is_able(run.task):
            self._openings.not_before(key, run.not_before)

    def remove(self, run: OpenRun) -> None:
        """A run waits no longer; its place is found by what it was added with."""
        key = (run.lane, run.task)
        queue = self.queues[key]
        queue.remove(entry_of(run))
        if not queue:
            del self.queues[key]
            self._openings.drop(key)
            del self._by_task[run.task][key]
            if not self._by_task[run.task]:
                del self._by_task[run.task]

    def tasks(self) -> list[str]:
        """Every task that a waiting run wants."""
        return list(self._by_task)

    def of_task(self, task: str) -> list[SortedQueue[Entry]]:
        """The queues of a task, one a lane."""
        return [self.queues[key] for key in self._by_task.get(task, ())]

    def task_is_able(self, task: str) -> None:
        """A worker with the task has a free slot."""
        for key in self._by_task.get(task, ()):
            self._openings.not_before(key, self.queues[key].first()[0])

    def opening(self) -> datetime | None:
        """The first instant at which a waiting run can go to a worker that is there."""
        first = self._openings.first()
        return None if first is None else first[0]

    def open_queues(self, now: datetime) -> list[QueueKey]:
        """The queues whose head may be handed out now to a worker that is there."""
        return [key for key, queue in self.queues.items() if queue.first()[0] <= now and self._is_able(key[1])]

    def _opens_at(self, key: QueueKey) -> datetime | None:
        queue = self.queues.get(key)
        return queue.first()[0] if queue is not None and self._is_able(key[1]) else None
