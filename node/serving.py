"""`tidewheel serve`: what can be said to it. What it does is loaded when it is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click


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
    from node import sharing  # noqa: PLC0415 -- half of the server, which `--help` can do without

    sharing.serve(tasks, config, number, flags)
