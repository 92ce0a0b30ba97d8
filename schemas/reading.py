"""JSON to dataclasses: a reader for each class, compiled from its annotations at first use.

The reader is Python source, one straight line a field, without loop or reflection. For
`class Try: run: str; at: datetime; error: ErrorInfo | None = None` it is

    def read(data, place):
        if type(data) is not dict: raise misfit(data, place, 'an object')
        get = data.get
        o = Twin()
        v = get('at')
        if v is None: raise wrong(data, place, 'at', 'an RFC 3339 instant')
        elif type(v) is not str: raise wrong(data, place, 'at', 'an RFC 3339 instant')
        else: v = known_instant(v) or instant(v, (place, 'at'))
        o.at = v
        v = get('error')
        if v is None: pass
        else: v = read_error(v, (place, 'error'))
        o.error = v
        v = get('run')
        if v is None: raise wrong(data, place, 'run', 'a string')
        elif type(v) is not str: raise wrong(data, place, 'run', 'a string')
        o.run = v
        o.__class__ = Frozen
        return o

`place` says where the object stands (see `values.Place`); `Twin` is explained in `frozen`. Unknown keys are left
alone: they are of a newer writer. What thousands of facts carry unchanged is read once and shared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

import orjson

from schemas import shapes, values
from schemas.faults import Fault, Refused
from schemas.frozen import compiled, twin
from schemas.limits import RECORD_DEPTH_MAX, deeper
from schemas.shapes import Shape
from schemas.writing import SHARED, SHARED_BYTES_MAX, SHARED_MAX

Reader = Callable[[Any, values.Place], Any]

_INSTANT = "an RFC 3339 instant with an offset"
_CHECKED = {  # types of which parsed JSON holds objects as they are: words, and how to tell that it is another one
    str: ("a string", "type(v) is not str"),
    int: ("an integer", "type(v) is not int"),
    bool: ("true or false", "type(v) is not bool"),
    float: ("a number", "type(v) is not float and type(v) is not int"),
}


_readers: dict[type, Reader] = {}  # one entry a class


def reader(cls: type) -> Reader:
    """From parsed JSON to a `cls`; raises `Refused` naming the field that does not fit."""
    known = _readers.get(cls)
    if known is None:
        known = _readers[cls] = _read_once(cls) if cls in SHARED else _reader(cls)
    return known


def _reader(cls: type) -> Reader:
    names: dict[str, Any] = {"misfit": values.misfit, "wrong": values.wrong, "absent": values.absent}
    names |= {"known_instant": values.KNOWN_INSTANTS.get, "instant": values.instant}
    names |= {"Frozen": cls, "Twin": twin(cls)}
    lines = [
        "def read(data, place):",
        "    if type(data) is not dict: raise misfit(data, place, 'an object')",
        "    get = data.get",
        "    o = Twin()",
    ]
    for shape in shapes.shapes(cls):
        names[f"default_{shape.name}"], names[f"factory_{shape.name}"] = shape.default, shape.factory
        lines += _field_lines(shape, names) if shape.wired else [f"    o.{shape.name} = {_absent(shape)}"]
    lines += ["    o.__class__ = Frozen", *(["    o.__post_init__()"] if hasattr(cls, "__post_init__") else [])]
    return compiled("\n".join([*lines, "    return o"]), "read", names)


def _field_lines(shape: Shape, names: dict[str, Any]) -> list[str]:
    wanted, is_other, become = _conversion(shape, names)
    refuse = f"raise wrong(data, place, '{shape.key}', {wanted!r})"
    return [
        f"    v = get('{shape.key}')",
        f"    if v is None: {_when_null(shape, refuse)}",
        *([f"    elif {is_other}: {refuse}"] if is_other else []),
        *([f"    else: v = {become}"] if become else []),
        f"    o.{shape.name} = v",
    ]


def _when_null(shape: Shape, refuse: str) -> str:
    """What null and absence mean: the default where there is one."""
    if not shape.required:
        return "pass" if shape.absent is None else f"v = {_absent(shape)}"
    if shape.optional or shape.hint is Any:
        return f"v = None if '{shape.key}' in data else absent(data, place, '{shape.key}')"
    return refuse


def _absent(shape: Shape) -> str:
    return f"default_{shape.name}" if shape.factory is MISSING else f"factory_{shape.name}()"


def _conversion(shape: Shape, names: dict[str, Any]) -> tuple[str, str, str]:
    """What is wanted, in words; when `v` cannot be it, if that is quickly said; what it becomes, if another thing."""
    if shape.hint in _CHECKED:
        return *_CHECKED[shape.hint], ""
    if shape.hint is Any:
        return "any JSON", "", ""
    if shapes.is_enum(shape.hint):
        members = names[f"members_{shape.name}"] = _members(shape.hint)
        is_other = f"type(v) is not str or v not in members_{shape.name}"
        return _one_of(members), is_other, f"members_{shape.name}[v]"
    if shape.hint is datetime:
        return _INSTANT, "type(v) is not str", f"known_instant(v) or instant(v, (place, '{shape.key}'))"
    wanted, convert = _converter(shape.hint)
    names[f"convert_{shape.name}"] = convert
    return wanted, "", f"convert_{shape.name}(v, (place, '{shape.key}'))"


def _converter(hint: Any) -> tuple[str, Reader]:
    if hint is datetime:
        return _INSTANT, values.instant
    if hint is timedelta:
        return "an ISO 8601 duration", values.duration
    if shapes.is_dataclass(hint):
        return "an object", _late_reader(hint)
    if (item := shapes.item_of_tuple(hint)) is not None:
        return "a list", _list_reader(_item_reader(item))
    if (item := shapes.item_of_mapping(hint)) is not None:
        return "an object", _object_reader(None if item is Any else _item_reader(item))
    raise AssertionError(f"no JSON becomes {hint}")


def _late_reader(cls: type) -> Reader:
    """The reader of a class, looked up when it is first needed: a class may contain itself."""
    found: Reader | None = None

    def read(value: Any, place: values.Place) -> Any:
        nonlocal found
        if found is None:
            found = reader(cls)
        return found(value, place)

    return read


def _item_reader(hint: Any) -> Reader:
    """A reader of what stands in a list or an object."""
    if hint in _CHECKED:
        wanted, _ = _CHECKED[hint]
        return _exact((float, int) if hint is float else (hint,), wanted)
    if hint is Any:
        return lambda value, _place: value
    return _member_reader(hint) if shapes.is_enum(hint) else _converter(hint)[1]


def _exact(kinds: tuple[type, ...], wanted: str) -> Reader:
    def read(value: Any, place: values.Place) -> Any:
        if type(value) not in kinds:  # not isinstance: true is no number
            raise values.misfit(value, place, wanted)
        return value

    return read


def _member_reader(kind: type[Enum]) -> Reader:
    members = _members(kind)

    def read(value: Any, place: values.Place) -> Any:
        if type(value) is not str or value not in members:
            raise values.misfit(value, place, _one_of(members))
        return members[value]

    return read


def _members(kind: type[Enum]) -> dict[str, Enum]:
    return {member.value: member for member in kind}


def _one_of(members: dict[str, Enum]) -> str:
    return "one of " + ", ".join(sorted(members))


def _list_reader(item: Reader) -> Reader:
    def read(value: Any, place: values.Place) -> Any:
        if type(value) is not list:
            raise values.misfit(value, place, "a list")
        return tuple([item(entry, (place, index)) for index, entry in enumerate(value)])

    return read


def _object_reader(item: Reader | None) -> Reader:
    def read(value: Any, place: values.Place) -> Any:
        if type(value) is not dict:
            raise values.misfit(value, place, "an object")
        return value if item is None else {key: item(entry, (place, key)) for key, entry in value.items()}

    return read


def _read_once(cls: type) -> Reader:
    read = _reader(cls)
    kept: dict[bytes, Any] = {}  # by the very JSON: equality of dicts would take 1, 1.0 and true for the same

    def read_once(value: Any, place: values.Place) -> Any:
        try:
            raw = orjson.dumps(value)
        except orjson.JSONEncodeError as error:
            raise _too_deep(place) from error
        known = kept.get(raw)
        if known is None:
            if deeper(value, RECORD_DEPTH_MAX):  # own records are parsed without a look at their depth
                raise _too_deep(place)
            known = read(value, place)
            if len(raw) <= SHARED_BYTES_MAX:
                if len(kept) >= SHARED_MAX:
                    kept.clear()
                kept[raw] = known
        return known

    return read_once


def _too_deep(place: values.Place) -> Refused:
    message = f"JSON is nested deeper than {RECORD_DEPTH_MAX}"
    return Refused(Fault(pointer=values.pointer(place), code="too_deep", message=message, remedy="flatten it"))
