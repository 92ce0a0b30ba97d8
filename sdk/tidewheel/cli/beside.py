"""What stands beside a schedule in its files and says when it is due: a preview takes it as if it were put already."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from tidewheel.definitions import OWNED, Document

DOCUMENTS_MAX = 100  # of one question, as the server takes them: 32 calendars, a job, a tenant, and queues


class Beside:
    """The documents of some files, by what they are about."""

    def __init__(self, documents: Iterable[Document], tenant: str) -> None:
        self._tenant = tenant  # of documents that name none
        self._found = {
            (each.kind, self._owner(each) if each.kind in OWNED else "", each.name): each
            for each in documents
            if each.kind != "Schedule" and not each.faults
        }
        self._freezing = [each for each in self._found.values() if each.kind == "Queue" and _in(each, "freezes")]

    def of(self, document: Document) -> list[dict[str, Any]]:
        """The calendars and the job that a schedule names, and what may freeze it."""
        return [
            {**(each.body or {}), "kind": each.kind, "name": each.name}
            for each in islice(self._of(document), DOCUMENTS_MAX)
        ]

    def _of(self, document: Document) -> Iterator[Document]:
        if document.kind != "Schedule":
            return
        owner = self._owner(document)
        calendars = _in(document, "trigger", "exclude", "calendars")
        named = [("Calendar", owner, name) for name in (calendars if isinstance(calendars, list) else ())]
        for thing in (*named, ("Job", owner, _in(document, "job")), ("Tenant", "", owner)):
            if isinstance(thing[2], str) and thing in self._found:
                yield self._found[thing]
        yield from self._freezing

    def _owner(self, document: Document) -> str:
        return document.tenant or self._tenant


def _in(document: Document, *path: str) -> Any:
    """What stands at a place of a document; None where nothing does."""
    value: Any = document.body
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value
