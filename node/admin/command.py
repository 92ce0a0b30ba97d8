"""`tidewheel admin`: what can be said to it. What it does is loaded when it is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from node.admin.options import kafka_options, word_options
from tidewheel.cli import later


@click.group()
def admin() -> None:
    """What an operator does to a cluster, apart from running it."""


later.add(admin, "acls", "rebuild")


@admin.command()
@click.argument("action", type=click.Choice(["create", "verify"]), default="verify")
@kafka_options
@click.option("--queue", "queues", multiple=True, metavar="QUEUE", help="The inboxes of this queue too; repeatable.")
@click.option("--fix", is_flag=True, help="verify: alter what can be altered without loss.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def topics(action: str, queues: tuple[str, ...], *, fix: bool, as_json: bool, **flags: Any) -> None:
    """Make the topics (create), or compare them with the settings (verify, also when nothing is said).

    `create` leaves topics that exist as they are. `verify` also looks at the inboxes of every queue that has them;
    exit code 1 when something differs.
    """
    from node.admin import topics as work  # noqa: PLC0415 -- half of the server, which `--help` can do without

    work.topics(action, queues, flags, fix=fix, as_json=as_json)


@admin.group()
def clock() -> None:
    """What owners of partitions think of their clocks."""


@clock.command()
@click.option("--data", type=click.Path(exists=True, file_okay=False, path_type=Path), help="A stopped data folder.")
@word_options
@click.option("--wait", type=click.FloatRange(min=0), default=10.0, show_default=True, help="Seconds for answers.")
def accept(
    data: Path | None, role: str | None, number: int | None, by: str, note: str, wait: float, **flags: Any
) -> None:
    """Let partitions that hold believe their clocks, where those show about the same time as this machine's.

    The word stands on the log with its author, and with `clock.released` on run-events when a partition has heard it.
    One whose own clock is more than five minutes off this one's stays held: mend that clock. Exit code 1 when no
    partition was released in time.
    """
    from node.admin import clock as work  # noqa: PLC0415 -- as above

    work.accept(data, role, number, wait, flags, by=by, note=note)


@admin.command("accept-gap")
@click.option("--data", type=click.Path(exists=True, file_okay=False, path_type=Path), help="A stopped data folder.")
@word_options
@click.option("--yes", is_flag=True, help="Accept without being asked.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, and accept nothing without --yes.")
def accept_gap(
    data: Path | None, role: str | None, number: int | None, by: str, note: str, *, yes: bool, as_json: bool,
    **flags: Any,
) -> None:  # fmt: skip
    """Let halted partitions go on without input that is lost; says first exactly what that is.

    Each loss is named by topic, partition and offsets, and accepted by a word on the log with its author. The owner
    goes on within half a minute, and states it as a fact: `gap.accepted` on run-events. A loss of state cannot be
    accepted: it is named with what can be done instead. Exit code 1 when something stays as it is.
    """
    from node.admin import gap as work  # noqa: PLC0415 -- as above

    work.accept_gap(data, role, number, flags, by=by, note=note, yes=yes, as_json=as_json)
