"""Quotas and rates from the definitions of tenants and queues: how a shard comes to them, and what they hold."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dispatcher import pacing
from dispatcher.adoption import CHANGES_PER_STEP, CatalogRead
from schemas import topics
from schemas.facts import CatalogAdopted, Concurrency, Outcome, RunDeferReason, RunDeferred, RunFinished
from schemas.internal import HandOut, LimitsAdopted, QueueLimits, TenantLimits
from schemas.rates import Rate
from tests.dispatcher.catalog import Catalog
from tests.dispatcher.harness import T0, Bench, WorkerSim, cancel, inquiry, job, of, only, run, succeeded

SECOND = timedelta(seconds=1)


def limited(bench: Bench, tenant: str = "acme", *, queue: QueueLimits | None = None, **limits: Any) -> None:
    """The shard has taken over these limits."""
    bench.happened(
        LimitsAdopted(
            queue=bench.queue, shard=0, offset=0, adopted_at=T0, limits=queue, tenants={tenant: TenantLimits(**limits)}
        )
    )


def handed(bench: Bench) -> list[str]:
    return [item.run.run_id for item in bench.all(HandOut)]


# --- how a shard comes to its limits -------------------------------------------------------------------------------


def test_the_partition_logs_what_it_adopts_of_queues_and_tenants_and_leaves_the_rest():
    catalog = Catalog(Bench())
    (adopted,) = catalog.put("tenant", "acme", {"quota": {"queues": {"mail": {"running": 2}}}})
    assert isinstance(adopted, CatalogAdopted)
    assert (adopted.role, adopted.offset, adopted.entries[0].kind) == ("dispatcher", 0, "tenant")
    assert [output.topic for output in catalog.bench.core.route(catalog.state, adopted)] == [topics.RUN_EVENTS]
    assert catalog.put("job", "send-report", {}) == []
    again = CatalogRead(entry=adopted.entries[0], offset=0)
    assert list(catalog.bench.core.decide(catalog.state, again, catalog.bench.moment(), catalog.state)) == []


def test_a_shard_takes_over_what_concerns_it_at_its_next_decision():
    bench = Bench()
    catalog = Catalog(bench)
    catalog.put("queue", "mail", {"weights": {"acme": 3}, "rate": "600/m"})
    catalog.put("queue", "other", {"weights": {"acme": 9}})
    catalog.put("tenant", "acme", {"quota": {"queues": {"mail": {"running": 2}, "*": {"running": 7}}}})
    catalog.put("tenant", "umbrella", {"quota": {"queues": {"*": {"queued": 5, "rate": "10/s"}}}})
    catalog.put("tenant", "globex", {"quota": {"queues": {"other": {"running": 1}}}})
    facts = bench.give(run(1))
    assert only(facts, LimitsAdopted) == LimitsAdopted(
        queue="mail", shard=0, offset=4, adopted_at=T0, limits=QueueLimits(weights={"acme": 3}, rate="600/m"),
        tenants={"acme": TenantLimits(running=2), "umbrella": TenantLimits(queued=5, rate="10/s")},
    )  # fmt: skip
    assert of(bench.give(run(2)), LimitsAdopted) == []
    assert bench.reloaded().limits.tenants == {
        "acme": TenantLimits(running=2), "umbrella": TenantLimits(queued=5, rate="10/s"),
    }  # fmt: skip


def test_a_shard_knows_how_many_shards_its_queue_has():
    bench = Bench()
    catalog = Catalog(bench)
    catalog.put("queue", "mail", {"shards": 3})
    assert only(bench.give(run(1)), LimitsAdopted).limits == QueueLimits(shards=3)
    catalog.put("queue", "mail", None)
    assert only(bench.give(run(2)), LimitsAdopted).limits == QueueLimits(shards=1)


def test_a_definition_that_is_changed_or_deleted_is_followed():
    bench = Bench()
    catalog = Catalog(bench)
    catalog.put("tenant", "acme", {"quota": {"queues": {"mail": {"running": 1}}}})
    worker = WorkerSim(bench)
    worker.report(slots=9)
    for number in range(3):
        bench.give(run(number))
    assert handed(bench) == ["nightly.0"]
    catalog.put("tenant", "acme", {"quota": {"queues": {"mail": {"running": 2}}}})
    worker.report(slots=9, held=bench.all(HandOut))
    assert handed(bench) == ["nightly.0", "nightly.1"]
    catalog.put("tenant", "acme", None)
    worker.report(slots=9, held=bench.all(HandOut))
    assert handed(bench) == ["nightly.0", "nightly.1", "nightly.2"]
    assert [row for row in catalog.rows.rows if row.startswith(b"o/")] == [b"o/0000000000000002"]


def test_a_new_shard_takes_over_a_large_catalog_in_bounded_steps():
    bench = Bench()
    catalog = Catalog(bench)
    for number in range(CHANGES_PER_STEP + 1):
        catalog.put("tenant", f"t{number}", {"quota": {"queues": {"*": {"running": 1}}}})
    first = only(bench.give(run(1)), LimitsAdopted)
    second = only(bench.give(run(2)), LimitsAdopted)
    assert (len(first.tenants), len(second.tenants)) == (256, 1)
    assert (first.offset, second.offset) == (255, 256)


def test_what_was_adopted_is_there_after_a_takeover():
    bench = Bench()
    catalog = Catalog(bench)
    catalog.put("tenant", "acme", {"quota": {"queues": {"mail": {"queued": 1}}}})
    bench.shared = catalog.state = catalog.load()
    bench.give(run(1))
    assert only(bench.give(run(2)), RunFinished).reason == "quota"


# --- running ---------------------------------------------------------------------------------------------------------


def test_a_tenant_has_so_many_runs_at_work_and_the_others_wait_and_say_so():
    bench = Bench()
    limited(bench, running=2)
    worker = WorkerSim(bench)
    worker.report(slots=9)
    for number in range(4):
        bench.give(run(number))
    bench.give(run(9, tenant="umbrella"))
    assert handed(bench) == ["nightly.0", "nightly.1", "nightly.9"]
    told = of(bench.at(5), RunDeferred)
    assert [(fact.run_id, fact.reason, fact.since) for fact in told] == [
        ("nightly.2", RunDeferReason.QUOTA, T0),
        ("nightly.3", RunDeferReason.QUOTA, T0),
    ]
    first, second, third = bench.all(HandOut)
    facts = worker.report(slots=7, held=[second, third], started=[first], finished=[succeeded(first)])
    assert only(facts, HandOut).run.run_id == "nightly.2"


def test_a_quota_that_is_made_smaller_takes_nothing_away():
    bench = Bench()
    worker = WorkerSim(bench)
    worker.report(slots=9)
    for number in range(3):
        bench.give(run(number))
    limited(bench, running=1)
    bench.give(run(3))
    assert handed(bench) == ["nightly.0", "nightly.1", "nightly.2"]
    done = bench.all(HandOut)
    facts = worker.report(slots=9, held=done[2:], started=done[:2], finished=[succeeded(item) for item in done[:2]])
    assert of(facts, HandOut) == []
    facts = worker.report(slots=9, started=done[2:], finished=[succeeded(done[2])])
    assert only(facts, HandOut).run.run_id == "nightly.3"


# --- queued ----------------------------------------------------------------------------------------------------------


def test_a_run_above_the_queued_quota_expires_at_once_and_never_starts():
    bench = Bench()
    limited(bench, queued=2)
    for number in range(2):
        bench.give(run(number))
    finished = only(bench.give(run(2)), RunFinished)
    assert (finished.run_id, finished.outcome, finished.reason, finished.attempts) == (
        "nightly.2", Outcome.EXPIRED, "quota", 0,
    )  # fmt: skip
    assert finished.error is not None
    assert finished.error.message == "2 runs of tenant acme wait in queue mail, of 2 that may"
    assert of(bench.give(run(2)), RunFinished) == []
    assert of(bench.give(run(3, tenant="umbrella")), RunFinished) == []
    WorkerSim(bench).report(slots=9)
    assert handed(bench) == ["nightly.0", "nightly.3", "nightly.1"]
    assert of(bench.give(run(4)), RunFinished) == []


def test_an_inquiry_about_a_run_that_the_quota_ended_is_answered_with_that():
    bench = Bench()
    limited(bench, queued=0)
    bench.give(run(1))
    repeat = only(bench.give(inquiry(run(1))), RunFinished)
    assert (repeat.outcome, repeat.repeat) == (Outcome.EXPIRED, True)
    assert only(bench.give(inquiry(run(2))), RunFinished).reason == "quota"


# --- rates -----------------------------------------------------------------------------------------------------------


def seconds_of(bench: Bench) -> list[float]:
    return [(item.handed_out_at - T0).total_seconds() for item in bench.all(HandOut)]


def test_hand_outs_of_a_tenant_are_evenly_spaced_by_its_rate():
    bench = Bench()
    limited(bench, rate="4/s")
    WorkerSim(bench).report(slots=9)
    for number in range(5):
        bench.take(run(number))
    bench.give(run(9, tenant="umbrella"))
    for millisecond in range(0, 1300, 10):
        bench.at(millisecond / 1000)
    assert seconds_of(bench) == [0, 0, 0.25, 0.5, 0.75, 1.0]
    assert handed(bench)[:2] == ["nightly.0", "nightly.9"]


def test_the_rate_of_a_queue_is_shared_by_its_tenants():
    bench = Bench()
    limited(bench, queue=QueueLimits(rate="60/m"))
    WorkerSim(bench).report(slots=9)
    for number in range(3):
        bench.take(run(number))
        bench.take(run(number, tenant="umbrella"))
    bench.wake()
    for second in range(1, 5):
        bench.at(second)
    assert seconds_of(bench) == [0, 1, 2, 3, 4]
    assert [item.run.tenant for item in bench.all(HandOut)] == ["acme", "umbrella", "acme", "umbrella", "acme"]


def test_what_waits_behind_a_rate_says_so():
    bench = Bench()
    limited(bench, rate="1/m")
    worker = WorkerSim(bench)
    worker.report(slots=9)
    bench.give(run(1))
    bench.give(run(2))
    assert [(fact.run_id, fact.reason) for fact in of(bench.at(5), RunDeferred)] == [("nightly.2", RunDeferReason.RATE)]


def test_the_last_run_of_a_key_may_end_while_a_rate_holds_it():
    """Nobody has to be told then why it waits: to look what its key says of it failed its partition."""
    bench = Bench()
    WorkerSim(bench).report(slots=9)
    limited(bench, rate="1/h")
    bench.give(run(1))
    bench.give(run(2, job=job(concurrency=Concurrency(key="db-1", limit=1))))
    assert only(bench.give(cancel("nightly.2")), RunFinished).outcome is Outcome.CANCELLED
    bench.at(6)
    assert bench.all(RunDeferred) == []


def test_a_rate_holds_also_after_a_takeover():
    bench = Bench()
    limited(bench, rate="1/m")
    worker = WorkerSim(bench)
    worker.report(slots=9)
    bench.give(run(1))
    bench.give(run(2))
    bench.take_over()
    for second in range(5, 60, 5):
        bench.at(second)
        worker.report(slots=9, held=bench.all(HandOut))
    assert seconds_of(bench) == [0]
    bench.at(60)
    assert seconds_of(bench) == [0, 60]


@pytest.mark.parametrize(
    ("count", "unit", "expected"), [(4, 1, 250), (1000, 60, 60), (3, 1, 334), (1, 3600, 3_600_000)]
)
def test_a_slow_rate_opens_on_the_millisecond(count: int, unit: int, expected: int):
    rate = Rate(count=count, per=timedelta(seconds=unit))
    opens_at = pacing.opens_at(rate, pacing.after(rate, None, T0))
    assert (opens_at - T0) / timedelta(milliseconds=1) == expected


@given(
    count=st.integers(1, 10_000),
    unit=st.sampled_from([1, 60, 3600]),
    waits=st.lists(st.integers(0, 2_000), min_size=1, max_size=200),
)
@settings(max_examples=60)
def test_no_window_has_more_than_the_rate_but_for_one_step_of_it(count: int, unit: int, waits: list[int]):
    rate = Rate(count=count, per=timedelta(seconds=unit))
    now, reserved = T0, None
    given_: list[datetime] = []
    for wait in waits:
        now += timedelta(milliseconds=wait)
        while reserved is None or pacing.opens_at(rate, reserved) <= now:
            reserved = pacing.after(rate, reserved, now)
            given_.append(now)
            if len(given_) > 3_000:
                break
    burst = count * 0.05 / unit if rate.per / rate.count < pacing.STEP else 0
    for start in given_[::17]:
        window = [each for each in given_ if start <= each < start + rate.per]
        assert len(window) <= count + burst + 1 or len(given_) > 3_000
