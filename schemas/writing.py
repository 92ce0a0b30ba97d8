"""Dataclasses to JSON: a writer for each class, compiled from its annotations at first use.

The writer is Python source, one straight line a field, without loop or reflection. For
`class Try: run: str; at: datetime; error: ErrorInfo | None = None` it is

    def write(o):
        d = {}
        v = o.at
        d['at'] = v if v.tzinfo is UTC else utc(v)
        v = o.error
        if v is not None: d['error'] = write_error(v)
        d['run'] = o.run
        return d

Keys are written in order, so canonical JSON needs no sorting but in what others made (payloads, definitions).
What thousands of facts carry unchanged is rendered once and kept.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from schemas import durations, shapes, values
from schemas.facts import JobSnapshot, RunCreated
from schemas.frozen import compiled
from schemas.shapes import Shape

Writer = Callable[[Any], Any]
Rendered = tuple[Any, bytes, orjson.Fragment]  # an object, its JSON, and the same to be put into other JSON

CANONICAL = orjson.OPT_SORT_KEYS | orjson.OPT_UTC_Z
SHARED = frozenset({JobSnapshot})  # all runs of a schedule's version carry the same one
SHARED_MAX = 1024  # about as many jobs as have runs in the making at one time
SHARED_BYTES_MAX = 4096  # larger ones are not kept, so that all of them together stay under 4 MiB
CARRIED = frozenset({RunCreated})  # it is the body of its row first, and then goes into its hand-out
CARRIED_MAX = 4096  # what a few batches take and hand out: under 16 MiB


_canonical: dict[type, Writer] = {}  # one entry a class, each
_plain: dict[type, Writer] = {}
_shared: dict[type, Callable[..., Rendered]] = {}


def dump(value: Any) -> bytes:
    """Canonical JSON of a dataclass."""
    cls = type(value)
    write = _canonical.get(cls) or canonical(cls)
    return orjson.dumps(write(value), option=orjson.OPT_UTC_Z)


def dump_shared(value: Any) -> bytes:
    """Canonical JSON of an object that others will carry: theirs takes over what is rendered here."""
    return _rendering(type(value))(value)[1]


def keep(value: Any, raw: bytes) -> None:
    """Take `raw` for the JSON of an object that others will carry: it is what the object was read from."""
    _rendering(type(value))(value, raw)


def canonical(cls: type) -> Writer:
    """To a dict whose `orjson.dumps` is canonical JSON."""
    if cls not in _canonical:
        _canonical[cls] = _writer(cls, _canonical_value)
    return _canonical[cls]


def plain(cls: type) -> Writer:
    """To dicts, lists, strings, numbers and datetimes, ready for any JSON writer that knows datetimes."""
    if cls not in _plain:
        _plain[cls] = _writer(cls, _plain_value)
    return _plain[cls]


def _writer(cls: type, value_writer: Callable[[Any], Writer | None]) -> Writer:
    names: dict[str, Any] = {"UTC": UTC, "utc": values.utc}
    lines = ["def write(o):", "    d = {}"]
    for shape in shapes.shapes(cls):
        if shape.wired:
            names[f"default_{shape.name}"] = None if shape.required else shape.absent
            names[f"write_{shape.name}"] = value_writer(shape.hint)
            lines += _field_lines(shape, converts=names[f"write_{shape.name}"] is not None)
    return compiled("\n".join([*lines, "    return d"]), "write", names)


def _field_lines(shape: Shape, *, converts: bool) -> list[str]:
    if shape.hint is datetime:
        value = "v if v.tzinfo is UTC else utc(v)"
    elif shapes.is_enum(shape.hint):
        value = "v._value_"
    else:
        value = f"write_{shape.name}(v)" if converts else "v"
    if shape.required and shape.optional:
        value = f"None if v is None else {value}"
    return [f"    v = o.{shape.name}", f"    {_unless_default(shape)}d['{shape.key}'] = {value}"]


def _unless_default(shape: Shape) -> str:
    if shape.required:
        return ""
    if shape.absent is None:
        return "if v is not None: "
    if shape.absent in ("", (), {}):
        return "if v: "
    if shapes.is_dataclass(shape.hint):  # equality of dataclasses is slow, and most are the very default
        return f"if v is not default_{shape.name} and v != default_{shape.name}: "
    return f"if v != default_{shape.name}: "


def _plain_value(hint: Any) -> Writer | None:
    """How a value of this type is written, or None when it stands for itself."""
    return _value(hint, plain, json=None)


def _canonical_value(hint: Any) -> Writer | None:
    return _rendered_once(hint) if hint in SHARED or hint in CARRIED else _value(hint, canonical, json=_fragment)


def _value(hint: Any, of_class: Callable[[type], Writer], *, json: Writer | None) -> Writer | None:
    if shapes.is_dataclass(hint):
        return _late_writer(hint, of_class)
    if hint is timedelta:
        return durations.render
    if hint is datetime:
        return values.utc
    if shapes.is_enum(hint):
        return lambda member: member.value
    if hint is Any:
        return json
    if (item := shapes.item_of_tuple(hint)) is not None:
        one = _value(item, of_class, json=json)
        return None if one is None else lambda entries: [one(entry) for entry in entries]
    if (item := shapes.item_of_mapping(hint)) is not None:
        return _mapping(_value(item, of_class, json=json), json)
    assert hint in shapes.SCALARS, f"there is no JSON for {hint}"
    return None


def _late_writer(cls: type, of_class: Callable[[type], Writer]) -> Writer:
    """The writer of a class, looked up when it is first needed: a class may contain itself."""
    found: list[Writer] = []

    def write(value: Any) -> Any:
        if not found:
            found.append(of_class(cls))
        return found[0](value)

    return write


def _mapping(one: Writer | None, json: Writer | None) -> Writer | None:
    if one is None or one is json:
        return json
    return lambda entries: {key: one(entries[key]) for key in sorted(entries)}


def _fragment(value: Any) -> orjson.Fragment:
    """JSON that is not ours, in canonical form."""
    return orjson.Fragment(orjson.dumps(value, option=CANONICAL))


def _rendered_once(cls: type) -> Writer:
    rendering = _rendering(cls)
    return lambda value: rendering(value)[2]


def _rendering(cls: type) -> Callable[..., Rendered]:
    if cls not in _shared:
        _shared[cls] = _keeping(canonical(cls), SHARED_MAX if cls in SHARED else CARRIED_MAX)
    return _shared[cls]


def _keeping(write: Writer, kept_max: int) -> Callable[..., Rendered]:
    kept: dict[int, Rendered] = {}  # by identity, which is an object's own as long as it is kept

    def render(value: Any, raw: bytes = b"") -> Rendered:
        known = kept.get(id(value))
        if known is not None:
            return known
        raw = raw or orjson.dumps(write(value), option=orjson.OPT_UTC_Z)
        rendered = (value, raw, orjson.Fragment(raw))
        if len(raw) <= SHARED_BYTES_MAX:
            if len(kept) >= kept_max:
                kept.clear()
            kept[id(value)] = rendered
        return rendered

    return render
