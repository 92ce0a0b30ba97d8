"""The OpenAPI document: what FastAPI knows of the routes, and the bodies, which we read ourselves."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from fastapi.openapi.utils import get_openapi

if TYPE_CHECKING:
    from fastapi import FastAPI
    from pydantic import BaseModel

VERSION = "1"  # of the API, as in `/v1`: the document does not change with every release
_COMPONENTS = "#/components/schemas/"

_FAULT = {
    "type": "object",
    "properties": {
        "pointer": {"type": "string", "description": "JSON pointer to what is wrong"},
        "code": {"type": "string"},
        "message": {"type": "string"},
        "remedy": {"type": "string"},
    },
    "required": ["pointer", "code", "message"],
}
_PROBLEM = {
    "type": "object",
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "code": {"type": "string"},
        "detail": {"type": "string"},
        "faults": {"type": "array", "items": _FAULT},
    },
    "required": ["type", "title", "status", "code"],
}
NOTE_CHARACTERS_MAX = 4096  # of a command
NOTE = {"type": "string", "maxLength": NOTE_CHARACTERS_MAX, "description": "why, for those who read its story"}
PAYLOAD = {"type": "object", "description": "instead of the definition's"}
OVERLAP = {"enum": ["allow_all", "skip"], "description": "skip: none while another one is open"}
AFTER_CATALOG = {"type": "string", "description": "the Tidewheel-Position of a put: decided once that is known"}
BY_CHARACTERS_MAX = 256
BY = {"type": "string", "maxLength": BY_CHARACTERS_MAX, "description": "who, for those who read its story"}
# What a definition has no place for, as it is about the change and not about the thing.
SAID: dict[str, Any] = {
    "parameters": [
        {"name": name, "in": "query", "required": False, "schema": {"type": "string"}, "description": what}
        for name, what in (("by", "Who changes it"), ("note", "Why"))
    ]
}
INSTANT = {"type": "string", "format": "date-time"}
PROBLEM: dict[int | str, dict[str, Any]] = {
    "default": {"description": "A problem", "content": {"application/problem+json": {"schema": _PROBLEM}}}
}


_COMMANDED = frozenset(
    {"schedules", "jobs", "calendars", "queues", "tenants", "runs", "backfills", "breakers"}
)  # what is written there becomes a command of its owner


def _written(method: str) -> dict[str, Any]:
    """What a write may be answered with besides 200."""
    json = {"application/json": {"schema": {"type": "object"}}}
    pending = {"202": {"description": "Written; its owner has not answered yet", "content": json}}
    return pending | ({"201": {"description": "Created", "content": json}} if method != "delete" else {})


def takes(model: type[BaseModel], **more: dict[str, Any]) -> dict[str, Any]:
    """What a route says of a body that it reads itself; `more` are properties that only this route knows."""
    schema = _schema(model)
    schema = {**schema, "properties": {**schema["properties"], **more}}
    return {"requestBody": {"content": {"application/json": {"schema": schema}}, "required": True}}


@lru_cache(maxsize=16)  # one for each body; two routes may share one
def _schema(model: type[BaseModel]) -> dict[str, Any]:
    return model.model_json_schema(ref_template=_COMPONENTS + "{model}", by_alias=True)


def accepts(*required: str, **properties: dict[str, Any]) -> dict[str, Any]:
    """What a route says of a small body that it reads itself; one without required fields may be left out."""
    schema: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    if required:
        schema["required"] = list(required)
    return {"requestBody": {"content": {"application/json": {"schema": schema}}, "required": bool(required)}}


def of(app: FastAPI) -> dict[str, Any]:
    """The document of an application."""
    document = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
    components = document.setdefault("components", {}).setdefault("schemas", {})
    for path in document["paths"].values():
        for method, operation in path.items():
            if method != "get" and not _COMMANDED.isdisjoint(operation.get("tags", ())):
                operation["responses"] |= _written(method)
            operation["responses"].pop("422", None)  # ours are problems, and stand as the default
            schema = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
            components.update(schema.pop("$defs", {}))
    for unused in ("HTTPValidationError", "ValidationError"):
        components.pop(unused, None)
    document["components"]["schemas"] = dict(sorted(components.items()))
    return document
