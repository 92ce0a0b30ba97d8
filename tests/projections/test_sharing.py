"""One read model for several projectors and readers: nothing is folded twice, and nobody is in another's way."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest

from projections.projector import Limits, Projector
from projections.store.database import Database, open_database
from projections.store.reader import ALL, Reader, RunFilter
from projections.store.writer import Writer
from runtime.clock import SystemClock
from runtime.logs.simulated import SimulatedLog
from tests.projections import histories
from tests.projections.histories import created, records
from tests.projections.test_convergence import contents
from tests.projections.test_projector import SECONDS, some_runs

SOON = timedelta(milliseconds=5)


@pytest.fixture
def log():
    log = SimulatedLog(7, SystemClock())
    histories.create_topics(log)
    yield log
    log.close()


class Node:
    """A process with a projector and a reader, each on connections of its own."""

    def __init__(
        self, log: Any, url: str, *, share: tuple[int, ...] | None = None, model: type[Writer] = Writer
    ) -> None:
        self.database, self.other = open_database(url), open_database(url)
        self.reader = Reader(self.other)
        self.model = model(self.database)
        limits = Limits(records=9, linger=SOON, retry_after=SOON)
        self.projector = Projector(log=log, model=self.model, now=SystemClock().now, limits=limits, share=share)

    def end(self) -> None:
        assert self.projector.stop(SECONDS)
        self.database.dispose()
        self.other.dispose()


@pytest.fixture
def node(log, database):
    made = []

    def make(**options: Any) -> Node:
        made.append(Node(log, database, **options))
        made[-1].projector.start()
        return made[-1]

    yield make
    for each in made:
        each.end()


def rows_of_one(log: Any, url: str) -> dict[str, Any]:
    """What a projector alone makes of the log."""
    alone = Node(log, url)
    alone.projector.start()
    assert alone.projector.ready(SECONDS)
    rows = contents(alone.database)
    alone.end()
    return rows


def wait_for(log: Any, node: Node, database: Database) -> dict[str, Any]:
    assert node.projector.ready(SECONDS), node.projector.problem
    ends = log.end_offsets(node.projector.inputs())
    assert node.projector.wait_until(ends, SECONDS), node.projector.problem
    return contents(database)


def test_two_projectors_of_the_same_partitions_make_the_rows_of_one(log, node, new_database):
    first, second = node(), node()
    for number in range(20):
        log.append(records(some_runs(number * 3, 3)))
    rows = wait_for(log, first, first.database)
    assert wait_for(log, second, second.database) == rows == rows_of_one(log, new_database())
    assert len(rows["runs"]) == 60


def test_one_goes_on_where_the_other_has_ended(log, node, new_database):
    first, second = node(), node()
    log.append(records(some_runs(0, 10)))
    wait_for(log, first, first.database)
    assert first.projector.stop(SECONDS)
    log.append(records(some_runs(10, 10)))
    assert wait_for(log, second, second.database) == rows_of_one(log, new_database())


def test_projectors_with_a_share_each_make_the_rows_of_one_together(log, node, new_database):
    first, second = node(share=(0,)), node(share=(1,))
    for number in range(10):
        log.append(records([*histories.succeeded(f"a{number}", 0), *histories.succeeded(f"b{number}", 60, handout=1)]))
    wait_for(log, first, first.database)
    assert wait_for(log, second, second.database) == rows_of_one(log, new_database())
    assert {place.partition for place, offset in first.reader.positions().items() if offset} == {0, 1}
    assert (
        first.reader.positions()
        == second.reader.positions()
        == {**first.projector.positions, **second.projector.positions}
    )


def test_two_that_start_at_once_on_an_empty_database_make_its_tables_once(log, database):
    log.append(records(some_runs(0, 10)))
    writers = [Writer(open_database(database)) for _ in range(2)]
    together = threading.Barrier(2)
    failed: list[Exception] = []

    def begin(writer: Writer) -> None:
        together.wait(SECONDS)
        try:
            writer.belong_to({"cluster": "one"}, anew=False)
        except Exception as error:  # noqa: BLE001 -- whatever it is, it is this test that has failed
            failed.append(error)

    threads = [threading.Thread(target=begin, args=(writer,)) for writer in writers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert failed == []
    assert [writer.positions() for writer in writers] == [{}, {}]
    for writer in writers:
        writer._database.dispose()


def test_rows_that_another_writes_while_a_projector_starts_are_not_taken_for_a_log_that_lost_records(log, node):
    other = node()
    assert other.projector.ready(SECONDS)

    class Late(Writer):
        """Between its questions the other one writes."""

        forgotten = 0

        def belong_to(self, source: Any, *, anew: bool) -> None:
            self.forgotten += anew
            super().belong_to(source, anew=anew)
            log.append(records(some_runs(0, 5)))
            wait_for(log, other, other.database)

    late = node(model=Late)
    assert late.projector.ready(SECONDS)
    assert late.model.forgotten == 0


def test_pages_stay_as_they_are_while_another_process_writes(log, node):
    writing, reading = node(), node(share=())
    log.append(records(created("report", 60 * minute) for minute in range(30)))
    wait_for(log, writing, writing.database)
    seen: list[str] = []
    cursor = None
    for number in range(10):
        page = reading.reader.runs(ALL, RunFilter(schedule="report"), cursor=cursor, limit=3)
        seen += [row["run_id"] for row in page.rows]
        cursor = page.cursor
        log.append(records([created("report", 60 * (30 + number)), *histories.succeeded("report", 60 * number)]))
        wait_for(log, writing, writing.database)
    assert seen == [f"report.20260301T00{minute:02}00Z" for minute in reversed(range(30))]
    assert cursor is None
