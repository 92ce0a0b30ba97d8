"""The task of the kill test."""

from __future__ import annotations

from tidewheel import RunContext, Worker

worker = Worker(queue="default")


@worker.task("kill.count")
async def count(ctx: RunContext) -> dict[str, int]:
    """Does nothing, quickly."""
    return {"attempt": ctx.attempt}
