"""Workers beside a server, in a child process with only the SDK imported: a bad task cannot take the server down."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from node.children import ChildProcess

if TYPE_CHECKING:
    from runtime.telemetry import Telemetry

DRAIN_SECONDS = 10.0  # what a child has for ending its runs, then it is killed


def worker_process(target: str, url: str, telemetry: Telemetry, *, slots: int, log_level: str) -> ChildProcess:
    """A child process that runs the workers of `target`, `module:worker`, for the server at `url`."""
    command = (sys.executable, "-m", "tidewheel.supervised", target, "--slots", str(slots), "--log-level", log_level)
    environment = {"TIDEWHEEL_URL": url}
    return ChildProcess(f"workers {target}", command, telemetry, drain=DRAIN_SECONDS, environment=environment)
