"""tidewheel worker: runs the tasks of a module for a queue."""

from __future__ import annotations

import click

from tidewheel.cli import options
from tidewheel.loading import CannotLoad, load_worker
from tidewheel.supervised import log_to_stderr


@click.command()
@click.argument("target", required=False, metavar="[MODULE:WORKER]")
@click.option("--queue", help="The queue to serve, instead of the worker's own.")
@click.option("--slots", type=click.IntRange(1), help="How many tasks run at once.")
@click.option(
    "--grace", "grace_seconds", type=click.FloatRange(0), help="Seconds that a drain waits for running tasks."
)
@options.url
def worker(
    *, target: str | None, queue: str | None, slots: int | None, grace_seconds: float | None, url: str | None
) -> None:
    """Run the tasks of MODULE:WORKER until told to stop.

    SIGTERM and Ctrl-C drain: nothing new is taken, and what runs has a while to finish. Once more ends at once.
    """
    if target is None:
        raise click.UsageError(
            "not_supported: name a module and its worker (reports.tasks:worker); HTTP and command targets need none, "
            "but this version cannot do them yet"
        )
    log_to_stderr()
    try:
        found = load_worker(target)
        found.configure(queue=queue, slots=slots, url=url, grace_seconds=grace_seconds)
    except (CannotLoad, ValueError) as error:
        raise click.UsageError(str(error)) from error
    if not found.task_names:
        raise click.UsageError(f"{target} has no task: register one with @worker.task(name)")
    found.run()
