"""JSON Schema (2020-12) of everything that is published: what another program may build on."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

from pydantic import BaseModel

from schemas import definitions, references, shapes
from schemas.commands import REFERENCES, Request, SchedulePut
from schemas.facts import Fact
from schemas.shapes import Shape

DIALECT = "https://json-schema.org/draft/2020-12/schema"
Schema = dict[str, Any]

_SCALARS: Mapping[Any, Schema] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    bool: {"type": "boolean"},
    float: {"type": "number"},
    Any: {},
    datetime: {"type": "string", "format": "date-time"},
    timedelta: {"type": "string", "format": "duration"},
}

DEFINITIONS: Mapping[str, type[BaseModel]] = {"schedule": definitions.Schedule, **references.KINDS}

NO_TENANT = ("queue", "tenant")  # kinds whose definitions name no tenant besides themselves

CLOUDEVENT: Schema = {
    "$schema": DIALECT,
    "$id": "urn:tidewheel:cloudevent",
    "title": "cloudevent",
    "description": "The structured CloudEvent (1.0) that each record is; `data` is what its `type` says.",
    "type": "object",
    "properties": {
        "specversion": {"const": "1.0"},
        "id": {"type": "string", "minLength": 1},
        "source": {"type": "string", "minLength": 1},
        "type": {"type": "string", "minLength": 1},
        "subject": {"type": "string"},
        "time": {"type": "string", "format": "date-time"},
        "datacontenttype": {"const": "application/json"},
        "data": {},
    },
    "required": ["specversion", "id", "source", "type", "data"],
}


def of_fact(fact: type[Fact], *, internal: bool) -> Schema:
    """The `data` of a fact's records. `internal`: documented, not promised."""
    parts: dict[str, Schema] = {}
    schema = _object(fact, parts)
    marks = {"x-internal": True} if internal else {}
    return _document(fact.TYPE, {**schema, **marks, **({"$defs": dict(sorted(parts.items()))} if parts else {})})


def of_command(type_: str, model: type[Request]) -> Schema:
    """The `data` of a command."""
    schema = _of_model(model)
    kind = "schedule" if issubclass(model, SchedulePut) else REFERENCES.get(model)
    if kind is not None and "definition" in schema["properties"]:
        schema["properties"]["definition"] = {"$ref": f"../definitions/{kind}.json"}
    return _document(type_, schema)


def of_definition(name: str) -> Schema:
    """A definition without kind, tenant and name."""
    return _document(name, _of_model(DEFINITIONS[name]))


def of_definition_file() -> Schema:
    """One document of a definition file: what `tidewheel apply` reads."""
    name = _of_model(definitions.Job)["properties"]["queue"]["pattern"]
    named, owned = ({field: {"type": "string", "pattern": name}} for field in ("name", "tenant"))
    kinds: list[Schema] = [
        {
            "properties": {"kind": {"const": kind.title()}, **({} if kind in NO_TENANT else owned), **named},
            **({} if kind in NO_TENANT else {"required": ["tenant"]}),
            "allOf": [{"$ref": f"{kind}.json"}],
        }
        for kind in DEFINITIONS
    ]
    description = "One document of a definition file; a YAML file may hold several."
    body = {"description": description, "type": "object", "required": ["kind", "name"], "oneOf": kinds}
    return _document("definition-file", body)


def _document(name: str, schema: Schema) -> Schema:
    return {"$schema": DIALECT, "$id": f"urn:tidewheel:{name}", "title": name, **schema}


def _object(cls: type, parts: dict[str, Schema]) -> Schema:
    """The schema of a dataclass; those inside it are put into `parts`."""
    fields = [shape for shape in shapes.shapes(cls) if shape.wired]
    return {
        "description": inspect.cleandoc(cls.__doc__ or ""),
        "type": "object",
        "properties": {shape.key: _property(shape, parts) for shape in fields},
        "required": [shape.key for shape in fields if shape.required],
    }


def _property(shape: Shape, parts: dict[str, Schema]) -> Schema:
    schema = _value(shape.hint, parts)
    if not shape.required and shape.absent is not None:
        default = shape.absent.value if isinstance(shape.absent, Enum) else shape.absent
        return {**schema, "default": list(default) if isinstance(default, tuple) else default}
    return schema


def _value(hint: Any, parts: dict[str, Schema]) -> Schema:
    if hint in _SCALARS:
        return dict(_SCALARS[hint])
    if shapes.is_enum(hint):
        return {"type": "string", "enum": [member.value for member in hint]}
    if (item := shapes.item_of_tuple(hint)) is not None:
        return {"type": "array", "items": _value(item, parts)}
    if (item := shapes.item_of_mapping(hint)) is not None:
        return {"type": "object", "additionalProperties": _value(item, parts)}
    if hint.__name__ not in parts:
        parts[hint.__name__] = {}  # a class that contains itself finds its place taken
        parts[hint.__name__] = _object(hint, parts)
    return {"$ref": f"#/$defs/{hint.__name__}"}


def _of_model(model: type[BaseModel]) -> Schema:
    schema: Schema = _without_titles(model.model_json_schema(by_alias=True))
    return schema


def _without_titles(node: Any) -> Any:
    """Pydantic repeats each field's name as its title; what is said once is enough."""
    if isinstance(node, dict):
        return {
            key: _without_titles(value)
            for key, value in node.items()
            if not (key == "title" and isinstance(value, str))
        }
    return [_without_titles(item) for item in node] if isinstance(node, list) else node
