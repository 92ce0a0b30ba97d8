"""SQLite: one process, a file for each layout.

Its driver lets go of the interpreter and takes it again around every row it steps over, and beside busy threads each
taking costs a wait. In one step it works beside them instead. How long a text becomes is bounded by the batch that its
rows come from. Where no other thread is busy nothing is waited for, and rows are written one by one: SQLite need not
take a text apart, which costs as much again for a row of few columns.
"""

from __future__ import annotations

import re
import sqlite3
import time
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
from sqlalchemy import (
    Connection,
    Engine,
    and_,
    bindparam,
    create_engine,
    event,
    func,
    literal_column,
    select,
)
from sqlalchemy.dialects import sqlite

from projections.store.dialect import names, settled

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlalchemy import CTE, URL, ColumnElement, Table

    from projections.projection import Key, Row

# A cursor of the read model waits this long for the writer, whose transactions take milliseconds.
_BUSY_MILLISECONDS = 5_000
_BETWEEN_SECONDS = 0.01
_PRAGMAS = (
    f"busy_timeout={_BUSY_MILLISECONDS}",
    "page_size=16384",  # of a new file: a page holds some twenty events, and fewer pages are written
    "journal_mode=WAL",  # readers and the writer do not wait for each other
    "synchronous=NORMAL",  # a power cut may take the last batches; the log still has them
    "cache_size=-65536",  # KiB: the hot ends of the trees
    "wal_autocheckpoint=1000",  # pages: fewer, larger steps write a page that changes often only once
    "temp_store=MEMORY",
)
_DIALECT = sqlite.dialect(paramstyle="qmark")
_SPARSE_COLUMNS = 30  # of so many most are empty at any time: a run is not deferred, retried, cancelled and failed
_NUL = "\\u0000"  # SQLite's JSON functions take it for the end of a text


class Sqlite:
    """Files beside each other: where the URL says `read-model.sqlite`, layout 4 is `read-model-4.sqlite`."""

    def __init__(self, url: URL, *, alone: bool = False) -> None:
        if not url.database or url.database == ":memory:":
            raise ValueError("SQLite needs a file, as in sqlite:////var/lib/tidewheel/read-model.sqlite")
        self._url = url
        self._path = Path(url.database)
        self._alone = alone

    def open(self, layout: int) -> Engine:
        url = self._url.set(database=str(self._file(layout)))
        engine = create_engine(
            url, hide_parameters=True, json_serializer=_dump_text, json_deserializer=orjson.loads
        )  # fmt: skip
        event.listen(engine, "connect", _tune)
        return engine

    def layouts(self, connection: Connection) -> list[int]:  # noqa: ARG002 -- the folder tells
        named = re.compile(rf"{re.escape(self._path.stem)}-(\d+){re.escape(self._path.suffix)}")
        return sorted(int(found[1]) for file in self._path.parent.iterdir() if (found := named.fullmatch(file.name)))

    def make(self, connection: Connection, layout: int) -> None:
        """Connecting has made it."""

    def drop(self, connection: Connection, layout: int) -> None:  # noqa: ARG002 -- the folder again
        """Whoever still has the file open sees it to the end."""
        file = self._file(layout)
        for path in (file, Path(f"{file}-wal"), Path(f"{file}-shm")):
            path.unlink(missing_ok=True)

    def begin_change(self, connection: Connection) -> None:
        """The driver would begin only before some kinds of statements."""
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    def refuses(self, error: BaseException) -> bool:  # noqa: ARG002 -- it stores whatever it is given
        return False

    def upsert(self, table: Table, *, once: bool) -> TextUpsert | RowUpsert | SparseUpsert:
        return by_row(table, once=once) if self._alone else upsert(table, once=once)

    @staticmethod
    @lru_cache(maxsize=64)  # one for each table
    def lookup(table: Table) -> TextLookup:
        return lookup(table)

    def _file(self, layout: int) -> Path:
        return self._path.with_name(f"{self._path.stem}-{layout}{self._path.suffix}")


def _tune(connection: Any, _record: object) -> None:
    cursor = connection.cursor()
    for pragma in _PRAGMAS:
        _waiting(cursor, f"PRAGMA {pragma}")
    cursor.close()


def _waiting(cursor: Any, statement: str) -> None:
    """SQLite waits for a lock by itself, except where two make the same new file a WAL file at once."""
    deadline = time.monotonic() + _BUSY_MILLISECONDS / 1000
    while True:
        try:
            cursor.execute(statement)
        except sqlite3.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(_BETWEEN_SECONDS)
        else:
            return


def _dump_text(value: Any) -> str:
    return orjson.dumps(value).decode()


@dataclass(frozen=True, slots=True, kw_only=True)
class RowUpsert:
    """One statement for each row."""

    sql: str
    columns: tuple[str, ...]

    def run(self, connection: Connection, rows: Sequence[Row]) -> None:
        """A step for each row."""
        connection.exec_driver_sql(self.sql, list(map(itemgetter(*self.columns), rows)))


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseUpsert:
    """One statement for each row, of the columns that it says something in: the driver takes long over each nothing."""

    table: Table
    once: bool

    def run(self, connection: Connection, rows: Sequence[Row]) -> None:
        """A step for each row. Those that say something in the same columns go to the driver together."""
        alike: dict[tuple[str, ...], list[Row]] = {}
        for row in rows:
            said = tuple([name for name, value in row.items() if value is not None])
            alike.setdefault(said, []).append(row)
        for said, some in alike.items():
            _upsert_of(self.table, said, once=self.once).run(connection, some)


@dataclass(frozen=True, slots=True, kw_only=True)
class TextUpsert:
    """One statement for one list of rows."""

    sql: str
    columns: tuple[str, ...]
    by_row: RowUpsert | SparseUpsert

    def run(self, connection: Connection, rows: Sequence[Row]) -> None:
        """One step, unless a text holds the character that would end it there."""
        text = orjson.dumps(list(map(itemgetter(*self.columns), rows))).decode()
        if _NUL in text:
            self.by_row.run(connection, rows)
        else:
            connection.exec_driver_sql(self.sql, (text,))


@lru_cache(maxsize=64)  # one for each table
def by_row(table: Table, *, once: bool) -> RowUpsert | SparseUpsert:
    """The upsert of a table, row by row."""
    if len(table.c) >= _SPARSE_COLUMNS:
        return SparseUpsert(table=table, once=once)
    return _upsert_of(table, tuple(names(table)), once=once)


@lru_cache(maxsize=1024)  # a sparse table has a few dozen: what is said in one column is said in others
def _upsert_of(table: Table, said: tuple[str, ...], *, once: bool) -> RowUpsert:
    """The upsert of rows that say something in these columns. The others are, or become, empty."""
    columns = tuple(name for name in names(table) if name in said)
    given = sqlite.insert(table).values({name: bindparam(name) for name in columns})
    return RowUpsert(sql=str(settled(given, table, once=once).compile(dialect=_DIALECT)), columns=columns)


@lru_cache(maxsize=64)  # one for each table
def upsert(table: Table, *, once: bool) -> TextUpsert:
    """The upsert of a table, all rows at once."""
    rows = _given("rows")
    # Without a condition SQLite takes the `ON` of `ON CONFLICT` for that of a join.
    values = select(*(_part(rows, number) for number in range(len(table.c)))).where(literal_column("true"))
    whole = settled(sqlite.insert(table).from_select(names(table), values), table, once=once)
    return TextUpsert(
        sql=str(whole.compile(dialect=_DIALECT)), columns=tuple(names(table)), by_row=by_row(table, once=once)
    )


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


def lookup(table: Table) -> TextLookup:
    """The lookup of a table."""
    keys = _given("keys")
    same = and_(*(column == _part(keys, number) for number, column in enumerate(table.primary_key)))
    found = select(func.json_group_array(func.json_array(*table.c))).select_from(keys.join(table, same))
    return TextLookup(sql=str(found.compile(dialect=_DIALECT)), columns=tuple(names(table)))


def _given(name: str) -> CTE:
    """The elements of a JSON list. Materialized, for otherwise each is written anew for each of its parts."""
    elements = func.json_each(bindparam(name)).table_valued("value")
    return select(elements.c.value).cte(name).prefix_with("MATERIALIZED")


def _part(elements: CTE, number: int) -> ColumnElement[Any]:
    return func.json_extract(elements.c.value, literal_column(f"'$[{number}]'"))
