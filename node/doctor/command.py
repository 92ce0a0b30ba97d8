"""`tidewheel doctor`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.markup import escape

from node import settings as configuration
from node.admin.reaching import cluster_settings, kafka_options, names_a_cluster
from node.doctor import cluster, machine
from node.doctor.finding import Finding, Verdict
from node.settings import Settings
from tidewheel.cli import output

MARKS = {Verdict.OK: "[green]ok   [/]", Verdict.NOTE: "[yellow]note [/]", Verdict.WRONG: "[red]wrong[/]"}


@click.command()
@kafka_options
@click.option("--data", type=click.Path(path_type=Path), help="The data folder to look at [tidewheel-data].")
@click.option("--url", envvar="TIDEWHEEL_URL", default="http://127.0.0.1:8440", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def doctor(url: str, *, as_json: bool, **flags: Any) -> None:
    """Look for what could be wrong with this machine, folder, server and cluster; exit 1 when something is.

    The cluster is looked at when it is named: by --bootstrap, TIDEWHEEL_BOOTSTRAP, or settings for Kafka in --config.
    """
    found: list[Finding] = []
    for finding in _examine(flags, url.rstrip("/")):
        found.append(finding)
        if not as_json:
            _show(finding)
    if as_json:
        plain = [{"verdict": each.verdict, "what": each.what, "remedy": each.remedy} for each in found]
        output.show_json({"findings": plain})
    sys.exit(1 if any(each.verdict is Verdict.WRONG for each in found) else 0)


def _examine(flags: dict[str, Any], url: str) -> Iterator[Finding]:
    if flags["bootstrap"] or os.environ.get("TIDEWHEEL_BOOTSTRAP") or names_a_cluster(flags["config"]):
        settings = cluster_settings(flags)
        yield from machine.examine(settings, url)
        yield from cluster.examine(settings, datetime.now(UTC))
        return
    if flags["namespace"]:
        raise click.UsageError("--namespace: it names topics on Kafka; say --bootstrap too")
    try:
        alone = configuration.read_as(Settings, flags["config"], {"data": flags["data"]})
    except configuration.SettingsError as error:
        raise click.UsageError(str(error)) from error
    yield from machine.examine(alone, url)


def _show(finding: Finding) -> None:
    console = Console(soft_wrap=True, highlight=False)
    console.print(f"{MARKS[finding.verdict]} {escape(finding.what)}")
    if finding.remedy:
        console.print(f"      {escape(finding.remedy)}", style="dim")
