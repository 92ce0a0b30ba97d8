"""A run that nobody has begun by its `start_by_at` ends; one that was begun in time is left alone."""

from dataclasses import replace
from datetime import timedelta

from dispatcher.breakers import DEFAULT
from schemas.facts import (
    AttemptDuplicate,
    AttemptFinished,
    AttemptOutcome,
    AttemptStarted,
    BreakerChanged,
    ErrorInfo,
    Outcome,
    RunDeferred,
    RunFinished,
    RunRetryScheduled,
)
from schemas.internal import HandOut, LeaseNotice
from tests.dispatcher.harness import T0, Bench, WorkerSim, failed, job, of, only, run, succeeded

SECOND = timedelta(seconds=1)
URGENT = run(1, start_by_at=T0 + 60 * SECOND)


def handed_out(bench: Bench, at: float = 0) -> tuple[WorkerSim, HandOut]:
    bench.at(at)
    worker = WorkerSim(bench)
    facts = worker.report()
    return worker, only([*facts, *bench.give(URGENT)], HandOut)


# --- nobody takes it ---


def test_a_run_that_waits_until_then_expires_with_a_reason_of_its_own():
    bench = Bench()
    bench.give(URGENT)
    assert of(bench.at(59.999), RunFinished) == []
    finished = only(bench.at(60), RunFinished)
    assert (finished.outcome, finished.attempts, finished.reason) == (Outcome.EXPIRED, 0, "start_within")
    assert finished.error == ErrorInfo(type="start_within", message="no attempt had begun in time")


def test_what_waits_says_by_when_it_has_to_begin():
    bench = Bench()
    bench.give(URGENT)
    assert only(bench.at(5), RunDeferred).start_by_at == T0 + 60 * SECOND


def test_what_need_not_begin_by_any_instant_says_none_and_waits():
    bench = Bench()
    bench.give(run(1))
    assert only(bench.at(5), RunDeferred).start_by_at is None
    assert bench.at(3600) == []


def test_a_deadline_before_it_comes_first():
    bench = Bench()
    bench.give(replace(URGENT, deadline_at=T0 + 30 * SECOND))
    assert only(bench.at(30), RunFinished).reason == "deadline"


def test_another_owner_ends_it_as_well():
    bench = Bench()
    bench.give(URGENT)
    bench.take_over()
    assert only(bench.at(60), RunFinished).reason == "start_within"


def test_a_run_that_comes_too_late_to_begin_is_never_handed_out():
    bench = Bench()
    bench.at(90)
    WorkerSim(bench).report()
    facts = bench.give(URGENT)
    assert (only(facts, RunFinished).reason, of(facts, HandOut)) == ("start_within", [])


# --- a worker has it and does not begin ---


def test_a_hand_out_that_was_not_begun_by_then_is_taken_back():
    bench = Bench()
    worker, hand_out = handed_out(bench)
    worker.report(slots=0, held=[hand_out])
    for second in (15, 30, 45):
        bench.at(second)
        worker.report(slots=0, held=[hand_out])
    assert of(bench.at(59.999), RunFinished) == []
    facts = bench.at(60)
    attempt = only(facts, AttemptFinished)
    assert (attempt.outcome, attempt.started_at) == (AttemptOutcome.TIMED_OUT, None)
    assert only(facts, RunFinished).reason == "start_within"
    assert only(facts, LeaseNotice).ended == (hand_out.lease,)


def test_it_is_taken_back_only_when_every_report_up_to_then_was_read():
    bench = Bench()
    worker, hand_out = handed_out(bench, at=55)
    bench.read_until = T0 + 59 * SECOND
    assert bench.at(61, read=False) == []
    facts = worker.report(slots=0, started=[hand_out], held=[hand_out])
    assert only(facts, AttemptStarted).attempt == 1
    bench.at(62)
    assert bench.all(RunFinished) == []


def test_the_order_of_the_log_says_who_was_first_and_a_later_word_is_a_duplicate():
    bench = Bench()
    worker, hand_out = handed_out(bench, at=55)
    bench.at(60)
    facts = worker.report(slots=0, started=[hand_out], held=[hand_out])
    assert (of(facts, AttemptStarted), only(facts, LeaseNotice).ended) == ([], (hand_out.lease,))
    duplicate = only(worker.report(slots=1, finished=[succeeded(hand_out)]), AttemptDuplicate)
    assert (duplicate.run_id, duplicate.attempt, duplicate.reported) == ("nightly.1", 1, "succeeded")
    assert only(bench.all(RunFinished), RunFinished).outcome is Outcome.EXPIRED


def test_a_worker_is_told_how_late_it_may_still_begin():
    bench = Bench()
    _, hand_out = handed_out(bench, at=57)
    assert hand_out.start_by == 3 * SECOND


def test_a_hand_out_that_was_lost_before_it_began_leaves_the_limit_as_it_was():
    bench = Bench()
    worker, hand_out = handed_out(bench)
    assert only(worker.report(slots=0), AttemptFinished).outcome is AttemptOutcome.LOST
    bench.at(5)
    worker.report(slots=0)
    bench.at(59)
    worker.report(slots=0)
    assert only(bench.at(60), RunFinished).reason == "start_within"
    assert hand_out.attempt == 1


def test_a_loss_that_is_heard_of_too_late_to_try_again_ends_the_run():
    bench = Bench()
    worker, _ = handed_out(bench, at=55)
    bench.read_until = T0 + 59 * SECOND
    bench.at(61, read=False)
    facts = worker.report(slots=1)
    assert only(facts, AttemptFinished).outcome is AttemptOutcome.LOST
    assert (only(facts, RunFinished).reason, of(facts, HandOut)) == ("start_within", [])


def test_what_was_never_begun_says_nothing_of_its_job_to_a_breaker():
    bench = Bench()
    worker = WorkerSim(bench)
    for number in range(3):
        bench.take(replace(run(number, start_by_at=T0 + 20 * SECOND), job=job(breaker=replace(DEFAULT, failures=3))))
    held = of(worker.report(slots=3), HandOut)
    bench.at(15)
    worker.report(slots=0, held=held)
    facts = bench.at(20)
    assert [fact.reason for fact in of(facts, RunFinished)] == ["start_within"] * 3
    assert of(facts, BreakerChanged) == []


# --- it has begun ---


def test_a_run_that_has_begun_in_time_may_take_its_time():
    bench = Bench()
    worker, hand_out = handed_out(bench)
    for second in (0, 15, 30, 45, 60, 75):
        bench.at(second)
        worker.report(slots=0, started=[hand_out], held=[hand_out])
    facts = worker.report(slots=1, finished=[succeeded(hand_out)])
    assert only(facts, RunFinished).outcome is Outcome.SUCCEEDED


def test_retries_are_not_bound_by_it():
    bench = Bench()
    worker, hand_out = handed_out(bench)
    worker.report(slots=0, started=[hand_out], held=[hand_out])
    bench.at(25)
    facts = worker.report(slots=0, finished=[failed(hand_out)])
    assert only(facts, RunRetryScheduled).attempt == 2
    bench.at(300)
    hand_out = only(worker.report(slots=1), HandOut)
    assert (hand_out.attempt, hand_out.start_by) == (2, 10 * SECOND)
    assert bench.all(RunFinished) == []


def test_an_attempt_whose_begin_and_end_are_heard_of_at_once_has_begun():
    bench = Bench()
    worker, hand_out = handed_out(bench, at=55)
    bench.read_until = T0 + 59 * SECOND
    bench.at(61, read=False)
    assert only(worker.report(slots=1, finished=[failed(hand_out)]), RunRetryScheduled).attempt == 2


# --- short leases ---


def test_a_worker_that_reads_late_has_no_longer_than_a_third_of_the_lease_to_begin():
    """It stops two thirds of a lease after it began, if nobody hears of it: then the lease is over, and not before."""
    bench = Bench()
    WorkerSim(bench).report()
    hand_out = only(bench.give(run(1, job=job(lease=6 * SECOND))), HandOut)
    assert hand_out.start_by == 2 * SECOND
