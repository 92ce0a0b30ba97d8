"""`tidewheel audit`: what can be said to it. What it does is loaded when it is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from node.admin.options import kafka_options


@click.command()
@click.option("--data", type=click.Path(exists=True, file_okay=False, path_type=Path), help="A stopped data folder.")
@click.option("--url", envvar="TIDEWHEEL_URL", help="A running server [http://127.0.0.1:8440].")
@kafka_options
@click.option("--json", "as_json", is_flag=True, help="Print figures and offenders as JSON.")
@click.option("--offenders", type=click.IntRange(min=0), help="Name at most this many of a kind.")
def audit(data: Path | None, url: str | None, offenders: int | None, *, as_json: bool, **flags: Any) -> None:
    """Check that every due occurrence has exactly one decision, from the topics alone.

    The topics of a running server (--url, or nothing), of a stopped folder (--data), or of Kafka itself (--bootstrap,
    --config). Nothing is written. Exit code 1 when an occurrence is missing or decided twice, or when a run has two
    outcomes.
    """
    from node.admin import auditing  # noqa: PLC0415 -- half of the server, which `--help` can do without

    auditing.audit(data, url, offenders, flags, as_json=as_json)
