"""tidewheel preview: when a definition would run, before it is applied."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import click

from tidewheel.cli import options, output
from tidewheel.cli.apply import read
from tidewheel.cli.beside import Beside
from tidewheel.cli.plan import compared
from tidewheel.client import Client
from tidewheel.definitions import Document
from tidewheel.errors import TidewheelError


@click.command()
@click.option("-f", "--file", "paths", multiple=True, required=True, help="A file, a folder, or - for standard input.")
@options.between
@options.limit
@options.tenant
@options.as_json
@options.url
def preview(
    *,
    paths: tuple[str, ...],
    from_: datetime | None,
    to: datetime | None,
    limit: int | None,
    tenant: str | None,
    as_json: bool,
    url: str | None,
) -> None:
    """The occurrences that the schedules of a file would have, and what clock changes do to them."""
    documents = read(paths)
    wanted = [document for document in documents if document.kind == "Schedule" or document.faults]
    if not wanted:
        raise click.UsageError("there is no schedule to preview")
    with options.connect(url, tenant) as client:
        beside = Beside(documents, client.tenant)
        for document in wanted:
            body = _ask(client, document, beside=beside.of(document), from_=from_, to=to, limit=limit)
            if as_json:
                output.show_json(body)
            else:
                _show(client, document, body)


def _ask(client: Client, document: Document, **asked: Any) -> dict[str, Any]:
    if document.faults:
        raise TidewheelError("", faults=document.faults, title=document.place)
    try:
        return client.preview({**(document.body or {}), "name": document.name}, tenant=document.tenant, **asked)
    except TidewheelError as error:
        error.title = f"{document.place}: {error.title}"
        raise


def _show(client: Client, document: Document, body: Mapping[str, Any]) -> None:
    words = f": {body['words']}" if body.get("words") else ""
    output.say(f"{document.tenant or client.tenant}/{document.name}{words}")
    for warning in body.get("warnings") or ():
        output.say(f"warning: {warning}")
    output.table(("NOMINAL", "LOCAL", "NOTE"), map(_row, body.get("occurrences") or ()))
    for skip in body.get("skipped") or ():
        output.say(f"no run at {_skipped(skip)}")
    _show_clock_changes(body)
    if body.get("difference"):
        output.say(f"compared with what is in force: {compared(body['difference'])}")


def _show_clock_changes(body: Mapping[str, Any]) -> None:
    """Those that touch the schedule; a server that does not say so tells of all."""
    changes = [change for change in body.get("dst") or () if change.get("touches", True)]
    for change in changes:
        span = f"{change.get('from_local')} to {change.get('to_local')}"
        output.say(f"{change.get('kind')} at {output.when(change.get('at'))}, {span}: {change.get('effect')}")
    if body.get("dst_until") and not changes:
        output.say(f"no clock change until {output.when(body['dst_until'])} touches it")


def _skipped(skip: Mapping[str, Any]) -> str:
    span = skip.get("range")
    when = (
        f"{output.when(span['from'])} and {span['count'] - 1} more until {output.when(span['to'])}"
        if span
        else output.when(skip.get("nominal_time")) or f"{skip.get('local_time')} local time"
    )
    return f"{when}: {skip.get('reason')}{' ' + skip['detail'] if skip.get('detail') else ''}"


def _row(occurrence: Mapping[str, Any]) -> tuple[Any, ...]:
    return output.when(occurrence.get("nominal_time")), occurrence.get("local_time"), occurrence.get("note")
