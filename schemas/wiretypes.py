"""The SDK's types of what it reads and writes, made from the published JSON Schemas: for type checkers only.

A worker's JSON stays what it is, a dict; its type says which fields there are. Fields that a newer server adds are
simply not named here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

HEAD = '''"""What worker and server say to each other. Made from the published schemas by `make generate`."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict
'''

_NAMES = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}


def source(schemas: Mapping[str, Mapping[str, Any]]) -> str:
    """A module with one TypedDict for each named schema and each definition inside it, in order of their names."""
    classes: dict[str, Mapping[str, Any]] = {}
    for name, schema in schemas.items():
        classes |= {name: schema, **schema.get("$defs", {})}
    return HEAD + "".join("\n\n" + "\n".join(_lines(name, classes[name])) + "\n" for name in sorted(classes))


def _lines(name: str, schema: Mapping[str, Any]) -> Iterator[str]:
    yield f"class {name}(TypedDict):"
    yield f'    """{schema["description"].splitlines()[0]}"""'
    yield ""
    for field, kind in schema["properties"].items():
        hint = _hint(kind)
        yield f"    {field}: {hint if field in schema['required'] else f'NotRequired[{hint}]'}"


def _hint(kind: Mapping[str, Any]) -> str:
    if "$ref" in kind:
        return str(kind["$ref"]).rpartition("/")[2]
    match kind.get("type"):
        case "array":
            return f"list[{_hint(kind['items'])}]"
        case "object":
            return f"dict[str, {_hint(kind.get('additionalProperties') or {})}]"
        case str(simple):
            return _NAMES[simple]
    return "Any"
