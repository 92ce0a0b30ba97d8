"""PostgreSQL: several nodes, a schema for each layout.

A server may be restarted under us: every connection is tried before it is used, and no wait is without an end.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import orjson
from sqlalchemy import JSON, Connection, Engine, Text, and_, bindparam, cast, column, create_engine, event, func, select
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.exc import DBAPIError

from projections.store.dialect import names, settled

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from sqlalchemy import URL, Column, Table, TableValuedAlias

    from projections.projection import Key, Row

_DIALECT = PGDialect_psycopg()  # type: ignore[no-untyped-call]  # SQLAlchemy does not type it
_SCHEMA = "tidewheel_{}"

# Keys of advisory locks, each beside a layout: who changes its rows, and who is connected to it.
_CHANGES, _CONNECTED = 0x7477_0001, 0x7477_0002

_CONNECT = {
    "application_name": "tidewheel",
    "connect_timeout": 5,  # seconds; the next try comes after a second
    "tcp_user_timeout": 10_000,  # milliseconds until a peer that is gone without a word is given up
}
_STATEMENT = "30s"  # beyond any question or batch; a lock that is not given by then is asked for anew
_DATA, _LIMIT = "22", "54"  # classes of errors that a value, or its size, is to blame for


class Postgresql:
    """One database of a server."""

    def __init__(self, url: URL) -> None:
        if not url.database:
            raise ValueError("PostgreSQL needs a database, as in postgresql://user@host/tidewheel")
        if find_spec("psycopg") is None:
            raise ValueError("PostgreSQL needs a package more: pip install 'tidewheel-server[postgresql]'")
        self._url = url.set(drivername="postgresql+psycopg")

    def open(self, layout: int) -> Engine:
        engine = create_engine(
            self._url, connect_args=_CONNECT, pool_pre_ping=True, hide_parameters=True, json_serializer=_dump,
            json_deserializer=orjson.loads,
        )  # fmt: skip
        event.listen(engine, "connect", lambda connection, _: _prepare(connection, layout))
        return engine

    def layouts(self, connection: Connection) -> list[int]:
        found = connection.exec_driver_sql("SELECT nspname FROM pg_namespace").scalars()
        matches = (re.fullmatch(_SCHEMA.format(r"(\d+)"), name) for name in found)
        return sorted(int(match[1]) for match in matches if match)

    def make(self, connection: Connection, layout: int) -> None:
        """Only where it is missing: it may have been made by somebody with more rights than we have."""
        encoding = connection.exec_driver_sql("SHOW server_encoding").scalar_one()
        if encoding != "UTF8":
            raise ValueError(f"the database is encoded in {encoding}; create it with ENCODING 'UTF8'")
        there = "SELECT 1 FROM pg_namespace WHERE nspname = %(name)s"
        schema = _SCHEMA.format(layout)
        if connection.exec_driver_sql(there, {"name": schema}).scalar() is None:
            connection.exec_driver_sql(f"CREATE SCHEMA {schema}")

    def drop(self, connection: Connection, layout: int) -> None:
        free = f"SELECT pg_try_advisory_xact_lock({_CONNECTED}, {layout})"
        if connection.exec_driver_sql(free).scalar_one():
            connection.exec_driver_sql(f"DROP SCHEMA IF EXISTS {_SCHEMA.format(layout)} CASCADE")

    def begin_change(self, connection: Connection) -> None:
        """A lock of its own, for there may be no table yet to lock."""
        layout = f"substr(current_setting('search_path'), {len(_SCHEMA.format('')) + 1})::int"
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_CHANGES}, {layout})")

    def refuses(self, error: BaseException) -> bool:
        state = getattr(error.orig, "sqlstate", None) if isinstance(error, DBAPIError) else None
        return (state or "")[:2] in {_DATA, _LIMIT}

    @staticmethod
    @lru_cache(maxsize=64)  # one for each table
    def upsert(table: Table, *, once: bool) -> RecordUpsert:
        return upsert(table, once=once)

    @staticmethod
    @lru_cache(maxsize=64)  # one for each table
    def lookup(table: Table) -> RecordLookup:
        return lookup(table)


def _prepare(connection: Any, layout: int) -> None:
    """What holds for a connection as long as it lives, outside of any transaction."""
    connection.autocommit = True
    connection.execute(
        f"SET search_path TO {_SCHEMA.format(layout)};"
        f"SET statement_timeout TO '{_STATEMENT}';"
        "SET synchronous_commit TO off;"  # a crash may take the last batches; the log still has them
        f"SELECT pg_advisory_lock_shared({_CONNECTED}, {layout})"
    )
    connection.autocommit = False


def _dump(value: Any) -> str:
    return orjson.dumps(value).decode()


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordUpsert:
    """One statement for one list of rows."""

    sql: str

    def run(self, connection: Connection, rows: Sequence[Row]) -> None:
        connection.exec_driver_sql(self.sql, {"given": _text(rows)})


def upsert(table: Table, *, once: bool) -> RecordUpsert:
    """The upsert of a table."""
    given = _records(table.c)
    values = select(*(cast(given.c[own.name], JSON) if _is_json(own) else given.c[own.name] for own in table.c))
    insert = postgresql.insert(table).from_select(names(table), values)
    return RecordUpsert(sql=str(settled(insert, table, once=once).compile(dialect=_DIALECT)))


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordLookup:
    """One statement for one list of keys."""

    sql: str
    keys: tuple[str, ...]
    columns: tuple[str, ...]

    def run(self, connection: Connection, keys: Sequence[Key]) -> Iterator[Row]:
        given = _text([dict(zip(self.keys, key, strict=True)) for key in keys])
        for values in connection.exec_driver_sql(self.sql, {"given": given}):
            yield dict(zip(self.columns, values, strict=True))


def lookup(table: Table) -> RecordLookup:
    """The lookup of a table. JSON comes as the text that it is."""
    keys = tuple(table.primary_key)
    given = _records(keys)
    same = and_(*(own == given.c[own.name] for own in keys))
    columns = (cast(own, Text) if _is_json(own) else own for own in table.c)
    found = select(*columns).select_from(given.join(table, same))
    return RecordLookup(
        sql=str(found.compile(dialect=_DIALECT)), keys=tuple(str(key.name) for key in keys), columns=tuple(names(table))
    )


def _records(columns: Iterable[Column[Any]]) -> TableValuedAlias:
    """The objects of a JSON list as rows. What is JSON inside them is text there."""
    typed = (column(own.name, Text() if _is_json(own) else own.type) for own in columns)
    given = cast(bindparam("given", type_=Text), JSON)
    return func.json_to_recordset(given).table_valued(*typed, name="given").render_derived(with_types=True)


def _is_json(own: Column[Any]) -> bool:
    return isinstance(own.type, JSON)


_NUL = "\\u0000"


def _text(rows: Sequence[Row]) -> str:
    """The rows as JSON. PostgreSQL keeps no NUL in a text: a reader sees that there was something."""
    text = _dump(rows)
    return (
        text
        if _NUL not in text
        else _dump([{name: _without_nul(value) for name, value in row.items()} for row in rows])
    )


def _without_nul(value: Any) -> Any:
    return value.replace("\0", "\N{REPLACEMENT CHARACTER}") if isinstance(value, str) else value
