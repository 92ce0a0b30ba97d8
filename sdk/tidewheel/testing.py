"""Runs a task without any server, as a worker would: for the tests of those who write tasks.

    from tidewheel.testing import run_task

    def test_the_report_counts_rows():
        ended = run_task(worker, "reports.nightly", {"day": "2026-03-08"})
        assert (ended.outcome, ended.result) == ("succeeded", {"rows": 3})

What a worker would refuse is refused here too: a payload that does not fit or is not JSON, a result that is too large.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

from tidewheel import calling, jsontext, wire
from tidewheel.context import RunContext
from tidewheel.errors import PayloadMisfit
from tidewheel.isolated import Isolated
from tidewheel.logs.capture import Capture
from tidewheel.logs.redaction import Redaction
from tidewheel.logs.sources import CURRENT, LISTENING, printing
from tidewheel.tasks import Task
from tidewheel.wire import HandOut
from tidewheel.worker import Worker

__all__ = ["Ended", "Line", "Run", "await_task", "run_task"]

SECONDS = 30.0  # of the lease and of all that is a worker's affair: nobody waits for it here


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The run that a task is told of. `stopping`: it was asked to stop before it began, so heartbeats raise."""

    run_id: str = "test.20260308T020000Z"
    tenant: str = "test"
    schedule: str = "test"
    attempt: int = 1
    may_have_run: bool = False
    fencing_token: int = 0
    nominal_time: datetime | None = datetime(2026, 3, 8, 2, tzinfo=UTC)
    interval_from: datetime | None = None
    stopping: bool = False


class Line(NamedTuple):
    """A line of a log. `stream`: `log` (with its level), `stdout`, `stderr`, `http`, or `worker` of the log itself."""

    stream: str
    level: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How an attempt ended, as the worker would report it; `progress` is the last that it told.

    `log` is what it logged and printed, as the server would be sent it: without secrets.
    """

    outcome: str
    result: Any = None
    error_type: str | None = None
    error_message: str | None = None
    progress: Any = None
    log: tuple[Line, ...] = field(default=(), compare=False)


def run_task(worker: Worker, name: str, payload: Mapping[str, Any] | None = None, run: Run | None = None) -> Ended:
    """Run a registered task to its end: a function right here, a coroutine in a loop of its own."""
    task, context, handout = _prepared(worker, name, payload or {}, run or Run())
    try:
        arguments, keywords = task.arguments(context, handout)
    except PayloadMisfit as misfit:
        return Ended(outcome="failed", error_type="PayloadMisfit", error_message=str(misfit))
    with _heard(worker, handout) as capture:
        if task.in_process:
            entry = Isolated(handout, task, context).run()
        elif task.is_async:
            entry = asyncio.run(calling.awaited(handout, task, arguments, keywords))
        else:
            entry = calling.called(handout, task, arguments, keywords)
    return _ended(entry, context, capture)


async def await_task(
    worker: Worker, name: str, payload: Mapping[str, Any] | None = None, run: Run | None = None
) -> Ended:
    """The same for a test that runs in a loop: a coroutine is awaited in it, a function runs in a thread."""
    task, context, handout = _prepared(worker, name, payload or {}, run or Run())
    if task.in_process or not task.is_async:
        return await asyncio.to_thread(run_task, worker, name, payload, run)
    try:
        arguments, keywords = task.arguments(context, handout)
    except PayloadMisfit as misfit:
        return Ended(outcome="failed", error_type="PayloadMisfit", error_message=str(misfit))
    with _heard(worker, handout) as capture:
        entry = await calling.awaited(handout, task, arguments, keywords)
    return _ended(entry, context, capture)


def _prepared(worker: Worker, name: str, payload: Mapping[str, Any], run: Run) -> tuple[Task, RunContext, HandOut]:
    task = worker.registered(name)
    handout = HandOut(
        incarnation="test", offset=run.fencing_token, lease="test.0.0.test", lease_seconds=SECONDS,
        start_by_seconds=SECONDS, timeout_seconds=SECONDS, attempt=run.attempt, may_have_run=run.may_have_run,
        run=_run(name, jsontext.loads(jsontext.dumps_strictly(dict(payload))), run),
    )  # fmt: skip
    context = RunContext(handout)
    if run.stopping:
        context.ask_to_stop()
    return task, context, handout


def _run(name: str, payload: Any, run: Run) -> Any:
    """The run as the server gives it out, as far as a worker looks at it."""
    given: dict[str, Any] = {
        "run_id": run.run_id,
        "tenant": run.tenant,
        "schedule": run.schedule,
        "job": {"target": {"type": "task", "name": name}, "payload": payload},
    }
    for key in ("nominal_time", "interval_from"):
        if (instant := getattr(run, key)) is not None:
            given[key] = instant.astimezone(UTC).isoformat()
    return given


@contextmanager
def _heard(worker: Worker, handout: HandOut) -> Iterator[Capture]:
    """What is logged and printed in this block is the attempt's."""
    capture = Capture(handout, worker.redaction() or Redaction())
    token = CURRENT.set(capture)
    LISTENING.start()
    LISTENING.begin(capture)
    try:
        with printing():
            yield capture
    finally:
        LISTENING.end(capture)
        LISTENING.stop()
        CURRENT.reset(token)
        capture.close()


def _lines(capture: Capture) -> Iterator[Line]:
    while chunk := capture.chunk():
        for each in map(jsontext.loads, chunk.lines):
            yield Line(each["stream"], each.get("level", ""), each["text"])
        capture.arrived(chunk)


def _ended(entry: bytes | None, context: RunContext, capture: Capture) -> Ended:
    if entry is None and not context.cancelled:
        message = "the task raised RunCancelled without having been asked to stop"
        entry = wire.failed(context.lease, "RunCancelled", message)
    said: dict[str, Any] = {"outcome": "cancelled"} if entry is None else jsontext.loads(entry)
    error = said.get("error") or {}
    return Ended(
        outcome=said["outcome"],
        result=said.get("result"),
        error_type=error.get("type"),
        error_message=error.get("message"),
        progress=context.progress,
        log=tuple(_lines(capture)),
    )
