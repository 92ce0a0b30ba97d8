"""`tidewheel dev`: what can be said to it. What it does is loaded when it is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click


@click.command()
@click.option("--config", type=click.Path(path_type=Path), help="A TOML file of settings.")
@click.option("--data", type=click.Path(path_type=Path), help="Folder of the log and the state [tidewheel-data].")
@click.option("--host", help="Address to listen on [127.0.0.1].")
@click.option("--port", type=int, help="Port to listen on; 0 takes a free one [8440].")
@click.option("--durability", type=click.Choice(["process", "disk"]), help="What a commit survives [process].")
@click.option("--tasks", multiple=True, metavar="MODULE:WORKER", help="Run these workers in a child process.")
@click.option("--demo", "shows_demo", is_flag=True, help="Apply example schedules and show their runs.")
def dev(tasks: tuple[str, ...], *, shows_demo: bool, config: Path | None, **flags: Any) -> None:
    """Run everything on the embedded log: one process, with dispatcher, projector and workers as its children."""
    from node import alone  # noqa: PLC0415 -- two seconds of imports, which `--help` can do without

    alone.dev(tasks, config, flags, shows_demo=shows_demo)
