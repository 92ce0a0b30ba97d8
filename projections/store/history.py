"""What was, newest or oldest first, a page at a time: questions of their own beside the reader's."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from projections.store import tables
from projections.store.paging import Order, Page
from projections.store.reader import _within
from schemas import codec

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from projections.store.reader import Reader, Row, Scope

STORY_BYTES_MAX = 512 * 1024  # of the events of a page: one may have a payload of 64 KiB or an error of some KiB


def changes(
    reader: Reader, scope: Scope, kind: str, name: str, *, cursor: str | None = None, limit: int | None = None
) -> Page:  # fmt: skip
    """The versions of a reference definition, the newest first."""
    table = tables.CHANGES
    query = _within(scope, select(table)).where(table.c.kind == kind, table.c.name == name)
    order = (Order(column=table.c.version, descending=True),)
    return reader._page(query, order, cursor, limit)  # noqa: SLF001 -- it would not fit into the reader's file


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
    return _bounded(reader._page(query, order, cursor, limit))  # noqa: SLF001 -- as above


def _bounded(page: Page) -> Page:
    """As many events as fit, and one in any case."""
    size = 0
    for number, row in enumerate(page.rows):
        size += len(row["event"])
        if number and size > STORY_BYTES_MAX:
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
