"""Workers: how each stands, what it has in hand, and for how long one that is gone is remembered."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from projections.store import paging
from projections.store.reader import ALL, Scope
from runtime.logs.simulated import SimulatedLog
from runtime.record import Outgoing
from schemas import topics
from simulation.clock import ManualClock
from tests.projections import histories
from tests.projections.histories import START, at, created, ended, everything, listed, record, started, tombstone
from tests.projections.memory import Memory
from tests.projections.test_store import Model


@pytest.fixture
def model(database):
    model = Model(database)
    yield model
    model.database.dispose()


def gone(worker: str, *, sequence: int) -> Outgoing:
    return tombstone(topics.WORKERS, f"default/0/{worker}-a", sequence=sequence)


def names(page: paging.Page) -> list[str]:
    return [row["worker"] for row in page.rows]


def heard(model: Model, **wanted: Any) -> paging.Page:
    """As it is asked a minute into the history: who was heard of in it is not silent."""
    return model.reader.workers(heard_since=at(0), **wanted)


def test_a_worker_stands_as_it_was_listed_last(model):
    model.take(listed("w1"), record(listed("w1", 60, stuck=1, draining=True), sequence=2))
    (row,) = heard(model).rows
    assert {name: row[name] for name in ("worker", "state", "slots_total", "stuck", "tasks", "heard_at")} == {
        "worker": "w1", "state": "draining", "slots_total": 8, "stuck": 1, "tasks": ["mail", "reports.nightly"],
        "heard_at": at(60),
    }  # fmt: skip


def test_an_older_line_that_is_read_again_changes_nothing(model):
    model.take(record(listed("w1", 60), sequence=5))
    model.take(record(listed("w1", 0), sequence=4))
    assert [row["heard_at"] for row in heard(model).rows] == [at(60)]


def test_one_that_is_gone_is_listed_only_where_that_is_asked_for_and_comes_back_with_its_next_line(model):
    model.take(listed("w1"), listed("w2"), gone("w1", sequence=2))
    assert names(heard(model)) == ["w2"]
    assert names(heard(model, state="gone")) == ["w1"]
    model.take(record(listed("w1", 60), sequence=3))
    assert names(heard(model, state="present")) == ["w1", "w2"]


def test_a_worker_that_nobody_missed_and_nobody_heard_of_is_silent(model):
    model.take(listed("w1", 0), listed("w2", 60))
    page = model.reader.workers(heard_since=at(30))
    assert [(row["worker"], row["state"]) for row in page.rows] == [("w1", "silent"), ("w2", "present")]
    assert names(model.reader.workers(heard_since=at(30), state="silent")) == ["w1"]


def test_workers_are_listed_by_queue_and_name_in_pages(model):
    model.take(listed("w2"), listed("w1"), listed("w3", queue="bulk"), listed("w1", queue="bulk", incarnation="b"))
    first = heard(model, limit=3)
    assert names(first) == ["w1", "w3", "w1"]
    assert names(heard(model, limit=3, cursor=first.cursor)) == ["w2"]
    assert names(heard(model, queue="bulk")) == ["w1", "w3"]
    assert len(heard(model, worker="w1").rows) == 2
    assert [row["queue"] for row in heard(model, worker="b").rows] == ["bulk"]


def test_what_a_worker_has_in_hand_is_what_began_and_is_not_over(model):
    runs = [created("report", minute * 60) for minute in range(3)]
    begun = [started(run, second, handout=second) for second, run in enumerate(runs)]
    model.take(*runs, *begun, ended(begun[0], 30))
    rows = model.reader.at_work(ALL, {"w-1-a", "nobody"})
    assert [(row["run_id"], row["count"]) for row in rows] == [
        ("report.20260301T000100Z", 2), ("report.20260301T000200Z", 2)
    ]  # fmt: skip
    assert model.reader.at_work(Scope(tenant="other"), {"w-1-a"}) == []
    assert model.reader.at_work(ALL, set()) == ()


def test_of_many_attempts_the_oldest_twenty_are_shown_and_all_are_counted(model):
    for number in range(25):
        model.take(started(created("report", number), number, handout=number))
    rows = model.reader.at_work(ALL, {"w-1-a"})
    assert [row["handout"] for row in rows] == list(range(20))
    assert {row["count"] for row in rows} == {25}


def test_lines_that_are_not_written_again_are_forgotten(model):
    """Records stand in the log a second apart, from the history's start on."""
    model.take(listed("w1"), listed("w2"), gone("w1", sequence=2))
    past = at(-60)
    assert model.writer.trim(history_before=past, commands_before=past, workers_before=at(2), rows_max=10) == 1
    assert names(heard(model, state="gone")) == ["w1"]
    assert names(heard(model)) == []


def test_a_read_model_made_anew_knows_who_is_gone_for_as_long_as_the_live_one():
    clock = ManualClock(START)
    log = SimulatedLog(1, clock)
    histories.create_topics(log)
    log.append([record(listed("w1"), sequence=1), record(listed("w2"), sequence=1), gone("w1", sequence=2)])
    live = _read(log)
    clock.advance(topics.WORKERS_KEPT - timedelta(minutes=1))
    log.maintain()
    assert _read(log) == live
    clock.advance(timedelta(days=2))
    log.maintain()
    assert [key[2] for key in _read(log)] == ["w2-a"]


def test_what_stands_on_the_topic_of_two_shards_are_two_workers(model):
    model.take(listed("w1"), replace(listed("w1"), shard=1), gone("w1", sequence=2))
    assert [row["shard"] for row in heard(model).rows] == [1]


def _read(log: SimulatedLog) -> dict[Any, Any]:
    memory = Memory()
    memory.take(everything(log, [topics.WORKERS]))
    return memory.tables["workers"]
