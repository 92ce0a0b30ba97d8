"""`tidewheel audit`: count what was due against what was decided."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path

import click
import orjson
from rich.console import Console

from node.audit import audit as judge_all
from node.audit.report import OFFENDERS_MAX, table
from node.audit.source import FolderSource, HttpSource
from runtime.log import LogError


@click.command()
@click.option("--data", type=click.Path(exists=True, file_okay=False, path_type=Path), help="A stopped data folder.")
@click.option("--url", envvar="TIDEWHEEL_URL", help="A running server [http://127.0.0.1:8440].")
@click.option("--json", "as_json", is_flag=True, help="Print figures and offenders as JSON.")
@click.option(
    "--offenders", type=click.IntRange(min=0), default=OFFENDERS_MAX, help="Name at most this many of a kind."
)
def audit(data: Path | None, url: str | None, offenders: int, *, as_json: bool) -> None:
    """Check that every due occurrence has exactly one decision, from the topics alone.

    Nothing is written. Exit code 1 when an occurrence is missing or decided twice, or a run has two outcomes.
    """
    try:
        source = HttpSource(url) if data is None else FolderSource(data)
    except LogError as error:
        raise click.ClickException(str(error)) from error
    with closing(source):
        report = judge_all(source, offenders_max=offenders)
    if as_json:
        click.echo(orjson.dumps(report.as_json(), option=orjson.OPT_INDENT_2))
    else:
        Console().print(table(report))
    sys.exit(0 if report.clean else 1)
