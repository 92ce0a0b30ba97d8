"""What `tidewheel dev` does: everything in one process, over the embedded log."""

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


def dev(tasks: tuple[str, ...], config: Path | None, flags: dict[str, Any], *, shows_demo: bool) -> None:
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
