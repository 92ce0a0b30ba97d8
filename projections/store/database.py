"""Opening the read model, and forgetting what does not belong to this log and these tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson
from sqlalchemy import delete, insert, inspect, select

from projections.store import dialect, tables

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import Connection, Engine


def open_database(url: str) -> Engine:
    """The read model at `url` (`sqlite:////path/file` or PostgreSQL), with its tables."""
    engine = dialect.open_engine(url)
    with engine.begin() as connection:
        if _known(connection, "tables") != str(tables.VERSION):
            _create_anew(connection)
    return engine


def belong_to(engine: Engine, source: Mapping[str, str], *, anew: bool) -> None:
    """Forget every row and position unless they came from this source: cluster and incarnations of its topics."""
    wanted = orjson.dumps(dict(source), option=orjson.OPT_SORT_KEYS).decode()
    with engine.begin() as connection:
        if not anew and _known(connection, "source") == wanted:
            return
        _create_anew(connection)
        connection.execute(insert(tables.META), {"name": "source", "value": wanted})


def _known(connection: Connection, name: str) -> str | None:
    if not inspect(connection).has_table(tables.META.name):
        return None
    return connection.execute(select(tables.META.c.value).where(tables.META.c.name == name)).scalar()


def _create_anew(connection: Connection) -> None:
    dialect.begin_change(connection)
    tables.METADATA.drop_all(connection)
    tables.METADATA.create_all(connection)
    connection.execute(delete(tables.META))
    connection.execute(insert(tables.META), {"name": "tables", "value": str(tables.VERSION)})
