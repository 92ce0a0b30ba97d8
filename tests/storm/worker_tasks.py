"""The tasks of the storm over workers: each notes what it does, takes its time, and writes to a database of its own."""

from __future__ import annotations

import asyncio
import hashlib
import os
import threading
from pathlib import Path
from uuid import uuid4

from tests.storm import executions
from tidewheel import RunContext, Worker

MEMBER = os.environ["STORM_MEMBER"]
DATABASE = Path(os.environ["STORM_DATABASE"])
SECONDS_MAX = float(os.environ["STORM_SECONDS_MAX"])
FAILING = 0.05  # of all runs, at their first attempt

ledger = executions.Ledger(Path(os.environ["STORM_LEDGER"]), MEMBER)
# Two of four have a fixed name, one of each transport: when such a one is killed, the next of its name ends its leases
# at once. The others have a name that nobody has again, and what they held is missed when its lease ends.
NAME = MEMBER if int(MEMBER.rpartition("-")[2]) % 4 < 2 else f"{MEMBER}.{uuid4().hex}"
worker = Worker(queue="default", name=NAME, grace_seconds=5)


@worker.task("storm.coroutine")
async def coroutine(ctx: RunContext) -> dict[str, int]:
    """Interrupted in the middle when its worker stops it."""
    with ledger.execution(run=ctx.run_id, attempt=ctx.attempt, token=ctx.fencing_token):
        await asyncio.to_thread(_write, ctx, "begun")
        with_nothing_to_wait_for = asyncio.Event()
        try:
            await asyncio.wait_for(with_nothing_to_wait_for.wait(), _seconds(ctx.run_id))
        except TimeoutError:
            _fail_at_first(ctx)
        await asyncio.to_thread(_write, ctx, "done")
    return {"attempt": ctx.attempt}


@worker.task("storm.thread")
def thread(ctx: RunContext) -> dict[str, int]:
    """Does not listen when it is asked to stop, like most code: it goes on to its end, whoever has the run by then."""
    with ledger.execution(run=ctx.run_id, attempt=ctx.attempt, token=ctx.fencing_token):
        _write(ctx, "begun")
        threading.Event().wait(_seconds(ctx.run_id))
        _fail_at_first(ctx)
        _write(ctx, "done")
    return {"attempt": ctx.attempt}


def _write(ctx: RunContext, step: str) -> None:
    executions.write(DATABASE, run=ctx.run_id, token=ctx.fencing_token, step=step)


def _seconds(run_id: str) -> float:
    """The same in each attempt."""
    return SECONDS_MAX * _share("seconds", run_id)


def _fail_at_first(ctx: RunContext) -> None:
    if ctx.attempt == 1 and _share("fails", ctx.run_id) < FAILING:
        raise ValueError("as it was meant to")


def _share(of: str, run_id: str) -> float:
    """In [0, 1), of the run alone."""
    return int.from_bytes(hashlib.sha256(f"{of} {run_id}".encode()).digest()[:4]) / 2**32
