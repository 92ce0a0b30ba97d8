"""A PostgreSQL that goes away, cuts connections or refuses a row costs time, and that row; never the others."""

from __future__ import annotations

import contextlib
import tempfile
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest

from projections import batch
from projections.projector import Limits, Projector
from projections.store import tables
from projections.store.database import open_database
from projections.store.reader import ALL, Reader, RunFilter
from projections.store.writer import Writer
from runtime.clock import SystemClock
from runtime.logs.simulated import SimulatedLog
from runtime.record import TopicPartition
from schemas import topics
from schemas.facts import CommandRejected, Position
from tests.projections import histories
from tests.projections.histories import at, created, records
from tests.projections.memory import as_read
from tests.projections.test_convergence import contents
from tests.projections.test_projector import SECONDS, some_runs
from tests.projections.test_sharing import rows_of_one
from tests.support.postgres import LocalServer, url_of
from tests.support.waiting import eventually

SOON = timedelta(milliseconds=20)
PLACE = TopicPartition(topics.RUN_EVENTS, 0)


@pytest.fixture
def log():
    log = SimulatedLog(7, SystemClock())
    histories.create_topics(log)
    yield log
    log.close()


@pytest.fixture
def server():
    """A server of our own, for it is treated badly."""
    server = LocalServer(Path(tempfile.mkdtemp(prefix="tidewheel-pg-")))
    server.create()
    yield server
    server.stop()
    server.remove()


@pytest.fixture
def projector(log, server):
    database = open_database(server.url)
    limits = Limits(records=9, linger=SOON, retry_after=SOON)
    projector = Projector(log=log, model=Writer(database), now=SystemClock().now, limits=limits)
    projector.start()
    yield projector
    assert projector.stop(SECONDS)
    database.dispose()


def test_a_server_that_dies_while_rows_are_written_loses_none_and_doubles_none(log, server, projector):
    assert not projector.ready(0.05)
    eventually(lambda: "OperationalError" in (projector.problem or ""), within=SECONDS, what="it says what is wrong")
    server.start()
    assert projector.ready(SECONDS), projector.problem
    for number in range(3):
        log.append(records(some_runs(number * 20, 10)))
        server.stop()
        log.append(records(some_runs(number * 20 + 10, 10)))
        server.start()
    assert projector.wait_until(log.end_offsets(projector.inputs()), SECONDS), projector.problem
    assert projector.problem is None
    rows = contents(projector._model._database)
    assert len(rows["runs"]) == 60
    assert rows == rows_of_one(log, server.new("calm"))


def test_a_reader_whose_connections_were_cut_answers_the_next_question(database_of_runs):
    url, reader = database_of_runs
    assert len(reader.runs(ALL, RunFilter()).rows) == 2
    with psycopg.connect(url, autocommit=True) as other:
        cut = other.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        assert cut.rowcount > 0
    assert len(reader.runs(ALL, RunFilter()).rows) == 2


@pytest.fixture
def database_of_runs(databases):
    url = databases.new()
    database = open_database(url)
    writer = Writer(database)
    writer.belong_to({}, anew=False)
    read = batch.read_all(as_read([created("report", 0), created("report", 60)]))
    writer.apply(batch.fold(read, writer.load), {}, {PLACE: 2})
    yield url, Reader(database)
    database.dispose()
    databases.empty()


def test_a_row_that_cannot_be_stored_costs_itself_and_is_named(database_of_runs, caplog):
    url, reader = database_of_runs
    refused = CommandRejected(
        tenant="acme", name="report", reason="invalid", faults=(), rejected_at=at(0), source="upstream",
        position=Position(topic="t", partition=0, offset=0),
        command_id="".join(chr(0x4E00 + n * 7 % 20_000) for n in range(5_000)),  # too long for any index, and dense
    )  # fmt: skip
    database = open_database(url)
    writer = Writer(database)
    read = batch.read_all(as_read([created("report", 120), refused, created("report", 180)]))
    writer.apply(batch.fold(read, writer.load), {PLACE: 2}, {PLACE: 5})
    assert len(reader.runs(ALL, RunFilter()).rows) == 4
    assert writer.positions() == {PLACE: 5}
    assert [record.getMessage()[:25] for record in caplog.records] == ["projection.unstorable: ('"]
    database.dispose()


def test_a_database_that_cannot_hold_every_text_is_refused_with_what_to_do(postgresql):
    with psycopg.connect(postgresql, autocommit=True) as connection:
        connection.execute("CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LOCALE_PROVIDER libc LOCALE 'C'")
        database = open_database(url_of(postgresql, "latin"))
        with pytest.raises(ValueError, match="the database is encoded in LATIN1; create it with ENCODING 'UTF8'"):
            database.belong_to({}, anew=False)
        database.dispose()
        connection.execute("DROP DATABASE latin")


def test_rows_that_somebody_has_thrown_away_are_built_again_under_the_running_projector(log, databases):
    url = databases.new()
    database = open_database(url)
    limits = Limits(linger=SOON, retry_after=SOON)
    projector = Projector(log=log, model=Writer(database), now=SystemClock().now, limits=limits)
    projector.start()
    try:
        log.append(records(some_runs(0, 10)))
        assert projector.wait_until(log.end_offsets(projector.inputs()), SECONDS)
        throw_away(url)
        log.append(records(some_runs(10, 1)))
        assert projector.wait_until(log.end_offsets(projector.inputs()), SECONDS)
        assert len(Reader(database).runs(ALL, RunFilter()).rows) == 11
    finally:
        assert projector.stop(SECONDS)
    database.dispose()
    databases.empty()


def throw_away(url: str) -> None:
    """Drop the tables; again when the projector was in the middle of them and the server chose us to give way."""
    while True:
        with psycopg.connect(url) as other, contextlib.suppress(psycopg.errors.DeadlockDetected):
            other.execute(f"DROP SCHEMA tidewheel_{tables.VERSION} CASCADE")
            return
