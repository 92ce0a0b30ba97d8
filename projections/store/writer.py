"""A batch's changes and positions in one transaction, and the retention of rows.

Several processes may write the same database; one transaction after another. Should another have moved the positions
since our batch was read, the transaction is refused and rolled back, so no event is ever folded into rows that another
has folded already.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from sqlalchemy import and_, bindparam, delete, select
from sqlalchemy.exc import DBAPIError

from projections.batch import LOG_PROJECTIONS, PROJECTIONS
from projections.store import tables
from projections.store.database import positions_of
from runtime.record import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from sqlalchemy import ColumnElement, Connection, Table

    from projections.batch import Changes
    from projections.projection import Key, Row
    from projections.store.database import Database
    from projections.store.dialect import Upsert

Positions = Mapping[TopicPartition, int]

# The runs of some seconds at full speed: their next events find the row here instead of in the database.
_ROWS_REMEMBERED = 20_000

_ONCE = {projection.table: projection.once for projection in (*PROJECTIONS, *LOG_PROJECTIONS)}

_log = logging.getLogger("tidewheel.projections")


class Overtaken(Exception):
    """Another writer has moved the positions of this database."""


class _Remembered:
    """The rows of one table as they were last written: those of late, and those before them, until these are as many.

    Two halves instead of an order among all: a row is looked up and put down without a word about its neighbours.
    """

    __slots__ = ("_before", "_late")

    def __init__(self) -> None:
        self._late: dict[Key, Row] = {}
        self._before: dict[Key, Row] = {}

    def those_of(self, keys: Collection[Key]) -> dict[Key, Row]:
        """The rows of these keys, as far as they are remembered."""
        found = {key: row for key in keys if (row := self._late.get(key)) is not None}
        if self._before and len(found) < len(keys):
            for key in keys:
                if key not in found and (row := self._before.get(key)) is not None:
                    found[key] = row
        return found

    def add(self, rows: Mapping[Key, Row]) -> None:
        """These are written now."""
        self._late.update(rows)
        if len(self._late) > _ROWS_REMEMBERED // 2:
            self._before, self._late = self._late, {}

    def forget(self) -> None:
        """None of them is certain."""
        self._late, self._before = {}, {}


class Writer:
    """A writer of a read model. Calls from one thread."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._dialect = database.dialect
        self._remembered = {name: _Remembered() for name in tables.PROJECTED}

    def belong_to(self, source: Mapping[str, str], *, anew: bool) -> None:
        """Forget every row and position unless they came from this source; `anew` forgets them in any case."""
        self._database.belong_to(source, anew=anew)
        self.forget()

    def positions(self) -> Positions:
        """The next offsets to read, as committed with the rows."""
        with self._database.connect() as connection:
            return positions_of(connection)

    def load(self, table: str, keys: Collection[Key]) -> Mapping[Key, Row]:
        """The rows with these keys."""
        found = self._remembered[table].those_of(keys)
        missing = [key for key in keys if key not in found] if len(found) < len(keys) else []
        if missing:
            with self._database.connect() as connection:
                target = tables.PROJECTED[table]
                rows = self._dialect.lookup(target).run(connection, missing)
                found.update((_key_of(target, row), row) for row in rows)
        return found

    def apply(self, changes: Changes, old: Positions, new: Positions) -> None:
        """Write all changes and the positions they came up to, or nothing. `Overtaken` if others wrote since."""
        try:
            self._apply(changes, old, new, _together)
        except DBAPIError as error:
            self.forget()
            if not self._dialect.refuses(error):
                raise
            self._apply(changes, old, new, self._one_by_one)
        except BaseException:
            self.forget()
            raise
        for table, rows in changes.items():
            if not _ONCE[table]:
                self._remembered[table].add(rows)

    def forget(self) -> None:
        """Trust only the database from now on."""
        for rows in self._remembered.values():
            rows.forget()

    def _apply(self, changes: Changes, old: Positions, new: Positions, write: _Write) -> None:
        with self._database.change() as connection:
            self._move(connection, old, new)
            for table, rows in changes.items():
                upsert = self._dialect.upsert(tables.PROJECTED[table], once=_ONCE[table])
                write(connection, upsert, rows)
            self._database.settle(connection)

    def _move(self, connection: Connection, old: Positions, new: Positions) -> None:
        found = self._dialect.lookup(tables.POSITIONS).run(connection, [tuple(place) for place in new])
        stood = {TopicPartition(row["topic"], row["partition"]): row["next_offset"] for row in found}
        others = [str(tuple(place)) for place in new if stood.get(place) != old.get(place)]
        if others:
            raise Overtaken(f"another writer has moved {', '.join(others[:3])}")
        moved = [
            {"topic": place.topic, "partition": place.partition, "next_offset": offset}
            for place, offset in new.items()
            if old.get(place) != offset
        ]
        if moved:
            self._dialect.upsert(tables.POSITIONS, once=False).run(connection, moved)

    def _one_by_one(self, connection: Connection, upsert: Upsert, rows: Mapping[Key, Row]) -> None:
        """A row that the database cannot keep costs itself, and is named in the log."""
        for key, row in rows.items():
            try:
                with connection.begin_nested():
                    upsert.run(connection, [row])
            except DBAPIError as error:
                if not self._dialect.refuses(error):
                    raise
                _log.error("projection.unstorable: %.200s: %s", key, error.orig)

    def trim(
        self, *, history_before: datetime, commands_before: datetime, workers_before: datetime, rows_max: int
    ) -> int:
        """Delete what is older, at most `rows_max` runs and as many of each other kind; how many rows went.

        Layouts that are done with go too.
        """
        with self._database.change() as connection:
            gone = _trim_runs(connection, history_before, rows_max)
            for table, old in _other_old_rows(history_before, commands_before, workers_before):
                gone += _delete_some(connection, table, old, rows_max)
            self._database.settle(connection)
        self._database.retire()
        if gone:
            self.forget()
        return gone

    def trim_logs(self, *, before: datetime, now: datetime, rows_max: int) -> int:
        """Delete logs that are older than the topic keeps them, or that their job wants gone by now; how many rows."""
        logs = tables.LOGS
        with self._database.change() as connection:
            gone = _delete_some(connection, logs, logs.c.appended_at < before, rows_max)
            return gone + _delete_some(connection, logs, logs.c.expires_at <= now, rows_max)


def _trim_runs(connection: Connection, before: datetime, rows_max: int) -> int:
    """Runs none of whose events is in the log any more, each with its attempts and its story."""
    runs = tables.RUNS
    old = (
        select(runs.c.tenant, runs.c.schedule, runs.c.run_id)
        .where(runs.c.created_at < before, runs.c.appended_at < before)
        .order_by(runs.c.created_at)
        .limit(rows_max)
    )
    found = [row._asdict() for row in connection.execute(old)]
    gone = _delete(connection, tables.RUNS, found, ("tenant", "run_id"))
    gone += _delete(connection, tables.ATTEMPTS, found, ("tenant", "run_id"))
    return gone + _delete(connection, tables.STORY, found, ("tenant", "schedule", "run_id"))


def _other_old_rows(
    history_before: datetime, commands_before: datetime, workers_before: datetime
) -> tuple[tuple[Table, ColumnElement[bool]], ...]:
    backfills = tables.BACKFILLS.c
    story, schedules, versions, activity = tables.STORY, tables.SCHEDULES, tables.VERSIONS, tables.ACTIVITY
    return (
        (tables.OCCURRENCES, tables.OCCURRENCES.c.appended_at < history_before),
        (tables.BACKFILLS, and_(backfills.finished_at.is_not(None), backfills.appended_at < history_before)),
        (tables.COMMANDS, tables.COMMANDS.c.appended_at < commands_before),
        (story, and_(story.c.run_id == "", story.c.appended_at < history_before)),
        (schedules, and_(schedules.c.state == "deleted", schedules.c.deleted_at < history_before)),
        (versions, versions.c.removed_at < history_before),
        (activity, activity.c.touched_at < history_before),
        (
            tables.BREAKERS,
            and_(tables.BREAKERS.c.state == "closed", tables.BREAKERS.c.appended_at < history_before),
        ),
        (tables.WORKERS, tables.WORKERS.c.appended_at < workers_before),
        (tables.CHANGES, tables.CHANGES.c.appended_at < history_before),
    )


def _delete_some(connection: Connection, table: Table, old: ColumnElement[bool], rows_max: int) -> int:
    keys = connection.execute(select(*table.primary_key).where(old).limit(rows_max))
    return _delete(connection, table, [key._asdict() for key in keys], [key.name for key in table.primary_key])


def _delete(connection: Connection, table: Table, found: Sequence[Row], by: Sequence[str]) -> int:
    """The rows that are equal to one of those found by some columns, in one call of the driver; how many went."""
    if not found:
        return 0
    statement = delete(table).where(*(table.c[name] == bindparam(f"old_{name}") for name in by))
    return connection.execute(statement, [{f"old_{name}": row[name] for name in by} for row in found]).rowcount


def _key_of(table: Table, row: Row) -> Key:
    return tuple(row[column.name] for column in table.primary_key)


_Write = Callable[["Connection", "Upsert", Mapping["Key", "Row"]], None]


def _together(connection: Connection, upsert: Upsert, rows: Mapping[Key, Row]) -> None:
    upsert.run(connection, list(rows.values()))
