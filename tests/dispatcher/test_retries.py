"""What follows when an attempt fails, takes too long, or is lost for the third time."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatcher.backoff import backoff, delay
from schemas import topics
from schemas.facts import (
    AttemptFinished,
    AttemptOutcome,
    AttemptStarted,
    DeadLetter,
    ErrorInfo,
    Fact,
    Outcome,
    RunFinished,
    RunRetryScheduled,
)
from schemas.internal import HandOut, LeaseNotice, WorkerReport
from tests.dispatcher.harness import T0, TASK, Bench, WorkerSim, ended, failed, job, of, only, retry, run, succeeded

SECOND = timedelta(seconds=1)


def fail_once(worker: WorkerSim, hand_out: HandOut, type_: str = "ValueError", message: str = "no") -> list[Fact]:
    return worker.report(slots=1, started=[hand_out], finished=[failed(hand_out, type_, message)])


def test_b_o20_the_backoff_doubles_to_its_cap_and_stays_there_for_ever():
    policy = retry(initial=SECOND, factor=2.0, max=300 * SECOND, jitter="none")
    first_twelve = [backoff(policy, number) / SECOND for number in range(1, 13)]
    assert first_twelve == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]
    assert [delay(policy, number, "nightly.1") / SECOND for number in (1, 9, 10, 1100, 5000)] == [1, 256, 300, 300, 300]


@given(
    number=st.integers(1, 10**9),
    initial=st.timedeltas(min_value=timedelta(milliseconds=1), max_value=timedelta(days=400)),
    factor=st.floats(1, 100),
    longest=st.timedeltas(min_value=timedelta(milliseconds=1), max_value=timedelta(days=400)),
    jitter=st.sampled_from(["full", "none"]),
)
def test_a_delay_is_never_zero_never_over_the_cap_and_never_an_error(number, initial, factor, longest, jitter):
    policy = retry(initial=initial, factor=factor, max=longest, jitter=jitter)
    wait = delay(policy, number, "nightly.1")
    assert timedelta(milliseconds=1) <= wait <= longest
    assert wait == delay(policy, number, "nightly.1")


def test_jitter_spreads_retries_over_the_whole_backoff():
    policy = retry(initial=100 * SECOND, jitter="full")
    waits = [delay(policy, 1, f"nightly.{number}") / SECOND for number in range(1000)]
    assert min(waits) < 2
    assert max(waits) > 98
    assert 45 < sum(waits) / len(waits) < 55


def test_a_failed_attempt_is_tried_again_after_its_backoff_and_not_before():
    bench = Bench()
    worker = WorkerSim(bench)
    worker.report()
    first = only(bench.give(run(1)), HandOut)
    facts = fail_once(worker, first)
    scheduled = only(facts, RunRetryScheduled)
    assert (scheduled.attempt, scheduled.retry_at) == (2, T0 + SECOND)
    assert scheduled.error == ErrorInfo(type="ValueError", message="no")
    assert bench.at(0.999) == []
    second = only(bench.at(1), HandOut)
    assert (second.attempt, second.may_have_run) == (2, True)
    assert only(fail_once(worker, second), RunRetryScheduled).retry_at == T0 + 3 * SECOND


def test_b_o21_a_job_that_always_fails_has_five_attempts_and_the_healthy_ones_do_not_wait_for_it():
    bench = Bench()
    worker = WorkerSim(bench)
    poison = job(retry=retry(max_attempts=5, initial=10 * SECOND, factor=2.0))
    worker.report(slots=1)
    pending = bench.give(run(0, job=poison))
    for number in range(1, 101):
        pending += bench.give(run(number))
    finished_at: dict[str, float] = {}
    for tick in range(400):
        pending += bench.at(tick * 0.5)
        hand_outs, pending = of(pending, HandOut), []
        if not hand_outs:
            pending += worker.report(slots=1)
        for hand_out in hand_outs:
            word = failed(hand_out, "Boom", "as ever") if hand_out.run.run_id == "nightly.0" else succeeded(hand_out)
            pending += worker.report(slots=1, started=[hand_out], finished=[word])
        for fact in of(pending, RunFinished):
            finished_at[fact.run_id] = tick * 0.5

    of_poison = [fact for fact in bench.all(AttemptFinished) if fact.run_id == "nightly.0"]
    assert [(fact.attempt, fact.outcome) for fact in of_poison] == [
        (number, AttemptOutcome.FAILED) for number in range(1, 6)
    ]
    end = next(fact for fact in bench.all(RunFinished) if fact.run_id == "nightly.0")
    assert (end.outcome, end.attempts, end.error) == (
        Outcome.DEAD_LETTERED,
        5,
        ErrorInfo(type="Boom", message="as ever"),
    )
    letter = only(bench.on(topics.DEAD_LETTERS), DeadLetter)
    assert (letter.run.run_id, letter.attempts, letter.error) == ("nightly.0", 5, end.error)
    healthy = [fact for fact in bench.all(RunFinished) if fact.run_id != "nightly.0"]
    assert [fact.outcome for fact in healthy] == [Outcome.SUCCEEDED] * 100
    # One slot, half a second a run: 101 turns, and not the 150 s of backoff on top.
    assert max(value for run_id, value in finished_at.items() if run_id != "nightly.0") <= 60


@pytest.mark.parametrize(
    ("rule", "error_type", "refused"),
    [
        ("ValueError", "ValueError", True),
        ("ValueError", "KeyError", False),
        ("ValueError", "http:404", True),
        ("http:4xx", "http:429", False),
        ("http:429", "http:429", True),
        ("http:4xx", "http:404", True),
        ("http:4xx", "http:503", False),
        ("http:4xx", "http:4", False),
        ("http:4xx", "http:4xx", False),
        ("http:404", "http:404", True),
    ],
)
def test_an_error_that_the_rules_refuse_ends_the_run_as_failed(rule, error_type, refused):
    bench = Bench()
    worker = WorkerSim(bench)
    worker.report()
    hand_out = only(bench.give(run(1, job=job(retry=retry(never_on=(rule,))))), HandOut)
    facts = fail_once(worker, hand_out, error_type)
    if refused:
        finished = only(facts, RunFinished)
        assert (finished.outcome, finished.reason) == (Outcome.FAILED, "never_on")
        assert of(facts, DeadLetter) == []
    else:
        assert only(facts, RunRetryScheduled).attempt == 2


def test_a_job_with_one_attempt_ends_failed_without_a_dead_letter():
    bench = Bench()
    worker = WorkerSim(bench)
    worker.report()
    hand_out = only(bench.give(run(1, job=job(retry=retry(max_attempts=1)))), HandOut)
    facts = fail_once(worker, hand_out)
    finished = only(facts, RunFinished)
    assert (finished.outcome, finished.attempts, finished.error) == (
        Outcome.FAILED, 1, ErrorInfo(type="ValueError", message="no"),
    )  # fmt: skip
    assert bench.on(topics.DEAD_LETTERS) == []


def test_an_attempt_that_takes_too_long_is_timed_out_and_its_worker_told():
    bench = Bench()
    worker = WorkerSim(bench)
    worker.report()
    policy = retry(max_attempts=1)
    hand_out = only(bench.give(run(1, job=job(timeout=60 * SECOND, lease=timedelta(hours=1), retry=policy))), HandOut)
    bench.at(5)
    worker.report(slots=0, started=[hand_out], held=[hand_out])
    assert bench.at(64.999) == []
    facts = bench.at(65)
    assert only(facts, AttemptFinished).outcome is AttemptOutcome.TIMED_OUT
    assert only(facts, LeaseNotice).ended == (hand_out.lease,)
    finished = only(facts, RunFinished)
    assert (finished.outcome, finished.error) == (
        Outcome.TIMED_OUT, ErrorInfo(type="timed_out", message="the attempt took longer than its timeout"),
    )  # fmt: skip


def test_an_attempt_that_is_held_and_never_begun_is_timed_out_too():
    bench = Bench()
    worker = WorkerSim(bench)
    worker.report()
    hand_out = only(bench.give(run(1, job=job(timeout=60 * SECOND))), HandOut)
    for second in range(5, 70, 5):
        bench.at(second)
        worker.report(slots=0, held=[hand_out])
    assert only(bench.at(70), AttemptFinished).outcome is AttemptOutcome.TIMED_OUT


def test_a_timed_out_attempt_is_tried_again():
    bench = Bench()
    worker = WorkerSim(bench)
    worker.report()
    hand_out = only(bench.give(run(1, job=job(timeout=10 * SECOND))), HandOut)
    worker.report(slots=0, started=[hand_out], held=[hand_out])
    assert only(bench.at(10), RunRetryScheduled).attempt == 2
    bench.at(11)
    assert only(worker.report(slots=1), HandOut).attempt == 2


def test_a_run_that_waits_to_its_deadline_expires():
    bench = Bench()
    bench.give(run(1, deadline_at=T0 + 60 * SECOND))
    assert of(bench.at(59.999), RunFinished) == []
    finished = only(bench.at(60), RunFinished)
    assert (finished.outcome, finished.attempts, finished.reason) == (Outcome.EXPIRED, 0, "deadline")
    assert bench.all(HandOut) == []


def test_a_run_that_runs_at_its_deadline_expires_and_its_attempt_is_timed_out():
    bench = Bench()
    worker = WorkerSim(bench)
    worker.report()
    hand_out = only(bench.give(run(1, deadline_at=T0 + 20 * SECOND)), HandOut)
    worker.report(slots=0, started=[hand_out], held=[hand_out])
    facts = bench.at(20)
    assert only(facts, AttemptFinished).outcome is AttemptOutcome.TIMED_OUT
    finished = only(facts, RunFinished)
    assert (finished.outcome, finished.reason) == (Outcome.EXPIRED, "deadline")


def test_the_deadline_of_a_running_run_waits_for_the_evidence():
    bench = Bench()
    worker = WorkerSim(bench)
    worker.report()
    hand_out = only(bench.give(run(1, deadline_at=T0 + 20 * SECOND)), HandOut)
    bench.read_until = T0 + 19 * SECOND
    assert bench.at(100, read=False) == []
    facts = worker.report(slots=1, started=[hand_out], finished=[succeeded(hand_out)])
    assert only(facts, RunFinished).outcome is Outcome.SUCCEEDED


def test_a_run_whose_workers_died_of_it_twice_with_nothing_else_begun_is_quarantined():
    bench = Bench()
    bench.give(run(1))
    for life in range(2):
        pending = WorkerSim(bench, "w1", incarnation=f"life-{life}").report(slots=1)
        hand_out = only(pending, HandOut)
        assert hand_out.attempt == life + 1
        if life:
            lost = only(pending, AttemptFinished)
            assert (lost.outcome, lost.counted, lost.blame) == (AttemptOutcome.LOST, False, 1.0)
        bench.give(begun(bench, "w1", f"life-{life}", [hand_out]))
    facts = WorkerSim(bench, "w1", incarnation="life-2").report(slots=1)
    finished = only(facts, RunFinished)
    assert (finished.outcome, finished.attempts, finished.reason) == (Outcome.DEAD_LETTERED, 2, "quarantined")
    letter = only(bench.on(topics.DEAD_LETTERS), DeadLetter)
    assert (letter.run.run_id, letter.attempts, letter.reason) == ("nightly.1", 2, "quarantined")
    assert of(facts, HandOut) == []


def begun(bench: Bench, name: str, incarnation: str, hand_outs: list[HandOut]) -> WorkerReport:
    """The second report of an incarnation: it has read all that it was handed, and has begun it."""
    return WorkerReport(
        queue=bench.queue, shard=0, worker=name, incarnation=incarnation, number=2, inbox=3,
        read_up_to=max(item.offset for item in hand_outs), slots=0, tasks=(TASK,),
        held=tuple(item.lease for item in hand_outs), started=tuple(item.lease for item in hand_outs),
    )  # fmt: skip


def lives_of_a_worker(bench: Bench, count: int, slots: int) -> list[Fact]:
    """A worker that is killed `count` times with all that it was handed begun; what its next life's report decides."""
    for life in range(count):
        WorkerSim(bench, "w1", incarnation=f"life-{life}").report(slots=slots)
        held = list(bench.state.workforce.by_incarnation[f"life-{life}"].leases.values())
        hand_outs = [item for item in bench.all(HandOut) if item.lease in {entry.lease for entry in held}]
        bench.give(begun(bench, "w1", f"life-{life}", hand_outs))
    return WorkerSim(bench, "w1", incarnation=f"life-{count}").report(slots=slots)


def test_three_losses_in_a_row_quarantine_in_any_case():
    bench = Bench()
    for number in range(4):
        bench.give(run(number))
    facts = lives_of_a_worker(bench, 2, slots=4)
    assert of(facts, RunFinished) == []
    assert [fact.blame for fact in of(facts, AttemptFinished)] == [0.25] * 4
    bench = bench_of(4)
    facts = lives_of_a_worker(bench, 3, slots=4)  # after two their job is a suspect, and one of them goes
    assert [(fact.run_id, fact.reason) for fact in of(facts, RunFinished)] == [("nightly.0", "quarantined")]
    assert bench.state.runs["acme/nightly.1"].losses == 2


def bench_of(runs: int) -> Bench:
    bench = Bench()
    for number in range(runs):
        bench.give(run(number))
    return bench


def test_when_a_rack_fails_nobody_is_quarantined():
    """Ten workers of four runs each die at once, and once more: no run has half of what it takes."""
    bench = bench_of(40)
    for outage in range(2):
        for number in range(10):
            WorkerSim(bench, f"w{number}", incarnation=f"w{number}-{outage}").report(slots=4)
        for number in range(10):
            leases = {
                entry.lease for entry in bench.state.workforce.by_incarnation[f"w{number}-{outage}"].leases.values()
            }
            hand_outs = [item for item in bench.all(HandOut) if item.lease in leases]
            assert len(hand_outs) == 4
            bench.give(begun(bench, f"w{number}", f"w{number}-{outage}", hand_outs))
        bench.later(1)
    for number in range(10):
        WorkerSim(bench, f"w{number}", incarnation=f"w{number}-2").report(slots=4)
    lost = [fact for fact in bench.all(AttemptFinished) if fact.outcome is AttemptOutcome.LOST]
    assert (len(lost), {fact.blame for fact in lost}) == (80, {0.25})
    assert bench.all(RunFinished) == []
    assert bench.all(DeadLetter) == []


def test_thirds_of_the_blame_are_rounded_up_so_that_six_of_them_are_two():
    assert round(6 * 0.333334, 6) >= 2.0
    facts = lives_of_a_worker(bench_of(3), 1, slots=3)
    assert [fact.blame for fact in of(facts, AttemptFinished)] == [0.333334] * 3


def test_an_attempt_that_its_worker_lived_through_clears_a_run():
    bench = Bench()
    bench.give(run(1, job=job(retry=retry(max_attempts=9))))
    for life in range(4):
        worker = WorkerSim(bench, "w1", incarnation=f"life-{life}")
        hand_out = only(worker.report(slots=1), HandOut)
        if life in {1, 2}:
            fail_once(worker, hand_out)
            bench.later(10)
            hand_out = bench.all(HandOut)[-1]
        worker.report(slots=0, started=[hand_out], held=[hand_out])
    facts = WorkerSim(bench, "w1", incarnation="life-4").report(slots=1)
    # A loss, a failure, a loss, a failure, and two losses: only the last two are held against it.
    assert [fact.reason for fact in bench.all(RunFinished)] == ["quarantined"]
    assert only(facts, RunFinished).attempts == 6


def test_a_worker_that_gives_a_run_back_says_when_to_try_it_again():
    """`Retry-After` of whoever was called: the backoff is the least, what was asked for the least as well."""
    bench = Bench()
    worker = WorkerSim(bench)
    worker.report()
    hand_out = only(bench.give(run(1)), HandOut)
    word = replace(failed(hand_out, "http:429", "too many"), retry_after=timedelta(seconds=90))
    facts = worker.report(slots=1, started=[hand_out], finished=[word])
    assert only(facts, RunRetryScheduled).retry_at == T0 + timedelta(seconds=90)
    assert of(bench.at(89.999), HandOut) == []
    second = only(worker.report(slots=1), HandOut) if not bench.at(90) else bench.all(HandOut)[-1]
    word = replace(failed(second, "http:429", "too many"), retry_after=timedelta(milliseconds=5))
    facts = worker.report(slots=1, started=[second], finished=[word])
    assert only(facts, RunRetryScheduled).retry_at == T0 + timedelta(seconds=92)


def test_a_worker_cannot_put_a_run_off_for_longer_than_a_week():
    bench = Bench()
    worker = WorkerSim(bench)
    worker.report()
    hand_out = only(bench.give(run(1)), HandOut)
    word = replace(failed(hand_out), retry_after=timedelta(days=3_000))
    facts = worker.report(slots=1, started=[hand_out], finished=[word])
    assert only(facts, RunRetryScheduled).retry_at == T0 + timedelta(days=7)


def test_what_a_worker_gave_back_does_not_count_towards_the_attempts():
    bench = Bench()
    worker = WorkerSim(bench)
    worker.report()
    hand_out = only(bench.give(run(1, job=job(retry=retry(max_attempts=2)))), HandOut)
    facts = worker.report(slots=1, started=[hand_out], finished=[ended(hand_out, "interrupted")])
    facts = fail_once(worker, only(facts, HandOut))
    assert only(facts, RunRetryScheduled).attempt == 3
    facts = fail_once(worker, only(bench.at(1), HandOut))
    assert only(facts, RunFinished).outcome is Outcome.DEAD_LETTERED


def test_the_time_of_an_attempt_runs_from_its_start_however_old_the_report_that_says_so():
    bench = Bench()
    worker = WorkerSim(bench)
    worker.report()
    hand_out = only(bench.give(run(1, job=job(timeout=20 * SECOND, lease=timedelta(hours=1)))), HandOut)
    older, newer = worker.said(slots=0, started=[hand_out]), worker.said(slots=0, held=[hand_out])
    bench.at(1)
    bench.give(newer)
    bench.at(2)
    bench.give(older)
    assert of(bench.at(21.999), AttemptFinished) == []
    assert only(bench.at(22), AttemptFinished).outcome is AttemptOutcome.TIMED_OUT


def test_a_result_that_is_too_large_is_replaced_by_a_mark_and_the_run_has_succeeded():
    bench = Bench()
    worker = WorkerSim(bench)
    worker.report()
    hand_out = only(bench.give(run(1)), HandOut)
    facts = worker.report(started=[hand_out], finished=[succeeded(hand_out, "x" * 16_383)])
    finished = only(facts, RunFinished)
    assert finished.outcome is Outcome.SUCCEEDED
    assert finished.result == {"truncated": True, "bytes": 16_385, "bytes_max": 16_384}
    hand_out = only(bench.give(run(2)), HandOut)
    facts = worker.report(started=[hand_out], finished=[succeeded(hand_out, "x" * 16_382)])
    assert only(facts, RunFinished).result == "x" * 16_382


def test_an_error_is_cut_to_the_lengths_that_events_promise():
    bench = Bench()
    worker = WorkerSim(bench)
    worker.report()
    hand_out = only(bench.give(run(1)), HandOut)
    facts = fail_once(worker, hand_out, "E" * 300, "m" * 5000)
    error = ErrorInfo(type="E" * 256, message="m" * 4096)
    assert only(facts, AttemptFinished).error == error
    assert only(facts, RunRetryScheduled).error == error


def test_b_o31_what_started_is_what_finished_and_what_still_runs():
    bench = Bench()
    worker = WorkerSim(bench)
    worker.report(slots=18)
    once = job(retry=replace(retry(), max_attempts=1))
    for number in range(18):
        bench.give(run(number, job=once))
    hand_outs = bench.all(HandOut)

    def running() -> int:
        return len(bench.all(AttemptStarted)) - len([f for f in bench.all(AttemptFinished) if f.started_at])

    worker.report(slots=0, started=hand_outs, held=hand_outs)
    assert running() == 18
    worker.report(slots=10, held=hand_outs[10:], finished=[succeeded(item) for item in hand_outs[:10]])
    assert running() == 8
    worker.report(slots=15, held=hand_outs[15:], finished=[failed(item) for item in hand_outs[10:15]])
    worker.report(slots=17, held=hand_outs[17:], finished=[ended(item, "cancelled") for item in hand_outs[15:17]])
    assert running() == 1
    bench.at(30)
    assert running() == 0
    outcomes = [fact.outcome for fact in bench.all(AttemptFinished)]
    assert outcomes == (
        [AttemptOutcome.SUCCEEDED] * 10
        + [AttemptOutcome.FAILED] * 5
        + [AttemptOutcome.CANCELLED] * 2
        + [AttemptOutcome.LEASE_EXPIRED]
    )
    assert len(bench.all(AttemptStarted)) == 18
    assert len(bench.all(RunFinished)) == 18
