"""The rows are a function of which events happened: not of batches, restarts, or how often an event was read."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from projections import batch
from projections.store import tables
from projections.store.database import Database, open_database
from projections.store.writer import Writer
from runtime.record import Record, TopicPartition
from schemas import topics
from schemas.facts import (
    AttemptOutcome,
    DeferReason,
    Fact,
    OccurrenceDeferred,
    OccurrenceSkipped,
    Outcome,
    RunCancelRequested,
    RunDeferReason,
    RunDeferred,
    SkipReason,
)
from tests.projections import histories
from tests.projections.histories import at, created, current, ended, finished, retried, started, tombstone, version
from tests.projections.memory import Memory, as_read

PLACE = TopicPartition(topics.RUN_EVENTS, 0)


@st.composite
def stories(draw: st.DrawFn) -> list[Fact]:
    """One run's facts in the order of their owner, with whatever may come between."""
    run = created(
        draw(st.sampled_from(("report", "load"))), 60 * draw(st.integers(0, 3)), tenant=draw(st.sampled_from("ab"))
    )
    facts: list[Fact] = [run]
    where: dict[str, Any] = {"tenant": run.tenant, "schedule": run.schedule, "run_id": run.run_id}
    handout = draw(st.integers(0, 5)) * 10
    attempts = draw(st.integers(0, 3))
    second = 100.0
    for attempt in range(1, attempts + 1):
        if draw(st.booleans()):
            reason, since = draw(st.sampled_from(RunDeferReason)), at(second)
            facts.append(RunDeferred(**where, reason=reason, since=since, decided_at=at(second)))
        start = started(run, second + 1, handout=handout + attempt, attempt=attempt)
        facts.append(start)
        outcome = draw(st.sampled_from(AttemptOutcome))
        facts.append(ended(start, second + 2, outcome, draw(st.sampled_from(("", "broken")))))
        if attempt < attempts and draw(st.booleans()):
            facts.append(retried(run, second + 2, attempt + 1))
        second += 10
    if draw(st.booleans()):
        facts.append(RunCancelRequested(**where, requested_at=at(second), queue="default", shard=0))
    if draw(st.booleans()):
        facts.append(finished(run, second + 5, draw(st.sampled_from(Outcome)), max(1, attempts)))
    return facts


@st.composite
def interleaved(draw: st.DrawFn) -> list[Any]:
    """Several runs beside each other, with definitions, skips and deferrals: each source in its own order."""
    where: dict[str, Any] = {"tenant": "a", "schedule": "report", "version": 1}
    skip = OccurrenceSkipped(
        **where, reason=SkipReason.OVERLAP, decided_at=at(7), rule="r", tz_version="t", nominal_time=at(0)
    )
    wait = OccurrenceDeferred(**where, nominal_time=at(60), reason=DeferReason.BUFFERED, decided_at=at(8))
    definitions = [
        histories.record(current("report", 1, tenant="a"), sequence=1),
        histories.record(version("report", 1, tenant="a"), sequence=1),
        histories.record(current("report", 2, tenant="a"), sequence=2),
        tombstone(topics.SCHEDULES, "a/report", sequence=3),
        tombstone(topics.VERSIONS, "a/report/1", sequence=4),
    ]
    sources: list[list[Any]] = [
        *draw(st.lists(stories(), max_size=5)),
        definitions[: draw(st.integers(0, 5))],
        [skip, wait],
    ]
    merged = []
    while sources := [source for source in sources if source]:
        merged.append(draw(st.sampled_from(sources)).pop(0))
    return merged


def echoes(draw: st.DrawFn, records: list[Record]) -> list[Record]:
    """The same records, and some of them again, later, under a later offset."""
    found = [(float(record.offset), record) for record in records]
    again = draw(st.lists(st.sampled_from(records), max_size=6)) if records else []
    found += [(draw(st.floats(record.offset + 0.1, len(records) + 1.0)), record) for record in again]
    return [record for _, record in sorted(found, key=lambda pair: pair[0])]


def cut(draw: st.DrawFn, records: list[Record]) -> list[list[Record]]:
    marks = sorted(draw(st.sets(st.integers(0, len(records)))) | {0, len(records)})
    return [records[begin:end] for begin, end in pairwise(marks)]


@settings(max_examples=50)
@given(st.data())
def test_batches_and_echoes_change_no_row(data):
    records = as_read(data.draw(interleaved()))
    plain, echoed = Memory(), Memory()
    for record in records:
        plain.take([record])
    for some in cut(data.draw, echoes(data.draw, records)):
        echoed.take(some)
    assert echoed.tables == plain.tables


# Each example opens databases; one that was made for an earlier example is as good as new, for it starts `anew`.
@settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_database_that_was_restarted_between_batches_holds_the_rows_of_one_that_read_everything_at_once(
    live_and_rebuilt, data
):
    records = as_read(data.draw(interleaved()))
    live, rebuilt = live_and_rebuilt
    restarted = written(live, cut(data.draw, echoes(data.draw, records)), restart=True)
    assert restarted == written(rebuilt, [records], restart=False)


@pytest.fixture
def live_and_rebuilt(new_database):
    return new_database(), new_database()


def written(url: str, batches: list[list[Record]], *, restart: bool) -> dict[str, list[tuple[Any, ...]]]:
    database = open_database(url)
    writer = Writer(database)
    writer.belong_to({}, anew=True)
    positions: dict[TopicPartition, int] = {}
    for number, some in enumerate(batches, 1):
        if restart:
            database.dispose()
            database = open_database(url)
            writer = Writer(database)
            assert writer.positions() == positions
        new = {PLACE: number}
        writer.apply(batch.fold(batch.read_all(some), writer.load), positions, new)
        positions = new
    rows = contents(database)
    database.dispose()
    return rows


def contents(database: Database) -> dict[str, list[tuple[Any, ...]]]:
    with database.connect() as connection:
        return {
            name: [tuple(row) for row in connection.execute(select(table).order_by(*table.primary_key))]
            for name, table in tables.PROJECTED.items()
        }
