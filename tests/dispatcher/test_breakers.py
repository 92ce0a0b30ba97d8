"""A job whose runs fail too often, and a host that does not answer, are held; what is neither goes on."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from dispatcher import breakers
from schemas.facts import (
    AttemptFinished,
    AttemptOutcome,
    BreakerChanged,
    BreakerPolicy,
    BreakerReason,
    BreakerState,
    ErrorInfo,
    Outcome,
    RunCreated,
    RunDeferReason,
    RunDeferred,
    RunFinished,
)
from schemas.internal import BreakerResetRequested, CommandAnswered, HandOut
from tests.dispatcher.catalog import Catalog
from tests.dispatcher.harness import (
    NEVER_HELD,
    QUEUE,
    T0,
    Bench,
    WorkerSim,
    cancel,
    failed,
    inquiry,
    job,
    of,
    only,
    retry,
    run,
    succeeded,
)

SECOND = timedelta(seconds=1)
POLICY = BreakerPolicy(
    failures=3, percent=50, window=timedelta(minutes=1), wait=timedelta(seconds=30), probes=1
)  # fmt: skip


def of_job(number: int, name: str = "send", *, policy: BreakerPolicy = POLICY, **given: Any) -> RunCreated:
    """A run of a registered job that is tried once."""
    return run(number, job=job(name=name, breaker=policy, retry=retry(max_attempts=1)), **given)


def to_host(number: int, url: str = "https://api.example.com/hook", **given: Any) -> RunCreated:
    """A run that calls a host, of a job whose own breaker never opens."""
    target = {"type": "http", "url": url, "method": "POST"}
    return run(number, job=job(name=f"call-{number}", target=target, retry=retry(max_attempts=1)), **given)


def told(facts: Any) -> list[tuple[str, str, str, float]]:
    """What changed: breaker, state, reason, at."""
    changes = of(facts, BreakerChanged)
    return [(each.breaker, each.state, each.reason, (each.changed_at - T0).total_seconds()) for each in changes]


def handed(facts: Any) -> list[str]:
    return [each.run.run_id for each in of(facts, HandOut)]


def fail(bench: Bench, worker: WorkerSim, runs: list[RunCreated], type_: str = "ValueError") -> list[Any]:
    """The runs are handed out and fail, all in one report."""
    for each in runs:
        bench.take(each)
    mine = of(worker.report(slots=len(runs)), HandOut)
    return worker.report(slots=9, started=mine, finished=[failed(item, type_) for item in mine])


# --- opening ------------------------------------------------------------------------------------------------------


def test_so_many_failures_within_the_window_open_it_and_nothing_of_the_job_is_handed_out():
    bench = Bench()
    worker = WorkerSim(bench)
    facts = fail(bench, worker, [of_job(number) for number in range(3)])
    (change,) = of(facts, BreakerChanged)
    assert change == BreakerChanged(
        tenant="acme", queue="mail", shard=0, breaker="job:send", state=BreakerState.OPEN,
        reason=BreakerReason.FAILURES, changed_at=T0, since=T0, until=T0 + 30 * SECOND, failures=3, attempts=3,
        run_id="nightly.2", error=ErrorInfo(type="ValueError", message="no"),
    )  # fmt: skip
    assert handed(bench.give(of_job(4))) == []
    assert change in bench.on("tidewheel.run-events")


def test_one_failure_less_or_outside_the_window_does_not():
    bench = Bench()
    worker = WorkerSim(bench)
    assert told(fail(bench, worker, [of_job(1), of_job(2)])) == []
    bench.at(61)
    assert told(fail(bench, worker, [of_job(3), of_job(4)])) == []
    bench.at(62)
    assert told(fail(bench, worker, [of_job(5)])) == [("job:send", "open", "failures", 62.0)]


def test_failures_that_are_a_small_share_of_what_ends_do_not():
    bench = Bench()
    worker = WorkerSim(bench)
    fail(bench, worker, [of_job(0)])
    for number in range(1, 6):
        bench.take(of_job(number))
    mine = of(worker.report(slots=5), HandOut)
    worker.report(slots=9, started=mine, finished=[succeeded(item) for item in mine])
    assert told(fail(bench, worker, [of_job(number) for number in range(6, 9)])) == []  # four of nine
    assert told(fail(bench, worker, [of_job(9)])) == [("job:send", "open", "failures", 0.0)]  # five of ten


def test_a_breaker_of_no_failures_never_opens_and_one_that_nobody_gave_does_at_twenty():
    for policy, expected in ((NEVER_HELD, []), (None, ["open"])):
        bench = Bench()
        runs = [replace(each, job=replace(each.job, breaker=policy)) for each in map(of_job, range(20))]
        assert [state for _, state, _, _ in told(fail(bench, WorkerSim(bench), runs))] == expected


def test_a_job_without_a_name_has_the_breaker_of_its_schedule():
    bench = Bench()
    runs = [run(number, job=job(breaker=POLICY, retry=retry(max_attempts=1))) for number in range(3)]
    assert [name for name, *_ in told(fail(bench, WorkerSim(bench), runs))] == ["schedule:nightly"]


def test_the_machinerys_faults_and_cancels_say_nothing_of_a_job():
    bench = Bench()
    worker = WorkerSim(bench)
    for number in range(9):
        bench.take(of_job(number))
    mine = of(worker.report(slots=9), HandOut)
    worker.report(slots=0, started=mine, held=mine[3:])  # three are lost
    bench.give(cancel("nightly.3"))
    worker.report(slots=0, held=mine[4:], finished=[failed(mine[3])])
    bench.at(60)  # the others' leases end
    assert told(bench.facts) == []


def test_attempts_that_take_too_long_count_and_those_that_meet_the_deadline_do_not():
    patient = replace(of_job(0).job, lease=60 * SECOND)
    for given, expected in (
        (replace(patient, timeout=20 * SECOND), ["open"]),
        (replace(patient, deadline=20 * SECOND), []),
    ):
        bench = Bench()
        runs = [run(number, job=given) for number in range(3)]
        worker = WorkerSim(bench)
        for each in runs:
            bench.take(each)
        mine = of(worker.report(slots=3), HandOut)
        worker.report(slots=0, started=mine, held=mine)
        assert [state for _, state, _, _ in told(bench.at(25))] == expected


# --- who is held --------------------------------------------------------------------------------------------------


def test_a_bad_job_costs_itself_only_neighbours_in_the_queue_go_on():
    bench = Bench()
    worker = WorkerSim(bench)
    for number in range(100):
        bench.take(of_job(number))
        bench.take(of_job(number, "good", run_id=f"good.{number}", schedule="good"))
    ended: list[HandOut] = []
    while mine := bench.all(HandOut)[len(ended) :] or of(worker.report(slots=10), HandOut):
        ended += mine
        done = [failed(item) if item.run.job.name == "send" else succeeded(item) for item in mine]
        worker.report(slots=10, started=mine, finished=done)
    bad = [item for item in ended if item.run.job.name == "send"]
    assert len(ended) - len(bad) == 100
    assert len(bad) <= 10  # those of one report at most
    assert told(bench.facts) == [("job:send", "open", "failures", 0.0)]


def test_another_tenants_job_of_the_same_name_goes_on():
    bench = Bench()
    worker = WorkerSim(bench)
    fail(bench, worker, [of_job(number) for number in range(3)])
    assert handed(bench.give(of_job(7, tenant="umbrella"))) == ["nightly.7"]


def test_runs_that_waited_before_it_opened_are_told_when_their_turn_comes_and_later_ones_after_five_seconds():
    bench = Bench()
    worker = WorkerSim(bench)
    for number in range(5):
        bench.take(of_job(number))
    mine = of(worker.report(slots=3), HandOut)
    facts = worker.report(slots=2, started=mine, finished=[failed(item) for item in mine])
    assert [(each.run_id, each.reason, each.breaker, each.since, each.until) for each in of(facts, RunDeferred)] == [
        ("nightly.3", RunDeferReason.BREAKER, "job:send", T0, T0 + 30 * SECOND),
        ("nightly.4", RunDeferReason.BREAKER, "job:send", T0, T0 + 30 * SECOND),
    ]
    bench.at(2)
    bench.give(of_job(5, at=bench.now))
    assert of(bench.at(6.999), RunDeferred) == []
    (told_,) = of(bench.at(7), RunDeferred)
    assert (told_.run_id, told_.breaker, told_.since) == ("nightly.5", "job:send", T0 + 2 * SECOND)


def test_neighbours_do_not_wait_until_all_are_told_that_waited_before_it_opened():
    bench = Bench()
    worker = WorkerSim(bench)
    for number in range(200):
        bench.take(of_job(number))
    for number in range(3):
        bench.take(of_job(number, "good", tenant="umbrella"))
    mine = of(worker.report(slots=5), HandOut)  # the tenants take turns
    assert [item.run.tenant for item in mine] == ["acme", "umbrella", "acme", "umbrella", "acme"]
    for number in range(3, 6):
        bench.take(of_job(number, "good", tenant="umbrella"))
    done = [failed(item) if item.run.tenant == "acme" else succeeded(item) for item in mine]
    facts = [
        each for each in worker.report(slots=9, started=mine, finished=done) if isinstance(each, HandOut | RunDeferred)
    ]
    assert len(of(facts[:64], HandOut)) == 4
    assert handed(facts) == ["nightly.2", "nightly.3", "nightly.4", "nightly.5"]
    assert len(of(facts, RunDeferred)) == 197


def test_a_retry_waits_behind_it_too_and_is_tried_when_it_is_half_open():
    bench = Bench()
    worker = WorkerSim(bench)
    runs = [run(number, job=job(name="send", breaker=POLICY)) for number in range(3)]
    fail(bench, worker, runs)
    bench.at(5)
    worker.report(slots=9)
    assert len(bench.all(HandOut)) == 3
    bench.at(30)
    assert [(item.run.run_id, item.attempt) for item in of(worker.report(slots=9), HandOut)] == [("nightly.0", 2)]


def test_what_waits_behind_it_can_be_cancelled_and_expires_at_its_deadline():
    bench = Bench()
    worker = WorkerSim(bench)
    fail(bench, worker, [of_job(number, policy=replace(POLICY, wait=timedelta(hours=1))) for number in range(3)])
    bench.give(of_job(4))
    short = replace(of_job(5).job, deadline=timedelta(minutes=2))
    bench.give(run(5, job=short))
    assert only(bench.give(cancel("nightly.4")), RunFinished).outcome is Outcome.CANCELLED
    worker.report(slots=9)
    assert only(bench.at(120), RunFinished).outcome is Outcome.EXPIRED


# --- probing ------------------------------------------------------------------------------------------------------


def opened(bench: Bench, worker: WorkerSim, waiting: int = 3, policy: BreakerPolicy = POLICY) -> None:
    """It has opened, and so many wait behind it."""
    fail(bench, worker, [of_job(number, policy=policy) for number in range(policy.failures)])
    for number in range(100, 100 + waiting):
        bench.give(of_job(number, policy=policy))


def test_after_its_wait_one_run_is_tried_and_when_it_succeeds_all_go():
    bench = Bench()
    worker = WorkerSim(bench)
    opened(bench, worker)
    bench.at(20)
    worker.report(slots=9)
    facts = bench.at(30)
    assert told(facts) == [("job:send", "half_open", "waited", 30.0)]
    (probe,) = of(facts, HandOut)
    assert probe.run.run_id == "nightly.100"
    facts = worker.report(slots=8, started=[probe], held=[probe])
    assert handed(facts) == []
    facts = worker.report(slots=9, finished=[succeeded(probe)])
    assert told(facts) == [("job:send", "closed", "probe_succeeded", 30.0)]
    assert handed(facts) == ["nightly.101", "nightly.102"]


def test_a_probe_that_fails_holds_the_others_twice_as_long_up_to_ten_minutes():
    bench = Bench()
    worker = WorkerSim(bench)
    opened(bench, worker, waiting=9)
    waits = []
    for _ in range(7):
        until = bench.all(BreakerChanged)[-1].until
        assert until is not None
        waits.append((until - bench.now).total_seconds())
        bench.at(until - T0 - SECOND)
        worker.report(slots=9)
        (probe,) = of(bench.at(until - T0), HandOut)
        facts = worker.report(slots=9, started=[probe], finished=[failed(probe)])
        assert [(state, reason) for _, state, reason, _ in told(facts)] == [("open", "probe_failed")]
        assert of(facts, BreakerChanged)[0].since == T0
    assert waits == [30, 60, 120, 240, 480, 600, 600]


def test_so_many_probes_as_it_says_are_with_workers_at_once():
    bench = Bench()
    worker = WorkerSim(bench)
    opened(bench, worker, waiting=9, policy=replace(POLICY, probes=2))
    bench.at(20)
    worker.report(slots=9)
    assert len(handed(bench.at(30))) == 2


def test_a_probe_that_is_lost_settles_nothing_and_another_one_goes():
    bench = Bench()
    worker = WorkerSim(bench)
    opened(bench, worker)
    bench.at(20)
    worker.report(slots=9)
    (probe,) = of(bench.at(30), HandOut)
    facts = worker.report(slots=9, held=())  # read past, not held
    assert told(facts) == []
    (again,) = of(facts, HandOut)
    assert (again.run.run_id, again.attempt) == ("nightly.100", 2)
    assert probe.offset < again.offset


def test_where_probes_take_long_another_goes_after_each_wait_which_doubles_and_the_first_that_ends_settles_it():
    bench = Bench()
    worker = WorkerSim(bench)
    opened(bench, worker, waiting=9)
    bench.at(29)
    worker.report(slots=9)
    out = of(bench.at(30), HandOut)
    went: list[tuple[float, str]] = []
    for second in range(35, 30 + 30 + 60 + 120 + 20, 5):
        facts = bench.at(second)
        assert {(state, reason) for _, state, reason, _ in told(facts)} <= {("half_open", "waited")}
        out += of(facts, HandOut)
        went += [(second, each.run.run_id) for each in of(facts, HandOut)]
        assert handed(worker.report(slots=9 - len(out), started=out, held=out)) == []
    assert went == [(60, "nightly.101"), (120, "nightly.102"), (240, "nightly.103")]
    facts = worker.report(slots=6, held=out[1:], finished=[succeeded(out[0])])
    assert [(state, reason) for _, state, reason, _ in told(facts)] == [("closed", "probe_succeeded")]
    assert handed(facts) == ["nightly.104", "nightly.105", "nightly.106", "nightly.107", "nightly.108"]


def test_that_another_probe_may_go_outlives_a_takeover():
    bench = Bench()
    worker = WorkerSim(bench)
    opened(bench, worker)
    bench.at(29)
    worker.report(slots=9)
    out = of(bench.at(30), HandOut)
    worker.report(slots=0, started=out, held=out)
    bench.take_over()
    assert told(bench.at(59)) == []
    assert told(bench.at(60)) == [("job:send", "half_open", "waited", 60.0)]
    bench.take_over()
    bench.at(61)
    assert handed(worker.report(slots=8, held=out)) == ["nightly.101"]


def test_no_probe_waits_for_a_half_open_breaker_of_which_none_is_out():
    bench = Bench()
    opened(bench, WorkerSim(bench), waiting=0)
    bench.at(30)
    assert told(bench.at(timedelta(hours=23))) == []


def test_what_was_handed_out_before_it_opened_says_nothing_of_what_came_after():
    bench = Bench()
    worker = WorkerSim(bench)
    late = of_job(50)
    bench.take(late)
    (slow,) = of(worker.report(slots=1), HandOut)
    worker.report(slots=0, started=[slow], held=[slow])
    bench.at(1)
    for number in range(3):
        bench.take(of_job(number))
    mine = of(worker.report(slots=3, held=[slow]), HandOut)
    worker.report(slots=9, held=[slow], started=mine, finished=[failed(item) for item in mine])
    assert told(worker.report(slots=9, finished=[succeeded(slow)])) == []
    assert [state for _, state, _, _ in told(bench.at(31))] == ["half_open"]


def test_a_half_open_breaker_of_which_nothing_is_tried_for_a_day_is_closed():
    bench = Bench()
    worker = WorkerSim(bench)
    opened(bench, worker, waiting=0)
    bench.at(30)
    assert told(bench.at(timedelta(days=1, seconds=30))) == [("job:send", "closed", "unproven", 86_430.0)]


# --- hosts --------------------------------------------------------------------------------------------------------

AT_THREE = {"quota": {"queues": {"*": {"breaker": {
    "failures": 3, "share": "50%", "window": "PT1M", "wait": "PT30S", "probes": 1,
}}}}}  # fmt: skip


def caller(bench: Bench) -> WorkerSim:
    Catalog(bench).put("tenant", "acme", AT_THREE)
    return WorkerSim(bench, tasks=("http:",))


@pytest.mark.parametrize("type_", ["http:503", "http:429", "http:timeout", "http:unreachable", "http:broken"])
def test_a_host_that_is_not_well_holds_all_jobs_that_call_it_and_no_others(type_):
    bench = Bench()
    worker = caller(bench)
    facts = fail(bench, worker, [to_host(number) for number in range(3)], type_)
    assert [name for name, *_ in told(facts)] == ["host:api.example.com"]
    assert handed(bench.give(to_host(4, "https://API.example.com/other"))) == []
    assert handed(bench.give(to_host(5, "https://api.example.com:8443/hook"))) == ["nightly.5"]
    assert handed(bench.give(to_host(6, "https://elsewhere.example.com/"))) == ["nightly.6"]


@pytest.mark.parametrize("type_", ["http:404", "http:busy", "http:refused", "ValueError"])
def test_a_host_that_refuses_a_request_or_was_not_asked_is_not_held(type_):
    bench = Bench()
    assert told(fail(bench, caller(bench), [to_host(number) for number in range(9)], type_)) == []


def test_a_run_behind_its_jobs_breaker_is_still_held_by_its_host_when_that_one_closes():
    bench = Bench()
    worker = caller(bench)
    given = replace(to_host(0).job, name="send", breaker=replace(POLICY, wait=10 * SECOND))
    runs = [run(number, job=given) for number in range(3)]
    facts = fail(bench, worker, runs, "http:503")
    assert [name for name, *_ in told(facts)] == ["job:send", "host:api.example.com"]
    bench.give(run(7, job=given))
    worker.report(slots=9)
    facts = bench.at(10)
    assert told(facts) == [("job:send", "half_open", "waited", 10.0)]
    assert [(each.run_id, each.breaker) for each in of(facts, RunDeferred)] == [("nightly.7", "host:api.example.com")]
    bench.at(20)
    worker.report(slots=9)
    (probe,) = of(bench.at(30), HandOut)
    facts = worker.report(slots=9, started=[probe], finished=[succeeded(probe)])
    assert [(name, state) for name, state, _, _ in told(facts)] == [
        ("host:api.example.com", "closed"), ("job:send", "closed"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://api.example.com/x", "host:api.example.com"),
        ("http://API.Example.com:80/", "host:api.example.com:80"),
        ("https://[::1]:9/", "host:::1:9"),
        ("https://api.example.com:port/", ""),
        ("nonsense", ""),
        ("https:///x", ""),
    ],
)
def test_a_hosts_breaker_is_named_by_host_and_port(url, name):
    assert breakers.host_of(to_host(1, url)) == name


# --- resets -------------------------------------------------------------------------------------------------------


def reset(breaker: str = "", **given: Any) -> BreakerResetRequested:
    asked = BreakerResetRequested(
        tenant="acme", queue=QUEUE, shard=0, requested_at=T0, breaker=breaker, by="ada", note="mended",
        command_id="reset-1", source="tidewheel/api", reply_to=5,
    )  # fmt: skip
    return replace(asked, **given)


def test_somebody_closes_it_and_is_named_and_all_that_waits_goes():
    bench = Bench()
    worker = WorkerSim(bench)
    opened(bench, worker)
    facts = bench.give(reset("job:send"))
    (change,) = of(facts, BreakerChanged)
    assert (change.state, change.reason, change.by, change.note) == ("closed", BreakerReason.RESET, "ada", "mended")
    assert (change.command_id, change.source) == ("reset-1", "tidewheel/api")
    assert only(facts, CommandAnswered) == CommandAnswered(
        command_id="reset-1", reply_to=5, status=200,
        body={
            "tenant": "acme", "queue": "mail", "left": 0,
            "reset": [{"breaker": "job:send", "was": "open", "since": "2026-03-02T10:00:00.000Z"}],
        },
    )  # fmt: skip
    assert handed(facts) == ["nightly.100", "nightly.101", "nightly.102"]


def test_one_shard_of_several_gives_its_part_of_the_answer():
    bench = Bench(shard=2)
    facts = bench.give(reset(shard=2, shards=3))
    assert only(facts, CommandAnswered) == CommandAnswered(
        command_id="reset-1", reply_to=5, status=200, part=2, parts=3,
        body={"tenant": "acme", "queue": "mail", "left": 0, "reset": []},
    )  # fmt: skip
    worker = WorkerSim(bench)
    fail(bench, worker, [replace(of_job(number), shard=2) for number in range(3)])
    (closed,) = only(bench.give(reset(shard=2, shards=3)), CommandAnswered).body["reset"]
    assert (closed["breaker"], closed["shard"]) == ("job:send", 2)


def test_what_is_closed_or_another_tenants_stays_as_it_is():
    bench = Bench()
    opened(bench, WorkerSim(bench))
    for asked in (reset("job:other"), reset("", tenant="umbrella")):
        facts = bench.give(asked)
        assert told(facts) == []
        assert only(facts, CommandAnswered).body["reset"] == []
    assert told(bench.give(reset(reply_to=None))) == [("job:send", "closed", "reset", 0.0)]


def test_after_a_reset_it_counts_anew():
    bench = Bench()
    worker = WorkerSim(bench)
    opened(bench, worker, waiting=0)
    bench.at(1)
    bench.give(reset())
    assert told(fail(bench, worker, [of_job(7), of_job(8)])) == []
    assert told(fail(bench, worker, [of_job(9)])) == [("job:send", "open", "failures", 1.0)]


# --- definitions, takeovers ---------------------------------------------------------------------------------------


def test_a_job_that_gives_none_has_its_tenants():
    bench = Bench()
    Catalog(bench).put("tenant", "acme", AT_THREE)
    runs = [replace(each, job=replace(each.job, breaker=None)) for each in map(of_job, range(3))]
    assert [state for _, state, _, _ in told(fail(bench, WorkerSim(bench), runs))] == ["open"]


def test_a_breaker_and_its_probes_outlive_a_takeover():
    bench = Bench()
    worker = WorkerSim(bench)
    opened(bench, worker)
    bench.take_over()
    bench.at(20)
    worker.report(slots=9)
    assert len(handed(bench.at(30))) == 1
    bench.take_over()
    bench.at(31)
    (probe,) = bench.all(HandOut)[3:]
    assert handed(worker.report(slots=8, held=[probe], started=[probe])) == []
    assert len(handed(worker.report(slots=9, finished=[succeeded(probe)]))) == 2


def test_a_rerun_of_the_job_waits_behind_it_and_one_that_was_inquired_too():
    bench = Bench()
    worker = WorkerSim(bench)
    opened(bench, worker, waiting=0)
    assert handed(bench.give(of_job(7, run_id="nightly.r-1", of="nightly.0"))) == []
    assert handed(bench.give(inquiry(of_job(8)))) == []


def test_a_job_that_never_fails_has_no_row_and_a_quiet_one_loses_its_own():
    bench = Bench()
    worker = WorkerSim(bench)
    bench.take(of_job(1))
    (mine,) = of(worker.report(slots=1), HandOut)
    worker.report(slots=1, started=[mine], finished=[succeeded(mine)])
    bench.save()
    assert rows(bench) == []
    fail(bench, worker, [of_job(2)])
    bench.save()
    assert rows(bench) == [b"k/acme/job:send"]
    bench.at(3601)
    fail(bench, worker, [of_job(3, "other")])
    bench.save()
    assert rows(bench) == [b"k/acme/job:other"]


def test_a_job_that_has_not_failed_for_its_window_has_no_row_any_more():
    bench = Bench()
    worker = WorkerSim(bench)
    fail(bench, worker, [of_job(1)])
    for second, expected in ((30, [b"k/acme/job:send"]), (70, [])):
        bench.at(second)
        bench.take(of_job(second))
        (mine,) = of(worker.report(slots=1), HandOut)
        worker.report(slots=1, started=[mine], finished=[succeeded(mine)])
        bench.save()
        assert rows(bench) == expected


def test_what_was_handed_out_before_it_was_closed_says_nothing_though_others_have_succeeded_since():
    bench = Bench()
    worker = WorkerSim(bench)
    for number in range(7):
        bench.take(of_job(number))
    mine = of(worker.report(slots=7), HandOut)
    late = mine[:4]
    worker.report(slots=0, held=late, started=mine, finished=[failed(item) for item in mine[4:]])
    bench.at(1)
    bench.give(reset())
    bench.take(of_job(9))
    (good,) = of(worker.report(slots=1, held=late), HandOut)
    worker.report(slots=0, held=late, started=[good], finished=[succeeded(good)])
    assert told(worker.report(slots=9, finished=[failed(item) for item in late])) == []


def rows(bench: Bench) -> list[bytes]:
    return [row for row in bench.rows.rows if row.startswith(b"k/")]


def test_what_is_counted_of_a_host_that_hangs_is_the_attempt_that_took_too_long():
    bench = Bench()
    worker = caller(bench)
    given = replace(to_host(0).job, timeout=20 * SECOND, lease=60 * SECOND)
    for number in range(3):
        bench.take(run(number, job=given))
    mine = of(worker.report(slots=3), HandOut)
    worker.report(slots=0, started=mine, held=mine)
    facts = bench.at(20)
    assert {each.outcome for each in of(facts, AttemptFinished)} == {AttemptOutcome.TIMED_OUT}
    assert [name for name, *_ in told(facts)] == ["host:api.example.com"]
