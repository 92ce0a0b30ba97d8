"""Definition files: several YAML or JSON documents, each a kind of thing with a name.

YAML is read by the rules of its version 1.2: `NO` and `on` are words, `2026-12-31` and `12:30` are text. A definition
means the same here as it does in JSON.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from tidewheel.wire import Fault

KINDS = ("Job", "Schedule")  # in the order in which they are applied: a schedule may name a job
LATER = ("Calendar", "Queue", "Tenant")
SUFFIXES = (".yaml", ".yml", ".json")


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
    return list(_documents(text, file))


def in_order(documents: Iterable[Document]) -> list[Document]:
    """As they are applied: what others may name comes first."""
    return sorted(documents, key=lambda document: KINDS.index(document.kind) if document.kind in KINDS else -1)


def _documents(text: str, file: str) -> Iterator[Document]:
    number, loader = 0, _Loader(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            assert node is not None
            number += 1
            line = node.start_mark.line + 1
            data = loader.construct_document(node)
            if data is not None:
                yield _document(data, Document(file=file, number=number, line=line))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark else 1
        said = " ".join(
            str(part) for part in (getattr(error, "context", None), getattr(error, "problem", None)) if part
        )
        fault = Fault(pointer="", code="not_yaml", message=f"cannot be read as YAML: {said or error}")
        yield Document(file=file, number=number + 1, line=line, faults=(fault,))
    finally:
        loader.dispose()


def _document(data: Any, place: Document) -> Document:
    if not isinstance(data, dict):
        return replace(place, faults=(Fault(pointer="", code="type", message="is not a mapping with kind and name"),))
    kind, tenant, name = data.pop("kind", None), data.pop("tenant", None), data.pop("name", None)
    faults = (
        *_kind_faults(kind),
        *_text_faults("name", name, needed=True),
        *_text_faults("tenant", tenant, needed=False),
    )
    return replace(place, kind=str(kind), tenant=tenant, name=str(name), body=data, faults=faults)


def _kind_faults(kind: Any) -> Iterator[Fault]:
    if kind in LATER:
        yield Fault(pointer="/kind", code="not_supported", message=f"this version does not support kind {kind} yet")
    elif kind not in KINDS:
        near = difflib.get_close_matches(str(kind).title(), KINDS, n=1)
        remedy = f"did you mean {near[0]}?" if near else "write one of " + ", ".join(KINDS)
        yield Fault(pointer="/kind", code="unknown_kind", message=f"unknown kind {kind!r}", remedy=remedy)


def _text_faults(field: str, value: Any, *, needed: bool) -> Iterator[Fault]:
    if value is None and needed:
        yield Fault(pointer=f"/{field}", code="missing", message="is required")
    elif value is not None and not isinstance(value, str):
        yield Fault(pointer=f"/{field}", code="type", message=f"must be text, not {value!r}", remedy="put it in quotes")


def write(documents: Iterable[Any]) -> str:
    """Documents as a file that `read` understands as it was meant, and so does any other YAML reader."""
    dumped: str = yaml.dump_all(
        documents, Dumper=_Dumper, sort_keys=False, allow_unicode=True, explicit_start=True, width=100
    )
    return dumped


class _Loader(yaml.SafeLoader):
    """YAML 1.2's core words and numbers, no timestamps, and no key twice."""


class _Dumper(yaml.SafeDumper):
    """Quotes text that is a number or a word to either version of YAML: `08` is one to 1.2 only, `010` to both."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 -- the same value twice is written twice
        return True


_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("null", r"~|null|Null|NULL|", [*"~nN", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", [*"tTfF"]),
    ("int", r"[-+]?[0-9]+", [*"-+0123456789"]),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", [*"-+.0123456789"]),
):
    for _kind in (_Loader, _Dumper):
        _kind.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_pattern})$"), _first)


def _integer(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> int:
    return int(loader.construct_scalar(node))


def _number(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> float:
    return float(loader.construct_scalar(node))


def _mapping(loader: yaml.SafeLoader, node: yaml.MappingNode) -> Iterator[dict[str, Any]]:
    """Filled after it is handed over, so that an anchor inside may refer to it; JSON has text keys only."""
    result: dict[str, Any] = {}
    yield result
    loader.flatten_mapping(node)
    for key_node, value_node in node.value:
        key = key_node.value if isinstance(key_node, yaml.ScalarNode) else None
        if key is None or key in result:
            problem = "a key must be text" if key is None else f"the key {key!r} stands there twice"
            raise yaml.constructor.ConstructorError(problem=problem, problem_mark=key_node.start_mark)
        result[key] = loader.construct_object(value_node, deep=True)


_Loader.add_constructor("tag:yaml.org,2002:int", _integer)
_Loader.add_constructor("tag:yaml.org,2002:float", _number)
_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)
