"""Leases: whose an attempt is, until when, and what is believed of it afterwards."""

from dataclasses import replace
from datetime import timedelta

from schemas.facts import (
    AttemptDuplicate,
    AttemptFinished,
    AttemptOutcome,
    AttemptStarted,
    Outcome,
    RunFinished,
    RunRetryScheduled,
)
from schemas.internal import FinishedLease, HandOut, LeaseNotice, LeasesRenewed, WorkerReport, WorkerReported
from tests.dispatcher.harness import T0, Bench, WorkerSim, ended, failed, job, of, only, run, succeeded

MINUTES = timedelta(minutes=1)


def handed_out(bench: Bench, worker: WorkerSim, **given) -> HandOut:
    """One run, in the hands of a worker that had one slot."""
    worker.report(slots=1)
    return only(bench.give(run(1, **given)), HandOut)


def test_what_a_worker_has_read_past_and_does_not_hold_is_handed_out_again_at_once():
    bench = Bench()
    worker = WorkerSim(bench)
    first = handed_out(bench, worker)
    facts = worker.report(slots=1)

    lost = only(facts, AttemptFinished)
    assert (lost.outcome, lost.counted, lost.attempt, lost.started_at) == (AttemptOutcome.LOST, False, 1, None)
    again = only(facts, HandOut)
    assert (again.offset, again.attempt, again.may_have_run) == (1, 2, True)
    assert again.lease_key != first.lease_key


def test_what_a_worker_has_not_read_yet_is_its_own_until_the_lease_ends():
    bench = Bench()
    worker = WorkerSim(bench)
    handed_out(bench, worker)
    for second in (5, 10, 15, 20, 25):
        bench.at(second)
        worker.report(slots=1, read_up_to=-1)
    assert bench.all(AttemptFinished) == []
    assert bench.at(29.999) == []
    expired = only(bench.at(30), AttemptFinished)
    assert (expired.outcome, expired.counted) == (AttemptOutcome.LEASE_EXPIRED, True)


def test_reports_renew_the_leases_they_list():
    bench = Bench()
    worker = WorkerSim(bench)
    hand_out = handed_out(bench, worker)
    for second in range(5, 200, 5):
        bench.at(second)
        worker.report(slots=0, held=[hand_out], started=[hand_out])
    assert bench.all(AttemptFinished) == []
    facts = worker.report(slots=1, finished=[succeeded(hand_out)])
    assert only(facts, RunFinished).attempts == 1


def test_a_lease_ends_only_when_the_evidence_up_to_its_end_has_been_read():
    bench = Bench()
    worker = WorkerSim(bench)
    hand_out = handed_out(bench, worker)
    bench.read_until = T0 + timedelta(seconds=1)
    # The clock is far beyond the lease, but reports of that time may stand unread.
    assert bench.at(300, read=False) == []
    facts = worker.report(slots=1, started=[hand_out], finished=[succeeded(hand_out)])
    assert only(facts, RunFinished).outcome is Outcome.SUCCEEDED
    assert of(bench.at(301), AttemptFinished) == []


def test_whatever_else_is_due_no_lease_ends_on_unread_evidence():
    bench = Bench()
    worker, other = WorkerSim(bench), WorkerSim(bench, "other")
    handed_out(bench, worker)
    other.report(slots=1)
    bench.read_until = T0 + timedelta(seconds=1)
    bench.at(300, read=False)
    # The shard is asked because a run is waiting, and hands it out; the evidence has still not been read.
    facts = bench.give(run(2))
    assert only(facts, HandOut).run.run_id == "nightly.2"
    assert of(facts, AttemptFinished) == []


def test_the_key_of_a_lease_taken_back_must_be_right_too():
    bench = Bench()
    worker = WorkerSim(bench)
    hand_out = handed_out(bench, worker)
    worker.report(slots=0, started=[hand_out], held=[hand_out])
    bench.at(30)
    guess = FinishedLease(lease=f"mail.0.0.{'0' * 32}", outcome="succeeded", result="guessed")
    facts = worker.report(slots=0, finished=[guess])
    assert of(facts, RunFinished) + of(facts, AttemptDuplicate) == []


def test_an_ended_lease_is_said_to_the_worker_at_once_and_again_whenever_it_lists_it():
    bench = Bench()
    worker = WorkerSim(bench)
    hand_out = handed_out(bench, worker)
    worker.report(slots=0, held=[hand_out], started=[hand_out])
    notice = only(bench.at(30), LeaseNotice)
    assert (notice.incarnation, notice.inbox, notice.ended, notice.cancelled) == ("w1-a", 3, (hand_out.lease,), ())
    assert notice.incarnation_ended is False
    for second in (31, 32):
        bench.at(second)
        facts = worker.report(slots=0, held=[hand_out])
        assert only(facts, LeaseNotice).ended == (hand_out.lease,)


def test_a_late_success_counts_while_nobody_else_has_the_run():
    bench = Bench()
    worker = WorkerSim(bench)
    hand_out = handed_out(bench, worker)
    worker.report(slots=0, held=[hand_out], started=[hand_out])
    assert only(bench.at(30), AttemptFinished).outcome is AttemptOutcome.LEASE_EXPIRED

    facts = worker.report(slots=0, finished=[succeeded(hand_out, "late")])
    finished = only(facts, RunFinished)
    assert (finished.outcome, finished.attempts, finished.result) == (Outcome.SUCCEEDED, 1, "late")
    assert finished.reason == "late_report"
    assert of(facts, AttemptFinished) == []


def test_a_late_failure_changes_nothing():
    bench = Bench()
    worker = WorkerSim(bench)
    hand_out = handed_out(bench, worker)
    worker.report(slots=0, held=[hand_out], started=[hand_out])
    bench.at(30)
    facts = worker.report(slots=0, finished=[failed(hand_out)])
    duplicate = only(facts, AttemptDuplicate)
    assert duplicate == AttemptDuplicate(
        tenant="acme", schedule="nightly", run_id="nightly.1", worker="w1", incarnation="w1-a", handout=0,
        reported="failed", received_at=T0 + timedelta(seconds=30), attempt=1,
    )  # fmt: skip
    bench.at(31)
    assert only(worker.report(slots=1), HandOut).attempt == 2


def test_a_report_that_is_delivered_twice_counts_once_and_says_nothing_the_second_time():
    bench = Bench()
    worker = WorkerSim(bench)
    first = handed_out(bench, worker, job=job(retry=replace(job().retry, initial=timedelta(seconds=60))))
    report = worker.said(slots=1, started=[first], finished=[failed(first)])
    assert only(bench.give(report), RunRetryScheduled).attempt == 2
    assert bench.give(report) == []


def test_b_o18_a_long_run_with_heartbeats_is_one_attempt_and_one_success():
    bench = Bench()
    worker = WorkerSim(bench)
    hand_out = handed_out(bench, worker, job=job(lease=6 * MINUTES))
    worker.report(slots=0, started=[hand_out], held=[hand_out])
    for minute in range(2, 47, 2):
        bench.at(minute * MINUTES)
        worker.report(slots=0, held=[hand_out])
    bench.at(47 * MINUTES)
    facts = worker.report(slots=1, finished=[succeeded(hand_out)])
    assert len(bench.all(HandOut)) == 1
    assert [fact.outcome for fact in bench.all(AttemptFinished)] == [AttemptOutcome.SUCCEEDED]
    assert only(facts, RunFinished).attempts == 1


def test_b_o18_b_a_killed_worker_is_replaced_after_its_lease_and_its_late_result_changes_nothing():
    bench = Bench()
    first_worker, second_worker = WorkerSim(bench, "w1"), WorkerSim(bench, "w2")
    policy = replace(job().retry, initial=timedelta(seconds=1))
    first = handed_out(bench, first_worker, job=job(lease=6 * MINUTES, retry=policy))
    first_worker.report(slots=0, started=[first], held=[first])
    second_worker.report(slots=1)
    for minute in range(2, 11, 2):
        bench.at(minute * MINUTES)
        first_worker.report(slots=0, held=[first])
        second_worker.report(slots=1)
    for seconds in range(605, 960, 5):
        bench.at(seconds)
        second_worker.report(slots=1)
    assert len(bench.all(HandOut)) == 1

    # The last heartbeat was at 10:00, so the lease ends at 16:00 and not before.
    assert of(bench.at(959.999), AttemptFinished) == []
    assert only(bench.at(960), AttemptFinished).outcome is AttemptOutcome.LEASE_EXPIRED
    second_worker.report(slots=1)
    again = only(bench.at(961), HandOut)
    assert (again.incarnation, again.attempt, again.may_have_run) == ("w2-a", 2, True)
    assert again.offset > first.offset

    late = first_worker.report(slots=1, finished=[succeeded(first, "of attempt 1")])
    assert only(late, AttemptDuplicate).handout == first.offset
    assert of(late, RunFinished) == []
    facts = second_worker.report(slots=1, started=[again], finished=[succeeded(again, "of attempt 2")])
    finished = only(facts, RunFinished)
    assert (finished.outcome, finished.attempts, finished.result) == (Outcome.SUCCEEDED, 2, "of attempt 2")

    # And once more, when all is over.
    late = first_worker.report(slots=1, finished=[failed(first)])
    assert only(late, AttemptDuplicate).reported == "failed"
    assert of(late, RunFinished) == []


def test_after_a_takeover_every_lease_gets_one_fresh_period_from_the_first_complete_read():
    bench = Bench()
    worker = WorkerSim(bench)
    hand_out = handed_out(bench, worker)
    worker.report(slots=0, started=[hand_out], held=[hand_out])
    # The owner is gone for half an hour: longer than any lease.
    bench.take_over()
    assert bench.at(1800, read=False) == []
    facts = bench.at(1800)
    assert [type(fact) for fact in facts] == [LeasesRenewed]
    assert of(bench.at(1829.999), AttemptFinished) == []
    assert only(bench.at(1830), AttemptFinished).outcome is AttemptOutcome.LEASE_EXPIRED


def test_a_takeover_gives_one_fresh_period_and_not_one_after_another():
    bench = Bench()
    worker = WorkerSim(bench)
    hand_out = handed_out(bench, worker)
    worker.report(slots=0, started=[hand_out], held=[hand_out])
    bench.take_over()
    bench.at(1800)
    bench.at(1810)
    worker.report(slots=0, held=[hand_out])
    assert of(bench.at(1839.999), AttemptFinished) == []
    assert only(bench.at(1840), AttemptFinished).outcome is AttemptOutcome.LEASE_EXPIRED
    assert len(bench.all(LeasesRenewed)) == 1


def test_a_shard_that_its_owner_saw_from_the_beginning_gives_no_extra_period():
    bench = Bench()
    worker = WorkerSim(bench)
    handed_out(bench, worker)
    bench.at(30)
    assert bench.all(LeasesRenewed) == []
    assert only(bench.facts, AttemptFinished).finished_at == T0 + timedelta(seconds=30)


def test_a_worker_that_lived_through_a_takeover_keeps_its_leases():
    bench = Bench()
    worker = WorkerSim(bench)
    hand_out = handed_out(bench, worker)
    worker.report(slots=0, started=[hand_out], held=[hand_out])
    bench.take_over()
    bench.at(3600, read=False)
    worker.report(slots=0, held=[hand_out])
    for second in range(3600, 3700, 5):
        bench.at(second)
        worker.report(slots=0, held=[hand_out])
    facts = worker.report(slots=1, finished=[succeeded(hand_out)])
    assert only(facts, RunFinished).attempts == 1


def test_b_o33_work_in_flight_at_a_change_of_owner_is_neither_lost_nor_done_twice_for_nothing():
    bench = Bench()
    worker = WorkerSim(bench)
    worker.report(slots=11)
    for number in range(100, 111):
        bench.give(run(number))
    hand_outs = bench.all(HandOut)
    assert [item.run.run_id for item in hand_outs] == [f"nightly.{number}" for number in range(100, 111)]
    unfinished = hand_outs[5]
    done = [succeeded(item) for item in hand_outs if item is not unfinished]
    report = worker.said(slots=10, started=hand_outs, held=[unfinished], finished=done)
    bench.give(report)

    bench.take_over()
    # The new owner may read the last records once more: no outcome is repeated, nothing is taken for lost.
    assert of(bench.give(report), RunFinished) == []
    assert list(bench.state.runs) == ["acme/nightly.105"]
    facts = bench.at(1)
    facts += worker.report(slots=11, finished=[succeeded(unfinished)])
    assert only(facts, RunFinished).run_id == "nightly.105"
    assert len(bench.all(RunFinished)) == 11
    assert len(bench.all(HandOut)) == 11


def test_a_forged_or_foreign_lease_is_refused_without_effect_and_without_telling_anything():
    bench = Bench()
    owner, thief = WorkerSim(bench, "owner"), WorkerSim(bench, "thief", tasks=["none"])
    hand_out = handed_out(bench, owner)
    thief.report(slots=0)
    texts = [
        hand_out.lease,  # a real one, but of another incarnation
        f"mail.0.0.{'0' * 32}",  # a guess
        f"mail.0.99.{hand_out.lease_key}",  # a hand-out that was never made
        f"mail.0.00.{hand_out.lease_key}",  # another way to write the same
        f"mail.1.0.{hand_out.lease_key}",  # another shard
        f"post.0.0.{hand_out.lease_key}",  # another queue
        "mail.0.0.",
        "mail.0.x.y",
        "nonsense",
        "",
    ]
    for text in texts:
        forged = [FinishedLease(lease=text, outcome="succeeded", result="stolen")]
        facts = thief.report(slots=0, held=(), started=(), finished=forged)
        assert [type(fact) for fact in facts] == [WorkerReported], text
        report = thief.said(slots=0)
        listed = bench.give(replace(report, held=(text,), started=(text,)))
        # All are answered alike: this is none of yours.
        assert only(listed, LeaseNotice).ended == (text,)
        assert of(listed, AttemptStarted) == []
    facts = owner.report(slots=1, started=[hand_out], finished=[succeeded(hand_out, "mine")])
    assert only(facts, RunFinished).result == "mine"


def test_a_worker_cannot_claim_to_have_read_what_was_never_handed_out():
    bench = Bench()
    worker = WorkerSim(bench)
    worker.report(slots=1, read_up_to=10**15)
    hand_out = only(bench.give(run(1)), HandOut)
    # The slot is taken: the hand-out was made after the report.
    assert bench.give(run(2)) == [run(2)]
    assert only(worker.report(slots=0, held=[hand_out]), WorkerReported).read_up_to == 0


def test_an_older_report_neither_renews_nor_loses_anything_but_its_results_count():
    bench = Bench()
    worker = WorkerSim(bench)
    worker.report(slots=2)
    first, second = only(bench.give(run(1)), HandOut), only(bench.give(run(2)), HandOut)
    older = worker.said(slots=2, started=[first], finished=[succeeded(first)], held=[])
    newer = worker.said(slots=1, held=[second], started=[second], read_up_to=second.offset)
    older = replace(older, read_up_to=second.offset)
    bench.give(newer)
    # By then the newer one has taken the first for lost and handed it out anew.
    assert [fact.outcome for fact in bench.all(AttemptFinished)] == [AttemptOutcome.LOST]
    facts = bench.give(older)
    assert of(facts, WorkerReported) == []
    assert only(facts, AttemptDuplicate).handout == first.offset
    assert bench.state.runs["acme/nightly.2"].is_leased


def test_a_new_inbox_makes_what_was_handed_to_the_old_one_and_not_read_lost_at_once():
    bench = Bench()
    worker = WorkerSim(bench)
    worker.report(slots=2)
    read, unread = only(bench.give(run(1)), HandOut), only(bench.give(run(2)), HandOut)
    report = worker.said(slots=2, held=[read], started=[read])
    facts = bench.give(replace(report, read_up_to=read.offset, inbox=6))
    lost = only(facts, AttemptFinished)
    assert (lost.run_id, lost.outcome) == ("nightly.2", AttemptOutcome.LOST)
    again = only(facts, HandOut)
    assert (again.inbox, again.run.run_id, again.offset) == (6, "nightly.2", unread.offset + 1)
    assert bench.state.runs["acme/nightly.1"].is_leased


def test_a_run_that_a_worker_gives_back_burns_no_attempt():
    bench = Bench()
    worker = WorkerSim(bench)
    hand_out = handed_out(bench, worker, job=job(retry=replace(job().retry, max_attempts=1)))
    facts = worker.report(slots=1, started=[hand_out], finished=[ended(hand_out, "interrupted")])
    given_back = only(facts, AttemptFinished)
    assert (given_back.outcome, given_back.counted) == (AttemptOutcome.INTERRUPTED, False)
    assert only(facts, HandOut).attempt == 2


def test_leases_are_numbered_without_gaps_or_repeats_over_restarts():
    bench = Bench()
    worker = WorkerSim(bench)
    for number in range(6):
        worker.report(slots=1)
        hand_out = only(bench.give(run(number)), HandOut)
        assert hand_out.offset == number
        worker.report(slots=0, started=[hand_out], finished=[succeeded(hand_out)])
        bench.take_over()
        bench.read_until = bench.now
    assert len({fact.lease_key for fact in bench.all(HandOut)}) == 6


# --- completed by somebody else ---


def completion(bench: Bench, *finished: FinishedLease) -> WorkerReport:
    """A word about leases alone: who sends it is no worker."""
    return WorkerReport(
        queue=bench.queue, shard=0, worker="completion", incarnation="completion", number=-1, inbox=5, read_up_to=-1,
        slots=0, tasks=(), finished=finished,
    )  # fmt: skip


def test_who_quotes_a_lease_whole_can_end_it_and_is_no_worker_for_that():
    bench = Bench()
    worker = WorkerSim(bench)
    given = handed_out(bench, worker)
    worker.report(slots=0, held=[given], started=[given])
    bench.later(5)
    facts = bench.give(completion(bench, succeeded(given, {"rows": 3})))

    ended_ = only(facts, AttemptFinished)
    assert (ended_.worker, ended_.incarnation, ended_.outcome) == ("w1", "w1-a", AttemptOutcome.SUCCEEDED)
    assert only(facts, RunFinished).result == {"rows": 3}
    assert of(facts, WorkerReported) == []
    assert bench.give(completion(bench, succeeded(given, {"rows": 3}))) == []
    told = only(worker.report(slots=0, held=[given]), LeaseNotice)
    assert told.ended == (given.lease,)


def test_a_lease_that_is_not_quoted_whole_is_nobodys():
    bench = Bench()
    given = handed_out(bench, WorkerSim(bench))
    guess = FinishedLease(lease=given.lease[:-1] + "x", outcome="succeeded")
    assert bench.give(completion(bench, guess)) == []


def test_a_completion_of_a_lease_that_was_taken_back_is_as_late_as_the_workers_word_would_be():
    bench = Bench()
    worker = WorkerSim(bench)
    given = handed_out(bench, worker)
    again = only(worker.report(slots=1), HandOut)
    late = only(bench.give(completion(bench, succeeded(given))), AttemptDuplicate)
    assert (late.handout, late.incarnation, late.reported) == (given.offset, "w1-a", "succeeded")
    assert only(bench.give(completion(bench, succeeded(again))), RunFinished).outcome is Outcome.SUCCEEDED
