"""The questions. Each is asked within a scope, and the tenant's predicate is put in at one place, for all of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import orjson
from sqlalchemy import and_, case, func, or_, select, tuple_
from sqlalchemy.exc import OperationalError

from projections import commands, runs, schedules
from projections.logs import RECORD_LINES_MAX
from projections.store import paging, tables
from projections.store.database import positions_of
from projections.store.paging import Order, Page
from schemas import identity
from schemas.facts import BreakerState, Cause

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Select

    from projections.store.database import Database
    from runtime.record import TopicPartition

Row = dict[str, Any]

OPEN_STATES = (runs.QUEUED, runs.RUNNING, runs.RETRY_WAIT)
OPEN_BACKFILLS = ("running", "paused", "cancelling")
BACKFILL_STATES = (*OPEN_BACKFILLS, "completed", "cancelled")
UNCOUNTED = (Cause.MANUAL, Cause.BACKFILL, Cause.RERUN)  # runs that use up none of those that a schedule may have
ATTEMPTS_MAX = 1_000  # of one run whose logs are looked for
OCCURRENCES_MAX = 1_000
AGAIN_MAX = 1_000  # runs of the runs of one page: far more than anyone asks for by hand
VERSIONS_MAX = 200
AT_WORK_MAX = 20  # attempts of one worker that are shown; how many there are is said in any case

# How a worker stands.
WORKER_STATES = (PRESENT, DRAINING, SILENT, GONE) = ("present", "draining", "silent", "gone")
LOG_RECORDS_MAX = 64  # looked at for one page: some megabytes at most
LOG_LINES_MAX = 2_000  # of a page
LINE_LAST = 2**53  # behind every line of a record
OFFSET_MAX = 2**63 - 1


class RowsAway(Exception):
    """The database cannot be asked at present."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Whose rows may be seen: those of one tenant, or (None) of all."""

    tenant: str | None


ALL = Scope(tenant=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFilter:
    """Which runs are asked for; what is left out does not matter. Instants are half-open, of the creation."""

    schedule: str | None = None
    states: tuple[str, ...] = ()
    from_: datetime | None = None
    to: datetime | None = None
    labels: Mapping[str, str] | None = None
    queue: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Nominal times in [from, to), and how many of them: the oldest, or the newest."""

    from_: datetime
    to: datetime
    limit: int
    newest: bool = False

    def part_of(self, query: Select[Any], column: ColumnElement[Any]) -> Select[Any]:
        """As many as are wanted, in their order."""
        return query.order_by(column.desc() if self.newest else column).limit(min(self.limit, OCCURRENCES_MAX))


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFilter:
    """Which lines of a run are asked for; `since` by the worker's clock. What is over by `now` is not shown."""

    now: datetime
    kept_since: datetime
    attempt: int | None = None
    streams: tuple[str, ...] = ()
    since: datetime | None = None
    newest: bool = False  # the last lines there are, and not the first behind the cursor


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPage:
    """Lines, how far they were looked for (the cursor of what follows), and whether there is more already."""

    lines: Sequence[Row]
    cursor: str
    more: bool


class Reader:
    """Answers from the read model, from any thread."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def positions(self) -> Mapping[TopicPartition, int]:
        """Everything before them is in the rows that are shown."""
        with self._database.show() as connection:
            return positions_of(connection)

    # --- schedules ------------------------------------------------------------------------------------------------

    def schedule(self, scope: Scope, name: str) -> Row | None:
        """One schedule with what it did last; a deleted one too, for as long as it is remembered."""
        query = _within(scope, _schedules()).where(tables.SCHEDULES.c.name == name)
        return self._one(query)

    def schedules(
        self, scope: Scope, *, state: str | None = None, labels: Mapping[str, str] | None = None,
        cursor: str | None = None, limit: int | None = None, after: str | None = None,
    ) -> Page:  # fmt: skip
        """Schedules in order of their names; deleted ones only where that is asked for. `after`: that name this one."""
        table = tables.SCHEDULES
        query = _within(scope, _schedules())
        query = query.where(table.c.state == state if state else table.c.state != schedules.DELETED)
        labelled = (table.c.labels[key].as_string() == value for key, value in (labels or {}).items())
        query = query.where(*labelled, *tables.naming(after))
        return self._page(query, (Order(column=table.c.tenant), Order(column=table.c.name)), cursor, limit)

    def timezones(self, names: Collection[tuple[str, str]]) -> Mapping[tuple[str, str], str]:
        """The zones of schedules, given as (tenant, name); those that were never seen have none."""
        table = tables.SCHEDULES
        zone = table.c.definition[("trigger", "timezone")].as_string().label("zone")
        wanted = tuple_(table.c.tenant, table.c.name).in_(sorted(names))
        rows = self._all(select(table.c.tenant, table.c.name, zone).where(wanted)) if names else ()
        return {(row["tenant"], row["name"]): row["zone"] or "UTC" for row in rows}

    def versions(self, scope: Scope, schedule: str) -> Sequence[Row]:
        """The newest versions of a schedule, newest first."""
        table = tables.VERSIONS
        query = _within(scope, select(table)).where(table.c.schedule == schedule, table.c.removed_at.is_(None))
        return self._all(query.order_by(table.c.version.desc()).limit(VERSIONS_MAX))

    def tenants(self) -> Sequence[Row]:
        """Every tenant that has a schedule or is declared: how many schedules, which version of its definition."""
        table = tables.SCHEDULES
        query = select(table.c.tenant.label("name"), func.count().label("schedules"))
        alive = query.where(table.c.state != schedules.DELETED)
        found = self._all(alive.group_by(table.c.tenant).order_by(table.c.tenant).limit(paging.LIMIT_MAX))
        declared = {row["tenant"]: row["version"] for row in self.entries(ALL, "tenant", limit=paging.LIMIT_MAX).rows}
        rows = {name: {"name": name, "schedules": 0} for name in declared} | {row["name"]: row for row in found}
        return [
            {**rows[name], **({"version": declared[name]} if name in declared else {})}
            for name in sorted(rows)[: paging.LIMIT_MAX]
        ]

    def count_schedules(self, scope: Scope, *, but: str) -> int:
        """How many schedules there are, one by its name not counted."""
        table = tables.SCHEDULES
        query = _within(scope, select(table)).where(table.c.state != schedules.DELETED, table.c.name != but)
        (row,) = self._all(query.with_only_columns(func.count().label("count")))
        return int(row["count"])

    # --- occurrences ----------------------------------------------------------------------------------------------

    def created(self, scope: Scope, schedule: str, span: Span) -> Sequence[Row]:
        """The runs of the occurrences in a span, by nominal time, found by the id that follows from it."""
        table = tables.RUNS
        first, last = f"{schedule}.{span.from_:%Y%m%dT%H%M%SZ}", f"{schedule}.{span.to:%Y%m%dT%H%M%SZ}"
        query = _within(scope, select(table)).where(
            table.c.run_id >= first, table.c.run_id <= last, table.c.schedule == schedule,
            table.c.nominal_time >= span.from_, table.c.nominal_time < span.to,
        )  # fmt: skip
        return self._all(span.part_of(query, table.c.run_id))

    def counted(self, scope: Scope, schedule: str, *, since_version: int) -> int:
        """How many runs of occurrences the versions from one on have had, as far back as runs are kept."""
        table = tables.RUNS
        query = _within(scope, select(table)).where(
            table.c.schedule == schedule, table.c.version >= since_version,
            table.c.nominal_time.is_not(None), table.c.cause.not_in(UNCOUNTED),
        )  # fmt: skip
        found = self._one(select(func.count().label("runs")).select_from(query.subquery()))
        return 0 if found is None else int(found["runs"])

    def followed(self, scope: Scope, schedule: str, span: Span) -> Sequence[Row]:
        """The runs that followed runs of other schedules, created in a span."""
        table = tables.RUNS
        query = _within(scope, select(table)).where(
            table.c.schedule == schedule, table.c.cause == Cause.DEPENDENCY,
            table.c.created_at >= span.from_, table.c.created_at < span.to,
        )  # fmt: skip
        return self._all(span.part_of(query, table.c.created_at))

    def undone(self, scope: Scope, schedule: str, span: Span, *, own: bool = False) -> Sequence[Row]:
        """Skips, ranges of them, dropped readings and deferrals that touch a span.

        `own`: without what runs of other schedules would have led to, which no occurrence waits for.
        """
        table = tables.OCCURRENCES
        within = and_(table.c.nominal_from >= span.from_, table.c.nominal_from < span.to)
        reaching = and_(table.c.nominal_from < span.from_, table.c.nominal_to > span.from_)
        query = _within(scope, select(table)).where(table.c.schedule == schedule, or_(within, reaching))
        if own:
            query = query.where(table.c.local_time.not_like("d-%"))
        return self._all(span.part_of(query, table.c.nominal_from))

    # --- backfills ------------------------------------------------------------------------------------------------

    def backfill(self, scope: Scope, schedule: str, backfill_id: str) -> Row | None:
        """One backfill, under way or over."""
        table = tables.BACKFILLS
        return self._one(
            _within(scope, select(table)).where(table.c.schedule == schedule, table.c.id == backfill_id)
        )  # fmt: skip

    def backfills(
        self, scope: Scope, *, schedule: str | None = None, state: str | None = None, cursor: str | None = None,
        limit: int | None = None,
    ) -> Page:  # fmt: skip
        """Backfills, the newest first."""
        table = tables.BACKFILLS
        query = _within(scope, select(table)).where(table.c.started_at.is_not(None))
        if schedule is not None:
            query = query.where(table.c.schedule == schedule)
        if state is not None:
            query = query.where(table.c.state == state)
        order = (
            Order(column=table.c.started_at, descending=True), Order(column=table.c.id, descending=True),
            Order(column=table.c.tenant, descending=True), Order(column=table.c.schedule, descending=True),
        )  # fmt: skip
        return self._page(query, order, cursor, limit)

    def backfills_left(self) -> Mapping[str, tuple[int, int]]:
        """By state: backfills that are not over, and the occurrences that they have still to decide."""
        table = tables.BACKFILLS
        left = func.sum(table.c.occurrences - func.coalesce(table.c.decided, 0)).label("left")
        query = select(table.c.state, func.count().label("count"), left)
        still = query.where(table.c.state.in_(OPEN_BACKFILLS), table.c.started_at.is_not(None))
        return {row["state"]: (int(row["count"]), int(row["left"])) for row in self._all(still.group_by(table.c.state))}

    # --- runs -----------------------------------------------------------------------------------------------------

    def runs(
        self, scope: Scope, wanted: RunFilter, *, cursor: str | None = None, limit: int | None = None,
        newest: bool = True,
    ) -> Page:  # fmt: skip
        """Runs by when they were created, the newest first or the oldest."""
        table = tables.RUNS
        query = _within(scope, select(table))
        if wanted.schedule is not None:
            query = query.where(table.c.schedule == wanted.schedule)
        if wanted.queue is not None:
            query = query.where(table.c.queue == wanted.queue)
        if wanted.states:
            query = query.where(table.c.state.in_(wanted.states))
        if wanted.from_ is not None:
            query = query.where(table.c.created_at >= wanted.from_)
        if wanted.to is not None:
            query = query.where(table.c.created_at < wanted.to)
        query = query.where(*(table.c.labels[key].as_string() == value for key, value in (wanted.labels or {}).items()))
        order = (
            Order(column=table.c.created_at, descending=newest), Order(column=table.c.run_id, descending=newest),
            Order(column=table.c.tenant, descending=newest),
        )  # fmt: skip
        return self._page(query, order, cursor, limit)

    def run(self, scope: Scope, run_id: str) -> Row | None:
        """One run."""
        return self._one(_within(scope, select(tables.RUNS)).where(tables.RUNS.c.run_id == run_id))

    def again(self, scope: Scope, run_ids: Collection[str]) -> Sequence[Row]:
        """The runs `of` these, the oldest first: reruns, redrives, and occurrences that a backfill ran again."""
        table = tables.RUNS
        owners = sorted({identity.schedule_of(run_id) for run_id in run_ids})
        if not owners:
            return ()
        # Their ids begin alike: so they are found among the keys, without an index of their own.
        named = (and_(table.c.run_id >= f"{owner}.r-", table.c.run_id < f"{owner}.r.") for owner in owners)
        query = _within(scope, select(table)).where(or_(*named), table.c.of.in_(sorted(run_ids)))
        return self._all(query.order_by(table.c.created_at).limit(AGAIN_MAX))

    def attempts(self, scope: Scope, run_id: str) -> Sequence[Row]:
        """Its first hand-outs in order, for its logs; `history` has them all, in pages."""
        table = tables.ATTEMPTS
        query = _within(scope, select(table)).where(table.c.run_id == run_id)
        return self._all(query.order_by(table.c.handout).limit(ATTEMPTS_MAX))

    def log(self, scope: Scope, run_id: str, wanted: LogFilter, *, cursor: str | None, limit: int | None) -> LogPage:
        """What its attempts wrote, in the order in which it came, from behind a cursor.

        Only records that have the check of one of its attempts count, and each line of an attempt once.
        """
        after = _log_cursor(cursor)
        attempts = {
            row["log_check"]: row for row in self.attempts(scope, run_id) if wanted.attempt in (None, row["attempt"])
        }
        attempts.pop("", None)  # its owner was of a version that knew no logs
        table = tables.LOGS
        living = or_(table.c.expires_at.is_(None), table.c.expires_at > wanted.now)
        query = select(table).where(
            table.c.check.in_(sorted(attempts)),
            table.c.offset >= min(after[0], OFFSET_MAX),
            table.c.appended_at >= wanted.kept_since,
            living,
        )
        order = table.c.offset.desc() if wanted.newest else table.c.offset
        records = self._all(query.order_by(order).limit(LOG_RECORDS_MAX)) if attempts else []
        size = paging.bounded(limit, LOG_LINES_MAX)
        if wanted.newest:
            page = _log_page(records[::-1], attempts, wanted, after, LOG_RECORDS_MAX * RECORD_LINES_MAX)
            return replace(page, lines=page.lines[-size:], more=False)
        return _log_page(records, attempts, wanted, after, size)

    def log_attempts(self, run_ids: Collection[str], checks: Collection[str]) -> Sequence[Row]:
        """Hand-outs of some runs, of whatever tenant, and those whose logs have these checks."""
        table = tables.ATTEMPTS
        query = select(table.c.tenant, table.c.run_id, table.c.handout, table.c.attempt, table.c.log_check)
        named = or_(table.c.run_id.in_(sorted(run_ids)), table.c.log_check.in_(sorted(checks)))
        return self._all(query.where(named).limit(ATTEMPTS_MAX)) if run_ids or checks else ()

    def counts(self, scope: Scope, since: datetime) -> Mapping[str, int]:
        """How many runs are open, and how many ended how since an instant, by state."""
        table = tables.RUNS
        recent = or_(table.c.state.in_(OPEN_STATES), table.c.created_at >= since)
        query = (
            _within(scope, select(table)).with_only_columns(table.c.state, func.count().label("count")).where(recent)
        )
        return {row["state"]: row["count"] for row in self._all(query.group_by(table.c.state))}

    def breakers(
        self, scope: Scope, *, queue: str | None = None, state: str | None = None, cursor: str | None = None,
        limit: int | None = None,
    ) -> Page:  # fmt: skip
        """Breakers by tenant, queue and name; closed ones only where that state is asked for."""
        table = tables.BREAKERS
        query = _within(scope, select(table))
        query = query.where(table.c.state == state if state else table.c.state != BreakerState.CLOSED.value)
        if queue is not None:
            query = query.where(table.c.queue == queue)
        columns = (table.c.tenant, table.c.queue, table.c.breaker, table.c.shard)
        return self._page(query, tuple(Order(column=column) for column in columns), cursor, limit)

    # --- commands, jobs -------------------------------------------------------------------------------------------

    def command(self, scope: Scope, command_id: str, source: str) -> Row | None:
        """What became of a command that `source` sent."""
        table = tables.COMMANDS
        query = _within(scope, select(table)).where(table.c.command_id == command_id)
        sent = or_(table.c.source == source, and_(table.c.source == "", table.c.outcome == commands.ACCEPTED))
        return self._one(query.where(sent).order_by(table.c.answered_at).limit(1))

    def entry(self, scope: Scope, kind: str, name: str) -> Row | None:
        """One reference definition."""
        table = tables.CATALOG
        query = _within(scope, select(table)).where(table.c.kind == kind, table.c.name == name)
        return self._one(query.where(table.c.definition.is_not(None)))

    def entries(self, scope: Scope, kind: str, *, cursor: str | None = None, limit: int | None = None) -> Page:
        """Reference definitions of a kind in order of their names."""
        table = tables.CATALOG
        query = _within(scope, select(table)).where(table.c.kind == kind, table.c.definition.is_not(None))
        return self._page(query, (Order(column=table.c.tenant), Order(column=table.c.name)), cursor, limit)

    # --- workers --------------------------------------------------------------------------------------------------

    def workers(
        self, *, heard_since: datetime, queue: str | None = None, state: str | None = None, worker: str | None = None,
        cursor: str | None = None, limit: int | None = None,
    ) -> Page:  # fmt: skip
        """Workers by queue and name, or an incarnation of one; those that are gone only where that is asked for.

        One that stands as present or draining and was not heard of since `heard_since` is silent: its queue's owner
        has not missed it yet, or is away itself.
        """
        table = tables.WORKERS
        state_ = case(
            (table.c.gone_at.is_not(None), GONE), (table.c.heard_at < heard_since, SILENT),
            (table.c.draining, DRAINING), else_=PRESENT,
        )  # fmt: skip
        query = select(table, state_.label("state"))
        query = query.where(state_ == state if state else table.c.gone_at.is_(None))
        if queue is not None:
            query = query.where(table.c.queue == queue)
        if worker is not None:
            query = query.where(or_(table.c.worker == worker, table.c.incarnation == worker))
        order = tuple(
            Order(column=column) for column in (table.c.queue, table.c.worker, table.c.incarnation, table.c.shard)
        )
        return self._page(query, order, cursor, limit)

    def at_work(self, scope: Scope, incarnations: Collection[str]) -> Sequence[Row]:
        """What workers have in hand, the oldest first, of each so many as are shown; `count` says how many they are."""
        table = tables.ATTEMPTS
        oldest = (table.c.handed_out_at, table.c.handout)
        place = func.row_number().over(partition_by=table.c.incarnation, order_by=oldest).label("place")
        count = func.count().over(partition_by=table.c.incarnation).label("count")
        query: Select[Any] = _within(scope, select(*table.c, place, count))
        working = query.where(table.c.state == "running", table.c.incarnation.in_(sorted(incarnations))).subquery()
        shown = select(working).where(working.c.place <= AT_WORK_MAX)
        return self._all(shown.order_by(working.c.incarnation, working.c.place)) if incarnations else ()

    # --- asking ---------------------------------------------------------------------------------------------------

    def _one(self, query: Select[Any]) -> Row | None:
        rows = self._all(query)
        return rows[0] if rows else None

    def _all(self, query: Select[Any]) -> list[Row]:
        try:
            with self._database.show() as connection:
                return [dict(row) for row in connection.execute(query).mappings()]
        except OperationalError as error:
            if error.statement is None or error.connection_invalidated:  # there was no connection, or it is no more
                raise RowsAway(str(error.orig)) from error
            raise

    def _page(self, query: Select[Any], order: Sequence[Order], cursor: str | None, limit: int | None) -> Page:
        if cursor is not None:
            query = query.where(paging.after(order, paging.read(cursor, [each.kind for each in order])))
        size = paging.bounded(limit)
        rows = self._all(query.order_by(*(each.clause() for each in order)).limit(size + 1))
        return Page(rows=rows[:size], order=order, more=len(rows) > size)


def _schedules() -> Select[Any]:
    """Schedules with what they did last."""
    schedule, activity = tables.SCHEDULES, tables.ACTIVITY
    last = {
        "last_run_id": activity.c.created_run_id,
        "last_created_at": activity.c.created_at,
        "last_nominal_time": activity.c.created_nominal_time,
        "last_finished_run_id": activity.c.finished_run_id,
        "last_outcome": activity.c.outcome,
        "last_finished_at": activity.c.finished_at,
    }
    same = and_(schedule.c.tenant == activity.c.tenant, schedule.c.name == activity.c.name)
    return select(schedule, *(column.label(name) for name, column in last.items())).outerjoin(activity, same)


def _log_cursor(cursor: str | None) -> tuple[int, ...]:
    """Behind which record and line of it."""
    if cursor is None:
        return -1, -1
    return tuple(paging.read(cursor, (int, int)))


def _log_page(
    records: Sequence[Row], attempts: Mapping[str, Row], wanted: LogFilter, after: tuple[int, ...], limit: int
) -> LogPage:  # fmt: skip
    lines: list[Row] = []
    written: dict[str, int] = {}  # the next line of each attempt: a record may overlap the one before
    for record in records:
        attempt = attempts[record["check"]]
        for line in orjson.loads(record["lines"]):
            place = (record["offset"], line["line"])
            if place <= after or line["line"] < written.get(record["check"], 0):
                continue
            if len(lines) >= limit:
                return LogPage(lines=lines, cursor=paging.write(after), more=True)
            after, written[record["check"]] = place, line["line"] + 1
            at = datetime.fromisoformat(line["at"]).astimezone(UTC)
            if (not wanted.streams or line["stream"] in wanted.streams) and (
                wanted.since is None or at >= wanted.since
            ):
                lines.append({**line, "at": at, "attempt": attempt["attempt"], "handout": attempt["handout"]})
        after = max(after, (record["offset"], LINE_LAST))  # also where it told nothing new
    return LogPage(lines=lines, cursor=paging.write(after), more=len(records) == LOG_RECORDS_MAX)


def _within(scope: Scope, query: Select[Any]) -> Select[Any]:
    """The one place where a tenant sees only its own."""
    if scope.tenant is None:
        return query
    tenant: ColumnElement[str] = query.selected_columns["tenant"]
    return query.where(tenant == scope.tenant)
