"""Which topics are audited, and how what was found is shown.

It stands apart from what it calls: the audit's arithmetic may see nothing that knows a core, as settings do.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import click
import orjson
from click.core import ParameterSource
from rich.console import Console

from node.admin.reaching import cluster_settings, complaining
from node.audit import audit as judge_all
from node.audit.report import OFFENDERS_MAX, table
from node.audit.source import FolderSource, HttpSource, KafkaSource


def audit(
    data: Path | None, url: str | None, offenders_max: int | None, flags: Mapping[str, Any], *, as_json: bool
) -> None:  # fmt: skip
    with complaining(), closing(_source(data, url, flags)) as source:
        report = judge_all(source, offenders_max=OFFENDERS_MAX if offenders_max is None else offenders_max)
    if as_json:
        click.echo(orjson.dumps(report.as_json(), option=orjson.OPT_INDENT_2))
    else:
        Console().print(table(report))
    sys.exit(0 if report.clean else 1)


def _source(data: Path | None, url: str | None, flags: Mapping[str, Any]) -> FolderSource | KafkaSource | HttpSource:
    _check_there_is_one_source(flags)
    if data is not None:
        return FolderSource(data)
    if flags["bootstrap"] or flags["config"]:
        return KafkaSource(cluster_settings(flags).log)
    return HttpSource(url)


def _check_there_is_one_source(flags: Mapping[str, Any]) -> None:
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
