"""The server's commands that run something: `dev` and `serve`."""

from __future__ import annotations

import gc
import signal
import threading
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.console import Console

from node import settings as configuration
from node.children import end_with_parent
from node.cluster import compose_process, processes_of
from node.compose import Node, NotStarted, compose
from node.console import Commentary
from node.demo import apply as demo
from node.folder import FolderRefused
from node.logging import logger
from node.settings import ClusterSettings, NodeSettings, Settings
from runtime.log import LogError
from runtime.telemetry import Event, Telemetry

__all__ = ["dev", "serve"]

LOOK_SECONDS = 1.0  # between looks whether we may still work
T = TypeVar("T", bound=NodeSettings)

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
    """Run everything in one process on the embedded log; workers in a child process."""
    if shows_demo:
        flags["log_level"] = "error"  # the commentary says what happens, in words
    settings = _read_settings(Settings, config, flags)
    telemetry = Telemetry(logger=logger(settings.log_format, settings.log_level))
    targets = (*tasks, DEMO_TASKS) if shows_demo else tasks
    try:
        node = compose(settings, telemetry, tasks=targets)
    except (FolderRefused, LogError, OSError) as error:
        raise click.ClickException(str(error)) from error
    _run(node, telemetry, settings, shows_demo=shows_demo)


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
    settings = _read_settings(ClusterSettings, config, flags)
    telemetry = Telemetry(logger=logger(settings.log_format, settings.log_level))
    if "worker" in settings.roles and not tasks:
        raise click.UsageError("--tasks: the role worker has to be told what to run, as MODULE:WORKER")
    if number is None and settings.processes > 1:
        _run(processes_of(settings, telemetry), telemetry, settings)
        return
    if number is not None:
        end_with_parent()
    try:
        node = compose_process(settings, telemetry, number=number or 0, tasks=tasks)
    except (FolderRefused, LogError, OSError) as error:
        raise click.ClickException(str(error)) from error
    _run(node, telemetry, settings)


def _run(node: Node, telemetry: Telemetry, settings: NodeSettings, *, shows_demo: bool = False) -> None:
    """Start, work until a signal, stop."""
    told = _told_to_stop()
    console = Console(soft_wrap=True)
    try:
        node.start(told)
        _collect_rarely()
        telemetry.info(Event.NODE_READY, url=node.url, data=str(settings.data))
        console.print(f"Tidewheel is ready{_at(node.url)}   (Ctrl-C ends it)", highlight=False)
        if shows_demo:
            _show_demo(node, console, told)
        _work(node, told)
    except NotStarted as error:
        raise click.ClickException(str(error)) from error
    finally:
        telemetry.info(Event.NODE_STOPPING)
        node.stop()
    console.print("Stopped. Nothing is lost: the next start goes on from here.")


def _at(url: str) -> str:
    return f" at [bold]{url}[/]" if url else ""


def _work(node: Node, told: threading.Event) -> None:
    """Until a signal; NotStarted when our place in a group is another's, as then nothing here may go on."""
    while not told.wait(LOOK_SECONDS):
        node.check()


def _collect_rarely() -> None:
    """Nearly all garbage here is freed by reference counts: walking tens of thousands of live records for the rest,
    hundreds of times a second, took a tenth of the time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def _show_demo(node: Node, console: Console, told: threading.Event) -> None:
    assert node.log is not None, "the demonstration is a process of its own"
    commentary = Commentary(node.log, console)
    commentary.start()
    demo.apply(node.url)
    console.print(f"Look at it: [bold underline]{node.url}/[/]", highlight=False)
    told.wait()
    commentary.stop(5)


def _told_to_stop() -> threading.Event:
    """Set by SIGTERM or Ctrl-C; a second one ends the process at once, as a kill would."""
    told = threading.Event()

    def tell(number: int, _frame: object) -> None:
        if told.is_set():
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        told.set()

    signal.signal(signal.SIGTERM, tell)
    signal.signal(signal.SIGINT, tell)
    return told


def _read_settings(kind: type[T], config: Path | None, flags: dict[str, Any]) -> T:
    try:
        return configuration.read_as(kind, config, flags)
    except configuration.SettingsError as error:
        raise click.UsageError(str(error)) from error
