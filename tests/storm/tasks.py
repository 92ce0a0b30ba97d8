"""The task of the storm."""

from __future__ import annotations

from tidewheel import RunContext, Worker

worker = Worker(queue="default")


@worker.task("storm.work")
async def work(ctx: RunContext) -> dict[str, int]:
    """Does nothing, quickly."""
    return {"attempt": ctx.attempt}
