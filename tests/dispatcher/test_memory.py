"""What is over is remembered as long as `runs` is kept, and repeated to whom asks."""

from dataclasses import replace
from datetime import timedelta

from schemas import codec, topics
from schemas.facts import AttemptDuplicate, Outcome, RunCreated, RunFinished
from schemas.internal import HandOut, MemoryTrimmed
from tests.dispatcher.harness import T0, Bench, WorkerSim, cancel, failed, inquiry, of, only, run, succeeded

DAYS = timedelta(days=1)


def test_a_known_outcome_is_repeated_under_the_same_event_id_and_without_the_result():
    bench = Bench()
    worker = WorkerSim(bench)
    worker.report()
    created = run(1, labels={"team": "finance"}, of="nightly.0")
    hand_out = only(bench.give(created), HandOut)
    finished = only(worker.report(started=[hand_out], finished=[succeeded(hand_out, "much")]), RunFinished)
    bench.take_over()
    bench.at(600)
    repeated = only(bench.give(inquiry(created)), RunFinished)
    assert repeated == replace(
        finished, result=None, repeat=True, known_id=codec.identify(finished), error=None, reason=""
    )
    first, _ = codec.encode(finished, source="a", time=T0)
    again, _ = codec.encode(repeated, source="b", time=bench.now)
    assert first == again
    assert bench.on(topics.RUN_OUTCOMES) == [finished, repeated]


def test_of_an_open_run_there_is_nothing_to_say():
    bench = Bench()
    bench.give(run(1))
    assert bench.give(inquiry(run(1))) == []


def test_a_run_that_was_never_seen_is_taken_as_new():
    bench = Bench()
    worker = WorkerSim(bench)
    worker.report()
    facts = bench.give(inquiry(run(1)))
    assert only(facts, RunCreated) == run(1)
    assert only(facts, HandOut).run == run(1)


def test_a_run_that_may_have_been_forgotten_ends_expired_and_is_never_started():
    bench = Bench()
    worker = WorkerSim(bench)
    bench.at(3 * DAYS + timedelta(seconds=1))
    worker.report()
    finished = only(bench.give(inquiry(run(1))), RunFinished)
    assert (finished.outcome, finished.reason, finished.attempts) == (Outcome.EXPIRED, "unknown", 0)
    assert bench.all(HandOut) == []
    repeated = only(bench.give(inquiry(run(1))), RunFinished)
    assert (repeated.repeat, repeated.known_id) == (True, codec.identify(finished))


def finish(bench: Bench, count: int) -> None:
    for number in range(count):
        bench.take(run(number))
        bench.take(cancel(f"nightly.{number}", reply_to=None))
    bench.save()


def outcomes(bench: Bench) -> int:
    bench.save()
    return len([row for row in bench.rows.rows if row.startswith(b"d/")])


def test_outcomes_are_forgotten_after_the_retention_in_bounded_steps():
    bench = Bench()
    finish(bench, 1000)
    assert outcomes(bench) == 1000
    bench.at(3 * DAYS)
    assert outcomes(bench) == 1000
    facts = bench.at(3 * DAYS + timedelta(minutes=10))
    # 15 full rows of 64 ids, 4 at a step; the 40 ids in the open row stay until it is full.
    assert [type(fact) for fact in facts] == [MemoryTrimmed] * 4
    assert outcomes(bench) == 40
    assert len([row for row in bench.rows.rows if row.startswith(b"t/")]) == 1


def test_what_is_younger_than_the_retention_is_not_forgotten():
    bench = Bench()
    finish(bench, 64)
    bench.at(2 * DAYS)
    for number in range(64, 128):
        bench.take(run(number, at=bench.now))
        bench.take(cancel(f"nightly.{number}", reply_to=None))
    bench.at(4 * DAYS)
    assert outcomes(bench) == 64
    assert bench.state.knows(run(64))
    assert not bench.state.knows(run(63))


def test_memory_goes_on_over_restarts():
    bench = Bench()
    for number in range(130):
        bench.take(run(number))
        bench.take(cancel(f"nightly.{number}", reply_to=None))
        bench.take_over()
    bench.read_until = bench.now
    assert outcomes(bench) == 130
    bench.at(4 * DAYS)
    assert outcomes(bench) == 2


def test_hand_outs_taken_back_are_forgotten_too():
    bench = Bench()
    worker = WorkerSim(bench)
    worker.report()
    hand_out = only(bench.give(run(1)), HandOut)
    worker.report(slots=0, started=[hand_out], held=[hand_out])
    bench.at(30)
    bench.give(cancel())
    assert of(worker.report(slots=0, finished=[failed(hand_out)]), AttemptDuplicate)
    bench.at(3 * DAYS + timedelta(minutes=11))
    bench.save()
    assert [row for row in bench.rows.rows if row.startswith(b"e/")] == []
    assert of(worker.report(slots=0, finished=[failed(hand_out)]), AttemptDuplicate) == []


def test_a_run_that_comes_and_goes_within_a_batch_leaves_its_outcome_and_nothing_else():
    bench = Bench()
    worker = WorkerSim(bench)
    worker.report()
    bench.save()
    bench.rows.writes = 0
    hand_out = only(bench.give(run(1)), HandOut)
    worker.report(started=[hand_out], finished=[succeeded(hand_out)])
    bench.save()
    # The outcome, the ids in order of finishing, the worker and the head.
    assert bench.rows.writes == 4
    assert sorted(row[:2] for row in bench.rows.rows) == [b"d/", b"h", b"t/", b"w/"]
    bench.save()
    assert bench.rows.writes == 4


def test_a_run_that_waits_is_one_row_and_its_end_is_two():
    bench = Bench()
    bench.give(run(1))
    bench.rows.writes = 0
    bench.save()
    assert sorted(bench.rows.rows) == [b"h", b"r/acme/nightly.1"]
    bench.give(run(2))
    bench.save()
    bench.rows.writes = 0
    bench.save()
    assert bench.rows.writes == 0
    bench.give(cancel("nightly.1"))
    bench.save()
    # r/ deleted, d/ written; t/ and h belong to the batch.
    assert bench.rows.writes == 4
