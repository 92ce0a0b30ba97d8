"""A paused queue, or a tenant paused in it, hands nothing out: what runs goes on, what waits is told, none is lost."""

from datetime import timedelta

from schemas.facts import Outcome, RunDeferReason, RunDeferred, RunFinished
from schemas.internal import HandOut, LimitsAdopted, QueueLimits, TenantLimits
from tests.dispatcher.catalog import Catalog
from tests.dispatcher.harness import T0, Bench, WorkerSim, cancel, of, only, run, succeeded
from tests.dispatcher.test_quotas import handed

PAUSED = {"paused": {"note": "moving the database"}}


def told(facts) -> list[tuple[str, str, timedelta]]:
    return [(fact.run_id, fact.reason.value, fact.since - T0) for fact in of(facts, RunDeferred)]


def test_nothing_is_handed_out_of_a_paused_queue_and_all_of_it_after_the_pause():
    bench = Bench()
    catalog = Catalog(bench)
    worker = WorkerSim(bench)
    worker.report(slots=9)
    catalog.put("queue", "mail", PAUSED)
    for number in range(3):
        bench.give(run(number))
    bench.give(run(3, tenant="umbrella"))
    bench.at(60)
    worker.report(slots=9)
    assert handed(bench) == []
    catalog.put("queue", "mail", {})
    worker.report(slots=9)
    assert sorted(handed(bench)) == ["nightly.0", "nightly.1", "nightly.2", "nightly.3"]


def test_a_shard_takes_a_pause_over_with_the_instant_from_which_it_held():
    bench = Bench()
    catalog = Catalog(bench)
    bench.at(7)
    catalog.put("queue", "mail", {"rate": "10/s", **PAUSED})
    catalog.put("tenant", "acme", {"quota": {"queues": {"mail": PAUSED}}})
    since = T0 + timedelta(seconds=7)
    assert only(bench.give(run(1)), LimitsAdopted) == LimitsAdopted(
        queue="mail", shard=0, offset=1, adopted_at=since, limits=QueueLimits(rate="10/s", paused_at=since),
        tenants={"acme": TenantLimits(paused_at=since)},
    )  # fmt: skip
    assert bench.reloaded().limits.queue == QueueLimits(rate="10/s", paused_at=since)


def test_another_note_or_rate_does_not_begin_the_pause_anew():
    bench = Bench()
    catalog = Catalog(bench)
    catalog.put("queue", "mail", PAUSED)
    bench.give(run(1))
    bench.at(30)
    catalog.put("queue", "mail", {"rate": "1/s", "paused": {"note": "it takes longer"}})
    adopted = only(bench.give(run(2)), LimitsAdopted)
    assert adopted.limits == QueueLimits(rate="1/s", paused_at=T0)


def test_runs_that_are_with_workers_go_on_and_end_while_the_queue_is_paused():
    bench = Bench()
    catalog = Catalog(bench)
    worker = WorkerSim(bench)
    worker.report(slots=1)
    bench.give(run(1))
    bench.give(run(2))
    catalog.put("queue", "mail", PAUSED)
    (first,) = bench.all(HandOut)
    facts = worker.report(slots=1, started=[first], finished=[succeeded(first)])
    assert only(facts, RunFinished).outcome is Outcome.SUCCEEDED
    assert handed(bench) == ["nightly.1"]


def test_what_waits_says_that_it_is_paused_and_since_when():
    bench = Bench()
    catalog = Catalog(bench)
    worker = WorkerSim(bench)
    worker.report(slots=1)
    bench.give(run(1))
    bench.give(run(2))
    bench.at(20)
    catalog.put("queue", "mail", PAUSED)
    worker.report(slots=0, held=bench.all(HandOut), started=bench.all(HandOut))
    bench.at(22)
    bench.give(run(3, at=bench.now))
    assert told(bench.at(24)) == []
    assert told(bench.at(25)) == [("nightly.2", "paused", timedelta(seconds=20))]
    assert told(bench.at(27)) == [("nightly.3", "paused", timedelta(seconds=22))]
    assert told(bench.at(29)) == []


def test_a_run_that_was_told_of_a_quota_is_told_of_a_pause_and_after_it_of_the_quota_again():
    bench = Bench()
    catalog = Catalog(bench)
    catalog.put("tenant", "acme", {"quota": {"queues": {"*": {"running": 1}}}})
    worker = WorkerSim(bench)
    worker.report(slots=9)
    bench.give(run(1))
    bench.give(run(2))

    def beat() -> list[tuple[str, str, timedelta]]:
        return told(worker.report(slots=8, held=bench.all(HandOut)))

    assert told(bench.at(5)) == [("nightly.2", "quota", timedelta())]
    catalog.put("queue", "mail", PAUSED)
    assert beat() == []
    assert told(bench.at(10)) == [("nightly.2", "paused", timedelta(seconds=5))]
    catalog.put("queue", "mail", {})
    assert beat() == [("nightly.2", "quota", timedelta())]


def test_where_nobody_is_there_to_take_a_run_it_is_told_that_first_and_the_pause_when_somebody_comes():
    bench = Bench()
    catalog = Catalog(bench)
    catalog.put("queue", "mail", PAUSED)
    bench.give(run(1))
    assert [reason for _, reason, _ in told(bench.at(5))] == [RunDeferReason.NO_WORKER]
    assert told(WorkerSim(bench).report(slots=1)) == [("nightly.1", "paused", timedelta())]


def test_a_tenant_is_drained_from_a_queue_and_the_others_go_on():
    bench = Bench()
    catalog = Catalog(bench)
    worker = WorkerSim(bench)
    worker.report(slots=9)
    bench.give(run(1))
    catalog.put("tenant", "acme", {"quota": {"queues": {"*": PAUSED}}})
    bench.give(run(2))
    bench.give(run(3, tenant="umbrella"))
    assert handed(bench) == ["nightly.1", "nightly.3"]
    first, third = bench.all(HandOut)
    worker.report(slots=9, held=[third], started=[first], finished=[succeeded(first)])
    assert handed(bench) == ["nightly.1", "nightly.3"]
    catalog.put("tenant", "acme", None)
    worker.report(slots=9, held=[third])
    assert handed(bench) == ["nightly.1", "nightly.3", "nightly.2"]


def test_a_pause_holds_after_a_takeover():
    bench = Bench()
    catalog = Catalog(bench)
    catalog.put("queue", "mail", PAUSED)
    bench.give(run(1))
    bench.take_over()
    bench.at(1)
    WorkerSim(bench).report(slots=9)
    assert handed(bench) == []


def test_a_run_that_waits_out_a_pause_can_be_cancelled():
    bench = Bench()
    catalog = Catalog(bench)
    catalog.put("queue", "mail", PAUSED)
    bench.give(run(1))
    assert only(bench.give(cancel("nightly.1")), RunFinished).outcome is Outcome.CANCELLED
