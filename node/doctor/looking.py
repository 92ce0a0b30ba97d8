"""What is looked at, and how it is shown."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import httpx
from rich.console import Console
from rich.markup import escape

from node import settings as configuration
from node.admin.reaching import cluster_settings, names_a_cluster
from node.doctor import cluster, machine, timezones
from node.doctor.finding import Finding, Verdict, wrong
from node.settings import Settings
from scheduler.occurrences.rules import NoDatabase
from tidewheel.cli import output

MARKS = {Verdict.OK: "[green]ok   [/]", Verdict.NOTE: "[yellow]note [/]", Verdict.WRONG: "[red]wrong[/]"}


def doctor(url: str, flags: Mapping[str, Any], *, tz: bool, tz_data: Path | None, as_json: bool) -> None:
    if tz_data is not None and not tz:
        raise click.UsageError("--tz-data: it is compared by --tz")
    found: list[Finding] = []
    examined = _time_zones(url.rstrip("/"), tz_data) if tz else _examine(flags, url.rstrip("/"))
    for finding in examined:
        found.append(finding)
        if not as_json:
            _show(finding)
    if as_json:
        plain = [{"verdict": each.verdict, "what": each.what, "remedy": each.remedy} for each in found]
        output.show_json({"findings": plain})
    sys.exit(1 if any(each.verdict is Verdict.WRONG for each in found) else 0)


def _examine(flags: Mapping[str, Any], url: str) -> Iterator[Finding]:
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


def _time_zones(url: str, folder: Path | None) -> Iterator[Finding]:
    try:
        after = timezones.here() if folder is None else timezones.given(folder)
    except NoDatabase as error:
        raise click.UsageError(f"--tz-data: {error}") from error
    try:
        before, schedules = timezones.of_server(url)
    except (httpx.HTTPError, httpx.InvalidURL, KeyError) as error:
        yield wrong(f"no server tells its time zone data at {url} ({type(error).__name__})", "name it: --url")
        return
    yield from timezones.compared(before, after, schedules, datetime.now(UTC))


def _show(finding: Finding) -> None:
    console = Console(soft_wrap=True, highlight=False)
    console.print(f"{MARKS[finding.verdict]} {escape(finding.what)}")
    if finding.remedy:
        console.print(f"      {escape(finding.remedy)}", style="dim")
