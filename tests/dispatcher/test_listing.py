"""What the list of workers is told, and how seldom."""

from datetime import timedelta
from typing import Any

import pytest

from schemas import topics
from schemas.faults import Refused
from schemas.internal import WorkerEnded, WorkerLapsed, WorkerListed
from tests.dispatcher.harness import T0, Bench, WorkerSim, of, only

TOLD: dict[str, Any] = {"slots_total": 4, "stuck": 0, "client": "tidewheel/0.1.0", "transport": "http"}


def test_a_worker_is_listed_with_its_first_report():
    bench = Bench()
    line = only(WorkerSim(bench, tasks=["reports.nightly", "mail"]).report(slots=4, **TOLD), WorkerListed)
    assert line == WorkerListed(
        queue="mail", shard=0, worker="w1", incarnation="w1-a", tasks=("reports.nightly", "mail"), heard_at=T0,
        slots_total=4, client="tidewheel/0.1.0", transport="http",
    )  # fmt: skip
    assert bench.on(topics.WORKERS) == [line]


def test_one_that_says_the_same_is_listed_once_a_minute_however_often_it_reports():
    bench = Bench()
    worker = WorkerSim(bench)
    heard = []
    for second in range(0, 125, 5):
        bench.at(second)
        heard += [line.heard_at for line in of(worker.report(slots=second % 3, **TOLD), WorkerListed)]
    assert heard == [T0, T0 + timedelta(seconds=60), T0 + timedelta(seconds=120)]


def test_what_has_changed_is_listed_at_once():
    bench = Bench()
    worker = WorkerSim(bench)
    worker.report(**TOLD)
    bench.at(5)
    assert only(worker.report(**TOLD | {"stuck": 1}), WorkerListed).stuck == 1
    bench.at(10)
    assert only(worker.report(**TOLD | {"stuck": 1}, draining=True), WorkerListed).draining


def test_a_change_right_behind_another_is_listed_five_seconds_later_and_not_forgotten():
    bench = Bench()
    worker = WorkerSim(bench)
    worker.report(**TOLD)
    for second in (1, 2, 3, 4):
        bench.at(second)
        assert of(worker.report(**TOLD | {"stuck": 1}), WorkerListed) == []
    bench.at(5)
    assert only(worker.report(**TOLD | {"stuck": 1}), WorkerListed).stuck == 1


def test_one_that_says_another_thing_with_each_report_is_listed_every_five_seconds():
    bench = Bench()
    worker = WorkerSim(bench)
    lines = 0
    for second in range(30):
        bench.at(second)
        lines += len(of(worker.report(client=f"tidewheel/{second}"), WorkerListed))
    assert lines == 6


def test_how_many_slots_are_free_is_no_change():
    bench = Bench()
    worker = WorkerSim(bench)
    worker.report(slots=4, **TOLD)
    bench.at(6)
    assert of(worker.report(slots=0, **TOLD), WorkerListed) == []


def test_the_line_of_a_silent_worker_goes_and_comes_back_with_it():
    bench = Bench()
    worker = WorkerSim(bench)
    worker.report()
    lapsed = only(bench.at(15), WorkerLapsed)
    gone = bench.outputs[-1]
    assert (gone.topic, gone.key, gone.tombstone, gone.fact) == (topics.WORKERS, "mail/0/w1-a", True, lapsed)
    bench.at(16)
    assert only(worker.report(), WorkerListed).heard_at == T0 + timedelta(seconds=16)


def test_the_line_of_an_incarnation_goes_when_another_takes_its_name():
    bench = Bench()
    WorkerSim(bench, "w1", incarnation="old").report()
    facts = WorkerSim(bench, "w1", incarnation="new").report()
    ended = only(facts, WorkerEnded)
    assert [(each.key, each.tombstone) for each in bench.outputs if each.fact is ended] == [("mail/0/old", True)]
    assert only(facts, WorkerListed).incarnation == "new"


def test_a_new_owner_knows_when_each_was_listed():
    bench = Bench()
    worker = WorkerSim(bench)
    worker.report()
    bench.take_over()
    bench.at(5)
    assert of(worker.report(), WorkerListed) == []
    bench.at(60)
    assert only(worker.report(), WorkerListed).heard_at == T0 + timedelta(seconds=60)


@pytest.mark.parametrize("told", [{"slots_total": 10_001}, {"slots_total": -1}, {"stuck": -1}, {"client": "x" * 257}])
def test_a_worker_says_no_more_of_itself_than_can_be_kept(told):
    bench = Bench()
    record = bench.record(WorkerSim(bench).said(**told))
    with pytest.raises(Refused) as refusal:
        bench.core.read(record)
    assert [fault.pointer for fault in refusal.value.faults] == [f"/data/{next(iter(told))}"]
