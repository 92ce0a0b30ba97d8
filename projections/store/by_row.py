"""Rows written and read a row a step, as every database can."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Dialect, and_, bindparam, select, tuple_, update
from sqlalchemy.dialects import postgresql, sqlite

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlalchemy import Table

    from projections.projection import Key, Row

Move = tuple[str, int, int, int]  # of the next offset of a topic's partition: from, to


@dataclass(frozen=True, slots=True, kw_only=True)
class RowUpsert:
    """One statement that the driver steps through for each row."""

    sql: str
    columns: tuple[str, ...]
    positional: bool

    def run(self, connection: Connection, rows: Sequence[Row]) -> None:
        """All rows in one call of the driver."""
        values = list(map(itemgetter(*self.columns), rows))
        if self.positional:
            connection.exec_driver_sql(self.sql, values)
        else:
            connection.exec_driver_sql(self.sql, [dict(zip(self.columns, value, strict=True)) for value in values])


def upsert(table: Table, dialect: Dialect, *, once: bool) -> RowUpsert:
    """The upsert of a table."""
    insert: Any = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}[dialect.name](table)
    compiled = settled(insert, table, once=once).compile(dialect=dialect)
    columns = tuple(compiled.positiontup or names(table))
    return RowUpsert(sql=str(compiled), columns=columns, positional=compiled.positional)


def settled(insert: Any, table: Table, *, once: bool) -> Any:
    """An insert that knows what to do with a row that is there already."""
    keys = [column.name for column in table.primary_key]
    if once:
        return insert.on_conflict_do_nothing(index_elements=keys)
    others = {name: insert.excluded[name] for name in names(table) if name not in keys}
    return insert.on_conflict_do_update(index_elements=keys, set_=others)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowLookup:
    """Asks for the keys of some rows at a time."""

    table: Table

    def run(self, connection: Connection, keys: Sequence[Key]) -> Iterator[Row]:
        """In pieces of few sizes, so that few statements are compiled; a short one is filled up with its last key."""
        columns = names(self.table)
        for start in range(0, len(keys), _SIZES[-1]):
            some = keys[start : start + _SIZES[-1]]
            size = next(size for size in _SIZES if size >= len(some))
            padded = [*some, *[some[-1]] * (size - len(some))]
            query = _listed(self.table, connection.dialect, size)
            for values in connection.exec_driver_sql(query.sql, query.bind([value for key in padded for value in key])):
                yield dict(zip(columns, values, strict=True))


_SIZES = (1, 8, 64, 512)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listed:
    """The query for a number of keys."""

    sql: str
    names: tuple[str, ...]
    positional: bool

    def bind(self, values: Sequence[Any]) -> Any:
        """The parameters as the driver wants them."""
        return tuple(values) if self.positional else dict(zip(self.names, values, strict=True))


@lru_cache(maxsize=64)  # a few sizes for each table
def _listed(table: Table, dialect: Dialect, size: int) -> _Listed:
    keys = tuple(table.primary_key)
    wanted: list[Any] = [tuple(bindparam(f"{key.name}_{number}") for key in keys) for number in range(size)]
    statement = select(table).where(tuple_(*keys).in_(wanted))
    compiled = statement.compile(dialect=dialect, compile_kwargs={"render_postcompile": True})
    bound = tuple(compiled.positiontup or compiled.params)
    return _Listed(sql=str(compiled), names=bound, positional=compiled.positional)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowMoves:
    """One statement for each move."""

    positions: Table

    def run(self, connection: Connection, moves: Sequence[Move]) -> int:
        """How many positions stood where they were said to."""
        return sum(self._move(connection, *move) for move in moves)

    def _move(self, connection: Connection, topic: str, partition: int, before: int, after: int) -> int:
        old = self.positions.c
        here = and_(old.topic == topic, old.partition == partition, old.next_offset == before)
        return connection.execute(update(self.positions).where(here).values(next_offset=after)).rowcount


def names(table: Table) -> list[str]:
    """The columns of a table in their order."""
    return [column.name for column in table.c]
