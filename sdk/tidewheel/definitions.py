"""Definition files: several YAML or JSON documents, each a kind of thing with a name.

A definition means the same in YAML as it does in JSON (`yamltext`). Whatever a file holds, its documents are data or
have faults.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from tidewheel import yamltext
from tidewheel.wire import Fault
from tidewheel.yamltext import write

__all__ = ["Document", "find", "in_order", "read", "write"]

KINDS = ("Tenant", "Queue", "Calendar", "Job", "Schedule")  # as they are applied: later ones may name earlier ones
OWNED = ("Calendar", "Job", "Schedule")  # by a tenant
SUFFIXES = (".yaml", ".yml", ".json")
FILE_BYTES_MAX = 16 * 1024 * 1024  # tens of thousands of schedules; reading them takes a minute
SHOWN_CHARACTERS_MAX = 100  # of what is not understood
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
UNREADABLE = "check indentation and brackets around it, and put text with signs in quotes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One document of a file. `faults` are what keeps it from being sent; `body` is what a put takes."""

    file: str
    number: int
    line: int
    kind: str = ""
    tenant: str | None = None
    name: str = ""
    body: dict[str, Any] | None = None
    faults: tuple[Fault, ...] = ()

    @property
    def place(self) -> str:
        """Where it stands, for people."""
        return f"{self.file}:{self.number} (line {self.line})"


def find(path: Path) -> list[Path]:
    """The definition files at a path: itself, or those anywhere below a folder, in order of name."""
    if not path.is_dir():
        return [path]
    return sorted(each for each in path.rglob("*") if each.suffix in SUFFIXES and each.is_file())


def read(text: str, file: str) -> list[Document]:
    """The documents of a file, those that can't be read too."""
    if len(text) > FILE_BYTES_MAX:
        message = f"is larger than {FILE_BYTES_MAX} bytes"
        fault = Fault(pointer="", code="too_large", message=message, remedy="split the file")
        return [Document(file=file, number=1, line=1, faults=(fault,))]
    return list(_documents(text, file))


def in_order(documents: Iterable[Document]) -> list[Document]:
    """As they are applied: what others may name comes first."""
    return sorted(documents, key=lambda document: KINDS.index(document.kind) if document.kind in KINDS else -1)


def _documents(text: str, file: str) -> Iterator[Document]:
    number = 1
    try:
        for line, data in yamltext.documents(text):
            if data is not None:
                yield _document(data, Document(file=file, number=number, line=line))
            number += 1
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        said = " ".join(part for part in (error.context, error.problem) if part)
        message = f"cannot be read as YAML: {said}"
        fault = Fault(pointer="", code="not_yaml", message=message, remedy=error.note or UNREADABLE)
        yield Document(file=file, number=number, line=line, faults=(fault,))


def _document(data: Any, place: Document) -> Document:
    if not isinstance(data, dict):
        return replace(
            place,
            faults=(
                Fault(
                    pointer="",
                    code="type",
                    message="is not a mapping with kind and name",
                    remedy="write kind: Schedule or kind: Job",
                ),
            ),
        )
    kind, tenant, name = data.pop("kind", None), data.pop("tenant", None), data.pop("name", None)
    faults = (
        *_kind_faults(kind),
        *_name_faults("name", name, needed=True),
        *(_name_faults("tenant", tenant, needed=False) if kind in OWNED else _no_tenant(kind, tenant)),
    )
    known = tenant if isinstance(tenant, str) else None
    return replace(place, kind=_shown(kind), tenant=known, name=_shown(name), body=data, faults=faults)


def _kind_faults(kind: Any) -> Iterator[Fault]:
    if kind not in KINDS:
        near = difflib.get_close_matches(_shown(kind).title(), KINDS, n=1)
        remedy = f"did you mean {near[0]}?" if near else "write one of " + ", ".join(KINDS)
        yield Fault(pointer="/kind", code="unknown_kind", message=f"unknown kind {_shown(kind, repr)}", remedy=remedy)


def _no_tenant(kind: Any, tenant: Any) -> Iterator[Fault]:
    if kind in KINDS and tenant is not None:
        message = f"a {kind} belongs to no tenant" if kind == "Queue" else "a Tenant is named by its name"
        yield Fault(pointer="/tenant", code="unknown_field", message=message, remedy="leave it out")


def _name_faults(field: str, value: Any, *, needed: bool) -> Iterator[Fault]:
    where = f"/{field}"
    if value is None:
        if needed:
            yield Fault(pointer=where, code="missing", message="is required", remedy="add it")
    elif not isinstance(value, str):
        message = f"must be text, not {_shown(value, repr)}"
        yield Fault(pointer=where, code="type", message=message, remedy="put it in quotes")
    elif not NAME.fullmatch(value):
        remedy = "use 1-128 of A-Z a-z 0-9 . _ - and begin with a letter or digit"
        yield Fault(pointer=where, code="name", message=f"cannot be {_shown(value, repr)}", remedy=remedy)


def _shown(value: Any, how: Callable[[Any], str] = str) -> str:
    """As much of a value as a person wants to see."""
    text = how(value)
    return text if len(text) <= SHOWN_CHARACTERS_MAX else f"{text[:SHOWN_CHARACTERS_MAX]}…"
