"""What every importer answers: definitions, and remarks on what could not be carried over."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

NAME_LENGTH_MAX = 100  # of 128: the rest is for what tells twins apart
NOTE_LENGTH_MAX = 4096
TWINS_MAX = 100_000  # of one name: no file has as many schedules
TIMEOUT = "P1D"  # For sources that end nothing. A run needs an end, and a day is longer than anything that runs daily.


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """What a person should know about a place.

    `left_out`: nothing was made of it; `broken`: its own system can't read it.
    `line` 0: the place has no line of its own. `name` and `field` are those of the source.
    """

    path: str
    text: str
    line: int = 0
    name: str = ""
    field: str = ""
    left_out: bool = False
    broken: bool = False

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}" if self.line else self.path
        text = f"left out: {self.text}" if self.left_out else self.text
        line = ": ".join(part for part in (place, self.name, self.field, text) if part)
        # What files hold must neither break the line nor move the cursor of whoever reads it.
        return "".join(each if each.isprintable() else "\ufffd" for each in line)


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """Definitions, and what there is to say about the places they came from."""

    documents: tuple[dict[str, Any], ...]
    remarks: tuple[Remark, ...]


class LeftOut(Exception):
    """Nothing can be made of a thing, and why."""

    def __init__(self, text: str, *, field: str = "", broken: bool = False) -> None:
        super().__init__(text)
        self.text, self.field, self.broken = text, field, broken


Tell = Callable[[str, str], None]  # a field of the source, and what there is to say about it


def slug(text: str, otherwise: str = "entry") -> str:
    """A text as a name of ours."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-._")[:NAME_LENGTH_MAX] or otherwise


def free(name: str, twin: str, taken: Collection[str]) -> str:
    """The name, or what tells it from one that is taken."""
    if name not in taken:
        return name
    if twin not in taken:
        return twin
    return next(each for nth in range(2, TWINS_MAX) if (each := f"{twin}-{nth}") not in taken)


def template_in(value: Any) -> str | None:
    """What a payload holds that would be filled in here and was not meant so: there is no other way to write it."""
    if isinstance(value, str):
        begin = value.find("{{")
        end = value.find("}}", begin + 2) if begin >= 0 else -1
        return value[begin : end + 2][:40] if end >= 0 else None
    below = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return next((found for each in below if (found := template_in(each)) is not None), None)
