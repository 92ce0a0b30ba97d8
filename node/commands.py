"""The server's command `dev`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from node.compose import compose
from node.console import Commentary
from node.demo import apply as demo
from node.folder import FolderRefused
from node.logging import logger
from node.running import read_settings, run
from node.settings import Settings
from runtime.log import LogError
from runtime.telemetry import Telemetry

if TYPE_CHECKING:
    import threading

    from rich.console import Console

    from node.process import Node

DEMO_TASKS = "node.demo.tasks:worker"


@click.command()
@click.option("--config", type=click.Path(path_type=Path), help="A TOML file of settings.")
@click.option("--data", type=click.Path(path_type=Path), help="Folder of the log and the state [tidewheel-data].")
@click.option("--host", help="Address to listen on [127.0.0.1].")
@click.option("--port", type=int, help="Port to listen on; 0 takes a free one [8440].")
@click.option("--durability", type=click.Choice(["process", "disk"]), help="What a commit survives [process].")
@click.option("--tasks", multiple=True, metavar="MODULE:WORKER", help="Run these workers in a child process.")
@click.option("--demo", "shows_demo", is_flag=True, help="Apply example schedules and show their runs.")
def dev(tasks: tuple[str, ...], *, shows_demo: bool, config: Path | None, **flags: Any) -> None:
    """Run everything on the embedded log in one process, which has workers and the projector as children."""
    if shows_demo:
        flags["log_level"] = "error"  # the commentary says what happens, in words
    settings = read_settings(Settings, config, flags)
    telemetry = Telemetry(logger=logger(settings.log_format, settings.log_level))
    targets = (*tasks, DEMO_TASKS) if shows_demo else tasks
    try:
        node = compose(settings, telemetry, tasks=targets)
    except (FolderRefused, LogError, OSError) as error:
        raise click.ClickException(str(error)) from error
    run(node, telemetry, settings, show=partial(_show_demo, node) if shows_demo else None)


def _show_demo(node: Node, console: Console, told: threading.Event) -> None:
    assert node.log is not None, "the demonstration is a process of its own"
    commentary = Commentary(node.log, console)
    commentary.start()
    demo.apply(node.url)
    console.print(f"Look at it: [bold underline]{node.url}/[/]", highlight=False)
    told.wait()
    commentary.stop(5)
