"""`tidewheel audit`: count what was due against what was decided.

It stands apart from what it calls: the audit's arithmetic may see nothing that knows a core, as settings do.
"""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import click
import orjson
from click.core import ParameterSource
from rich.console import Console

from node.admin.reaching import cluster_settings, complaining, kafka_options
from node.audit import audit as judge_all
from node.audit.report import OFFENDERS_MAX, table
from node.audit.source import FolderSource, HttpSource, KafkaSource


@click.command()
@click.option("--data", type=click.Path(exists=True, file_okay=False, path_type=Path), help="A stopped data folder.")
@click.option("--url", envvar="TIDEWHEEL_URL", help="A running server [http://127.0.0.1:8440].")
@kafka_options
@click.option("--json", "as_json", is_flag=True, help="Print figures and offenders as JSON.")
@click.option(
    "--offenders", type=click.IntRange(min=0), default=OFFENDERS_MAX, help="Name at most this many of a kind."
)
def audit(data: Path | None, url: str | None, offenders: int, *, as_json: bool, **flags: Any) -> None:
    """Check that every due occurrence has exactly one decision, from the topics alone.

    The topics of a running server (--url, or nothing), of a stopped folder (--data), or of Kafka itself (--bootstrap,
    --config). Nothing is written. Exit code 1 when an occurrence is missing or decided twice, or when a run has two
    outcomes.
    """
    with complaining(), closing(_source(data, url, flags)) as source:
        report = judge_all(source, offenders_max=offenders)
    if as_json:
        click.echo(orjson.dumps(report.as_json(), option=orjson.OPT_INDENT_2))
    else:
        Console().print(table(report))
    sys.exit(0 if report.clean else 1)


def _source(data: Path | None, url: str | None, flags: dict[str, Any]) -> FolderSource | KafkaSource | HttpSource:
    _check_there_is_one_source(flags)
    if data is not None:
        return FolderSource(data)
    if flags["bootstrap"] or flags["config"]:
        return KafkaSource(cluster_settings(flags).log)
    return HttpSource(url)


def _check_there_is_one_source(flags: dict[str, Any]) -> None:
    """What the environment says of a server counts only when nothing else is said."""
    context = click.get_current_context()
    said = [
        option
        for option, names in (("--data", ["data"]), ("--url", ["url"]), ("--bootstrap", ["bootstrap", "config"]))
        if any(context.get_parameter_source(name) is ParameterSource.COMMANDLINE for name in names)
    ]
    if len(said) > 1:
        raise click.UsageError(f"{' and '.join(said)}: an audit reads one of them")
    if flags["namespace"] and said != ["--bootstrap"]:
        raise click.UsageError("--namespace: it names topics on Kafka; say --bootstrap too")
