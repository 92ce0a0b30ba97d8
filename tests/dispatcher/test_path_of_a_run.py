"""The path of a run that succeeds: created, handed out, started, finished."""

from datetime import timedelta

from schemas import topics
from schemas.facts import AttemptFinished, AttemptOutcome, AttemptStarted, Outcome, RunCreated, RunDeferred, RunFinished
from schemas.internal import HandOut, WorkerReported
from tests.dispatcher.harness import T0, TASK, Bench, WorkerSim, job, only, run, succeeded


def test_a_run_is_handed_out_to_a_waiting_worker_and_its_success_finishes_it():
    bench = Bench()
    worker = WorkerSim(bench)
    worker.report(slots=1)

    hand_out = only(bench.give(run(1)), HandOut)
    assert (hand_out.incarnation, hand_out.inbox, hand_out.offset, hand_out.attempt) == ("w1-a", 3, 0, 1)
    assert hand_out.lease == f"mail.0.0.{hand_out.lease_key}"
    assert (hand_out.lease_duration, hand_out.start_by) == (timedelta(seconds=30), timedelta(seconds=10))
    assert hand_out.may_have_run is False
    assert hand_out.run == run(1)

    bench.at(2)
    facts = worker.report(slots=1, started=[hand_out], finished=[succeeded(hand_out, {"rows": 3})])

    assert [type(fact) for fact in facts] == [AttemptStarted, AttemptFinished, RunFinished, WorkerReported]
    finished = only(facts, RunFinished)
    assert finished == RunFinished(
        tenant="acme", schedule="nightly", run_id="nightly.1", version=1, cause=run(1).cause,
        outcome=Outcome.SUCCEEDED, attempts=1, created_at=T0, finished_at=T0 + timedelta(seconds=2), nominal_time=T0,
        started_at=T0 + timedelta(seconds=2), result={"rows": 3}, queue="mail", shard=0,
    )  # fmt: skip
    assert only(facts, AttemptFinished).outcome is AttemptOutcome.SUCCEEDED
    assert bench.state.runs == {}


def test_each_fact_goes_to_its_topic():
    bench = Bench()
    worker = WorkerSim(bench)
    worker.report()
    hand_out = only(bench.give(run(1)), HandOut)
    worker.report(started=[hand_out], finished=[succeeded(hand_out)])

    assert bench.on(topics.dispatch_topic("mail")) == [hand_out]
    assert [type(fact) for fact in bench.on(topics.RUN_EVENTS)] == [AttemptStarted, AttemptFinished, RunFinished]
    assert [type(fact) for fact in bench.on(topics.RUN_OUTCOMES)] == [RunFinished]
    inbox = next(output for output in bench.outputs if output.fact is hand_out)
    assert (inbox.key, inbox.partition) == ("w1-a", 3)
    event = next(output for output in bench.outputs if output.topic == topics.RUN_EVENTS)
    assert (event.key, event.partition) == ("acme/nightly", None)


def test_a_run_waits_until_a_worker_with_its_task_has_a_free_slot():
    bench = Bench()
    other = WorkerSim(bench, "other", tasks=["something.else"])
    other.report(slots=5)
    bench.give(run(1))
    assert bench.all(HandOut) == []

    full = WorkerSim(bench, "full")
    full.report(slots=0)
    assert bench.all(HandOut) == []

    facts = full.report(slots=1)
    assert only(facts, HandOut).incarnation == "full-a"


def test_a_worker_is_never_given_more_than_it_has_free_slots():
    bench = Bench()
    worker = WorkerSim(bench)
    for number in range(5):
        bench.give(run(number))
    worker.report(slots=2, read_up_to=-1)
    assert [hand_out.run.run_id for hand_out in bench.all(HandOut)] == ["nightly.0", "nightly.1"]

    # It has not read of them yet: its two free slots are spoken for.
    worker.report(slots=2, read_up_to=-1)
    assert len(bench.all(HandOut)) == 2

    # It has read of one, whose slot is not free any more.
    first, _ = bench.all(HandOut)
    worker.report(slots=1, read_up_to=0, held=[first])
    assert len(bench.all(HandOut)) == 2

    # It has finished that one and has read of both.
    first, second = bench.all(HandOut)
    worker.report(slots=1, held=[second], finished=[succeeded(first)])
    assert len(bench.all(HandOut)) == 3


def test_runs_go_to_the_worker_with_the_most_free_slots():
    bench = Bench()
    small, large = WorkerSim(bench, "small"), WorkerSim(bench, "large")
    small.report(slots=1)
    large.report(slots=3)
    for number in range(4):
        bench.take(run(number))
    bench.wake()
    assert [fact.incarnation for fact in bench.all(HandOut)] == ["large-a", "large-a", "large-a", "small-a"]


def test_runs_are_handed_out_by_the_instant_they_are_due_then_in_order_of_creation():
    bench = Bench()
    late, early = T0 - timedelta(minutes=1), T0 - timedelta(minutes=2)
    bench.give(run(1, due_at=late))
    bench.give(run(2, due_at=early))
    bench.give(run(3, due_at=late))
    WorkerSim(bench).report(slots=3)
    assert [fact.run.run_id for fact in bench.all(HandOut)] == ["nightly.2", "nightly.1", "nightly.3"]


def test_a_run_is_not_handed_out_before_it_is_due():
    bench = Bench()
    WorkerSim(bench).report()
    bench.give(run(1, due_at=T0 + timedelta(seconds=5)))
    assert bench.at(4.999) == []
    assert only(bench.at(5), HandOut).run.run_id == "nightly.1"


def test_a_run_that_is_known_open_or_over_is_not_taken_twice():
    bench = Bench()
    worker = WorkerSim(bench)
    bench.give(run(1))
    assert bench.give(run(1)) == []
    worker.report()
    hand_out = only(bench.facts, HandOut)
    assert bench.give(run(1)) == []
    worker.report(started=[hand_out], finished=[succeeded(hand_out)])
    assert bench.give(run(1)) == []
    assert len(bench.all(RunCreated)) == 1


def test_the_fast_path_tells_nobody_that_it_waits():
    bench = Bench()
    worker = WorkerSim(bench)
    worker.report()
    for second in range(20):
        bench.at(second)
        hand_out = only(bench.give(run(second, at=bench.now)), HandOut)
        worker.report(started=[hand_out], finished=[succeeded(hand_out)])
    assert bench.all(RunDeferred) == []


def test_the_task_of_a_run_is_what_its_target_names():
    bench = Bench()
    worker = WorkerSim(bench, tasks=[TASK, "command:rotate"])
    worker.report(slots=3)
    facts = bench.give(run(1, job=job(target={"type": "command", "name": "rotate"})))
    assert only(facts, HandOut).run.run_id == "nightly.1"
