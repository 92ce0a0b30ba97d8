"""The tables of the read model. Instants are milliseconds since 1970, so that they order and compare everywhere.

A change here is a new VERSION, a layout of its own beside the one before: it is built from the log, and shown as soon
as it has come as far. META and POSITIONS never change: versions ask each other by them.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    Dialect,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    cast,
)
from sqlalchemy.dialects import postgresql

VERSION = 15
# The oldest layout whose tables today's questions can be asked of, while the rows of this one are still being built.
# A column more or less makes it VERSION; an index, or a fold that says something else, leaves it.
READABLE_SINCE = 15

METADATA = MetaData()


class Instant(TypeDecorator[datetime]):
    """An instant: milliseconds in the database, an aware UTC datetime for readers."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> int | None:  # noqa: ARG002 -- SQLAlchemy's signature
        """Datetimes of a reader's filter, integers of a fold."""
        return round(value.timestamp() * 1000) if isinstance(value, datetime) else value

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:  # noqa: ARG002 -- as above
        """What a reader sees."""
        return None if value is None else datetime.fromtimestamp(value / 1000, UTC)


# Ordered by its bytes, whatever language a database orders by: pages and ranges of run ids rest on that.
NAME = String(512).with_variant(postgresql.TEXT(collation="C"), "postgresql")


def _name(column: str, *, key: bool = False) -> Column[str]:
    return Column(column, NAME, primary_key=key, nullable=False)


def _text(column: str) -> Column[str]:
    return Column(column, Text)


def _at(column: str) -> Column[datetime]:
    return Column(column, Instant)


def _number(column: str) -> Column[int]:
    return Column(column, BigInteger)


# `sqlite_with_rowid=False`: small rows that are found by their key stand in the key's own tree.

META = Table("meta", METADATA, Column("name", String(64), primary_key=True), Column("value", Text, nullable=False))

POSITIONS = Table(
    "positions", METADATA,
    Column("topic", String(256), primary_key=True),
    Column("partition", Integer, primary_key=True, autoincrement=False),
    Column("next_offset", BigInteger, nullable=False),
)  # fmt: skip

SCHEDULES = Table(
    "schedules", METADATA,
    _name("tenant", key=True), _name("name", key=True), _number("version"), _name("state"), Column("labels", JSON),
    Column("definition", JSON), _at("effective_at"), _at("changed_at"), _text("tz_version"), _at("deleted_at"),
    Column("pause", JSON), _number("sequence"),
    sqlite_with_rowid=False,
)  # fmt: skip

VERSIONS = Table(
    "versions", METADATA,
    _name("tenant", key=True), _name("schedule", key=True),
    Column("version", Integer, primary_key=True, autoincrement=False), Column("definition", JSON),
    _at("effective_from"), _at("effective_to"), _text("tz_version"), _at("removed_at"), _number("sequence"),
    sqlite_with_rowid=False,
)  # fmt: skip

ACTIVITY = Table(
    "activity", METADATA,
    _name("tenant", key=True), _name("name", key=True), _text("created_run_id"), _at("created_nominal_time"),
    _at("created_at"), _text("finished_run_id"), _text("outcome"), _at("finished_at"), _at("touched_at"),
    sqlite_with_rowid=False,
)  # fmt: skip

OCCURRENCES = Table(
    "occurrences", METADATA,
    _name("tenant", key=True), _name("schedule", key=True), Column("nominal_from", Instant, primary_key=True),
    Column("decision", String(16), primary_key=True), Column("local_time", String(64), primary_key=True),
    _at("nominal_to"), _number("count"), _number("version"), _text("reason"), _at("decided_at"), _at("until"),
    _text("rule"), _text("tz_version"), _text("blocked_by"), _text("detail"), Column("used", JSON), _at("appended_at"),
    _at("since"), Index("occurrences_by_age", "appended_at"),
    sqlite_with_rowid=False,
)  # fmt: skip

RUNS = Table(
    "runs", METADATA,
    _name("tenant", key=True), _name("run_id", key=True), _name("schedule"), _name("state"), _number("version"),
    _text("cause"), _text("of"), _text("queue"), Column("labels", JSON), _at("nominal_time"), _at("created_at"),
    _at("due_at"), _at("deadline_at"), _at("started_at"), _at("finished_at"), _text("outcome"), _text("reason"),
    _number("attempts"), _number("handout"), _number("phase"), _text("worker"), _at("ended_at"),
    _number("retry_attempt"), _at("retry_at"), _text("waiting"), _at("waiting_since"), _at("waiting_at"),
    _at("waiting_until"), _at("cancel_requested_at"), Column("error", JSON), _at("error_at"), _text("rule"),
    _text("tz_version"), _text("backfill"), Column("used", JSON), _text("detail"), _at("appended_at"),
    _number("shard"), _at("start_by_at"),
    Index("runs_by_creation", "created_at", "run_id"),
    Index("runs_by_schedule", "tenant", "schedule", "created_at"),
    Index("runs_by_state", "state", "created_at"),
    sqlite_with_rowid=False,
)  # fmt: skip

ATTEMPTS = Table(
    "attempts", METADATA,
    _name("tenant", key=True), _name("run_id", key=True),
    Column("handout", BigInteger, primary_key=True, autoincrement=False), _number("attempt"), _text("state"),
    _text("worker"), _text("incarnation"), _at("handed_out_at"), _at("started_at"), _at("finished_at"),
    Column("counted", Boolean), Column("error", JSON), _text("log_check"), _at("appended_at"),
    sqlite_with_rowid=False,
)  # fmt: skip

# What a worker has in hand: few rows of all there are.
Index(
    "attempts_at_work", ATTEMPTS.c.incarnation,
    sqlite_where=ATTEMPTS.c.state == "running", postgresql_where=ATTEMPTS.c.state == "running",
)  # fmt: skip

BACKFILLS = Table(
    "backfills", METADATA,
    _name("tenant", key=True), _name("schedule", key=True), _name("id", key=True), _name("state"), _number("version"),
    _at("range_from"), _at("range_to"), _text("order"), _text("reprocess"), _number("max_active"), _text("rate"),
    _number("occurrences"), _at("started_at"), _text("by"), _text("note"), _number("decided"), Column("counts", JSON),
    _at("cursor"), _at("expected_at"), _at("told_at"), _at("finished_at"), _text("reason"), _at("appended_at"),
    Index("backfills_by_start", "started_at", "id"),
    sqlite_with_rowid=False,
)  # fmt: skip

# Not clustered: the events are large, and arrive in another order than they are asked for.
STORY = Table(
    "story", METADATA,
    _name("tenant", key=True), _name("schedule", key=True), _name("run_id", key=True), _name("id", key=True),
    _number("offset"), _at("appended_at"), Column("event", Text, nullable=False),
)  # fmt: skip
# Those of runs go with their run; only those of schedules are looked for by age.
Index(
    "story_of_schedules_by_age", STORY.c.appended_at,
    sqlite_where=STORY.c.run_id == "", postgresql_where=STORY.c.run_id == "",
)  # fmt: skip

# Not clustered: rows are large, and are asked for in the order of the log, which is not that of their keys.
LOGS = Table(
    "logs", METADATA,
    Column("check", String(32), primary_key=True), Column("line", Integer, primary_key=True, autoincrement=False),
    _number("offset"), Column("lines", Text, nullable=False), _at("expires_at"), _at("appended_at"),
    Index("logs_by_offset", "check", "offset"),
    Index("logs_by_age", "appended_at"),
    Index("logs_by_end", "expires_at"),
)  # fmt: skip

COMMANDS = Table(
    "commands", METADATA,
    _name("command_id", key=True), _name("tenant", key=True), _name("name", key=True), _text("source"),
    _name("outcome"), _at("answered_at"), Column("told", JSON), _at("appended_at"),
    Index("commands_by_age", "appended_at"),
    sqlite_with_rowid=False,
)  # fmt: skip

CATALOG = Table(
    "catalog", METADATA,
    _name("kind", key=True), _name("tenant", key=True), _name("name", key=True), _number("version"),
    Column("definition", JSON), _at("changed_at"), _number("sequence"),
    sqlite_with_rowid=False,
)  # fmt: skip

WORKERS = Table(
    "workers", METADATA,
    _name("queue", key=True), Column("shard", Integer, primary_key=True, autoincrement=False),
    _name("incarnation", key=True), _name("worker"), Column("draining", Boolean), _number("slots_total"),
    _number("stuck"), Column("tasks", JSON), _text("client"), _text("transport"), _at("heard_at"), _at("gone_at"),
    _at("appended_at"), _number("sequence"),
    sqlite_with_rowid=False,
)  # fmt: skip

BREAKERS = Table(
    "breakers", METADATA,
    _name("tenant", key=True), _name("queue", key=True),
    Column("shard", Integer, primary_key=True, autoincrement=False), _name("breaker", key=True), _name("state"),
    _text("reason"), _at("changed_at"), _at("since"), _at("until"), _number("failures"), _number("ended"),
    _text("run_id"), Column("error", JSON), _text("by"), _text("note"), _at("appended_at"),
    sqlite_with_rowid=False,
)  # fmt: skip

CHANGES = Table(
    "changes", METADATA,
    _name("kind", key=True), _name("tenant", key=True), _name("name", key=True),
    Column("version", Integer, primary_key=True, autoincrement=False), Column("definition", JSON), _at("changed_at"),
    _text("by"), _text("note"), _text("source"), _text("command_id"), _at("appended_at"),
    Index("changes_by_age", "appended_at"),
    sqlite_with_rowid=False,
)  # fmt: skip

# The tables that folds make rows of.
PROJECTED = {
    table.name: table
    for table in (
        SCHEDULES, VERSIONS, ACTIVITY, OCCURRENCES, RUNS, ATTEMPTS, BACKFILLS, STORY, LOGS, COMMANDS, CATALOG, WORKERS,
        BREAKERS, CHANGES,
    )
}  # fmt: skip


def naming(upstream: str | None) -> tuple[ColumnElement[bool], ...]:
    """That a schedule's definition names another one in `after`; nothing where none is asked for."""
    if upstream is None:
        return ()
    return (cast(SCHEDULES.c.definition, Text).contains(f'"schedule":"{upstream}"', autoescape=True),)
