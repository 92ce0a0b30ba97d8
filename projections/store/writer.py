"""A batch's changes and positions in one transaction, and the retention of rows.

One thread writes. Should a second process write the same database, its positions have moved on under us: the
transaction is refused and rolled back, so no event is ever folded into rows that another has folded already.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING

from sqlalchemy import and_, delete, insert, select

from projections.batch import PROJECTIONS
from projections.store import database, tables
from projections.store.dialect import begin_change, lookup, moves, upsert
from runtime.record import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from sqlalchemy import ColumnElement, Connection, Engine, Table

    from projections.batch import Changes
    from projections.projection import Key, Row

Positions = Mapping[TopicPartition, int]

# The runs of some seconds at full speed: their next events find the row here instead of in the database.
_ROWS_REMEMBERED = 20_000

_ONCE = {projection.table: projection.once for projection in PROJECTIONS}


class Overtaken(Exception):
    """Another writer has moved the positions of this database."""


class Writer:
    """The one writer of a read model. Calls from one thread."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._remembered: dict[str, OrderedDict[Key, Row]] = {name: OrderedDict() for name in tables.PROJECTED}

    def belong_to(self, source: Mapping[str, str], *, anew: bool) -> None:
        """Forget every row and position unless they came from this source; `anew` forgets them in any case."""
        database.belong_to(self._engine, source, anew=anew)
        self.forget()

    def positions(self) -> Positions:
        """The next offsets to read, as committed with the rows."""
        with self._engine.connect() as connection:
            rows = connection.execute(select(tables.POSITIONS)).all()
        return {TopicPartition(row.topic, row.partition): row.next_offset for row in rows}

    def load(self, table: str, keys: Collection[Key]) -> Mapping[Key, Row]:
        """The rows with these keys."""
        remembered = self._remembered[table]
        found = {key: remembered[key] for key in keys if key in remembered}
        missing = [key for key in keys if key not in found]
        if missing:
            with self._engine.connect() as connection:
                target = tables.PROJECTED[table]
                rows = lookup(target, connection.dialect).run(connection, missing)
                found.update((_key_of(target, row), row) for row in rows)
        return found

    def apply(self, changes: Changes, old: Positions, new: Positions) -> None:
        """Write all changes and the positions they came up to, or nothing."""
        try:
            with self._engine.begin() as connection:
                begin_change(connection)
                self._move(connection, old, new)
                for table, rows in changes.items():
                    statement = upsert(tables.PROJECTED[table], connection.dialect, once=_ONCE[table])
                    statement.run(connection, list(rows.values()))
        except BaseException:
            self.forget()
            raise
        for table, rows in changes.items():
            self._remember(table, rows)

    def forget(self) -> None:
        """Trust only the database from now on."""
        for rows in self._remembered.values():
            rows.clear()

    def _move(self, connection: Connection, old: Positions, new: Positions) -> None:
        first = [{"topic": at.topic, "partition": at.partition, "next_offset": new[at]} for at in new if at not in old]
        if first:
            connection.execute(insert(tables.POSITIONS), first)
        moved = [(*at, old[at], offset) for at, offset in new.items() if old.get(at, offset) != offset]
        if moved and moves(tables.POSITIONS, connection.dialect).run(connection, moved) != len(moved):
            raise Overtaken(f"another writer has moved one of {moved}")

    def _remember(self, table: str, rows: Mapping[Key, Row]) -> None:
        if _ONCE[table]:
            return
        remembered = self._remembered[table]
        for key, row in rows.items():
            remembered[key] = row
            remembered.move_to_end(key)
        while len(remembered) > _ROWS_REMEMBERED:
            remembered.popitem(last=False)

    def trim(self, *, history_before: datetime, commands_before: datetime, rows_max: int) -> int:
        """Delete what is older, at most `rows_max` runs and as many of each other kind; how many rows went."""
        with self._engine.begin() as connection:
            gone = _trim_runs(connection, history_before, rows_max)
            for table, old in _other_old_rows(history_before, commands_before):
                gone += _delete_some(connection, table, old, rows_max)
        if gone:
            self.forget()
        return gone


def _trim_runs(connection: Connection, before: datetime, rows_max: int) -> int:
    """Runs none of whose events is in the log any more, each with its attempts and its story."""
    runs = tables.RUNS
    old = (
        select(runs.c.tenant, runs.c.schedule, runs.c.run_id)
        .where(runs.c.created_at < before, runs.c.appended_at < before)
        .order_by(runs.c.created_at)
        .limit(rows_max)
    )
    gone = 0
    for tenant, schedule, run_id in connection.execute(old).all():
        for table in (tables.RUNS, tables.ATTEMPTS):
            where = (table.c.tenant == tenant, table.c.run_id == run_id)
            gone += connection.execute(delete(table).where(*where)).rowcount
        story = tables.STORY
        told = (story.c.tenant == tenant, story.c.schedule == schedule, story.c.run_id == run_id)
        gone += connection.execute(delete(story).where(*told)).rowcount
    return gone


def _other_old_rows(
    history_before: datetime, commands_before: datetime
) -> tuple[tuple[Table, ColumnElement[bool]], ...]:
    story, schedules, versions, activity = tables.STORY, tables.SCHEDULES, tables.VERSIONS, tables.ACTIVITY
    return (
        (tables.OCCURRENCES, tables.OCCURRENCES.c.appended_at < history_before),
        (tables.COMMANDS, tables.COMMANDS.c.appended_at < commands_before),
        (story, and_(story.c.run_id == "", story.c.appended_at < history_before)),
        (schedules, and_(schedules.c.state == "deleted", schedules.c.deleted_at < history_before)),
        (versions, versions.c.removed_at < history_before),
        (activity, activity.c.touched_at < history_before),
    )


def _delete_some(connection: Connection, table: Table, old: ColumnElement[bool], rows_max: int) -> int:
    keys = connection.execute(select(*table.primary_key).where(old).limit(rows_max)).all()
    for key in keys:
        connection.execute(delete(table).where(*_is(table, tuple(key))))
    return len(keys)


def _is(table: Table, key: Key) -> list[ColumnElement[bool]]:
    return [column == value for column, value in zip(table.primary_key, key, strict=True)]


def _key_of(table: Table, row: Row) -> Key:
    return tuple(row[column.name] for column in table.primary_key)
