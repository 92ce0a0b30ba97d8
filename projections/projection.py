"""What a projection is: a table of folds, one for each type of event that touches its rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from projections.event import Event

# What stands in the database: text, numbers, JSON as text. Never changed in place: a fold makes a new one, or hands
# back the one it was given.
Row = dict[str, Any]
Key = tuple[str | int, ...]
Fold = Callable[[Row | None, Event], Row | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection:
    """How the rows of `table` follow from events.

    `key` names the row an event touches, None where it touches none. A fold that returns what it was given changed
    nothing; none removes a row, for an echo would bring it back. `once` rows are written by their first event and
    never change: they need not be read before.
    """

    table: str
    key: Callable[[Event], Key | None]
    folds: Mapping[str, Fold]
    once: bool = False


def outdated(row: Row | None, event: Event) -> bool:
    """Whether the row already follows a later transaction of the same owner: the event is an echo."""
    return row is not None and bool(event.sequence < row["sequence"])


def json(value: Any) -> str | None:
    """The text of a JSON column; nothing for nothing."""
    return None if value is None else orjson.dumps(value).decode()
