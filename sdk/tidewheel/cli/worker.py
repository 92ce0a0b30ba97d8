"""tidewheel worker: serves a queue, with the tasks of a module, with commands, with calls of HTTP endpoints."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import click

from tidewheel.brokers import Kafka
from tidewheel.loading import CannotLoad, load_worker
from tidewheel.supervised import log_to_stderr
from tidewheel.targets.settings import Http, Settings, load
from tidewheel.worker import Worker


@click.command()
@click.argument("target", required=False, metavar="[MODULE:WORKER]")
@click.option(
    "--targets",
    "targets_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A YAML file: the commands that it may run, and how it calls HTTP endpoints.",
)
@click.option("--queue", help="The queue to serve, instead of the worker's own.")
@click.option("--slots", type=click.IntRange(1), help="How many tasks run at once.")
@click.option(
    "--grace", "grace_seconds", type=click.FloatRange(0), help="Seconds that a drain waits for running tasks."
)
@click.option("--url", help="The server's address, to speak HTTP to it [TIDEWHEEL_URL].")
@click.option("--bootstrap", help="Kafka brokers, to speak directly to them [TIDEWHEEL_BOOTSTRAP].")
@click.option("--namespace", help="What the names of topics begin with there [TIDEWHEEL_NAMESPACE].")
def worker(
    *,
    target: str | None,
    targets_file: Path | None,
    queue: str | None,
    slots: int | None,
    grace_seconds: float | None,
    url: str | None,
    bootstrap: str | None,
    namespace: str | None,
) -> None:
    """Serve a queue until told to stop, over HTTP or directly on Kafka.

    With MODULE:WORKER it runs the worker's tasks; with --targets also commands and HTTP endpoints, as the file says.
    With neither it calls HTTPS endpoints on public addresses, unsigned, and nothing else.

    SIGTERM and Ctrl-C drain: nothing new is taken, and what runs has a while to finish. Once more ends at once.
    """
    if url is not None and (bootstrap is not None or namespace is not None):
        raise click.UsageError("--url speaks HTTP and --bootstrap speaks to Kafka: give one of the two")
    log_to_stderr()
    try:
        found = Worker() if target is None else load_worker(target)
        if targets_file is not None or target is None:
            found.serve(Settings(http=Http()) if targets_file is None else load(targets_file))
        found.configure(
            queue=queue, slots=slots, url=url, kafka=_kafka(found, bootstrap, namespace), grace_seconds=grace_seconds
        )
    except (CannotLoad, ValueError) as error:
        raise click.UsageError(str(error)) from error
    if not found.task_names:
        nothing = "register one with @worker.task(name)" if target else "it names no commands and has no `http`"
        raise click.UsageError(f"{target or targets_file} has no task: {nothing}")
    found.run()


def _kafka(worker: Worker, bootstrap: str | None, namespace: str | None) -> Kafka | None:
    """What the options change of the worker's own brokers, or of those that the environment names; None for nothing."""
    if bootstrap is None and namespace is None:
        return None
    own = worker.kafka
    if isinstance(own, Kafka):
        return replace(own, bootstrap=bootstrap or own.bootstrap, namespace=namespace or own.namespace)
    kafka = Kafka.of_environment(os.environ, bootstrap or own or "", namespace or "")
    if kafka is None:
        raise ValueError("--namespace is one of Kafka: name its brokers with --bootstrap")
    return kafka
