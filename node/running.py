"""What every long-running command does: read settings, start, work until a signal, stop."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click
from rich.console import Console

from node import settings as configuration
from node.garbage import collect_rarely
from node.process import NotStarted
from node.settings import NodeSettings
from runtime.telemetry import Event

if TYPE_CHECKING:
    from pathlib import Path

    from node.process import Node
    from runtime.telemetry import Telemetry

LOOK_SECONDS = 1.0  # between looks whether we may still work
T = TypeVar("T", bound=NodeSettings)

Show = Callable[[Console, threading.Event], None]  # returns when the event is set


def read_settings(kind: type[T], config: Path | None, flags: dict[str, Any]) -> T:
    """Settings; wrong ones are wrong usage."""
    try:
        return configuration.read_as(kind, config, flags)
    except configuration.SettingsError as error:
        raise click.UsageError(str(error)) from error


def run(node: Node, telemetry: Telemetry, settings: NodeSettings, *, show: Show | None = None) -> None:
    """Start, work until a signal, stop. `show` has something to show meanwhile."""
    told = _told_to_stop()
    console = Console(soft_wrap=True)
    try:
        node.start(told)
        collect_rarely()
        telemetry.info(Event.NODE_READY, url=node.url, data=str(settings.data))
        at = f" at [bold]{node.url}[/]" if node.url else ""
        console.print(f"Tidewheel is ready{at}   (Ctrl-C ends it)", highlight=False)
        if show is not None:
            show(console, told)
        while not told.wait(LOOK_SECONDS):
            node.check()
    except NotStarted as error:
        raise click.ClickException(str(error)) from error
    finally:
        telemetry.info(Event.NODE_STOPPING)
        node.stop()
    console.print("Stopped. Nothing is lost: the next start goes on from here.")


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
