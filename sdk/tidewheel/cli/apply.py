"""tidewheel apply: makes what stands in definition files so."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import BinaryIO

import click

from tidewheel import definitions
from tidewheel.cli import options, output
from tidewheel.client import Client, Written
from tidewheel.definitions import Document
from tidewheel.errors import TidewheelError, Unreachable
from tidewheel.wire import Fault

AT_ONCE = 8  # writes under way: their owners commit several together, and a file of thousands is no burst
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
        for change, lines in _put_all(client, _once_each(client, definitions.in_order(documents))):
            counts[change] += 1
            output.say(lines[0], state=change)
            for line in lines[1:]:
                output.say(f"  {line}")
    output.say(", ".join(f"{count} {change}" for change, count in sorted(counts.items())) or "nothing to apply")
    if counts["refused"] or not documents:
        click.get_current_context().exit(1)


def read(paths: tuple[str, ...]) -> list[Document]:
    """All documents at the given paths, in order."""
    documents: list[Document] = []
    for path in paths:
        if path == "-":
            documents += definitions.read(_text(sys.stdin.buffer, "-"), "-")
            continue
        files = definitions.find(Path(path))
        if not files:
            raise click.UsageError(f"there is no {' or '.join(definitions.SUFFIXES)} file below {path}")
        for file in files:
            documents += definitions.read(_text_of(file), str(file))
    return documents


def _text_of(file: Path) -> str:
    try:
        with file.open("rb") as stream:
            return _text(stream, str(file))
    except OSError as error:
        raise click.UsageError(f"{file} cannot be read: {error}") from error


def _text(stream: BinaryIO, name: str) -> str:
    try:
        return stream.read(definitions.FILE_BYTES_MAX + 1).decode()
    except UnicodeDecodeError as error:
        raise click.UsageError(f"{name} cannot be read: {error}; save it as UTF-8") from error


def _once_each(client: Client, documents: list[Document]) -> Iterator[Document]:
    """Documents, of which a second one for the same thing is refused: nobody means that."""
    places: dict[tuple[str, str, str], str] = {}
    for document in documents:
        thing = (document.kind, document.tenant or client.tenant, document.name)
        if thing in places and not document.faults:
            fault = Fault(pointer="", code="twice", message=f"stands at {places[thing]} already")
            yield replace(document, faults=(fault,))
        else:
            places.setdefault(thing, document.place)
            yield document


def _put_all(client: Client, documents: Iterable[Document]) -> Iterator[tuple[str, list[str]]]:
    """What became of each document, in their order; those of one kind are put several at a time."""
    for _, of_kind in groupby(documents, key=lambda document: document.kind):
        pool = ThreadPoolExecutor(AT_ONCE)
        try:
            yield from pool.map(partial(_put, client), list(of_kind))
        finally:
            pool.shutdown(cancel_futures=True)


def _put(client: Client, document: Document) -> tuple[str, list[str]]:
    """Put one document: what changed, and the lines that say so."""
    if document.faults:
        return _refused(client, document, "", document.faults)
    put = client.put_job if document.kind == "Job" else client.put_schedule
    try:
        written = put(document.name, document.body or {}, tenant=document.tenant)
    except Unreachable:
        raise
    except TidewheelError as error:
        return _refused(client, document, "" if error.faults else str(error), error.faults)
    warnings = [f"warning: {warning}" for warning in written.body.get("warnings") or ()]
    return written.change, [f"{_title(client, document)}{_told(written)}", *warnings]


def _refused(client: Client, document: Document, message: str, faults: tuple[Fault, ...]) -> tuple[str, list[str]]:
    told = f": {message}" if message else ""
    return "refused", [f"{_title(client, document)}  {document.place}{told}", *map(str, faults)]


def _title(client: Client, document: Document) -> str:
    return f"{document.kind or 'document'} {document.tenant or client.tenant}/{document.name or '?'}"


def _told(written: Written) -> str:
    """The version, and a schedule's trigger in words with its next occurrence: to see that it is what was meant."""
    version = f" (version {written.body['version']})" if written.body.get("version") else ""
    words = f"  {written.body['words']}" if written.body.get("words") else ""
    upcoming = written.body.get("next") or ()
    return f"{version}{words}{f'; next {output.when(upcoming[0])}' if upcoming else ''}"
