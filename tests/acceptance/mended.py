"""Tasks of the tests of reruns: one that fails until it is mended."""

from __future__ import annotations

from pathlib import Path

from tidewheel import RunContext, Worker

worker = Worker(queue="default")


@worker.task("mended.report")
def report(ctx: RunContext, mended: str, day: str) -> dict[str, str]:
    """Fails as long as there is no such file."""
    if not Path(mended).exists():
        raise ValueError("the report has no rows")
    return {"day": day, "run": ctx.run_id}
