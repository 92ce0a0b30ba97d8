"""The one place where SQLite and PostgreSQL differ: upserts, and how a file is opened for many readers and a writer.

Statements are compiled once and given to the driver as text: a projection writes some ten thousand rows a second, and
building each statement anew would cost more than the database does.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

import orjson
from sqlalchemy import Connection, Dialect, Engine, create_engine, event

from projections.store import by_row, by_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sqlalchemy import Table

    from projections.projection import Key, Row
    from projections.store.by_row import Move

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


def begin_change(connection: Connection) -> None:
    """Until the commit readers see what there was. SQLite's driver would begin only before some kinds of statements."""
    if connection.dialect.name == "sqlite" and not connection.connection.dbapi_connection.in_transaction:  # type: ignore[union-attr]
        connection.exec_driver_sql("BEGIN IMMEDIATE")


class Upsert(Protocol):
    """Writes whole rows, the new one taking the place of the old, or (`once`) the old one standing."""

    def run(self, connection: Connection, rows: Sequence[Row]) -> None: ...


class Lookup(Protocol):
    """Reads whole rows by their keys, as folds made them."""

    def run(self, connection: Connection, keys: Sequence[Key]) -> Iterable[Row]: ...


class Moves(Protocol):
    """Moves positions that stand where they are said to, and tells how many did."""

    def run(self, connection: Connection, moves: Sequence[Move]) -> int: ...


@lru_cache(maxsize=64)  # one for each table
def upsert(table: Table, dialect: Dialect, *, once: bool) -> Upsert:
    """The upsert of a table."""
    if dialect.name == "sqlite":
        return by_text.upsert(table, dialect, once=once)
    return by_row.upsert(table, dialect, once=once)


@lru_cache(maxsize=64)  # one for each table
def lookup(table: Table, dialect: Dialect) -> Lookup:
    """The lookup of a table."""
    return by_text.lookup(table, dialect) if dialect.name == "sqlite" else by_row.RowLookup(table=table)


@lru_cache(maxsize=8)  # there is one such table
def moves(positions: Table, dialect: Dialect) -> Moves:
    """The moves of the positions in a table."""
    return by_text.moves(positions, dialect) if dialect.name == "sqlite" else by_row.RowMoves(positions=positions)


def _dump_text(value: Any) -> str:
    return orjson.dumps(value).decode()
