"""The versions of what stands in the catalog: a question of its own beside the reader's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import select

from projections.store import tables
from projections.store.paging import Order, Page
from projections.store.reader import _within

if TYPE_CHECKING:
    from projections.store.reader import Reader, Scope


def changes(
    reader: Reader, scope: Scope, kind: str, name: str, *, cursor: str | None = None, limit: int | None = None
) -> Page:  # fmt: skip
    """The versions of a reference definition, the newest first."""
    table = tables.CHANGES
    query = _within(scope, select(table)).where(table.c.kind == kind, table.c.name == name)
    order = (Order(column=table.c.version, descending=True),)
    return reader._page(query, order, cursor, limit)  # noqa: SLF001 -- it would not fit into the reader's file
