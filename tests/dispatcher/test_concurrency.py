"""A concurrency key lets so many runs of a tenant be with workers of a queue; the others wait, and say why."""

from datetime import datetime, timedelta
from typing import Any

from schemas.facts import Concurrency, RunCreated, RunDeferReason, RunDeferred
from schemas.internal import HandOut
from tests.dispatcher.harness import T0, Bench, WorkerSim, cancel, ended, failed, job, of, only, retry, run, succeeded


def keyed(number: int, limit: int = 2, key: str = "db-1", at: datetime = T0, **given: Any) -> RunCreated:
    return run(number, at=at, job=job(concurrency=Concurrency(key=key, limit=limit)), **given)


def handed(bench: Bench) -> list[str]:
    return [item.run.run_id for item in bench.all(HandOut)]


def test_so_many_runs_of_a_key_are_handed_out_and_the_next_when_one_has_ended():
    bench = Bench()
    worker = WorkerSim(bench)
    worker.report(slots=9)
    for number in range(4):
        bench.give(keyed(number))
    assert handed(bench) == ["nightly.0", "nightly.1"]
    first, second = bench.all(HandOut)
    facts = worker.report(slots=8, held=[second], started=[first], finished=[succeeded(first)])
    assert only(facts, HandOut).run.run_id == "nightly.2"
    third = bench.all(HandOut)[2]
    facts = worker.report(slots=8, held=[third], started=[second], finished=[failed(second)])
    assert only(facts, HandOut).run.run_id == "nightly.3"


def test_the_smallest_limit_given_for_a_key_counts_as_long_as_its_run_is_there():
    bench = Bench()
    worker = WorkerSim(bench)
    bench.give(keyed(1, limit=3))
    bench.give(keyed(2, limit=1))
    bench.give(keyed(3, limit=3))
    worker.report(slots=9)
    assert handed(bench) == ["nightly.1"]
    bench.give(cancel("nightly.2"))
    assert handed(bench) == ["nightly.1", "nightly.3"]


def test_a_key_is_its_tenants_own_and_holds_nobody_else():
    bench = Bench()
    WorkerSim(bench).report(slots=9)
    bench.give(keyed(1, limit=1))
    bench.give(keyed(2, limit=1))
    bench.give(keyed(3, limit=1, key="db-2"))
    bench.give(keyed(4, limit=1, tenant="umbrella"))
    bench.give(run(5))
    assert handed(bench) == ["nightly.1", "nightly.3", "nightly.4", "nightly.5"]


def test_what_waits_for_its_key_says_so_and_since_when():
    bench = Bench()
    worker = WorkerSim(bench)
    worker.report(slots=9)
    bench.give(keyed(1, limit=1))
    bench.at(2)
    bench.give(keyed(2, limit=1, at=bench.now))
    worker.report(slots=9, held=bench.all(HandOut))
    assert of(bench.at(6.999), RunDeferred) == []
    assert only(bench.at(7), RunDeferred) == RunDeferred(
        tenant="acme", schedule="nightly", run_id="nightly.2", reason=RunDeferReason.CONCURRENCY,
        since=T0 + timedelta(seconds=2), decided_at=T0 + timedelta(seconds=7), queue="mail", shard=0,
    )  # fmt: skip
    for second in range(10, 60, 5):
        bench.at(second)
        worker.report(slots=9, held=bench.all(HandOut))
    assert len(bench.all(RunDeferred)) == 1


def test_a_key_that_comes_and_goes_tells_each_run_once():
    bench = Bench()
    worker = WorkerSim(bench)
    worker.report(slots=9)
    for number in range(12):
        bench.take(keyed(number, limit=1))
    bench.wake()
    for second in range(1, 12):
        bench.at(second)
        done = bench.all(HandOut)[-1]
        worker.report(slots=9, started=[done], finished=[succeeded(done)])
    assert len(bench.all(HandOut)) == 12
    # Five were handed out before they had waited for five seconds.
    assert [fact.run_id for fact in bench.all(RunDeferred)] == [f"nightly.{number}" for number in range(5, 12)]


def test_a_run_that_was_taken_back_from_its_worker_leaves_its_place_in_the_key():
    """Its worker may not know yet; what it holds then is the older lease."""
    bench = Bench()
    silent = WorkerSim(bench)
    silent.report(slots=1)
    bench.give(keyed(1, limit=1, deadline_at=T0 + timedelta(seconds=20)))
    bench.give(keyed(2, limit=1))
    other = WorkerSim(bench, "w2")
    for second in (5, 10, 15):
        bench.at(second)
        assert of(other.report(slots=1), HandOut) == []
    assert only(bench.at(20), HandOut).run.run_id == "nightly.2"


def test_a_full_key_costs_its_tenant_no_turn():
    bench = Bench()
    for number in range(10):
        bench.take(keyed(number, limit=1))
        bench.take(run(100 + number))
    WorkerSim(bench).report(slots=5)
    assert handed(bench) == ["nightly.0", "nightly.100", "nightly.101", "nightly.102", "nightly.103"]


def test_a_key_holds_also_after_a_takeover():
    bench = Bench()
    worker = WorkerSim(bench)
    worker.report(slots=9)
    for number in range(3):
        bench.give(keyed(number, limit=1))
    bench.take_over()
    bench.later(1)
    facts = worker.report(slots=8, held=bench.all(HandOut))
    assert of(facts, HandOut) == []
    first = bench.all(HandOut)[0]
    facts = worker.report(slots=9, started=[first], finished=[ended(first, "interrupted")])
    assert only(facts, HandOut).run.run_id == "nightly.0"


def test_a_retry_waits_for_its_key_like_any_other():
    bench = Bench()
    worker = WorkerSim(bench)
    worker.report(slots=9)
    given = job(concurrency=Concurrency(key="db-1", limit=1), retry=retry(initial=timedelta(seconds=1)))
    bench.give(run(1, job=given))
    bench.give(run(2, job=given))
    first = bench.all(HandOut)[0]
    worker.report(slots=9, started=[first], finished=[failed(first)])
    assert handed(bench) == ["nightly.1", "nightly.2"]
    second = bench.all(HandOut)[1]
    assert of(bench.at(3), HandOut) == []
    facts = worker.report(slots=9, started=[second], finished=[succeeded(second)])
    assert (only(facts, HandOut).run.run_id, only(facts, HandOut).attempt) == ("nightly.1", 2)


def test_a_key_that_nobody_names_any_more_is_not_asked_for_when_its_last_run_was_to_be_told():
    """The run that waited was cancelled, and the one that held the key ended, both in one batch."""
    bench = Bench()
    worker = WorkerSim(bench)
    worker.report(slots=9)
    bench.give(keyed(1, limit=1))
    bench.give(keyed(2, limit=1))
    (first,) = bench.all(HandOut)
    bench.take(cancel("nightly.2"))
    bench.take(worker.said(slots=9, started=[first], finished=[succeeded(first)]))
    assert bench.at(6) == []
