"""tidewheel apply: makes what stands in definition files so."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import click

from tidewheel import definitions
from tidewheel.cli import options, output
from tidewheel.client import Client, Written
from tidewheel.definitions import Document
from tidewheel.errors import TidewheelError, Unreachable
from tidewheel.wire import Fault

NOT_YET = "not_supported: this version cannot do that yet"


@click.command()
@click.option("-f", "--file", "paths", multiple=True, required=True, help="A file, a folder, or - for standard input.")
@click.option("--plan", is_flag=True, help="Not supported yet.")
@click.option("--prune", is_flag=True, help="Not supported yet.")
@options.tenant
@options.url
def apply(*, paths: tuple[str, ...], plan: bool, prune: bool, tenant: str | None, url: str | None) -> None:
    """Put every schedule and job of the given files.

    Each document is created, updated, unchanged or refused; a refused one keeps no other from being put.
    """
    for option, given in (("--plan", plan), ("--prune", prune)):
        if given:
            raise click.UsageError(f"{option}: {NOT_YET}")
    documents = read(paths)
    counts: Counter[str] = Counter()
    with options.connect(url, tenant) as client:
        for document in definitions.in_order(documents):
            counts[_apply(client, document)] += 1
    output.say(", ".join(f"{count} {change}" for change, count in sorted(counts.items())) or "nothing to apply")
    if counts["refused"] or not documents:
        click.get_current_context().exit(1)


def read(paths: tuple[str, ...]) -> list[Document]:
    """All documents at the given paths, in order."""
    documents: list[Document] = []
    for path in paths:
        if path == "-":
            documents += definitions.read(sys.stdin.read(), "-")
            continue
        files = definitions.find(Path(path))
        if not files:
            raise click.UsageError(f"there is no {' or '.join(definitions.SUFFIXES)} file below {path}")
        for file in files:
            documents += definitions.read(_text(file), str(file))
    return documents


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise click.UsageError(f"{file} cannot be read: {error}") from error


def _apply(client: Client, document: Document) -> str:
    if document.faults:
        return _refuse(client, document, "cannot be applied", document.faults)
    put = client.put_job if document.kind == "Job" else client.put_schedule
    try:
        written = put(document.name, document.body or {}, tenant=document.tenant)
    except Unreachable:
        raise
    except TidewheelError as error:
        return _refuse(client, document, str(error), error.faults)
    output.say(f"{_title(client, document)}{_told(written)}", state=written.change)
    for warning in written.body.get("warnings") or ():
        output.say(f"  warning: {warning}")
    return written.change


def _refuse(client: Client, document: Document, message: str, faults: tuple[Fault, ...]) -> str:
    output.say(f"{_title(client, document)}  {document.place}: {message}", state="refused")
    for fault in faults:
        output.say(f"  {fault}")
    return "refused"


def _title(client: Client, document: Document) -> str:
    return f"{document.kind or 'document'} {document.tenant or client.tenant}/{document.name or '?'}"


def _told(written: Written) -> str:
    """The version, and a schedule's trigger in words with its next occurrence: to see that it is what was meant."""
    version = f" (version {written.body['version']})" if written.body.get("version") else ""
    words = f"  {written.body['words']}" if written.body.get("words") else ""
    upcoming = written.body.get("next") or ()
    return f"{version}{words}{f'; next {output.when(upcoming[0])}' if upcoming else ''}"
