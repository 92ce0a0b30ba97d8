"""A role that owns partitions, in a child process of a server on one machine, which uses another core with it.

The child is the owner of its partitions as any process of a cluster is: its transactions are fenced by whoever comes
after it, and a successor goes on where the log says that it was.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from node.borrowing import Borrower
from node.role_child import STOP_SECONDS
from node.words import Counted, PartStanding, RoleOrders, RoleStanding
from runtime.telemetry import Metric

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from node.joined import Figures
    from runtime.logs.lending import Lendable
    from runtime.telemetry import Telemetry

DRAIN_SECONDS = STOP_SECONDS + 2.0  # then it is killed
FIGURES_SECONDS = 1.0  # that a scrape waits for the child's: who hangs has those of before


class RoleProcess(Borrower):
    """Keeps the owner of a role's partitions running. A service (`runtime.lifecycle`)."""

    def __init__(
        self, log: Lendable, orders: RoleOrders, telemetry: Telemetry, *, partitions: int,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        # Each partition's thread asks one thing at a time; the others are for the role's, and for waking one of them.
        super().__init__(
            orders.role, "node.role_child", log, orders, telemetry, askers=partitions + 2, drain=DRAIN_SECONDS,
            seconds=seconds,
        )  # fmt: skip
        telemetry.set(Metric.ROLE_PARTITIONS, {"role": orders.role}, partitions)  # somebody should own each, always
        self._parts: tuple[PartStanding, ...] = ()
        self._ended: str | None = None
        self._figures: Figures = {}
        self._figures_heard = 0

    @property
    def problem(self) -> str | None:
        """What the role is up against; that its process has ended, or says nothing any more."""
        own = self._own
        return self._silence or self._ended or (own and (own.failure or own.problem))

    def ready(self, timeout: float) -> bool:
        """Whether the role works, in the child."""
        with self._moved:
            return self._moved.wait_for(lambda: self._own is not None and self._own.works, timeout)

    def partitions(self) -> Sequence[PartStanding]:
        """How the partitions are that run at the moment."""
        return self._parts[1:]

    def figures(self) -> Figures:
        """What the child has counted, by the family; nothing while there is none."""
        with self._moved:
            before = self._figures_heard
            if self._own is not None:
                self._ask_for_a_word()
                self._moved.wait_for(lambda: self._figures_heard > before or self._own is None, FIGURES_SECONDS)
            return self._figures

    @property
    def _own(self) -> PartStanding | None:
        return self._parts[0] if self._parts else None

    def _hear(self, word: Any) -> None:
        with self._moved:
            match word:
                case RoleStanding(parts):
                    self._parts, self._ended = parts, None
                case Counted(figures):
                    self._figures = figures
                    self._figures_heard += 1
            self._moved.notify_all()

    def _hear_end(self, problem: str) -> None:
        with self._moved:
            self._parts, self._ended, self._figures = (), problem, {}
            self._moved.notify_all()
