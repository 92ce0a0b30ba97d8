"""Which runs a request means that names them by what they are: a selector, how many at once, and where it goes on."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from api.document import INSTANT
from api.reading import read_instant
from projections.store.reader import RunFilter
from schemas import refusals
from schemas.faults import Fault, Refused

_TEXT = {"type": "string"}
FIELDS: Mapping[str, dict[str, Any]] = {
    "schedule": _TEXT,
    "labels": {"type": "object", "additionalProperties": {"type": "string"}},
    "from": INSTANT,
    "to": INSTANT,
}
CURSOR = {"type": "string", "description": "goes on where an answer with a cursor has ended"}


def schema(description: str, **more: dict[str, Any]) -> dict[str, Any]:
    """A selector as the document shows it. `more` are fields that only some selectors have."""
    properties = {**FIELDS, **more}
    return {"type": "object", "additionalProperties": False, "description": description, "properties": properties}


def limit_schema(most: int) -> dict[str, Any]:
    """How many at once, as the document shows it."""
    return {"type": "integer", "minimum": 1, "maximum": most, "default": most}


def limit(document: Mapping[str, Any], most: int) -> int:
    """How many are wanted at once."""
    wanted = document.get("limit", most)
    if type(wanted) is not int or not 1 <= wanted <= most:
        message = f"must be a number from 1 to {most}"
        raise Refused(Fault(pointer="/limit", code="range", message=message, remedy="go on by the cursor"))
    return wanted


def cursor(document: Mapping[str, Any]) -> str | None:
    """Where it goes on; None where it begins."""
    given = document.get("cursor")
    if given is not None and not isinstance(given, str):
        raise Refused(Fault(pointer="/cursor", code="type", message="must be a string", remedy="start without"))
    return given


def read(selector: Any, states: Collection[str], *, more: Collection[str] = ()) -> RunFilter:
    """`{}` names all in `states`; what stands in it must all fit. `more` are further texts, fields of the filter."""
    if not isinstance(selector, dict):
        message = 'say which: {"schedule": …}, {"labels": {…}}, {"from": …, "to": …}, or {} for all'
        raise Refused(Fault(pointer="/selector", code="missing", message=message))
    known = (*FIELDS, *more)
    faults = [refusals.unknown_field(field, known, "/selector") for field in selector if field not in known]
    labels = selector.get("labels", {})
    if not isinstance(labels, dict) or not all(map(is_text, (*labels, *labels.values()))):
        faults.append(Fault(pointer="/selector/labels", code="type", message="must have strings without NUL"))
    faults += [
        Fault(pointer=f"/selector/{field}", code="type", message="must be a string without NUL")
        for field in ("schedule", "from", "to", *more)
        if not is_text(selector.get(field, ""))
    ]
    if faults:
        raise Refused(*faults)
    return RunFilter(
        schedule=selector.get("schedule"), states=tuple(states), labels=labels,
        from_=read_instant(selector.get("from"), "/selector/from"), to=read_instant(selector.get("to"), "/selector/to"),
        **{field: selector[field] for field in more if field in selector},
    )  # fmt: skip


def is_text(value: Any) -> bool:
    """Whether a filter can ask for it: no database looks for a NUL."""
    return isinstance(value, str) and "\0" not in value
