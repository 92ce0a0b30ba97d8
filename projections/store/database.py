"""The read model as a place: which layout of the tables is written, which one is shown, and when the old one goes.

    version 4 starts   layout 3 stands complete and is shown     layout 4 is made, and filled from the log
    it has caught up   layout 4 is marked complete               readers turn to it with their next question
    nobody uses 3      layout 3 is dropped

A crash at any point leaves the old layout shown or the new one complete. Nodes of both versions may run meanwhile: each
writes and shows its own.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import orjson
from sqlalchemy import insert, inspect, make_url, select
from sqlalchemy.exc import ArgumentError

from projections.store import tables
from projections.store.dialects.postgresql import Postgresql
from projections.store.dialects.sqlite import Sqlite
from runtime.record import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sqlalchemy import Connection, Engine

    from projections.store.dialect import Dialect

_POSTGRESQL = ("postgresql", "postgres")

# What META says of a layout.
_TABLES, _SOURCE, _COMPLETE = "tables", "source", "complete"


def open_database(url: str, *, alone: bool = False) -> Database:
    """The read model at `url`: `sqlite:////path/file` or `postgresql://user@host/database`. ValueError says what is
    wrong with the URL. Nothing is connected yet: a database may be away for a while, at the start too.

    `alone`: no other thread of this process is busy, and rows may be written in the way that is quicker then.
    """
    return Database(dialect_of(url, alone=alone))


def dialect_of(url: str, *, alone: bool = False) -> Dialect:
    """Who speaks to the database at `url`; ValueError for a URL of none."""
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise ValueError("is no URL of a database, as postgresql://user@host/database is one") from None
    backend = parsed.get_backend_name()
    if backend == "sqlite":
        return Sqlite(parsed, alone=alone)
    if backend in _POSTGRESQL:
        return Postgresql(parsed)
    raise ValueError(f"{backend} is not supported; sqlite and postgresql are")


class Database:
    """The layouts of one read model, as one version of this program sees them."""

    def __init__(
        self, dialect: Dialect, *, layout: int = tables.VERSION, readable_since: int = tables.READABLE_SINCE
    ) -> None:
        self.dialect = dialect
        self._layout = layout
        self._readable_since = readable_since
        self._own = dialect.open(layout)
        self._choosing = threading.Lock()
        self._older: dict[int, Engine] = {}
        self._complete = False  # known to be; it stays so

    def connect(self) -> Connection:
        """A connection to the layout that is written."""
        return self._own.connect()

    @contextmanager
    def change(self) -> Iterator[Connection]:
        """A transaction in which nobody else writes; committed at the end, or undone by an error."""
        with self._own.begin() as connection:
            self.dialect.begin_change(connection)
            yield connection

    def dispose(self) -> None:
        """Close every connection."""
        self._own.dispose()
        self._close_older()

    # --- the layout that is written -------------------------------------------------------------------------------

    def belong_to(self, source: Mapping[str, str], *, anew: bool) -> None:
        """Forget every row and position unless they came from this source: cluster and incarnations of its topics."""
        wanted = orjson.dumps(dict(source), option=orjson.OPT_SORT_KEYS).decode()
        with self.change() as connection:
            known = _known(connection)
            if not anew and known.get(_TABLES) == str(self._layout) and known.get(_SOURCE) == wanted:
                return
            self.dialect.make(connection, self._layout)
            tables.METADATA.drop_all(connection)
            tables.METADATA.create_all(connection)
            notes = {_TABLES: str(self._layout), _SOURCE: wanted}
            if anew or not self._before(connection, wanted):
                notes[_COMPLETE] = "nothing before it to show"
            connection.execute(insert(tables.META), [{"name": name, "value": value} for name, value in notes.items()])

    def settle(self, connection: Connection) -> None:
        """Mark the layout complete, if in this transaction it has come as far as those before it."""
        if self._is_complete(connection):
            return
        known, reached = _known(connection), positions_of(connection)
        for older in self._before(connection, known[_SOURCE]):
            with self._engine(older).connect() as other:
                if any(reached.get(place, 0) < offset for place, offset in positions_of(other).items()):
                    return
        connection.execute(insert(tables.META), {"name": _COMPLETE, "value": "came as far as those before it"})

    def retire(self) -> None:
        """Drop the layouts before a complete one that nobody is connected to any more."""
        with self.change() as connection:
            if self._is_complete(connection):
                for older in self._older_layouts(connection):
                    self.dialect.drop(connection, older)

    # --- the layout that is shown ---------------------------------------------------------------------------------

    def show(self) -> Connection:
        """A connection to the newest complete layout that can be read; to the own one where there is none."""
        if not self._complete:
            with self._own.connect() as connection:
                readable = () if self._is_complete(connection) else self._before(connection, None)
            for older in reversed(readable):
                if older >= self._readable_since:
                    return self._engine(older).connect()
        return self._own.connect()

    def _is_complete(self, connection: Connection) -> bool:
        if not self._complete and _COMPLETE in _known(connection):
            self._turn()
        return self._complete

    def _turn(self) -> None:
        """From now on only the own layout is shown."""
        self._complete = True
        self._close_older()

    # --- the layouts before it ------------------------------------------------------------------------------------

    def _before(self, connection: Connection, source: str | None) -> list[int]:
        """The complete ones, where wanted of one source."""
        found = []
        for older in self._older_layouts(connection):
            with self._engine(older).connect() as other:
                known = _known(other)
            if _COMPLETE in known and source in (None, known[_SOURCE]):
                found.append(older)
        return found

    def _older_layouts(self, connection: Connection) -> list[int]:
        return [layout for layout in self.dialect.layouts(connection) if layout < self._layout]

    def _engine(self, older: int) -> Engine:
        with self._choosing:
            if older not in self._older:
                self._older[older] = self.dialect.open(older)
            return self._older[older]

    def _close_older(self) -> None:
        with self._choosing:
            while self._older:
                self._older.popitem()[1].dispose()


def positions_of(connection: Connection) -> dict[TopicPartition, int]:
    """The next offsets to read, as committed with the rows of a layout."""
    rows = connection.execute(select(tables.POSITIONS)).all()
    return {TopicPartition(row.topic, row.partition): row.next_offset for row in rows}


def _known(connection: Connection) -> dict[str, str]:
    """What a layout says of itself; nothing where there is none."""
    if not inspect(connection).has_table(tables.META.name):
        return {}
    return {row.name: row.value for row in connection.execute(select(tables.META))}
