"""What a worker says it can serve, beside its tasks: the words that the server matches a run's target with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tidewheel.context import RunContext
from tidewheel.wire import HandOut

HTTP = "http:"  # any URL: which ones are allowed is the worker's affair
COMMAND = "command:"  # and the command's name


class TargetFailed(Exception):
    """An attempt failed, in words that a job's `never_on` can match: `exit:3`, `http:404`."""

    def __init__(self, kind: str, message: str, *, retry_after_seconds: float | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.retry_after_seconds = retry_after_seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Something other than a task that runs can be given to. It is awaited in the worker's loop."""

    name: str
    function: Callable[[RunContext, HandOut], Awaitable[Any]]
    is_async: bool = True

    def arguments(self, context: RunContext, handout: HandOut) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
        """What to call the function with."""
        return (context, handout), {}


def wanted(target: Mapping[str, Any]) -> str:
    """The offer that serves a target: the name of a task, or one of the words above."""
    match str(target.get("type", "")):
        case "task":
            return str(target.get("name", ""))
        case "http":
            return HTTP
        case kind:
            return f"{kind}:{target.get('name', '')}"


def is_reserved(name: str) -> bool:
    """Whether a task may not be called so: it would be given what is meant for a target."""
    return name == HTTP or name.startswith(COMMAND)
