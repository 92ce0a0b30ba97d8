"""tidewheel import: other systems' schedules as definition files."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from tidewheel import definitions
from tidewheel.importers import crontab as cron
from tidewheel.importers import eventbridge as aws
from tidewheel.importers import kubernetes, times, writing
from tidewheel.importers import quartz as java
from tidewheel.importers.report import Imported

USER_COLUMN = {"auto": None, "yes": True, "no": False}


@click.group("import")
def import_() -> None:
    """Turn other systems' schedules into definition files."""


def _common(command: Callable[..., None]) -> Callable[..., None]:
    """What every importer can be told."""
    options = (
        click.option("-o", "--output", "target", type=click.Path(dir_okay=False), help="A file, not standard output."),
        click.option("--queue", default="default", show_default=True, help="The queue that the jobs run in."),
        click.option("--tenant", help="The tenant to write into each definition."),
        click.argument("files", nargs=-1, required=True),
    )
    for option in options:
        command = option(command)
    return command


@import_.command()
@_common
@click.option("--timezone", default="UTC", show_default=True, help="Where neither CRON_TZ nor TZ stands in the file.")
@click.option("--task", default="crontab.run", show_default=True, help="The registered task that runs a command.")
@click.option(
    "--user-column", type=click.Choice(list(USER_COLUMN)), default="auto", help="Whether a user stands before commands."
)
def crontab(
    *,
    files: tuple[str, ...],
    tenant: str | None,
    timezone: str,
    queue: str,
    task: str,
    user_column: str,
    target: str | None,
) -> None:
    """Crontabs and files of cron.d, as Debian's cron reads them.

    Definitions go to standard output, ready for `tidewheel apply -f -`; what could not be carried over is said on
    standard error.
    """
    sources = [source for file in files for source in _read(file, USER_COLUMN[user_column])]
    settings = cron.Settings(tenant=tenant, timezone=timezone, queue=queue, task=task)
    _finish(cron.convert(sources, settings), target, "lines")


def _a_zone(_ctx: click.Context, _option: click.Parameter, name: str) -> str:
    if not times.is_zone(name):
        raise click.BadParameter(f"{name!r} is no zone of IANA's database")
    return name


def _zone(where: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """The zone of what names none."""
    return click.option("--timezone", default="UTC", callback=_a_zone, show_default=True, help=where)


ONE_TASK = click.option("--task", help="One registered task for all, not one that is named after each.")


@import_.command("kubernetes-cronjob")
@_common
@_zone("Where no timeZone is said: the controller's.")
@ONE_TASK
def kubernetes_cronjob(*, files: tuple[str, ...], target: str | None, **said: Any) -> None:
    """CronJobs of Kubernetes: manifests, or what `kubectl get cronjobs -A -o yaml` prints.

    Definitions go to standard output, ready for `tidewheel apply -f -`; what could not be carried over is said on
    standard error.
    """
    _finish(kubernetes.convert(_files(files), _settings(said)), target, "CronJobs or files")


@import_.command()
@_common
@ONE_TASK
def eventbridge(*, files: tuple[str, ...], target: str | None, **said: Any) -> None:
    """EventBridge: what `aws scheduler get-schedule` prints, or CloudFormation templates.

    Terraform is not read. Definitions go to standard output, ready for `tidewheel apply -f -`; what could not be
    carried over is said on standard error.
    """
    _finish(aws.convert(_files(files), _settings(said)), target, "schedules or files")


@import_.command()
@_common
@_zone("Where no time-zone is said: Quartz's machine's.")
@ONE_TASK
def quartz(*, files: tuple[str, ...], target: str | None, **said: Any) -> None:
    """Quartz's job files: XML whose root is job-scheduling-data.

    Definitions go to standard output, ready for `tidewheel apply -f -`; what could not be carried over is said on
    standard error.
    """
    _finish(java.convert(_files(files), _settings(said)), target, "triggers, jobs or files")


def _settings(said: dict[str, Any]) -> writing.Settings:
    return writing.Settings(now=datetime.now(UTC), **said)


def _finish(imported: Imported, target: str | None, things: str) -> None:
    """Definitions to where they go, remarks to people; 1 when their own system could not read something."""
    text = definitions.write(imported.documents) if imported.documents else ""
    if target is None:
        click.echo(text, nl=False)
    else:
        _write(Path(target), text)
    for remark in imported.remarks:
        click.echo(str(remark), err=True)
    left_out = sum(remark.left_out for remark in imported.remarks)
    click.echo(f"{len(imported.documents)} schedules, {left_out} {things} left out", err=True)
    if any(remark.broken for remark in imported.remarks):
        click.get_current_context().exit(1)


def _files(names: Iterable[str]) -> list[writing.File]:
    return [writing.File(path=path, data=data) for name in names for path, data in _bytes(name)]


def _read(file: str, user_column: bool | None) -> list[cron.Source]:  # noqa: FBT001 -- three values, one of them "find out"
    # Cron reads bytes; a command may hold what is no UTF-8.
    return [
        cron.Source(path=path, text=data.decode("utf-8", "replace"), user_column=user_column)
        for path, data in _bytes(file)
    ]


def _bytes(file: str) -> list[tuple[str, bytes]]:
    """What stands in a file, in the files of a folder, or on standard input."""
    if file == "-":
        return [("-", sys.stdin.buffer.read())]
    path = Path(file)
    try:
        paths = sorted(each for each in path.iterdir() if each.is_file()) if path.is_dir() else [path]
        return [(str(each), each.read_bytes()) for each in paths]
    except OSError as error:
        raise click.UsageError(f"{file} cannot be read: {error.strerror}") from error


def _write(target: Path, text: str) -> None:
    try:
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise click.UsageError(f"{target} cannot be written: {error.strerror}") from error
