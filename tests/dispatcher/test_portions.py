"""Limits of a queue with several shards: each shard keeps to its own portion, and together they keep to the limit."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatcher import portions
from dispatcher.portions import Portion
from schemas import placing
from schemas.facts import Concurrency, Outcome, RunDeferReason, RunDeferred, RunFinished
from schemas.internal import HandOut, LimitsAdopted, QueueLimits, TenantLimits
from schemas.rates import Rate
from tests.dispatcher.catalog import Catalog
from tests.dispatcher.harness import T0, Bench, WorkerSim, job, of, only, run, succeeded


def of_three(**limits: Any) -> list[Portion]:
    return [portions.of_tenant(TenantLimits(**limits), 3, number) for number in range(3)]


# --- the rule ----------------------------------------------------------------------------------------------------


def test_a_limit_is_divided_and_the_first_shards_have_the_rest():
    assert [each.running for each in of_three(running=10)] == [4, 3, 3]
    assert [each.running for each in of_three(running=11)] == [4, 4, 3]
    assert [each.queued for each in of_three(queued=3)] == [1, 1, 1]
    assert of_three() == [Portion(), Portion(), Portion()]


def test_a_tenant_with_a_limit_below_the_number_of_shards_is_in_as_many_as_it_may_have_runs():
    """The third one would have had none, and a run there would have waited for ever: so no run is placed there."""
    assert [each.running for each in of_three(running=2)] == [1, 1, 1]
    assert placing.spread(3, 2, None) == 2
    assert placing.spread(3, None, 1) == 1
    assert placing.spread(3, 9, 2) == 2
    assert placing.spread(3, None, None) == 3
    assert [each.queued for each in of_three(running=2, queued=9)] == [5, 4, 1]


def test_a_tenant_that_may_have_none_waiting_may_have_none_in_any_shard():
    assert [each.queued for each in of_three(queued=0)] == [0, 0, 0]
    assert placing.spread(3, 5, 0) == 3


def test_a_rate_is_the_same_number_in_longer_time():
    assert [each.rate for each in of_three(rate="10/s")] == [Rate(count=10, per=timedelta(seconds=3))] * 3
    assert [each.rate for each in of_three(rate="1/h")] == [Rate(count=1, per=timedelta(hours=3))] * 3
    assert of_three(rate="1/h", running=2)[0].rate == Rate(count=1, per=timedelta(hours=2))


def test_a_shard_that_the_queue_has_no_more_works_off_what_it_has_one_at_a_time():
    left = portions.of_tenant(TenantLimits(running=30, queued=60, rate="10/s"), 3, 5)
    assert left == Portion(running=1, queued=1, rate=Rate(count=10, per=timedelta(seconds=3)))


@given(
    limit=st.integers(1, 10_000), queued=st.none() | st.integers(0, 10_000), shards=st.integers(1, 64)
)  # fmt: skip
def test_the_portions_of_the_shards_that_a_tenant_is_in_add_up_to_its_limit(
    limit: int, queued: int | None, shards: int
):
    over = placing.spread(shards, limit, queued)
    assert 1 <= over <= shards
    all_of = [portions.of_tenant(TenantLimits(running=limit, queued=queued), shards, number) for number in range(over)]
    assert sum(each.running or 0 for each in all_of) == limit
    assert max(each.running or 0 for each in all_of) - min(each.running or 0 for each in all_of) <= 1
    assert all(each.running for each in all_of)
    assert queued is None or sum(each.queued or 0 for each in all_of) == (queued or 0)
    assert queued in (None, 0) or all(each.queued for each in all_of)


# --- in a shard --------------------------------------------------------------------------------------------------


def limited(bench: Bench, queue: QueueLimits | None = None, offset: int = 0, **limits: Any) -> None:
    tenants = {"acme": TenantLimits(**limits)} if limits else {}
    bench.happened(
        LimitsAdopted(queue=bench.queue, shard=bench.shard, offset=offset, adopted_at=T0, limits=queue, tenants=tenants)
    )


def handed(bench: Bench) -> list[str]:
    return [item.run.run_id for item in bench.all(HandOut)]


def put(bench: Bench, count: int, **more: Any) -> None:
    for number in range(count):
        bench.give(run(number, shard=bench.shard, **more))


@pytest.mark.parametrize(("shard", "expected"), [(0, 2), (1, 2), (2, 1)])
def test_a_shard_hands_out_its_portion_and_what_waits_says_quota(shard: int, expected: int):
    bench = Bench(shard=shard)
    limited(bench, QueueLimits(shards=3), running=5)
    WorkerSim(bench).report(slots=9)
    put(bench, 3)
    assert handed(bench) == ["nightly.0", "nightly.1", "nightly.2"][:expected]
    assert {fact.reason for fact in of(bench.at(5), RunDeferred)} == {RunDeferReason.QUOTA}


def test_a_queue_with_more_shards_leaves_each_less_and_one_with_fewer_more():
    bench = Bench(shard=1)
    limited(bench, running=4)
    limited(bench, QueueLimits(shards=2), offset=1)
    worker = WorkerSim(bench)
    worker.report(slots=9)
    put(bench, 9)
    assert handed(bench) == ["nightly.0", "nightly.1"]
    limited(bench, QueueLimits(shards=4), offset=2)
    done = bench.all(HandOut)
    assert of(worker.report(slots=9, started=done, finished=[succeeded(done[0])]), HandOut) == []
    facts = worker.report(slots=9, held=done[1:], started=done[1:], finished=[succeeded(done[1])])
    assert [item.run.run_id for item in of(facts, HandOut)] == ["nightly.2"]
    limited(bench, QueueLimits(shards=2), offset=3)
    assert handed(bench) == ["nightly.0", "nightly.1", "nightly.2"]
    bench.wake()
    assert handed(bench) == ["nightly.0", "nightly.1", "nightly.2", "nightly.3"]


def test_what_waits_in_a_shard_that_the_queue_has_no_more_still_runs():
    bench = Bench(shard=3)
    limited(bench, QueueLimits(shards=4), running=8)
    put(bench, 3)
    limited(bench, QueueLimits(shards=2), offset=1)
    worker = WorkerSim(bench)
    worker.report(slots=9)
    for number in range(3):
        assert handed(bench) == ["nightly.0", "nightly.1", "nightly.2"][: number + 1]
        last = bench.all(HandOut)[-1:]
        worker.report(slots=9, held=last, started=last, finished=[succeeded(last[0])])
    assert [fact.outcome for fact in bench.all(RunFinished)] == [Outcome.SUCCEEDED] * 3


def test_a_portion_is_the_same_after_a_takeover():
    bench = Bench(shard=2)
    limited(bench, QueueLimits(shards=3, rate="3/m"), running=5, queued=7, rate="1/m")
    assert bench.reloaded().limits.portion("acme") == Portion(
        running=1, queued=2, rate=Rate(count=1, per=timedelta(minutes=3))
    )
    assert bench.reloaded().limits.queue.shards == 3


def test_above_its_portion_of_queued_a_run_expires_and_says_of_which_shard():
    bench = Bench(shard=2)
    limited(bench, QueueLimits(shards=3), queued=5)
    put(bench, 2)
    finished = only(bench.facts, RunFinished)
    assert (finished.run_id, finished.reason, finished.shard) == ("nightly.1", "quota", 2)
    assert finished.error is not None
    assert finished.error.message == "1 runs of tenant acme wait in shard mail/2, of 1 that may"


def test_rates_of_a_tenant_and_of_the_queue_are_paced_by_their_portions():
    bench = Bench(shard=1)
    limited(bench, QueueLimits(shards=2, rate="4/s"), rate="2/s")
    worker = WorkerSim(bench)
    worker.report(slots=9)
    put(bench, 2)
    for number in range(2, 4):
        bench.give(run(number, shard=1, tenant="umbrella"))
    for tenth in range(1, 21):
        bench.at(tenth / 10)
    seconds = [(item.run.tenant, (item.handed_out_at - T0).total_seconds()) for item in bench.all(HandOut)]
    assert seconds == [("acme", 0), ("umbrella", 0.5), ("acme", 1.0), ("umbrella", 1.5)]


# --- what comes from the catalog ---------------------------------------------------------------------------------


def test_a_shard_takes_over_how_many_the_queue_has():
    bench = Bench(shard=2)
    catalog = Catalog(bench)
    catalog.put("queue", "mail", {"shards": 3, "weights": {"acme": 2}})
    catalog.put("tenant", "acme", {"quota": {"queues": {"mail": {"queued": 3}}}})
    facts = bench.give(run(1, shard=2))
    assert only(facts, LimitsAdopted).limits == QueueLimits(weights={"acme": 2}, shards=3)
    assert only(bench.give(run(2, shard=2)), RunFinished).reason == "quota"
    catalog.put("queue", "mail", None)
    assert only(bench.give(run(3, shard=2)), LimitsAdopted).limits == QueueLimits()


def test_the_first_run_of_a_shard_is_judged_by_its_portion():
    """Nothing has been taken over yet: what the same decision takes over counts."""
    bench = Bench(shard=2)
    catalog = Catalog(bench)
    catalog.put("tenant", "acme", {"quota": {"queues": {"*": {"queued": 4}}}})
    catalog.put("queue", "mail", {"shards": 3})
    assert of(bench.give(run(1, shard=2)), RunFinished) == []
    assert only(bench.give(run(2, shard=2)), RunFinished).reason == "quota"


def test_a_queue_that_was_paused_is_so_in_a_shard_that_had_nothing_yet():
    bench = Bench(shard=2)
    catalog = Catalog(bench)
    catalog.put("queue", "mail", {"shards": 3, "paused": {"note": "move"}})
    bench.at(60)
    WorkerSim(bench).report(slots=9)
    bench.give(run(1, shard=2))
    assert handed(bench) == []
    assert only(bench.at(65), RunDeferred).reason is RunDeferReason.PAUSED
    catalog.put("queue", "mail", {"shards": 3})
    bench.give(run(2, shard=2))
    assert handed(bench) == ["nightly.1", "nightly.2"]


def test_weights_hold_in_each_shard():
    bench = Bench(shard=1)
    catalog = Catalog(bench)
    catalog.put("queue", "mail", {"shards": 3, "weights": {"acme": 2}})
    for number in range(4):
        bench.give(run(number, shard=1))
    for number in range(4, 6):
        bench.give(run(number, shard=1, tenant="umbrella"))
    WorkerSim(bench).report(slots=6)
    tenants = [item.run.tenant for item in bench.all(HandOut)]
    assert (tenants[:3].count("acme"), tenants.count("acme")) == (2, 4)


def test_a_concurrency_key_has_its_whole_limit_in_its_shard():
    bench = Bench(shard=1)
    limited(bench, QueueLimits(shards=4))
    WorkerSim(bench).report(slots=9)
    put(bench, 4, job=job(concurrency=Concurrency(key="db-1", limit=3)))
    assert len(handed(bench)) == 3
