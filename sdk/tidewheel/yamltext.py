"""YAML that means what the same text means in JSON: by the rules of its version 1.2, and no more than JSON can hold.

`NO` and `on` are words, `2026-12-31` and `12:30` are text, no key stands twice, nothing contains itself, and aliases
cannot make much of little. Whatever a text holds, the answer is data or `yaml.MarkedYAMLError`, which knows the line.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator
from typing import Any

import yaml

from tidewheel import jsontext

# The server takes 24 levels and 256 KiB of JSON, and says so in its own words; beyond these bounds nothing is sent.
DEPTH_MAX = 64
CHARACTERS_MAX = 1024 * 1024
_NULL, _BOOL, _INT, _FLOAT, _STR, _SEQ, _MAP = (
    f"tag:yaml.org,2002:{name}" for name in ("null", "bool", "int", "float", "str", "seq", "map")
)
_PLAIN = (  # what a plain word is, in the order in which it is tried, and what it begins with
    (_NULL, re.compile(r"^(?:~|null|Null|NULL|)$"), [*"~nN", ""]),
    (_BOOL, re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), [*"tTfF"]),
    (_INT, re.compile(r"^[-+]?[0-9]+$"), [*"-+0123456789"]),
    (_FLOAT, re.compile(r"^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$"), [*"-+.0123456789"]),
)


def documents(text: str, kind: type[Loader] | None = None) -> Iterator[tuple[int, Any]]:
    """Each document with the number of its first line; raises at the first that cannot be read."""
    whole = _json(text)
    if whole is not None:
        yield 1, whole
        return
    loader = _loader(text, kind or Loader)
    try:
        while (node := _next(loader)) is not None:
            yield node.start_mark.line + 1, loader.construct_document(node)
    finally:
        loader.dispose()


def _loader(text: str, kind: type[Loader]) -> Loader:
    try:
        return kind(text)
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position)
        mark = yaml.Mark(error.name, error.position, line, 0, None, 0)
        problem = f"the character U+{error.character:04X} must not stand in a text"
        raise _refusal(mark, problem, "write it as an escape, in double quotes") from error


def _next(loader: Loader) -> yaml.Node | None:
    try:
        return loader.get_node() if loader.check_node() else None
    except (ValueError, OverflowError) as error:  # of chr(): an escape may name what is no character
        raise _refusal(loader.get_mark(), "an escape names no character", r"the last one is \U0010FFFF") from error


def write(documents: Iterable[Any]) -> str:
    """Documents as a text that `documents` understands as it was meant, and so does any other YAML reader."""
    dumped: str = yaml.dump_all(
        documents, Dumper=_Dumper, sort_keys=False, allow_unicode=True, explicit_start=True, width=100
    )
    return dumped


def _json(text: str) -> Any:
    """What JSON says of it, which allows tabs and pairs of surrogates; None for what YAML has to look at."""
    try:
        data = json.loads(text, object_pairs_hook=_once, parse_int=_whole)
        deep = len(text) > DEPTH_MAX and _depth(data) > DEPTH_MAX
        return None if deep or not jsontext.dumps_strictly(data) else data
    except (ValueError, RecursionError):
        return None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands there twice")
    return found


def _depth(value: Any) -> int:
    deepest, layer = 0, [value]
    while layer := [each for each in layer if isinstance(each, (dict, list))]:
        deepest += 1
        layer = [item for each in layer for item in (each.values() if isinstance(each, dict) else each)]
    return deepest


def _whole(text: str) -> int:
    number = int(text) if len(text) <= 20 else 2**64  # noqa: PLR2004 -- the digits of 64 bits, with a sign
    if not -(2**63) <= number < 2**64:
        raise ValueError(text)
    return number


class Loader(yaml.SafeLoader):
    """Nodes no deeper and no larger than they can be sent, and of them what JSON has."""

    characters_max = CHARACTERS_MAX

    def __init__(self, text: str) -> None:
        self._depth = 0
        self._sizes: dict[int, int] = {}  # of a node with all that its aliases stand for, in characters
        super().__init__(text)

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """A node and what it contains; an alias counts as much as what it stands for."""
        event: yaml.Event = self.peek_event()  # type: ignore[no-untyped-call]
        if self._depth >= DEPTH_MAX:
            raise _refusal(event.start_mark, f"is nested deeper than {DEPTH_MAX}", "flatten it")
        self._depth += 1
        node = super().compose_node(parent, index)
        assert node is not None, "it stands before us"
        self._depth -= 1
        if not isinstance(event, yaml.AliasEvent):
            self._measure(node)
        elif id(node) not in self._sizes:  # It is not complete yet, so this stands inside of it.
            raise _refusal(event.start_mark, "contains itself", "write it out as deep as it is needed")
        return node

    def compose_document(self) -> yaml.Node | None:
        """A document; its anchors are its own."""
        self._sizes = {}
        return super().compose_document()

    def _measure(self, node: yaml.Node) -> None:
        size = 1
        if isinstance(node, yaml.ScalarNode):
            size += len(node.value)
        elif isinstance(node, yaml.SequenceNode):
            size += sum(self._sizes[id(each)] for each in node.value)
        else:
            size += sum(self._sizes[id(key)] + self._sizes[id(value)] for key, value in node.value)
        if size > self.characters_max:
            problem = f"has more than {self.characters_max} characters, its aliases written out"
            raise _refusal(node.start_mark, problem, "make it smaller")
        self._sizes[id(node)] = size


class _Dumper(yaml.SafeDumper):
    """Quotes text that is a number or a word to either version of YAML: `08` is one to 1.2 only, `010` to both."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 -- the same value twice is written twice
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    """Version 1.1 takes more characters for line breaks, and folds them, unless they are written as escapes."""
    style = '"' if any(character in text for character in "\x85\u2028\u2029") else None
    return dumper.represent_scalar(_STR, text, style=style)


_Dumper.add_representer(str, _text)


def _refusal(mark: Any, problem: str, remedy: str = "") -> yaml.MarkedYAMLError:
    return yaml.constructor.ConstructorError(problem=problem, problem_mark=mark, note=remedy)


# --- values -----------------------------------------------------------------------------------------------------------


def _scalar(_loader: yaml.SafeLoader, node: yaml.Node) -> str:
    """The text of a scalar. Halves of a character that stand together, as JSON writes some, are one."""
    if not isinstance(node, yaml.ScalarNode):
        raise _refusal(node.start_mark, f"{node.tag.rpartition(':')[2]} must be a single value")
    text: str = node.value
    if text.isascii():
        return text
    try:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        raise _refusal(node.start_mark, "has half a character (a lone surrogate)", "write the whole one") from None


def _null(_loader: yaml.SafeLoader, _node: yaml.Node) -> None:
    return None


def _bool(loader: yaml.SafeLoader, node: yaml.Node) -> bool:
    word = _scalar(loader, node).lower()
    if word not in {"true", "false"}:
        raise _refusal(node.start_mark, f"{word[:40]!r} is not true or false")
    return word == "true"


def _integer(loader: yaml.SafeLoader, node: yaml.Node) -> int:
    text = _scalar(loader, node)
    try:
        return _whole(re.sub(r"^([-+]?)0+(?=[0-9])", r"\1", text) if _PLAIN[2][1].match(text) else "")
    except ValueError:
        problem = f"{text[:40]!r} is not an integer of at most 64 bits"
        raise _refusal(node.start_mark, problem, "put it in quotes") from None


def _number(loader: yaml.SafeLoader, node: yaml.Node) -> float:
    text = _scalar(loader, node)
    number = float(text) if _PLAIN[3][1].match(text) else math.nan
    if not math.isfinite(number):
        raise _refusal(node.start_mark, f"{text[:40]!r} is not a number that JSON has", "put it in quotes")
    return number


def _list(loader: yaml.SafeLoader, node: yaml.Node) -> list[Any]:
    if not isinstance(node, yaml.SequenceNode):
        raise _refusal(node.start_mark, "must be a list")
    return [loader.construct_object(each, deep=True) for each in node.value]


def _mapping(loader: yaml.SafeLoader, node: yaml.Node) -> dict[str, Any]:
    """JSON has text keys only, each once."""
    if not isinstance(node, yaml.MappingNode):
        raise _refusal(node.start_mark, "must be a mapping")
    result: dict[str, Any] = {}
    for key_node, value_node in node.value:
        if not isinstance(key_node, yaml.ScalarNode):
            raise _refusal(key_node.start_mark, "a key must be text")
        key = _scalar(loader, key_node)
        if key in result:
            raise _refusal(key_node.start_mark, f"the key {key[:100]!r} stands there twice", "leave one out")
        result[key] = loader.construct_object(value_node, deep=True)
    return result


def _unknown(_loader: yaml.SafeLoader, node: yaml.Node) -> Any:
    raise _refusal(node.start_mark, f"the tag {node.tag[:100]!r} has no counterpart in JSON", "leave it out")


Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in _PLAIN:
    for _kind in (Loader, _Dumper):
        _kind.add_implicit_resolver(_tag, _pattern, _first)

Loader.yaml_constructors = {
    _NULL: _null, _BOOL: _bool, _INT: _integer, _FLOAT: _number, _STR: _scalar, _SEQ: _list, _MAP: _mapping,
    None: _unknown,
}  # fmt: skip
