"""A run that waits for want of a worker says why, and since when."""

from datetime import timedelta

from schemas.facts import RunDeferReason, RunDeferred
from schemas.internal import HandOut, WorkerLapsed
from tests.dispatcher.harness import T0, Bench, WorkerSim, cancel, job, of, only, run


def test_without_any_worker_a_run_says_so_after_a_short_settling_and_once():
    bench = Bench()
    bench.give(run(1))
    assert bench.at(4.999) == []
    assert only(bench.at(5), RunDeferred) == RunDeferred(
        tenant="acme", schedule="nightly", run_id="nightly.1", reason=RunDeferReason.NO_WORKER, since=T0,
        decided_at=T0 + timedelta(seconds=5), queue="mail", shard=0,
    )  # fmt: skip
    assert bench.at(3600) == []


def test_without_a_worker_that_has_the_task_a_run_says_so():
    bench = Bench()
    worker = WorkerSim(bench, tasks=["other"])
    worker.report()
    bench.give(run(1))
    assert only(bench.at(5), RunDeferred).reason is RunDeferReason.NO_TASK


def test_a_run_behind_a_full_worker_is_not_deferred_it_is_queued():
    bench = Bench()
    worker = WorkerSim(bench)
    worker.report(slots=0)
    bench.give(run(1))
    for second in range(5, 60, 5):
        bench.at(second)
        worker.report(slots=0)
    assert bench.all(RunDeferred) == []


def test_a_change_of_the_reason_is_told_again_and_a_return_to_the_same_is_not():
    bench = Bench()
    bench.give(run(1))
    bench.at(5)
    other = WorkerSim(bench, tasks=["other"])
    facts = other.report()
    assert [fact.reason for fact in of(facts, RunDeferred)] == [RunDeferReason.NO_TASK]
    other.report()
    assert len(bench.all(RunDeferred)) == 2

    able = WorkerSim(bench, "able")
    able.report(slots=0)
    bench.at(10)
    other.report()
    assert only(bench.at(20), WorkerLapsed).incarnation == "able-a"
    other.report()
    bench.at(30)
    assert [fact.reason for fact in bench.all(RunDeferred)] == [RunDeferReason.NO_WORKER, RunDeferReason.NO_TASK]


def test_a_draining_worker_is_nobody_to_wait_for():
    bench = Bench()
    worker = WorkerSim(bench)
    worker.report(slots=0)
    bench.give(run(1))
    bench.at(4)
    worker.report(slots=0, draining=True)
    assert bench.at(8) == []
    deferred = only(bench.at(9), RunDeferred)
    assert (deferred.reason, deferred.since) == (RunDeferReason.NO_WORKER, T0 + timedelta(seconds=4))


def test_since_is_when_the_last_worker_was_missed_when_the_run_is_older_than_that():
    bench = Bench()
    worker = WorkerSim(bench)
    worker.report(slots=0)
    bench.give(run(1))
    bench.at(15)
    deferred = only(bench.at(20), RunDeferred)
    assert (deferred.reason, deferred.since) == (RunDeferReason.NO_WORKER, T0 + timedelta(seconds=15))


def test_a_run_that_is_not_due_yet_waits_for_nobody():
    bench = Bench()
    bench.give(run(1, due_at=T0 + timedelta(seconds=60)))
    assert bench.at(64.999) == []
    assert only(bench.at(65), RunDeferred).since == T0 + timedelta(seconds=60)


def test_a_run_that_is_over_is_not_spoken_of():
    bench = Bench()
    bench.give(run(1))
    bench.give(run(2))
    bench.give(cancel("nightly.1"))
    assert only(bench.at(5), RunDeferred).run_id == "nightly.2"


def test_what_was_said_of_earlier_runs_is_not_said_of_later_ones():
    bench = Bench()
    bench.give(run(1))
    bench.give(cancel("nightly.1"))
    WorkerSim(bench, tasks=["other"]).report()
    bench.give(run(2))
    assert only(bench.at(5), RunDeferred).reason is RunDeferReason.NO_TASK


def test_runs_are_told_in_bounded_steps_until_all_know():
    bench = Bench()
    for number in range(1000):
        bench.take(run(number))
    assert len(bench.at(5)) == 1000
    assert len({fact.run_id for fact in bench.all(RunDeferred)}) == 1000


def test_what_was_told_is_remembered_over_a_restart():
    bench = Bench()
    bench.give(run(1))
    bench.at(5)
    bench.give(run(2, at=bench.now))
    bench.take_over()
    bench.at(6)
    assert [fact.run_id for fact in bench.all(RunDeferred)] == ["nightly.1"]
    bench.at(10)
    assert [fact.run_id for fact in bench.all(RunDeferred)] == ["nightly.1", "nightly.2"]


def test_a_deferred_run_is_handed_out_as_soon_as_a_worker_comes():
    bench = Bench()
    bench.give(run(1, job=job()))
    bench.at(60)
    assert only(WorkerSim(bench).report(), HandOut).run.run_id == "nightly.1"
