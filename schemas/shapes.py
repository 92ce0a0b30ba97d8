"""What the annotations of a dataclass say about its JSON: the common ground of reader, writer and published schema."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass
from enum import Enum
from typing import Any

SCALARS = (str, int, bool, float)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """One field: `key` on the wire, the type without `| None`, and what stands in when it is absent."""

    name: str
    key: str
    hint: Any
    optional: bool
    default: Any
    factory: Any
    wired: bool

    @property
    def required(self) -> bool:
        """Whether it must stand on the wire."""
        return self.default is MISSING and self.factory is MISSING

    @property
    def absent(self) -> Any:
        """The value of an absent field."""
        return self.default if self.factory is MISSING else self.factory()


def shapes(cls: type) -> list[Shape]:
    """The fields of a dataclass in the order of their keys."""
    hints = typing.get_type_hints(cls)
    found = [_shape(field, hints[field.name]) for field in dataclasses.fields(cls)]
    return sorted(found, key=lambda shape: shape.key)


def _shape(field: Field[Any], hint: Any) -> Shape:
    inner, optional = _unwrapped(hint)
    return Shape(
        name=field.name,
        key=field.name.rstrip("_"),  # `from_` and `to_` stand for words that Python keeps for itself
        hint=inner,
        optional=optional,
        default=field.default,
        factory=field.default_factory,
        wired=field.metadata.get("wire", True),
    )


def _unwrapped(hint: Any) -> tuple[Any, bool]:
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        inner = [part for part in typing.get_args(hint) if part is not type(None)]
        assert len(inner) == 1, f"only X | None is supported, not {hint}"
        return inner[0], True
    return hint, False


def is_dataclass(hint: Any) -> bool:
    """Whether it is a dataclass, not an object of one."""
    return isinstance(hint, type) and dataclasses.is_dataclass(hint)


def is_enum(hint: Any) -> bool:
    """Whether it is a closed list of words."""
    return isinstance(hint, type) and issubclass(hint, Enum)


def item_of_tuple(hint: Any) -> Any:
    """X of `tuple[X, ...]`, else None."""
    if typing.get_origin(hint) is not tuple:
        return None
    item, *rest = typing.get_args(hint)
    assert rest == [...], f"only tuple[X, ...] is supported, not {hint}"
    return _plain(item)


def item_of_mapping(hint: Any) -> Any:
    """X of `Mapping[str, X]`, else None."""
    if hint in (dict, Mapping):
        return Any
    if typing.get_origin(hint) not in (Mapping, dict):
        return None
    key, item = typing.get_args(hint)
    assert key is str, f"JSON has only strings as keys: {hint}"
    return _plain(item)


def _plain(hint: Any) -> Any:
    inner, optional = _unwrapped(hint)
    assert not optional, f"a list or an object of {hint} is not supported"
    return inner
