"""The projector over a log: it follows, it can be waited for, it mends itself, and a rebuild gives the same rows."""

import threading
from datetime import timedelta
from typing import Any, Self

import pytest

from projections.projector import Kept, Limits, Projector
from projections.store.database import open_database
from projections.store.reader import ALL, Reader, RunFilter
from projections.store.writer import Writer
from runtime.clock import SystemClock
from runtime.log import LogError
from runtime.logs.embedded import EmbeddedLog
from runtime.logs.simulated import SimulatedLog
from runtime.record import TopicPartition
from schemas import topics
from schemas.facts import Fact
from tests.projections import histories
from tests.projections.histories import created, current, records
from tests.projections.test_convergence import contents

SECONDS = 20.0  # a deadline, not a measure


@pytest.fixture
def log():
    log = SimulatedLog(7, SystemClock())
    histories.create_topics(log)
    yield log
    log.close()


class Running:
    """A projector with its database."""

    def __init__(self, log: Any, url: str, **limits: Any) -> None:
        self.database = open_database(url)
        self.log = log
        self.reader = Reader(self.database)
        self.projector = Projector(
            log=log, model=Writer(self.database), now=SystemClock().now, kept=Kept(), limits=Limits(**limits)
        )

    def __enter__(self) -> Self:
        self.projector.start()
        return self

    def __exit__(self, *_: object) -> None:
        assert self.projector.stop(SECONDS)
        self.database.dispose()

    def follow(self) -> Self:
        """Wait for all that is in the log now."""
        ends = {place: self.log.end_offset(place) for place in self.projector.inputs()}
        assert self.projector.wait_until(ends, SECONDS), self.projector.problem
        return self

    def runs(self) -> list[str]:
        return [row["run_id"] for row in self.reader.runs(ALL, RunFilter()).rows]


def some_runs(first: int, count: int) -> list[Fact]:
    return [fact for n in range(first, first + count) for fact in histories.succeeded(f"s{n % 3}", n * 60, handout=n)]


def test_it_is_ready_once_the_rows_show_what_stood_in_the_log_at_the_start(log, database):
    log.append(records([current("report"), created("report", 0)]))
    with Running(log, database) as running:
        assert running.projector.ready(SECONDS)
        assert running.runs() == ["report.20260301T000000Z"]


def test_a_write_can_be_waited_for(log, database):
    with Running(log, database) as running:
        for minute in range(5):
            log.append(records([created("report", minute * 60)]))
            assert len(running.follow().runs()) == minute + 1


def test_a_reader_that_waits_for_rows_does_not_wait_for_company_of_its_event(log, database):
    with Running(log, database, linger=timedelta(hours=1)) as running:
        for minute in range(3):
            log.append(records([created("report", minute * 60)]))
            assert len(running.follow().runs()) == minute + 1


def test_a_reader_that_asks_after_each_batch_does_not_wait_for_company_either(log, database):
    with Running(log, database, linger=timedelta(hours=1)) as running:
        moved = threading.Event()
        silence = running.projector.on_progress(moved.set)
        log.append(records([created("report", 0)]))
        ends = {place: log.end_offset(place) for place in running.projector.inputs()}
        while not running.projector.reached(ends):
            assert moved.wait(SECONDS)
            moved.clear()
        assert running.runs() == ["report.20260301T000000Z"]
        silence()


def test_a_batch_that_waits_for_company_does_not_keep_the_projector_from_stopping(log, database):
    with Running(log, database, linger=timedelta(hours=1)) as running:
        assert running.projector.ready(SECONDS)
        log.append(records([created("report", 0)]))
    with Running(log, database) as running:
        assert running.follow().runs() == ["report.20260301T000000Z"]


def test_waiting_for_what_never_comes_ends(log, database):
    with Running(log, database) as running:
        assert not running.projector.wait_until({TopicPartition(topics.RUN_EVENTS, 0): 99}, 0.01)


def test_whoever_wants_to_know_is_called_whenever_rows_have_moved(log, database):
    with Running(log, database) as running:
        moved = threading.Event()
        silence = running.projector.on_progress(moved.set)
        log.append(records([created("report", 0)]))
        assert moved.wait(SECONDS)
        silence()


def test_a_restart_reads_on_from_the_positions_beside_the_rows(log, database, new_database):
    log.append(records(some_runs(0, 20)))
    with Running(log, database, records=7) as running:
        running.follow()
    log.append(records(some_runs(20, 20)))
    with Running(log, database, records=7) as running:
        assert len(running.follow().runs()) == 40
        live = contents(running.database)
    with Running(log, new_database()) as rebuilt:
        assert contents(rebuilt.follow().database) == live


def test_a_rebuild_beside_the_live_rows_gives_the_live_rows_while_events_come(log, database, new_database):
    with Running(log, database, records=11) as live:
        for number in range(10):
            log.append(records(some_runs(number * 4, 4)))
        with Running(log, new_database(), records=5) as rebuilt:
            log.append(records(some_runs(40, 4)))
            assert contents(rebuilt.follow().database) == contents(live.follow().database)


def test_an_embedded_log_is_followed_over_its_own_restart(tmp_path, database):
    log = EmbeddedLog(tmp_path / "log", SystemClock())
    histories.create_topics(log)
    log.append(records(some_runs(0, 5)))
    with Running(log, database) as running:
        running.follow()
    log.close()
    log = EmbeddedLog(tmp_path / "log", SystemClock())
    log.append(records(some_runs(5, 5)))
    with Running(log, database) as running:
        assert len(running.follow().runs()) == 10
    log.close()


def test_rows_of_records_that_the_log_has_lost_are_forgotten_and_built_anew(log, database):
    with Running(log, database) as running:
        log.append(records(some_runs(0, 3)))
        running.follow()
        positions = dict(running.projector.positions)
        Writer(running.database).apply({}, positions, {place: offset + 50 for place, offset in positions.items()})
    with Running(log, database) as running:
        assert len(running.follow().runs()) == 3
        assert Writer(running.database).positions() == positions


class Stumbling(Writer):
    """A writer whose database fails a few times."""

    def __init__(self, database: Any, times: int) -> None:
        super().__init__(database)
        self.times = times

    def apply(self, changes: Any, old: Any, new: Any) -> None:
        if self.times:
            self.times -= 1
            raise OSError("disk full")
        super().apply(changes, old, new)


def test_a_database_that_fails_is_tried_again_and_the_trouble_is_said(log, database):
    opened = open_database(database)
    now = SystemClock().now
    limits = Limits(retry_after=timedelta(milliseconds=1))
    projector = Projector(log=log, model=Stumbling(opened, 3), now=now, limits=limits)
    log.append(records([created("report", 0)]))
    projector.start()
    assert projector.ready(SECONDS)
    assert projector.stop(SECONDS)
    assert len(Reader(opened).runs(ALL, RunFilter()).rows) == 1
    opened.dispose()


def test_a_log_that_is_not_there_yet_is_said_and_waited_for(database):
    empty = SimulatedLog(1, SystemClock())
    opened = open_database(database)
    limits = Limits(retry_after=timedelta(milliseconds=1))
    projector = Projector(log=empty, model=Writer(opened), now=SystemClock().now, limits=limits)
    projector.start()
    assert not projector.ready(0.05)
    assert "tidewheel.run-events" in (projector.problem or "")
    histories.create_topics(empty)
    assert projector.ready(SECONDS)
    assert projector.stop(SECONDS)
    opened.dispose()


def test_it_can_be_stopped_before_it_was_started_and_twice(log, database):
    running = Running(log, database)
    assert running.projector.stop(SECONDS)
    running.projector.start()
    assert running.projector.stop(SECONDS)
    assert not running.projector.ready(0)
    running.database.dispose()


def test_a_listener_that_fails_ends_nothing(log, database):
    def fail() -> None:
        raise RuntimeError("whoever listened has gone")

    with Running(log, database) as running:
        running.projector.on_progress(fail)
        log.append(records([created("report", 0)]))
        assert running.follow().runs() == ["report.20260301T000000Z"]
        assert running.projector.problem is None


def test_a_closed_log_ends_nothing(log, database):
    with Running(log, database, retry_after=timedelta(milliseconds=1)) as running:
        running.follow()
        log.close()
        seen = threading.Event()
        running.projector.on_progress(seen.set)
        with pytest.raises(LogError):
            log.append(records([created("report", 0)]))
        assert running.projector.failure is None
