"""tidewheel worker: runs the tasks of a module for a queue."""

from __future__ import annotations

import os
from dataclasses import replace

import click

from tidewheel.brokers import Kafka
from tidewheel.loading import CannotLoad, load_worker
from tidewheel.supervised import log_to_stderr
from tidewheel.worker import Worker


@click.command()
@click.argument("target", required=False, metavar="[MODULE:WORKER]")
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
    queue: str | None,
    slots: int | None,
    grace_seconds: float | None,
    url: str | None,
    bootstrap: str | None,
    namespace: str | None,
) -> None:
    """Run the tasks of MODULE:WORKER until told to stop, over HTTP or directly on Kafka.

    SIGTERM and Ctrl-C drain: nothing new is taken, and what runs has a while to finish. Once more ends at once.
    """
    if target is None:
        raise click.UsageError(
            "not_supported: name a module and its worker (reports.tasks:worker); HTTP and command targets need none, "
            "but this version cannot do them yet"
        )
    if url is not None and (bootstrap is not None or namespace is not None):
        raise click.UsageError("--url speaks HTTP and --bootstrap speaks to Kafka: give one of the two")
    log_to_stderr()
    try:
        found = load_worker(target)
        found.configure(
            queue=queue, slots=slots, url=url, kafka=_kafka(found, bootstrap, namespace), grace_seconds=grace_seconds
        )
    except (CannotLoad, ValueError) as error:
        raise click.UsageError(str(error)) from error
    if not found.task_names:
        raise click.UsageError(f"{target} has no task: register one with @worker.task(name)")
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
