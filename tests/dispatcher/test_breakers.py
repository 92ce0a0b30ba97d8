"""A job whose runs fail too often is held; what is not goes on."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from schemas.facts import (
    BreakerChanged,
    BreakerReason,
    BreakerState,
    ErrorInfo,
    Outcome,
    RunDeferReason,
    RunDeferred,
    RunFinished,
)
from schemas.internal import BreakerResetRequested, CommandAnswered, HandOut
from tests.dispatcher.breaking import AT_THREE, POLICY, SECOND, fail, handed, of_job, opened, told
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
