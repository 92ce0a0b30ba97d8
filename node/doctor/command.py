"""`tidewheel doctor`: what can be said to it. What it does is loaded when it is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from node.admin.options import kafka_options


@click.command()
@kafka_options
@click.option("--data", type=click.Path(path_type=Path), help="The data folder to look at [tidewheel-data].")
@click.option("--url", envvar="TIDEWHEEL_URL", default="http://127.0.0.1:8440", show_default=True)
@click.option("--tz", is_flag=True, help="Only: what newer time zone data would move, for the schedules of the server.")
@click.option("--tz-data", type=click.Path(path_type=Path), help="With --tz: the newer data, in a folder [installed].")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def doctor(url: str, *, tz: bool, tz_data: Path | None, as_json: bool, **flags: Any) -> None:
    """Look for what could be wrong with this machine, folder, server and cluster; exit 1 when something is.

    The cluster is looked at when it is named: by --bootstrap, TIDEWHEEL_BOOTSTRAP, or settings for Kafka in --config.

    With --tz the time zone data that decide at --url are held against those installed here, or those in the folder
    --tz-data (an unpacked tzdata package): which schedules have other occurrences in the next twelve months.
    """
    from node.doctor import looking  # noqa: PLC0415 -- half of the server, which `--help` can do without

    looking.doctor(url, flags, tz=tz, tz_data=tz_data, as_json=as_json)
