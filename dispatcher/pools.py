"""Free slots, found without looking at every worker.

Workers that offer the same tasks form a pool, ordered by free slots: a fleet has few different offers, however large
it is, so a change of one worker moves one entry, and the freest worker for a task is the head of one of a few pools.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from dispatcher.ordered import SortedQueue

Tasks = tuple[str, ...]
Offer = tuple[int, str]  # minus the free slots, incarnation: the freest first, ties by name
Pool = SortedQueue[Offer]


class Pools:
    """Every worker that has a free slot."""

    def __init__(self, on_able: Callable[[str], None]) -> None:
        self._on_able = on_able  # called with a task when the first worker with it has a free slot
        self._pools: dict[Tasks, Pool] = {}
        self._of_task: dict[str, dict[Tasks, Pool]] = {}

    def is_able(self, task: str) -> bool:
        """Whether some worker with the task has a free slot."""
        return task in self._of_task

    def of(self, task: str) -> Iterable[tuple[Tasks, Pool]]:
        """The pools that have the task, none of them empty."""
        return self._of_task.get(task, {}).items()

    def add(self, tasks: Tasks, offer: Offer) -> None:
        """A worker has free slots."""
        pool = self._pools.get(tasks)
        if pool is not None:
            pool.add(offer)
            return
        pool = self._pools[tasks] = Pool([offer])
        for task in dict.fromkeys(tasks):
            pools = self._of_task.setdefault(task, {})
            pools[tasks] = pool
            if len(pools) == 1:
                self._on_able(task)

    def remove(self, tasks: Tasks, offer: Offer) -> None:
        """What was offered so is no more."""
        pool = self._pools[tasks]
        pool.remove(offer)
        if pool:
            return
        del self._pools[tasks]
        for task in dict.fromkeys(tasks):
            del self._of_task[task][tasks]
            if not self._of_task[task]:
                del self._of_task[task]
