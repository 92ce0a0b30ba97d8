"""Tasks of the demonstration. They only use what every worker has: the `tidewheel` library."""

from __future__ import annotations

import asyncio
import hashlib

from tidewheel import RunContext, Worker

worker = Worker(queue="default")


class RemoteUnavailableError(Exception):
    """What a flaky upstream answers now and then."""


@worker.task("demo.heartbeat")
async def heartbeat(ctx: RunContext) -> dict[str, str]:
    """Succeeds at once."""
    return {"seen": str(ctx.nominal_time)}


@worker.task("demo.report")
def report(ctx: RunContext, day: str, rows: int = 1000) -> dict[str, object]:
    """Computes a little."""
    digest = hashlib.sha256(f"{ctx.idempotency_key}:{day}:{rows}".encode()).hexdigest()
    return {"day": day, "rows": rows, "digest": digest[:12]}


@worker.task("demo.flaky")
def flaky(ctx: RunContext) -> dict[str, int]:
    """Fails on its first attempt, always: to be seen being retried."""
    if ctx.attempt == 1:
        message = "the upstream answered 503"
        raise RemoteUnavailableError(message)
    return {"attempt": ctx.attempt}


@worker.task("demo.slow")
async def slow(ctx: RunContext, seconds: float = 7) -> dict[str, float]:
    """Takes longer than its schedule's interval: to be seen overlapping."""
    ctx.log.info("working for %s s", seconds)
    await asyncio.sleep(seconds)
    return {"worked": seconds}


@worker.task("demo.doomed")
def doomed(ctx: RunContext) -> None:
    """Never succeeds: to be seen being given up."""
    message = f"attempt {ctx.attempt} failed, as every one will"
    raise RuntimeError(message)
