"""Calls a task once and says how that ended, as the report does: wherever it is called, in loop, thread or process."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

from tidewheel import wire
from tidewheel.errors import RunCancelled
from tidewheel.targets.offers import Target, TargetFailed
from tidewheel.tasks import Task
from tidewheel.wire import HandOut

_LOG = logging.getLogger("tidewheel.worker")


async def awaited(
    handout: HandOut, task: Task | Target, arguments: tuple[Any, ...], keywords: Mapping[str, Any]
) -> bytes | None:
    """How the coroutine ended; None when it let RunCancelled pass. Being cancelled passes through."""
    try:
        return wire.succeeded(handout.lease, await task.function(*arguments, **keywords))
    except asyncio.CancelledError:
        raise
    except BaseException as error:  # noqa: BLE001 -- even SystemExit ends a run and not the worker
        return failure(handout, error)


def called(
    handout: HandOut, task: Task | Target, arguments: tuple[Any, ...], keywords: Mapping[str, Any]
) -> bytes | None:
    """How the function ended; None when it let RunCancelled pass."""
    try:
        return wire.succeeded(handout.lease, task.function(*arguments, **keywords))
    except BaseException as error:  # noqa: BLE001 -- even SystemExit ends a run and not the worker
        return failure(handout, error)


def failure(handout: HandOut, error: BaseException) -> bytes | None:
    """The entry of an attempt that raised; None for RunCancelled, which is no failure."""
    if isinstance(error, RunCancelled):
        return None
    run_id = handout.run.get("run_id")
    if isinstance(error, TargetFailed):
        _LOG.warning("attempt %d of run %s failed: %s", handout.attempt, run_id, error.kind)
        return wire.failed(handout.lease, error.kind, str(error), retry_after_seconds=error.retry_after_seconds)
    _LOG.warning("attempt %d of run %s failed: %s", handout.attempt, run_id, type(error).__name__, exc_info=error)
    return wire.failed(handout.lease, type(error).__name__, str(error))
