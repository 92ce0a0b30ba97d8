"""A change of the tables: a new layout is built beside the one that is shown, and takes its place when it is as far."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from projections import batch
from projections.projector import Limits, Projector
from projections.store.database import Database, dialect_of
from projections.store.reader import ALL, Reader, RunFilter
from projections.store.writer import Writer
from runtime.clock import SystemClock
from runtime.logs.simulated import SimulatedLog
from runtime.record import Record, TopicPartition
from schemas import topics
from tests.projections import histories
from tests.projections.histories import created, records
from tests.projections.memory import as_read
from tests.projections.test_convergence import contents
from tests.projections.test_projector import SECONDS, some_runs

if TYPE_CHECKING:
    from collections.abc import Sequence

PLACE = TopicPartition(topics.RUN_EVENTS, 0)
SOURCE = {"cluster": "one"}
HISTORY = as_read([created("report", 60 * minute) for minute in range(6)])


class Version:
    """A node of a version of this program: what it writes, and what it shows."""

    def __init__(self, url: str, layout: int, *, reads_since: int) -> None:
        self.database = Database(dialect_of(url), layout=layout, readable_since=reads_since)
        self.writer = Writer(self.database)
        self.reader = Reader(self.database)
        self._layout = layout

    def follow(self, records: list[Record]) -> None:
        """As its projector would, a record at a time."""
        positions = self.writer.positions()
        for record in records:
            new = {PLACE: record.offset + 1}
            self.writer.apply(batch.fold(batch.read_all([record]), self.writer.load), positions, new)
            positions = new

    def shown(self) -> int:
        return len(self.reader.runs(ALL, RunFilter()).rows)

    def layouts(self) -> Sequence[int]:
        with self.database.connect() as connection:
            return self.database.dialect.layouts(connection)

    def retire(self) -> None:
        """One step of retention that finds no old rows."""
        past = created("x", 0).created_at
        self.writer.trim(history_before=past, commands_before=past, workers_before=past, rows_max=1)

    def retire_until_alone(self) -> None:
        """As retention does, again and again: a server of a database hears a moment later that a client has gone."""
        deadline = time.monotonic() + SECONDS
        while self.layouts() != [self._layout]:
            assert time.monotonic() < deadline, self.layouts()
            self.retire()


@pytest.fixture
def version(database):
    made = []

    def make(layout: int, *, reads_since: int = 1) -> Version:
        made.append(Version(database, layout, reads_since=reads_since))
        return made[-1]

    yield make
    for each in made:
        each.database.dispose()


@pytest.fixture
def old(version):
    """A node that has followed four records, and has ended."""
    old = version(1)
    old.writer.belong_to(SOURCE, anew=False)
    old.follow(HISTORY[:4])
    assert old.shown() == 4
    old.database.dispose()
    return old


def test_the_old_rows_are_shown_until_the_new_ones_have_come_as_far(old, version):
    new = version(2)
    new.writer.belong_to(SOURCE, anew=False)
    seen = []
    for number in range(6):
        new.follow(HISTORY[number : number + 1])
        seen.append(new.shown())
    assert seen == [4, 4, 4, 4, 5, 6]
    assert new.reader.positions() == {PLACE: 6}


def test_a_node_that_only_reads_turns_to_the_new_rows_with_its_next_question(old, version):
    new, reading = version(2), version(2)
    assert reading.shown() == 4
    new.writer.belong_to(SOURCE, anew=False)
    new.follow(HISTORY[:3])
    assert (reading.shown(), reading.reader.positions()) == (4, {PLACE: 4})
    new.follow(HISTORY[3:6])
    assert (reading.shown(), reading.reader.positions()) == (6, {PLACE: 6})


def test_a_rebuild_that_was_cut_short_goes_on_where_it_stood(old, version):
    first = version(2)
    first.writer.belong_to(SOURCE, anew=False)
    first.follow(HISTORY[:2])
    first.database.dispose()
    second = version(2)
    second.writer.belong_to(SOURCE, anew=False)
    assert second.writer.positions() == {PLACE: 2}
    assert second.shown() == 4
    second.follow(HISTORY[2:5])
    assert second.shown() == 5


def test_the_old_rows_go_when_the_new_ones_are_shown_and_nobody_reads_the_old_ones_any_more(old, version):
    new = version(2)
    new.writer.belong_to(SOURCE, anew=False)
    new.follow(HISTORY[:3])
    new.retire()
    assert new.layouts() == [1, 2]
    new.follow(HISTORY[3:4])
    new.retire_until_alone()
    assert new.shown() == 4


def test_a_node_of_the_old_version_goes_on_with_its_own_rows_meanwhile(old, version):
    new = version(2)
    new.writer.belong_to(SOURCE, anew=False)
    new.follow(HISTORY[:4])
    old.follow(HISTORY[4:5])
    assert (old.shown(), new.shown()) == (5, 4)


def test_a_rebuild_beside_the_live_rows_takes_their_place_while_events_come(version):
    log = SimulatedLog(7, SystemClock())
    histories.create_topics(log)
    versions = version(1), version(2)
    live, rebuilding = (
        Projector(log=log, model=each.writer, now=SystemClock().now, limits=Limits(records=7)) for each in versions
    )
    live.start()
    log.append(records(some_runs(0, 40)))
    assert live.wait_until(log.end_offsets(live.inputs()), SECONDS)
    rebuilding.start()
    for number in range(40, 50):
        log.append(records(some_runs(number, 1)))
        assert versions[1].shown() >= 40
    ends = log.end_offsets(live.inputs())
    assert live.wait_until(ends, SECONDS)
    assert rebuilding.wait_until(ends, SECONDS)
    assert contents(versions[1].database) == contents(versions[0].database)
    for projector in (live, rebuilding):
        assert projector.stop(SECONDS)
    versions[0].database.dispose()
    versions[1].retire_until_alone()
    assert versions[1].shown() == 50
    log.close()


def test_rows_that_todays_questions_cannot_be_asked_of_are_not_shown(old, version):
    new = version(2, reads_since=2)
    new.writer.belong_to(SOURCE, anew=False)
    assert new.shown() == 0
    new.follow(HISTORY[:1])
    assert new.shown() == 1


def test_the_rows_of_another_log_are_not_shown(old, version):
    new = version(2)
    new.writer.belong_to({"cluster": "two"}, anew=False)
    assert new.shown() == 0


def test_an_older_version_that_is_brought_back_leaves_the_newer_rows_alone(old, version):
    new = version(2)
    new.writer.belong_to(SOURCE, anew=False)
    new.follow(HISTORY[:4])
    old.retire()
    assert new.layouts() == [1, 2]
    assert old.shown() == 4
