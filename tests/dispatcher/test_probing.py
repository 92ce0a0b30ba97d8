"""A breaker that has opened: who is tried after its wait, and what comes of it."""

from dataclasses import replace
from datetime import timedelta

from schemas.facts import (
    BreakerChanged,
)
from schemas.internal import HandOut
from tests.dispatcher.breaking import POLICY, SECOND, handed, of_job, opened, told
from tests.dispatcher.harness import (
    T0,
    Bench,
    WorkerSim,
    failed,
    of,
    succeeded,
)


def test_after_its_wait_one_run_is_tried_and_when_it_succeeds_all_go():
    bench = Bench()
    worker = WorkerSim(bench)
    opened(bench, worker)
    bench.at(20)
    worker.report(slots=9)
    facts = bench.at(30)
    assert told(facts) == [("job:send", "half_open", "waited", 30.0)]
    (probe,) = of(facts, HandOut)
    assert probe.run.run_id == "nightly.100"
    facts = worker.report(slots=8, started=[probe], held=[probe])
    assert handed(facts) == []
    facts = worker.report(slots=9, finished=[succeeded(probe)])
    assert told(facts) == [("job:send", "closed", "probe_succeeded", 30.0)]
    assert handed(facts) == ["nightly.101", "nightly.102"]


def test_a_probe_that_fails_holds_the_others_twice_as_long_up_to_ten_minutes():
    bench = Bench()
    worker = WorkerSim(bench)
    opened(bench, worker, waiting=9)
    waits = []
    for _ in range(7):
        until = bench.all(BreakerChanged)[-1].until
        assert until is not None
        waits.append((until - bench.now).total_seconds())
        bench.at(until - T0 - SECOND)
        worker.report(slots=9)
        (probe,) = of(bench.at(until - T0), HandOut)
        facts = worker.report(slots=9, started=[probe], finished=[failed(probe)])
        assert [(state, reason) for _, state, reason, _ in told(facts)] == [("open", "probe_failed")]
        assert of(facts, BreakerChanged)[0].since == T0
    assert waits == [30, 60, 120, 240, 480, 600, 600]


def test_so_many_probes_as_it_says_are_with_workers_at_once():
    bench = Bench()
    worker = WorkerSim(bench)
    opened(bench, worker, waiting=9, policy=replace(POLICY, probes=2))
    bench.at(20)
    worker.report(slots=9)
    assert len(handed(bench.at(30))) == 2


def test_a_probe_that_is_lost_settles_nothing_and_another_one_goes():
    bench = Bench()
    worker = WorkerSim(bench)
    opened(bench, worker)
    bench.at(20)
    worker.report(slots=9)
    (probe,) = of(bench.at(30), HandOut)
    facts = worker.report(slots=9, held=())  # read past, not held
    assert told(facts) == []
    (again,) = of(facts, HandOut)
    assert (again.run.run_id, again.attempt) == ("nightly.100", 2)
    assert probe.offset < again.offset


def test_where_probes_take_long_another_goes_after_each_wait_which_doubles_and_the_first_that_ends_settles_it():
    bench = Bench()
    worker = WorkerSim(bench)
    opened(bench, worker, waiting=9)
    bench.at(29)
    worker.report(slots=9)
    out = of(bench.at(30), HandOut)
    went: list[tuple[float, str]] = []
    for second in range(35, 30 + 30 + 60 + 120 + 20, 5):
        facts = bench.at(second)
        assert {(state, reason) for _, state, reason, _ in told(facts)} <= {("half_open", "waited")}
        out += of(facts, HandOut)
        went += [(second, each.run.run_id) for each in of(facts, HandOut)]
        assert handed(worker.report(slots=9 - len(out), started=out, held=out)) == []
    assert went == [(60, "nightly.101"), (120, "nightly.102"), (240, "nightly.103")]
    facts = worker.report(slots=6, held=out[1:], finished=[succeeded(out[0])])
    assert [(state, reason) for _, state, reason, _ in told(facts)] == [("closed", "probe_succeeded")]
    assert handed(facts) == ["nightly.104", "nightly.105", "nightly.106", "nightly.107", "nightly.108"]


def test_that_another_probe_may_go_outlives_a_takeover():
    bench = Bench()
    worker = WorkerSim(bench)
    opened(bench, worker)
    bench.at(29)
    worker.report(slots=9)
    out = of(bench.at(30), HandOut)
    worker.report(slots=0, started=out, held=out)
    bench.take_over()
    assert told(bench.at(59)) == []
    assert told(bench.at(60)) == [("job:send", "half_open", "waited", 60.0)]
    bench.take_over()
    bench.at(61)
    assert handed(worker.report(slots=8, held=out)) == ["nightly.101"]


def test_no_probe_waits_for_a_half_open_breaker_of_which_none_is_out():
    bench = Bench()
    opened(bench, WorkerSim(bench), waiting=0)
    bench.at(30)
    assert told(bench.at(timedelta(hours=23))) == []


def test_what_was_handed_out_before_it_opened_says_nothing_of_what_came_after():
    bench = Bench()
    worker = WorkerSim(bench)
    late = of_job(50)
    bench.take(late)
    (slow,) = of(worker.report(slots=1), HandOut)
    worker.report(slots=0, started=[slow], held=[slow])
    bench.at(1)
    for number in range(3):
        bench.take(of_job(number))
    mine = of(worker.report(slots=3, held=[slow]), HandOut)
    worker.report(slots=9, held=[slow], started=mine, finished=[failed(item) for item in mine])
    assert told(worker.report(slots=9, finished=[succeeded(slow)])) == []
    assert [state for _, state, _, _ in told(bench.at(31))] == ["half_open"]


def test_a_half_open_breaker_of_which_nothing_is_tried_for_a_day_is_closed():
    bench = Bench()
    worker = WorkerSim(bench)
    opened(bench, worker, waiting=0)
    bench.at(30)
    assert told(bench.at(timedelta(days=1, seconds=30))) == [("job:send", "closed", "unproven", 86_430.0)]
