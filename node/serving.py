"""The server's command `serve`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from node.cluster import compose_process, processes_of
from node.folder import FolderRefused
from node.logging import logger
from node.running import read_settings, run
from node.settings import ClusterSettings
from runtime.log import LogError
from runtime.telemetry import Telemetry
from tidewheel.supervised import end_with_holder


@click.command()
@click.option("--config", type=click.Path(path_type=Path), help="A TOML file of settings.")
@click.option("--roles", help="What to do, by commas [scheduler,dispatcher,projector,api].")
@click.option("--bootstrap", help="Kafka brokers to ask first [127.0.0.1:9092].")
@click.option("--data", type=click.Path(path_type=Path), help="Folder of what this node keeps [tidewheel-data].")
@click.option("--host", help="Address to listen on [127.0.0.1].")
@click.option("--port", type=int, help="Port to listen on; 0 takes a free one [8440].")
@click.option("--processes", type=int, help="Processes side by side [1].")
@click.option("--tasks", multiple=True, metavar="MODULE:WORKER", help="Role worker: run these in a child process.")
@click.option("--process", "number", type=int, hidden=True, help="Which of several processes this one is.")
def serve(tasks: tuple[str, ...], *, config: Path | None, number: int | None, **flags: Any) -> None:
    """Run some or all roles on Kafka, beside any number of others."""
    settings = read_settings(ClusterSettings, config, flags)
    telemetry = Telemetry(logger=logger(settings.log_format, settings.log_level))
    if "worker" in settings.roles and not tasks:
        raise click.UsageError("--tasks: the role worker has to be told what to run, as MODULE:WORKER")
    if number is None and settings.processes > 1:
        run(processes_of(settings, telemetry), telemetry, settings)
        return
    if number is not None:
        end_with_holder()
    try:
        node = compose_process(settings, telemetry, number=number or 0, tasks=tasks)
    except (FolderRefused, LogError, OSError) as error:
        raise click.ClickException(str(error)) from error
    run(node, telemetry, settings)
