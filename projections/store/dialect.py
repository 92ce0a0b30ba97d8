"""The one place where SQLite and PostgreSQL differ: upserts, and how a file is opened for many readers and a writer.

Statements are compiled once and given to the driver as text with rows of values: a projection writes some ten
thousand rows a second, and building each statement anew would cost more than the database does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import orjson
from sqlalchemy import Connection, Dialect, Engine, bindparam, create_engine, event, select, tuple_
from sqlalchemy.dialects import postgresql, sqlite

if TYPE_CHECKING:
    from sqlalchemy import Table

    from projections.projection import Key, Row

# A cursor of the read model waits this long for the writer, whose transactions take milliseconds.
_BUSY_MILLISECONDS = 5_000
_PRAGMAS = (
    "page_size=16384",  # of a new file: a page holds some twenty events, and fewer pages are written
    "journal_mode=WAL",  # readers and the writer do not wait for each other
    "synchronous=NORMAL",  # a power cut may take the last batches; the log still has them
    f"busy_timeout={_BUSY_MILLISECONDS}",
    "cache_size=-65536",  # KiB: the hot ends of the trees
    "wal_autocheckpoint=1000",  # pages: fewer, larger steps write a page that changes often only once
    "temp_store=MEMORY",
)


def open_engine(url: str) -> Engine:
    """A pool of connections to the database at `url`."""
    engine = create_engine(url, json_serializer=_dump_text, json_deserializer=orjson.loads)
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _tune)
    return engine


def _tune(connection: Any, _record: object) -> None:
    cursor = connection.cursor()
    for pragma in _PRAGMAS:
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def begin_schema_change(connection: Connection) -> None:
    """Until the commit readers see the tables as they were. SQLite's driver would commit each step by itself."""
    if connection.dialect.name == "sqlite" and not connection.connection.dbapi_connection.in_transaction:  # type: ignore[union-attr]
        connection.exec_driver_sql("BEGIN IMMEDIATE")


@dataclass(frozen=True, slots=True, kw_only=True)
class Upsert:
    """Write whole rows, the new one taking the place of the old, or (`once`) the old one standing."""

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


@lru_cache(maxsize=64)  # one for each table
def upsert(table: Table, dialect: Dialect, *, once: bool) -> Upsert:
    """The upsert of a table."""
    insert: Any = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}[dialect.name](table)
    keys = [column.name for column in table.primary_key]
    if once:
        statement = insert.on_conflict_do_nothing(index_elements=keys)
    else:
        others = {column.name: insert.excluded[column.name] for column in table.c if column.name not in keys}
        statement = insert.on_conflict_do_update(index_elements=keys, set_=others)
    compiled = statement.compile(dialect=dialect)
    columns = tuple(compiled.positiontup or [column.name for column in table.c])
    return Upsert(sql=str(compiled), columns=columns, positional=compiled.positional)


# Few sizes, so that few statements are compiled; a short list is filled up with its last key.
_SIZES = (1, 8, 64, 512)


def fetch(connection: Connection, table: Table, keys: Sequence[Key]) -> Iterator[Row]:
    """The rows that have one of the keys, as folds made them."""
    for start in range(0, len(keys), _SIZES[-1]):
        some = keys[start : start + _SIZES[-1]]
        size = next(size for size in _SIZES if size >= len(some))
        padded = [*some, *[some[-1]] * (size - len(some))]
        query = _lookup(table, connection.dialect, size)
        for values in connection.exec_driver_sql(query.sql, query.bind([value for key in padded for value in key])):
            yield dict(zip(query.columns, values, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookup:
    """Read whole rows by their keys."""

    sql: str
    names: tuple[str, ...]
    positional: bool
    columns: tuple[str, ...]

    def bind(self, values: Sequence[Any]) -> Any:
        """The parameters as the driver wants them."""
        return tuple(values) if self.positional else dict(zip(self.names, values, strict=True))


@lru_cache(maxsize=64)  # a few sizes for each table
def _lookup(table: Table, dialect: Dialect, size: int) -> Lookup:
    keys = tuple(table.primary_key)
    wanted: list[Any] = [tuple(bindparam(f"{key.name}_{number}") for key in keys) for number in range(size)]
    statement = select(table).where(tuple_(*keys).in_(wanted))
    compiled = statement.compile(dialect=dialect, compile_kwargs={"render_postcompile": True})
    return Lookup(
        sql=str(compiled),
        names=tuple(compiled.positiontup or compiled.params),
        positional=compiled.positional,
        columns=tuple(column.name for column in table.c),
    )


def _dump_text(value: Any) -> str:
    return orjson.dumps(value).decode()
