"""Cancelling: the answer is what was true, whatever it races with."""

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest

from schemas import topics
from schemas.facts import (
    AttemptDuplicate,
    AttemptFinished,
    AttemptOutcome,
    AttemptStarted,
    Fact,
    Outcome,
    RunCancelRequested,
    RunFinished,
    RunRetryScheduled,
)
from schemas.internal import CommandAnswered, FinishedLease, HandOut, LeaseNotice
from tests.dispatcher.harness import (
    Bench,
    WorkerSim,
    cancel,
    ended,
    failed,
    job,
    of,
    only,
    retry,
    run,
    succeeded,
    terminate,
)


def answer(facts: Sequence[Fact]) -> tuple[int, dict[str, Any]]:
    reply = only(facts, CommandAnswered)
    assert (reply.command_id, reply.reply_to) == ("cancel-1", 5)
    body = dict(reply.body)
    assert (body.pop("tenant"), body.pop("name")) == ("acme", "nightly")
    return reply.status, body


def test_a_run_that_was_never_handed_out_is_cancelled_and_never_starts():
    bench = Bench()
    bench.give(run(1))
    facts = bench.give(cancel())
    assert answer(facts) == (200, {"state": "cancelled_before_dispatch", "run_id": "nightly.1", "attempts": 0})
    finished = only(facts, RunFinished)
    assert (finished.outcome, finished.attempts, finished.started_at) == (Outcome.CANCELLED, 0, None)
    WorkerSim(bench).report(slots=5)
    assert bench.all(HandOut) == []
    assert bench.on(topics.REPLIES) == of(facts, CommandAnswered)


def test_a_run_between_two_attempts_is_cancelled_and_the_answer_says_that_it_has_run():
    bench = Bench()
    worker = WorkerSim(bench)
    worker.report()
    hand_out = only(bench.give(run(1)), HandOut)
    worker.report(slots=1, started=[hand_out], finished=[failed(hand_out)])
    facts = bench.give(cancel())
    assert answer(facts) == (200, {"state": "cancelled_between_attempts", "run_id": "nightly.1", "attempts": 1})
    assert only(facts, RunFinished).outcome is Outcome.CANCELLED
    assert of(bench.at(60), HandOut) == []


def test_the_worker_of_a_running_run_is_asked_to_stop_and_asked_again_while_it_lists_it():
    bench = Bench()
    worker = WorkerSim(bench)
    worker.report()
    hand_out = only(bench.give(run(1)), HandOut)
    worker.report(slots=0, started=[hand_out], held=[hand_out])
    facts = bench.give(cancel())
    assert answer(facts) == (200, {"state": "cancel_requested", "run_id": "nightly.1", "attempt": 1})
    assert only(facts, LeaseNotice).cancelled == (hand_out.lease,)
    assert only(facts, RunCancelRequested) not in bench.on(topics.RUN_EVENTS)  # the scheduler has published it
    assert only(worker.report(slots=0, held=[hand_out]), LeaseNotice).cancelled == (hand_out.lease,)

    facts = worker.report(slots=1, finished=[ended(hand_out, "cancelled")])
    assert only(facts, AttemptFinished).outcome is AttemptOutcome.CANCELLED
    assert only(facts, RunFinished).outcome is Outcome.CANCELLED
    assert of(facts, LeaseNotice) == []


def test_a_success_that_overtakes_the_request_is_a_success():
    bench = Bench()
    worker = WorkerSim(bench)
    worker.report()
    hand_out = only(bench.give(run(1)), HandOut)
    bench.give(cancel())
    facts = worker.report(started=[hand_out], finished=[succeeded(hand_out)])
    assert only(facts, RunFinished).outcome is Outcome.SUCCEEDED


@pytest.mark.parametrize("outcome", ["failed", "interrupted", "cancelled"])
def test_a_run_that_was_asked_to_end_is_not_tried_again(outcome):
    bench = Bench()
    worker = WorkerSim(bench)
    worker.report()
    hand_out = only(bench.give(run(1)), HandOut)
    worker.report(slots=0, started=[hand_out], held=[hand_out])
    bench.give(cancel())
    facts = worker.report(slots=1, finished=[ended(hand_out, outcome)])
    assert only(facts, AttemptFinished).outcome == outcome
    assert only(facts, RunFinished).outcome is Outcome.CANCELLED
    assert of(facts, RunRetryScheduled) + of(facts, HandOut) == []


def test_a_run_that_was_asked_to_end_is_cancelled_when_its_worker_dies():
    bench = Bench()
    worker = WorkerSim(bench)
    worker.report()
    hand_out = only(bench.give(run(1)), HandOut)
    worker.report(slots=0, started=[hand_out], held=[hand_out])
    bench.give(cancel())
    facts = bench.at(30)
    assert only(facts, AttemptFinished).outcome is AttemptOutcome.LEASE_EXPIRED
    assert only(facts, RunFinished).outcome is Outcome.CANCELLED


def test_a_run_that_is_over_stays_as_it_is():
    bench = Bench()
    worker = WorkerSim(bench)
    worker.report()
    hand_out = only(bench.give(run(1)), HandOut)
    worker.report(started=[hand_out], finished=[succeeded(hand_out)])
    facts = bench.give(cancel())
    assert answer(facts) == (
        200,
        {"state": "already_finished", "run_id": "nightly.1", "outcome": "succeeded", "attempts": 1},
    )
    assert of(facts, RunFinished) == []


def test_a_run_that_nobody_knows_is_said_to_be_unknown():
    status, body = answer(Bench().give(cancel("nightly.77")))
    assert (status, body) == (404, {"state": "unknown", "run_id": "nightly.77"})


def test_who_wants_no_answer_gets_none():
    bench = Bench()
    assert bench.give(cancel(reply_to=None)) == []
    bench.give(run(1))
    assert [type(fact) for fact in bench.give(cancel(reply_to=None))] == [RunFinished]


def test_asking_twice_is_answered_twice_and_done_once():
    bench = Bench()
    WorkerSim(bench).report()
    bench.give(run(1))
    bench.give(cancel())
    facts = bench.give(cancel())
    assert answer(facts)[1]["state"] == "cancel_requested"
    assert len(bench.all(RunCancelRequested)) == 1


@pytest.mark.parametrize("asked_before", [False, True])
def test_a_run_that_is_terminated_is_over_at_once_and_its_worker_is_told_to_drop_it(asked_before):
    bench = Bench()
    worker = WorkerSim(bench)
    worker.report()
    hand_out = only(bench.give(run(1)), HandOut)
    worker.report(slots=0, started=[hand_out], held=[hand_out])
    if asked_before:
        bench.give(cancel())
    facts = bench.give(terminate())
    assert only(facts, AttemptFinished).outcome is AttemptOutcome.CANCELLED
    assert only(facts, RunFinished).outcome is Outcome.CANCELLED
    assert (only(facts, LeaseNotice).ended, only(facts, LeaseNotice).cancelled) == ((hand_out.lease,), ())
    assert of(facts, CommandAnswered) == []
    assert only(worker.report(slots=0, held=[hand_out]), LeaseNotice).ended == (hand_out.lease,)


def test_what_a_terminated_run_comes_to_after_all_is_told_and_changes_nothing():
    bench = Bench()
    worker = WorkerSim(bench)
    worker.report()
    hand_out = only(bench.give(run(1)), HandOut)
    worker.report(slots=0, started=[hand_out], held=[hand_out])
    bench.give(terminate())
    facts = worker.report(slots=1, finished=[succeeded(hand_out)])
    assert only(facts, AttemptDuplicate).reported == "succeeded"
    assert of(facts, RunFinished) == []


def test_a_run_that_waits_is_terminated_as_it_is_cancelled_and_one_that_is_over_stays_as_it_is():
    bench = Bench()
    bench.give(run(1))
    assert [type(fact) for fact in bench.give(terminate())] == [RunFinished]
    assert bench.give(terminate()) == []


def unstarted() -> RunCancelRequested:
    return replace(terminate(), terminate=False, unstarted=True)


def test_a_wish_for_unstarted_runs_ends_one_that_waits_and_says_nothing_to_others():
    bench = Bench()
    bench.give(run(1))
    assert only(bench.give(unstarted()), RunFinished).outcome is Outcome.CANCELLED

    bench = Bench()
    worker = WorkerSim(bench)
    worker.report()
    hand_out = only(bench.give(run(1)), HandOut)
    assert bench.give(unstarted()) == []
    worker.report(slots=1, started=[hand_out], finished=[failed(hand_out)])
    assert bench.give(unstarted()) == []  # between two attempts: it has begun


def test_b_o13_what_was_confirmed_as_cancelled_before_it_started_is_never_sent():
    """1000 runs, each cancelled somewhere around the moment at which it is handed out."""
    bench = Bench()
    worker = WorkerSim(bench)
    worker.report(slots=10)
    chance = random.Random(13)
    steps = [(number + offset, number) for number in range(1000) for offset in (0.0, chance.uniform(-5, 5))]
    cancelled: set[int] = set()
    created: set[int] = set()
    for _, number in sorted(steps):
        if number not in created:
            created.add(number)
            bench.take(run(number))
        else:
            cancelled.add(number)
            bench.take(cancel(f"nightly.{number}"))
        if chance.random() < 0.5:
            bench.wake()
        if chance.random() < 0.2:
            live = [item for item in worker.inbox_records() if item.lease in live_leases(bench)]
            done, kept = live[::2], live[1::2]
            report = [succeeded(item) if chance.random() < 0.5 else ended(item, "cancelled") for item in done]
            worker.report(slots=10 - len(kept), held=kept, started=live, finished=report)
    confirmed = {
        fact.body["run_id"] for fact in bench.all(CommandAnswered) if fact.body["state"] == "cancelled_before_dispatch"
    }
    sent = {fact.run.run_id for fact in bench.all(HandOut)}
    assert len(cancelled) == 1000
    assert confirmed & sent == set()
    assert confirmed
    assert sent & {f"nightly.{number}" for number in cancelled}
    finished = [fact.run_id for fact in bench.all(RunFinished)]
    assert len(finished) == len(set(finished))


def live_leases(bench: Bench) -> set[str]:
    return {open_run.lease for open_run in bench.state.runs.values() if open_run.is_leased}


STEPS = ("cancel", "hand_out", "start", "complete", "time_out")


@pytest.mark.parametrize("order", list(permutations(STEPS)), ids="-".join)
def test_in_every_order_of_cancel_hand_out_start_completion_and_timeout_the_answer_is_honest(order):
    """All 5! interleavings (H4): one terminal outcome (I7), and an answer that the log bears out (I14)."""
    story = Story()
    for step in order:
        getattr(story, step)()
    story.drain()
    story.judge()


class Story:
    """One run, one worker that does as it is told, and the five things that can happen, in any order."""

    def __init__(self) -> None:
        self.bench = Bench()
        self.worker = WorkerSim(self.bench)
        self.bench.give(run(1, job=job(lease=job().deadline, retry=retry(max_attempts=2))))
        self.answered_after = -1

    def cancel(self) -> None:
        self.answered_after = len(self.bench.facts)
        self.bench.give(cancel())

    def hand_out(self) -> None:
        self.report(slots=0 if self.live() else 1)

    def start(self) -> None:
        self.report(slots=0, started=self.last())

    def complete(self) -> None:
        self.report(slots=0, finished=[succeeded(item) for item in self.last()])

    def time_out(self) -> None:
        self.bench.later(2 * 3600)

    def drain(self) -> None:
        """The worker goes on: it stops what it is asked to stop, and finishes everything else."""
        for _ in range(5):
            asked = {lease for fact in self.bench.all(LeaseNotice) for lease in fact.cancelled}
            words = [ended(item, "cancelled") if item.lease in asked else succeeded(item) for item in self.live()]
            self.report(slots=1, started=self.live(), finished=words)
            self.bench.later(60)

    def report(self, *, slots: int, started: Sequence[HandOut] = (), finished: Sequence[FinishedLease] = ()) -> None:
        done = {entry.lease for entry in finished}
        held = [item for item in self.live() if item.lease not in done]
        self.worker.report(slots=slots, held=held, started=started, finished=finished)

    def live(self) -> list[HandOut]:
        return [item for item in self.worker.inbox_records() if item.lease in live_leases(self.bench)]

    def last(self) -> list[HandOut]:
        return self.worker.inbox_records()[-1:]

    def judge(self) -> None:
        facts = self.bench.facts
        finished = only(facts, RunFinished)
        state = only(facts, CommandAnswered).body["state"]
        before, after = facts[: self.answered_after], facts[self.answered_after :]
        if state == "cancelled_before_dispatch":
            assert finished.outcome is Outcome.CANCELLED
            assert of(facts, HandOut) + of(facts, AttemptStarted) == []
        elif state == "cancelled_between_attempts":
            assert finished.outcome is Outcome.CANCELLED
            assert of(before, AttemptFinished)
            assert of(after, HandOut) == []
        elif state == "cancel_requested":
            assert len(of(before, HandOut)) == len(of(before, AttemptFinished)) + 1
            assert finished.outcome in {Outcome.CANCELLED, Outcome.SUCCEEDED}
            assert of(after, HandOut) == []
        else:
            assert state == "already_finished"
            assert only(before, RunFinished).outcome == only(facts, CommandAnswered).body["outcome"]
        assert len(of(facts, HandOut)) == len(of(facts, AttemptFinished))
        assert self.bench.state.runs == {}


def test_the_interleavings_reach_every_answer():
    states = set()
    for order in permutations(STEPS):
        story = Story()
        for step in order:
            getattr(story, step)()
        states.add(only(story.bench.facts, CommandAnswered).body["state"])
    assert states == {
        "cancelled_before_dispatch",
        "cancelled_between_attempts",
        "cancel_requested",
        "already_finished",
    }
