"""The tasks of the isolation benchmark: one that works for a moment, one that hangs, two that take something down."""

from __future__ import annotations

import asyncio
import os

from tidewheel import Worker

WORK_SECONDS = float(os.environ.get("TIDEWHEEL_BENCH_WORK_SECONDS", "0.05"))

# A name of its own, as a supervised worker has one: the next process of that name ends the leases of the one that died.
worker = Worker(queue="default", name=os.environ.get("TIDEWHEEL_BENCH_WORKER"))


@worker.task("bench.short")
async def short() -> None:
    """What everybody does."""
    await asyncio.sleep(WORK_SECONDS)


@worker.task("bench.hangs")
async def hangs() -> None:
    """Never comes back: its time limit ends it."""
    await asyncio.Event().wait()


@worker.task("bench.dies", isolate="process")
def dies() -> None:
    """Takes down the process that it has for itself."""
    os._exit(3)


@worker.task("bench.kills")
async def kills() -> None:
    """Takes down the worker, with all that others have running there."""
    os._exit(3)
