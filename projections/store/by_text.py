"""Rows written and read in one step, as one JSON text: SQLite.

Its driver lets go of the interpreter and takes it again around every row it steps over, and beside busy threads each
taking costs a wait. In one step it works beside them instead. How long a text becomes is bounded by the batch that its
rows come from.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import orjson
from sqlalchemy import Connection, Dialect, and_, bindparam, func, literal_column, select, update
from sqlalchemy.dialects import sqlite

from projections.store import by_row

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlalchemy import CTE, ColumnElement, Table, TableValuedAlias

    from projections.projection import Key, Row
    from projections.store.by_row import Move


@dataclass(frozen=True, slots=True, kw_only=True)
class TextUpsert:
    """One statement for one list of rows."""

    sql: str
    columns: tuple[str, ...]
    one_by_one: by_row.RowUpsert

    def run(self, connection: Connection, rows: Sequence[Row]) -> None:
        """One step, unless a text holds the character that would end it there."""
        text = orjson.dumps(list(map(itemgetter(*self.columns), rows))).decode()
        if _NUL in text:
            self.one_by_one.run(connection, rows)
        else:
            connection.exec_driver_sql(self.sql, (text,))


_NUL = "\\u0000"  # SQLite's JSON functions take it for the end of a text


def upsert(table: Table, dialect: Dialect, *, once: bool) -> TextUpsert:
    """The upsert of a table."""
    rows = _given("rows")
    # Without a condition SQLite takes the `ON` of `ON CONFLICT` for that of a join.
    values = select(*(_part(rows, number) for number in range(len(table.c)))).where(literal_column("true"))
    insert = sqlite.insert(table).from_select(by_row.names(table), values)
    compiled = by_row.settled(insert, table, once=once).compile(dialect=dialect)
    one_by_one = by_row.upsert(table, dialect, once=once)
    return TextUpsert(sql=str(compiled), columns=tuple(by_row.names(table)), one_by_one=one_by_one)


@dataclass(frozen=True, slots=True, kw_only=True)
class TextLookup:
    """One statement for one list of keys."""

    sql: str
    columns: tuple[str, ...]

    def run(self, connection: Connection, keys: Sequence[Key]) -> Iterator[Row]:
        """One step; the rows come as one text too."""
        found = connection.exec_driver_sql(self.sql, (orjson.dumps(keys).decode(),)).scalar_one()
        for values in orjson.loads(found):
            yield dict(zip(self.columns, values, strict=True))


def lookup(table: Table, dialect: Dialect) -> TextLookup:
    """The lookup of a table."""
    keys = _given("keys")
    same = and_(*(column == _part(keys, number) for number, column in enumerate(table.primary_key)))
    found = select(func.json_group_array(func.json_array(*table.c))).select_from(keys.join(table, same))
    return TextLookup(sql=str(found.compile(dialect=dialect)), columns=tuple(by_row.names(table)))


@dataclass(frozen=True, slots=True, kw_only=True)
class TextMoves:
    """One statement for one list of moves."""

    sql: str

    def run(self, connection: Connection, moves: Sequence[Move]) -> int:
        """One step; how many positions stood where they were said to."""
        return connection.exec_driver_sql(self.sql, (orjson.dumps(moves).decode(),)).rowcount


def moves(positions: Table, dialect: Dialect) -> TextMoves:
    """The moves of positions. Without WITH: the driver counts only for statements whose first word is UPDATE."""
    moved, old = func.json_each(bindparam("moves")).table_valued("value", name="moves"), positions.c
    here = and_(old.topic == _part(moved, 0), old.partition == _part(moved, 1), old.next_offset == _part(moved, 2))
    statement = update(positions).values(next_offset=_part(moved, 3)).where(here)
    return TextMoves(sql=str(statement.compile(dialect=dialect)))


def _given(name: str) -> CTE:
    """The elements of a JSON list. Materialized, for otherwise each is written anew for each of its parts."""
    elements = func.json_each(bindparam(name)).table_valued("value")
    return select(elements.c.value).cte(name).prefix_with("MATERIALIZED")


def _part(elements: CTE | TableValuedAlias, number: int) -> ColumnElement[Any]:
    return func.json_extract(elements.c.value, literal_column(f"'$[{number}]'"))
