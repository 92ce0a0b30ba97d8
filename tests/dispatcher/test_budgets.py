"""Retries of a schedule are a fifth of its first attempts over ten minutes, never fewer than ten; the rest waits."""

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from dispatcher import budgets
from dispatcher.budgets import Budget
from schemas.facts import AttemptFinished, Cause, RunCreated, RunDeferReason, RunDeferred, RunRetryScheduled
from schemas.internal import HandOut
from tests.dispatcher.harness import T0, Bench, WorkerSim, cancel, failed, job, of, retry, run, succeeded

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)


def quick(number: int, **policy: object) -> RunCreated:
    """A run of a schedule that is due every second."""
    return run(
        number, at=T0, interval_from=T0 - SECOND, job=job(retry=retry(initial=SECOND, factor=1.0, **policy))
    )  # fmt: skip


def all_fail(bench: Bench, worker: WorkerSim, runs: list[RunCreated]) -> None:
    """Every run is handed out once and fails."""
    for given_ in runs:
        bench.take(given_)
    worker.report(slots=len(runs))
    done = bench.all(HandOut)
    worker.report(slots=0, started=done, finished=[failed(item) for item in done])


def retries(bench: Bench) -> int:
    return sum(item.attempt == 2 for item in bench.all(HandOut))


def test_ten_retries_are_always_allowed_and_the_eleventh_waits_until_the_first_minute_is_past():
    bench = Bench()
    worker = WorkerSim(bench)
    all_fail(bench, worker, [quick(number) for number in range(30)])
    worker.report(slots=30)
    bench.at(1)
    assert retries(bench) == 10
    held = bench.all(HandOut)[30:]
    bench.at(9 * MINUTE)
    worker.report(slots=20, held=held)
    bench.at(10 * MINUTE - SECOND)
    worker.report(slots=20, held=held)
    assert retries(bench) == 10
    bench.at(10 * MINUTE)
    assert retries(bench) == 20


def test_a_fifth_of_the_first_attempts_may_be_retries():
    bench = Bench()
    worker = WorkerSim(bench)
    all_fail(bench, worker, [quick(number) for number in range(200)])
    worker.report(slots=200)
    bench.at(1)
    assert retries(bench) == 40


def test_a_job_may_have_another_budget():
    for percent, expected in ((0, 10), (10, 20), (100, 200)):
        bench = Bench()
        worker = WorkerSim(bench)
        all_fail(bench, worker, [quick(number, budget_percent=percent) for number in range(200)])
        worker.report(slots=200)
        bench.at(1)
        assert retries(bench) == expected


def test_first_attempts_that_succeed_make_room_for_retries_that_wait():
    bench = Bench()
    worker = WorkerSim(bench)
    all_fail(bench, worker, [quick(number) for number in range(50)])
    worker.report(slots=50)
    bench.at(1)
    assert retries(bench) == 10
    held = bench.all(HandOut)[50:]
    for number in range(50, 100):
        bench.take(quick(number))
    worker.report(slots=60, held=held)
    assert retries(bench) == 20


def test_what_waits_for_the_budget_says_so_since_when_and_until_when():
    bench = Bench()
    worker = WorkerSim(bench)
    all_fail(bench, worker, [quick(number) for number in range(11)])
    worker.report(slots=11)
    bench.at(1)
    worker.report(slots=1, held=bench.all(HandOut)[11:])
    assert of(bench.at(5.999), RunDeferred) == []
    (told,) = of(bench.at(6), RunDeferred)
    assert (told.run_id, told.reason) == ("nightly.10", RunDeferReason.RETRY_BUDGET)
    assert (told.since, told.until) == (T0 + SECOND, T0 + 10 * MINUTE)


def test_other_schedules_and_what_burns_no_attempt_are_not_held():
    bench = Bench()
    worker = WorkerSim(bench)
    all_fail(bench, worker, [quick(number) for number in range(11)])
    other = run(500, schedule="other", run_id="other.1", job=job(retry=retry(initial=SECOND)))
    bench.take(other)
    worker.report(slots=30)
    first = bench.all(HandOut)[-1]
    assert first.run.run_id == "other.1"
    worker.report(slots=30, started=[first], finished=[failed(first)])
    bench.at(1)
    assert "other.1" in [item.run.run_id for item in bench.all(HandOut) if item.attempt == 2]
    held = [item for item in bench.all(HandOut) if item.attempt == 2]
    WorkerSim(bench, "w1", incarnation="w1-b").report(slots=0)  # its predecessor is lost, with what it had not begun
    assert len(of(bench.facts, RunRetryScheduled)) == 12
    facts = WorkerSim(bench, "w2").report(slots=30)
    assert len(of(facts, HandOut)) == len(held) == 11


def test_runs_whose_leases_ran_out_are_not_held():
    """A machine that dies with the work of many says nothing about the work."""
    bench = Bench()
    worker = WorkerSim(bench)
    for number in range(30):
        bench.take(quick(number))
    worker.report(slots=30)
    held = bench.all(HandOut)
    worker.report(slots=0, started=held, held=held)
    bench.at(MINUTE)
    assert len(bench.all(AttemptFinished)) == 30
    bench.at(MINUTE + SECOND)
    WorkerSim(bench, "w2").report(slots=30)
    assert retries(bench) == 30


def test_a_budget_outlives_a_takeover_and_is_forgotten_when_its_ten_minutes_are_past():
    bench = Bench()
    worker = WorkerSim(bench)
    all_fail(bench, worker, [quick(number) for number in range(11)])
    bench.take_over()
    bench.at(1)
    worker.report(slots=11)
    assert retries(bench) == 10
    held = bench.all(HandOut)[11:]
    worker.report(slots=0, started=held, finished=[succeeded(item) for item in held])
    bench.give(cancel("nightly.10"))
    bench.save()
    assert budget_rows(bench) == [b"b/acme/nightly"]
    bench.at(11 * MINUTE)
    worker.report(slots=1)
    bench.give(run(1, schedule="hourly", run_id="hourly.m-1", at=bench.now, cause=Cause.MANUAL))
    bench.save()
    assert budget_rows(bench) == [b"b/acme/hourly"]


def budget_rows(bench: Bench) -> list[bytes]:
    return [row for row in bench.rows.rows if row.startswith(b"b/")]


def test_runs_that_come_seldom_are_not_counted():
    for seconds, expected in ((1, True), (11, True), (12, False), (3600, False)):
        assert budgets.counts(run(1, interval_from=T0 - timedelta(seconds=seconds))) is expected
    assert budgets.counts(run(1)) is False
    assert budgets.counts(run(1, cause=Cause.BACKFILL)) is True


def test_a_schedule_with_a_larger_budget_is_counted_as_far_as_it_matters():
    """At 100%, one that is due every minute has as many retries as are allowed anyway; a quicker one has more."""
    for percent, seconds, expected in (
        (100, 59, True), (100, 60, False), (50, 29, True), (50, 30, False), (10, 6, False), (0, 1, False),
    ):  # fmt: skip
        given_ = run(1, interval_from=T0 - seconds * SECOND, job=job(retry=retry(budget_percent=percent)))
        assert budgets.counts(given_) is expected


steps = st.lists(st.tuples(st.integers(0, 400), st.sampled_from(["first", "retry"])), max_size=120)


@given(steps, st.integers(0, 100))
def test_whatever_comes_when_no_ten_minutes_have_more_retries_than_their_share(steps, percent):
    """Minutes are counted whole: ten of them, the running one with what it has had so far."""
    budget = Budget(subject="acme/nightly", minute=budgets.minute_of(T0), percent=percent)
    now = T0
    firsts: list[int] = []
    tried: list[int] = []
    for wait, step in steps:
        now += wait * SECOND
        minute = budgets.minute_of(now)
        if step == "first":
            firsts.append(minute)
            budget = budgets.noted(budget, now, firsts=1)
        elif budgets.opens_at(budget) <= now:
            window = range(minute - 9, minute + 1)
            allowed = max(10, sum(each in window for each in firsts) * percent // 100)
            assert sum(each in window for each in tried) < allowed
            tried.append(minute)
            budget = budgets.noted(budget, now, retries=1)
    assert budgets.opens_at(budget) <= now + 10 * MINUTE
