"""Pages of a long answer: the keys of the last row shown are the cursor of the next page.

A page costs the same wherever it stands, and rows that come or go meanwhile neither repeat nor hide others.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import orjson
from sqlalchemy import String, and_, or_

from schemas.faults import Fault, Refused

if TYPE_CHECKING:
    from sqlalchemy import Column, ColumnElement

LIMIT = 100
NOT_OURS = Fault(pointer="/cursor", code="cursor", message="is not a cursor that we gave", remedy="start without")
LIMIT_MAX = 500  # a page is built in memory
NUMBERS_END = 2**63


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One column of the order that pages follow."""

    column: Column[Any]
    descending: bool = False

    @property
    def kind(self) -> type:
        """Of what stands for it in a cursor: instants are their milliseconds."""
        return str if isinstance(self.column.type, String) else int

    def clause(self) -> ColumnElement[Any]:
        """For ORDER BY."""
        return self.column.desc() if self.descending else self.column.asc()

    def beyond(self, value: Any) -> ColumnElement[bool]:
        """What comes after `value`."""
        further: ColumnElement[bool] = self.column < value if self.descending else self.column > value
        return further


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Rows, whether there are more, and the order of both."""

    rows: Sequence[dict[str, Any]]
    order: Sequence[Order]
    more: bool

    @property
    def cursor(self) -> str | None:
        """Where the next page begins; None where there is none."""
        return self.behind(self.rows[-1]) if self.more else None

    def behind(self, row: Mapping[str, Any]) -> str:
        """The cursor of what comes after one of its rows: for who did not get through all of them."""
        return write([_comparable(row[each.column.name]) for each in self.order])


def bounded(limit: int | None, most: int = LIMIT_MAX) -> int:
    """A page's size; a larger wish than allowed is cut."""
    return LIMIT if limit is None else max(1, min(limit, most))


def write(values: Sequence[Any]) -> str:
    """An opaque, URL-safe cursor."""
    return base64.urlsafe_b64encode(orjson.dumps(list(values))).rstrip(b"=").decode()


def read(cursor: str, kinds: Sequence[type]) -> list[Any]:
    """What stands in a cursor that `write` made of values of these kinds; `Refused` for any other."""
    try:
        values = orjson.loads(base64.urlsafe_b64decode(cursor.encode() + b"=" * (-len(cursor) % 4)))
    except (binascii.Error, UnicodeEncodeError, orjson.JSONDecodeError):
        values = None
    if not isinstance(values, list) or len(values) != len(kinds) or not all(map(_can_be, values, kinds)):
        raise Refused(NOT_OURS)
    return values


def _can_be(value: Any, kind: type) -> bool:
    """Whether a database can compare it: none looks for a NUL, or knows numbers of more than 64 bits."""
    if kind is str:
        return isinstance(value, str) and "\0" not in value
    return type(value) is int and -NUMBERS_END <= value < NUMBERS_END


def after(order: Sequence[Order], values: Sequence[Any]) -> ColumnElement[bool]:
    """The rows behind the one whose order columns have these values."""
    steps = []
    for number, (last, value) in enumerate(zip(order, values, strict=True)):
        same = [earlier.column == known for earlier, known in zip(order[:number], values[:number], strict=True)]
        steps.append(and_(*same, last.beyond(value)))
    return or_(*steps)


def _comparable(value: Any) -> Any:
    return round(value.timestamp() * 1000) if isinstance(value, datetime) else value
