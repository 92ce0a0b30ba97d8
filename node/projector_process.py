"""The projector beside a server, in a child process: folding rows takes nothing from those who decide.

An interpreter does one thing at a time; rows are a quarter of the work of a server, and nobody's start waits for them.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from node.borrowing import Borrower
from node.projector_child import STOP_SECONDS
from node.words import ProjectorOrders, ProjectorStanding
from projections.projector import inputs_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from runtime.logs.lending import Lendable
    from runtime.record import TopicPartition
    from runtime.telemetry import Telemetry

DRAIN_SECONDS = STOP_SECONDS + 2.0  # then it is killed
ASKERS = 2  # it reads in one thread, and is woken from another


class ProjectorProcess(Borrower):
    """Keeps a projector running. A service (`runtime.lifecycle`), and `api.services.Progress` from what it is told."""

    def __init__(
        self, log: Lendable, orders: ProjectorOrders, telemetry: Telemetry, *,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        super().__init__(
            "projector", "node.projector_child", log, orders, telemetry, askers=ASKERS, drain=DRAIN_SECONDS,
            seconds=seconds,
        )  # fmt: skip
        self._standing = ProjectorStanding({}, datetime.fromtimestamp(0, UTC), ready=False, problem=None)
        self._hurried = False  # somebody waits for rows, and the child knows
        self._callbacks: tuple[Callable[[], None], ...] = ()

    @property
    def problem(self) -> str | None:
        """What the projector is up against; that it has ended, or says nothing any more."""
        return self._silence or self._standing.problem

    @property
    def as_of(self) -> datetime:
        """See `Progress.as_of`."""
        return self._standing.as_of

    def ready(self, timeout: float) -> bool:
        """Whether the rows have followed the log to where it ended when the child began."""
        with self._moved:
            return self._moved.wait_for(lambda: self._standing.ready, timeout)

    def inputs(self) -> list[TopicPartition]:
        """See `Progress.inputs`."""
        return inputs_of(self._log)

    def reached(self, targets: Mapping[TopicPartition, int]) -> bool:
        """See `Progress.reached`. Whoever asks before they are there waits for them; after each batch it asks again."""
        with self._moved:
            positions = self._standing.positions
            reached = all(positions.get(place, 0) >= offset for place, offset in targets.items())
            if not (reached or self._hurried):
                self._hurried = True
                self._ask_for_a_word()
        return reached

    def on_progress(self, callback: Callable[[], None]) -> Callable[[], None]:
        """See `Progress.on_progress`."""
        with self._moved:
            self._callbacks = (*self._callbacks, callback)
        return lambda: self._forget(callback)

    def _forget(self, callback: Callable[[], None]) -> None:
        with self._moved:
            self._callbacks = tuple(known for known in self._callbacks if known is not callback)

    def _hear(self, word: ProjectorStanding) -> None:
        with self._moved:
            as_of = max(word.as_of, self._standing.as_of)  # a child that has just begun has no idea of it
            self._standing, self._hurried = word._replace(as_of=as_of), False
            self._moved.notify_all()
            callbacks = self._callbacks
        for callback in callbacks:
            callback()

    def _hear_end(self, problem: str) -> None:
        self._hear(self._standing._replace(ready=False, problem=problem))
