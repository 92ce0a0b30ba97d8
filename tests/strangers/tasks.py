"""The task of the strangers."""

from __future__ import annotations

from tidewheel import RunContext, Worker

worker = Worker(queue="default")


@worker.task("strangers.echo")
async def echo(ctx: RunContext, word: str) -> dict[str, str]:
    """Says what it was told, and for which schedule."""
    return {"schedule": ctx.schedule, "word": word}
