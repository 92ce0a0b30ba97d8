"""What user code really ran: written down by a bystander who sees every machine, also those that die."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from simulation.evidence import Execution

SUCCEEDED, FAILED, KILLED = "succeeded", "failed", "killed"


@dataclass(slots=True)
class Ledger:
    """Executions in the order of their beginning. `now` is the true time."""

    now: Callable[[], datetime]
    _executions: list[Execution] = field(default_factory=list)

    def began(self, execution: Execution) -> int:
        """User code begins; the number to end it by."""
        self._executions.append(execution)
        return len(self._executions) - 1

    def ended(self, number: int, outcome: str, result: Any = None) -> None:
        """It ended, in whatever way; what it gave back."""
        ended = replace(self._executions[number], ended_at=self.now(), outcome=outcome, result=result)
        self._executions[number] = ended

    @property
    def executions(self) -> tuple[Execution, ...]:
        """All so far; one that is under way has no end."""
        return tuple(self._executions)
