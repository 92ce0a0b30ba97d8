"""What can go wrong, by who can act on it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidewheel.wire import Fault


class TidewheelError(Exception):
    """The server refused a request, or could not be asked. `faults` says what was wrong with each field."""

    def __init__(
        self, message: str, *, status: int | None = None, faults: tuple[Fault, ...] = (), title: str = ""
    ) -> None:
        super().__init__(message)
        self.status = status
        self.faults = faults
        self.title = title  # for those who show the faults one by one: the message may repeat them

    @classmethod
    def of_problem(cls, status: int, problem: Mapping[str, Any]) -> TidewheelError:
        """From an `application/problem+json` body."""
        title = str(problem.get("title") or f"the server answered {status}")
        faults = Fault.read_all(problem)
        message = str(problem.get("detail") or "; ".join([title, *map(str, faults)]))
        return cls(message, status=status, faults=faults, title=title)


class Unreachable(TidewheelError):
    """No answer, or one that says to come back later: the same request may be made again."""


class KafkaUnusable(TidewheelError):
    """Kafka cannot be spoken to with what is installed or set here; the text says what to change."""


class WorkerReplaced(TidewheelError):
    """Another process took this worker's name. It has the leases now, so this one must not come back."""

    def __init__(self, worker: str, ended_by: str) -> None:
        super().__init__(
            f"worker {worker!r} was replaced by another process of the same name (incarnation {ended_by}): "
            "stop one of the two, or give each a name of its own"
        )
        self.ended_by = ended_by


class WorkerStuck(TidewheelError):
    """Too many tasks did not stop when they were asked to: only a new process has their slots again."""


class RunCancelled(Exception):
    """Raised inside a task by `ctx.heartbeat()` once its run was asked to stop. Let it pass."""


class PayloadMisfit(Exception):
    """A payload has a field that the task does not take, or lacks one that it needs."""
