"""What a task knows about the run it does."""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Any, NamedTuple

from tidewheel.errors import RunCancelled
from tidewheel.wire import HandOut

_LOG = logging.getLogger("tidewheel.run")


class DataInterval(NamedTuple):
    """[start, end): from the nominal instant before this one to this one."""

    start: datetime
    end: datetime


class RunContext:
    """One attempt of a run, as its task sees it. Safe to use from the task's thread.

    A run may be executed more than once: `idempotency_key` is the same each time, `fencing_token` only grows.
    """

    __slots__ = ("_handout", "_log", "_stopping", "progress")

    def __init__(self, handout: HandOut) -> None:
        self._handout = handout
        self._log: logging.LoggerAdapter[logging.Logger] | None = None
        self._stopping = False
        self.progress: Any = None

    @property
    def run_id(self) -> str:
        """The run's name, unique in its tenant."""
        return str(self._handout.run["run_id"])

    @property
    def lease(self) -> str:
        """The right to this attempt, as reports quote it: a secret."""
        return self._handout.lease

    @property
    def tenant(self) -> str:
        """Owner of the schedule."""
        return str(self._handout.run["tenant"])

    @property
    def schedule(self) -> str:
        """Name of the schedule the run belongs to."""
        return str(self._handout.run["schedule"])

    @property
    def attempt(self) -> int:
        """Which try of the run this is, from 1."""
        return self._handout.attempt

    @property
    def may_have_run(self) -> bool:
        """Whether an earlier attempt may have done the work, wholly or in part."""
        return self._handout.may_have_run

    @property
    def nominal_time(self) -> datetime | None:
        """The instant of the schedule that this run is for, in UTC; None for a run made by hand."""
        return _instant(self._handout.run.get("nominal_time"))

    @property
    def data_interval(self) -> DataInterval | None:
        """From the occurrence before to this one; None where there is none before."""
        start, end = _instant(self._handout.run.get("interval_from")), self.nominal_time
        return None if start is None or end is None else DataInterval(start, end)

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt of this run: give it to whatever deduplicates."""
        return self.run_id

    @property
    def fencing_token(self) -> int:
        """Larger in each later attempt of this run: let what you write to refuse a smaller one than it has seen."""
        return self._handout.offset

    @property
    def cancelled(self) -> bool:
        """Whether the task should stop: its run was cancelled, its lease was lost, or the worker is going down."""
        return self._stopping

    def heartbeat(self, progress: Any = None) -> None:
        """Say how far the task is, and stop here if it should: raises RunCancelled.

        The worker keeps the lease by itself. Progress stays in `ctx.progress` and in this worker's log.
        """
        if progress is not None:
            self.progress = progress
            self.log.info("progress: %s", progress)
        if self._stopping:
            raise RunCancelled(f"run {self.run_id} was asked to stop")

    @property
    def log(self) -> logging.LoggerAdapter[logging.Logger]:
        """A logger whose records carry run_id, tenant, schedule and attempt."""
        if self._log is None:
            facts = {"run_id": self.run_id, "tenant": self.tenant, "schedule": self.schedule, "attempt": self.attempt}
            self._log = _RunLog(_LOG, facts)
        return self._log

    def ask_to_stop(self) -> None:
        """For the worker: from now on `cancelled` is true."""
        self._stopping = True


class _RunLog(logging.LoggerAdapter[logging.Logger]):
    """Puts the run in front of the message, and keeps what the caller passes as `extra`."""

    def process(self, msg: Any, kwargs: Any) -> tuple[Any, Any]:
        facts = self.extra or {}
        return f"[{facts['run_id']}] {msg}", {**kwargs, "extra": {**facts, **(kwargs.get("extra") or {})}}


def _instant(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
