"""What pydantic finds wrong, in our words: which field, what was wrong, and what to write instead."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import ValidationError

from schemas import values
from schemas.faults import Fault

_WANTED = {
    "string_type": "a string",
    "int_type": "an integer",
    "int_from_float": "an integer",
    "bool_type": "true or false",
    "float_type": "a number",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "list_type": "a list",
    "tuple_type": "a list",
}
_BRANCH = re.compile(r"<\w+>")  # how our models tag the branches of a union; no field is called so
_QUOTED = re.compile(r"'<?([^'>]*)>?'")


class Misfit(ValueError):
    """What our own validators raise: pydantic carries it, and with it a code and a remedy."""

    def __init__(self, code: str, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.remedy = remedy


def faults(error: ValidationError, pointer: str) -> tuple[Fault, ...]:
    """Everything pydantic found wrong, without what only follows from another thing."""
    found = [fault(detail, pointer) for detail in error.errors(include_url=False)]
    inner = [one.pointer for one in found]
    # A list all of whose entries are wrong counts as empty for pydantic.
    return tuple(
        one for one in found if not (one.code == "empty" and any(p.startswith(one.pointer + "/") for p in inner))
    )


def fault(detail: Mapping[str, Any], pointer: str) -> Fault:
    """One pydantic error detail as a fault of ours."""
    kind, context, found = detail["type"], detail.get("ctx", {}), detail.get("input")
    where = pointer + _path(detail["loc"])
    if kind == "missing":
        return Fault(pointer=where, code="missing", message="is required", remedy="add it")
    if kind == "literal_error":
        return unknown_word(found, _QUOTED.findall(str(context["expected"])), where)
    if kind.startswith("union_tag"):
        return _no_such_branch(context, found, where)
    if kind in _WANTED:
        message = f"must be {_WANTED[kind]}, not {values.word_for(found)}"
        return Fault(pointer=where, code="type", message=message)
    if kind == "value_error" and isinstance(error := context["error"], Misfit):
        return Fault(pointer=where, code=error.code, message=str(error), remedy=error.remedy)
    return _bound(kind, context, where) or Fault(pointer=where, code=kind, message=str(detail["msg"]))


def _no_such_branch(context: Mapping[str, Any], found: Any, where: str) -> Fault:
    """The only open choice by `type` is a target's."""
    if not isinstance(found, Mapping):
        message = f"must be an object, not {values.word_for(found)}"
        return Fault(pointer=where, code="type", message=message, remedy="write {type: task, name: …}")
    if "tag" not in context:
        return Fault(pointer=f"{where}/type", code="missing", message="is required", remedy="write type: task")
    known = _QUOTED.findall(str(context["expected_tags"]))
    return unknown_word(str(context["tag"]).strip("<>"), known, f"{where}/type")


def unknown_word(word: Any, known: Iterable[str], where: str) -> Fault:
    """A fault for a word that is not in a closed list, with the nearest one that is."""
    choices = sorted(known)
    near = nearest(word, choices)
    message = f"{str(word)[:100]!r} is not one of {', '.join(choices)}"
    return Fault(pointer=where, code="unknown_value", message=message, remedy=f"did you mean {near!r}?" if near else "")


def unknown_field(name: str, known: Iterable[str], pointer: str) -> Fault:
    """A fault for a field that nothing reads, with the nearest one that is read."""
    near = nearest(name, known)
    remedy = f"did you mean {near!r}?" if near else "known here: " + ", ".join(sorted(known))
    where = f"{pointer}/{values.escaped(name)}"
    return Fault(pointer=where, code="unknown_field", message=f"unknown field {name!r}", remedy=remedy)


def nearest(word: Any, known: Iterable[str]) -> str:
    """The known word that was probably meant, or nothing."""
    by_small_letters = {name.lower(): name for name in known}
    near = difflib.get_close_matches(str(word)[:100].lower(), by_small_letters, n=1)
    return by_small_letters[near[0]] if near else ""


def _path(location: Iterable[Any]) -> str:
    # Pydantic adds the branch of a union, and `[key]` where the key of an object is wrong; neither is a field.
    parts = [str(part) for part in location]
    return "".join(f"/{values.escaped(part)}" for part in parts if part != "[key]" and not _BRANCH.fullmatch(part))


def _bound(kind: str, context: Mapping[str, Any], where: str) -> Fault | None:
    match kind:
        case "greater_than_equal":
            return Fault(pointer=where, code="range", message=f"must be at least {context['ge']}")
        case "less_than_equal":
            return Fault(pointer=where, code="range", message=f"must be at most {context['le']}")
        case "string_too_short" | "too_short":
            return Fault(pointer=where, code="empty", message="must not be empty")
        case "string_too_long":
            return Fault(pointer=where, code="too_long", message=f"has over {context['max_length']} characters")
        case "too_long":
            return Fault(pointer=where, code="too_long", message=f"has over {context['max_length']} entries")
        case _:
            return None
