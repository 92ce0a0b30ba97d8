"""What `tidewheel serve` does: its share of the work, over Kafka."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from node.cluster import compose_process, processes_of
from node.folder import FolderRefused
from node.logging import logger
from node.priority import give_way, gives_way
from node.running import read_settings, run
from node.settings import ClusterSettings
from runtime.log import LogError
from runtime.telemetry import Telemetry
from tidewheel.supervised import end_with_holder


def serve(tasks: tuple[str, ...], config: Path | None, number: int | None, flags: dict[str, Any]) -> None:
    settings = read_settings(ClusterSettings, config, flags)
    telemetry = Telemetry(logger=logger(settings.log_format, settings.log_level))
    if "worker" in settings.roles and not tasks:
        raise click.UsageError("--tasks: the role worker has to be told what to run, as MODULE:WORKER")
    if number is None and settings.processes > 1:
        run(processes_of(settings, telemetry), telemetry, settings)
        return
    if number is not None:
        end_with_holder()
    if gives_way(settings.roles):
        give_way()
    try:
        node = compose_process(settings, telemetry, number=number or 0, tasks=tasks)
    except (FolderRefused, LogError, OSError) as error:
        raise click.ClickException(str(error)) from error
    run(node, telemetry, settings)
