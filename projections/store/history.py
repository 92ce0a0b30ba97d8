"""What was, newest or oldest first, a page at a time: questions of their own beside the reader's."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import orjson
from sqlalchemy import select

from projections.store import paging, tables
from projections.store.paging import Order, Page
from projections.store.reader import _within
from schemas import codec

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from projections.store.reader import Reader, Row, Scope

PAGE_BYTES_MAX = 512 * 1024  # an event may have a payload of 64 KiB or an error of some KiB, a calendar 130 KB of days
CHANGES_MAX = 50  # of a page: so many of the largest definitions are read before a page can end sooner


def changes(
    reader: Reader, scope: Scope, kind: str, name: str, *, cursor: str | None = None, limit: int | None = None
) -> Page:  # fmt: skip
    """The versions of a reference definition, the newest first. A page ends sooner where they are large."""
    table = tables.CHANGES
    query = _within(scope, select(table)).where(table.c.kind == kind, table.c.name == name)
    order = (Order(column=table.c.version, descending=True),)
    limit = min(paging.bounded(limit), CHANGES_MAX)
    page = reader._page(query, order, cursor, limit)  # noqa: SLF001 -- it would not fit into the reader's file
    return _bounded(page, lambda row: len(orjson.dumps(row["definition"])))


def story(
    reader: Reader, scope: Scope, schedule: str, run_id: str = "", *, newest: bool = False, cursor: str | None = None,
    limit: int | None = None,
) -> Page:  # fmt: skip
    """The events of a run, or of the schedule itself, as they were written: one partition has them all, so their
    offsets are their order. A page ends sooner where its events are large.
    """
    table = tables.STORY
    query = _within(scope, select(table)).where(table.c.schedule == schedule, table.c.run_id == run_id)
    order = (Order(column=table.c.offset, descending=newest), Order(column=table.c.id, descending=newest))
    page = reader._page(query, order, cursor, limit)  # noqa: SLF001 -- as above
    return _bounded(page, lambda row: len(row["event"]))


def _bounded(page: Page, size_of: Callable[[Row], int]) -> Page:
    """As many rows as fit, and one in any case."""
    size = 0
    for number, row in enumerate(page.rows):
        size += size_of(row)
        if number and size > PAGE_BYTES_MAX:
            return replace(page, rows=page.rows[:number], more=True)
    return page


def told(reader: Reader, scope: Scope, schedule: str, run_id: str, type_: str) -> Row | None:
    """The first event of a type in the story of a run, wherever in it.

    Whoever made the run chose what stands in its data, which may look like another event.
    """
    table = tables.STORY
    query = _within(scope, select(table)).where(table.c.schedule == schedule, table.c.run_id == run_id)
    of_type = table.c.event.startswith(codec.beginning(type_), autoescape=True)
    return reader._one(query.where(of_type).order_by(table.c.offset).limit(1))  # noqa: SLF001 -- as above


def attempts(
    reader: Reader, scope: Scope, run_id: str, *, newest: bool = False, cursor: str | None = None,
    limit: int | None = None,
) -> Page:  # fmt: skip
    """The hand-outs of a run, in their order or the newest first."""
    table = tables.ATTEMPTS
    query = _within(scope, select(table)).where(table.c.run_id == run_id)
    order = (Order(column=table.c.handout, descending=newest),)
    return reader._page(query, order, cursor, limit)  # noqa: SLF001 -- as above


def definitions(
    reader: Reader, scope: Scope, schedule: str, versions: Collection[int]
) -> Mapping[int, dict[str, Any]]:  # fmt: skip
    """The definitions of some versions of a schedule, of those that are still kept."""
    table = tables.VERSIONS
    query = _within(scope, select(table)).where(table.c.schedule == schedule, table.c.version.in_(sorted(versions)))
    rows = reader._all(query) if versions else ()  # noqa: SLF001 -- as above
    return {row["version"]: row["definition"] for row in rows if row["definition"]}
