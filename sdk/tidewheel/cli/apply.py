"""tidewheel apply: makes what stands in definition files so."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import BinaryIO

import click

from tidewheel import definitions
from tidewheel.cli import options, output
from tidewheel.cli import plan as planning
from tidewheel.cli.beside import Beside
from tidewheel.client import Client, Written
from tidewheel.definitions import Document
from tidewheel.errors import TidewheelError, Unreachable
from tidewheel.wire import Fault

AT_ONCE = 8  # writes under way: their owners commit several together, and a file of thousands is no burst
WOULD_CHANGE = 4  # exit code of a plan that is not empty: 1 to 3 say what went wrong
PAGE = 500
PRUNED_MAX = 10_000  # schedules of one tenant that are looked at: a bound for a list that never ends

NOBODYS = frozenset(definitions.KINDS) - frozenset(definitions.OWNED)

Act = Callable[[Client, Document], tuple[str, list[str]]]


@click.command()
@click.option("-f", "--file", "paths", multiple=True, required=True, help="A file, a folder, or - for standard input.")
@click.option("--plan", is_flag=True, help="Say what would change, and change nothing; exit code 4 if anything would.")
@click.option("--prune", is_flag=True, help="Delete schedules that have all labels of --label and stand in no file.")
@click.option("--note", default="", help="Why; it stands among the changes of each document.")
@options.by
@click.option("--label", "labels", multiple=True, help="What --prune may delete: team=finance.")
@options.tenant
@options.url
def apply(
    *,
    paths: tuple[str, ...],
    plan: bool,
    prune: bool,
    labels: tuple[str, ...],
    note: str,
    by: str,
    tenant: str | None,
    url: str | None,
) -> None:
    """Put every schedule, job, calendar, queue and tenant of the given files.

    Each document is created, updated, unchanged or refused; a refused one keeps no other from being put, but nothing
    is deleted then.
    """
    if prune is not bool(labels):
        raise click.UsageError("--prune and --label belong together: the labels say what may be deleted")
    documents, said = read(paths), {"note": note, "by": by}
    counts: Counter[str] = Counter()
    with options.connect(url, tenant) as client:
        each = partial(_plan, Beside(documents, client.tenant)) if plan else partial(_put, said)
        _tell(counts, _each_of(client, each, _once_each(client, definitions.in_order(documents))))
        if prune and documents and not counts["refused"]:
            _tell(counts, _pruned(client, documents, labels, said, plan=plan))
    output.say(", ".join(f"{count} {change}" for change, count in sorted(counts.items())) or "nothing to apply")
    if counts["refused"] or not documents:
        click.get_current_context().exit(1)
    if plan and counts.keys() - {"unchanged"}:
        click.get_current_context().exit(WOULD_CHANGE)


def _tell(counts: Counter[str], changes: Iterable[tuple[str, list[str]]]) -> None:
    for change, lines in changes:
        counts[change] += 1
        output.say(lines[0], state=change)
        for line in lines[1:]:
            output.say(f"  {line}")


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
        thing = (document.kind, "" if document.kind in NOBODYS else document.tenant or client.tenant, document.name)
        if thing in places and not document.faults:
            fault = Fault(pointer="", code="twice", message=f"stands at {places[thing]} already")
            yield replace(document, faults=(fault,))
        else:
            places.setdefault(thing, document.place)
            yield document


def _each_of(client: Client, act: Act, documents: Iterable[Document]) -> Iterator[tuple[str, list[str]]]:
    """What became of each document, in their order; those of one kind are sent several at a time."""
    for _, of_kind in groupby(documents, key=lambda document: document.kind):
        pool = ThreadPoolExecutor(AT_ONCE)
        try:
            yield from pool.map(partial(act, client), list(of_kind))
        finally:
            pool.shutdown(cancel_futures=True)


def _put(said: Mapping[str, str], client: Client, document: Document) -> tuple[str, list[str]]:
    """Put one document: what changed, and the lines that say so."""
    return _or_refused(client, document, lambda: _written(client, document, said))


def _plan(beside: Beside, client: Client, document: Document) -> tuple[str, list[str]]:
    """Ask what a put would do."""

    def ask() -> tuple[str, list[str]]:
        change, lines = planning.ask(client, beside, document)
        return change, [f"{_title(client, document)}{lines[0]}", *lines[1:]]

    return _or_refused(client, document, ask)


def _or_refused(client: Client, document: Document, act: Callable[[], tuple[str, list[str]]]) -> tuple[str, list[str]]:
    if document.faults:
        return _refused(client, document, "", document.faults)
    try:
        return act()
    except Unreachable:
        raise
    except TidewheelError as error:
        return _refused(client, document, "" if error.faults else str(error), error.faults)


def _pruned(
    client: Client, documents: list[Document], labels: tuple[str, ...], said: Mapping[str, str], *, plan: bool
) -> Iterator[tuple[str, list[str]]]:
    """Delete the schedules with these labels, in the tenants of the files, that stand in none of them."""
    named = {(document.tenant or client.tenant, document.name) for document in documents if document.kind == "Schedule"}
    for tenant in sorted({document.tenant or client.tenant for document in documents}):
        for name in [name for name in _labelled(client, tenant, labels) if (tenant, name) not in named]:
            touched = list(planning.dependants(client.get_schedule(name, tenant=tenant))) if plan else ()
            if not plan:
                client.delete_schedule(name, tenant=tenant, note=said["note"], by=said["by"])
            yield "deleted", [f"Schedule {tenant}/{name}", *touched]


def _labelled(client: Client, tenant: str, labels: tuple[str, ...]) -> Iterator[str]:
    cursor: str | None = None
    for _ in range(PRUNED_MAX // PAGE):
        page = client.list_schedules(tenant=tenant, label=list(labels), limit=PAGE, cursor=cursor)
        yield from (str(schedule["name"]) for schedule in page)
        cursor = page.cursor
        if cursor is None:
            return


def _written(client: Client, document: Document, said: Mapping[str, str]) -> tuple[str, list[str]]:
    put = getattr(client, f"put_{document.kind.lower()}")
    owner = {"tenant": document.tenant} if document.kind in definitions.OWNED else {}
    written: Written = put(document.name, document.body or {}, **owner, **said)
    warnings = [f"warning: {warning}" for warning in written.body.get("warnings") or ()]
    return written.change, [f"{_title(client, document)}{_told(written)}", *warnings]


def _refused(client: Client, document: Document, message: str, faults: tuple[Fault, ...]) -> tuple[str, list[str]]:
    told = f": {message}" if message else ""
    return "refused", [f"{_title(client, document)}  {document.place}{told}", *map(str, faults)]


def _title(client: Client, document: Document) -> str:
    owner = "" if document.kind in NOBODYS else f"{document.tenant or client.tenant}/"
    return f"{document.kind or 'document'} {owner}{document.name or '?'}"


def _told(written: Written) -> str:
    """The version, and a schedule's trigger in words with its next occurrence: to see that it is what was meant."""
    version = f" (version {written.body['version']})" if written.body.get("version") else ""
    words = f"  {written.body['words']}" if written.body.get("words") else ""
    upcoming = written.body.get("next") or ()
    return f"{version}{words}{f'; next {output.when(upcoming[0])}' if upcoming else ''}"
