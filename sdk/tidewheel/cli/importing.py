"""tidewheel import: other systems' schedules as definition files."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from tidewheel import definitions
from tidewheel.cli import later
from tidewheel.importers import crontab as cron

USER_COLUMN = {"auto": None, "yes": True, "no": False}


@click.group("import")
def import_() -> None:
    """Turn other systems' schedules into definition files."""


later.add(import_, "kubernetes-cronjob", "eventbridge", "quartz")


@import_.command()
@click.argument("files", nargs=-1, required=True)
@click.option("--tenant", help="The tenant to write into each definition.")
@click.option("--timezone", default="UTC", show_default=True, help="Where neither CRON_TZ nor TZ stands in the file.")
@click.option("--queue", default="default", show_default=True, help="The queue that the jobs run in.")
@click.option("--task", default="crontab.run", show_default=True, help="The registered task that runs a command.")
@click.option(
    "--user-column", type=click.Choice(list(USER_COLUMN)), default="auto", help="Whether a user stands before commands."
)
@click.option("-o", "--output", "target", type=click.Path(dir_okay=False), help="A file instead of standard output.")
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
    imported = cron.convert(sources, settings)
    text = definitions.write(imported.documents) if imported.documents else ""
    if target is None:
        click.echo(text, nl=False)
    else:
        _write(Path(target), text)
    for remark in imported.remarks:
        click.echo(str(remark), err=True)
    left_out = sum(remark.left_out for remark in imported.remarks)
    click.echo(f"{len(imported.documents)} schedules, {left_out} lines left out", err=True)
    if any(remark.broken for remark in imported.remarks):
        click.get_current_context().exit(1)


def _read(file: str, user_column: bool | None) -> list[cron.Source]:  # noqa: FBT001 -- three values, one of them "find out"
    if file == "-":
        text = sys.stdin.buffer.read().decode("utf-8", "replace")
        return [cron.Source(path="-", text=text, user_column=user_column)]
    path = Path(file)
    try:
        paths = sorted(each for each in path.iterdir() if each.is_file()) if path.is_dir() else [path]
        # Cron reads bytes; a command may hold what is no UTF-8.
        return [
            cron.Source(path=str(each), text=each.read_text("utf-8", "replace"), user_column=user_column)
            for each in paths
        ]
    except OSError as error:
        raise click.UsageError(f"{file} cannot be read: {error.strerror}") from error


def _write(target: Path, text: str) -> None:
    try:
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise click.UsageError(f"{target} cannot be written: {error.strerror}") from error
