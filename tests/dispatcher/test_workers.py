"""Workers come, go, drain, come back under another incarnation, and are forgotten."""

from datetime import timedelta

from schemas.facts import AttemptDuplicate, AttemptFinished, AttemptOutcome, Outcome, RunFinished
from schemas.internal import HandOut, LeaseNotice, WorkerEnded, WorkerLapsed, WorkersForgotten
from tests.dispatcher.harness import Bench, WorkerSim, job, of, only, run, succeeded


def busy(bench: Bench, worker: WorkerSim, count: int = 1, **given) -> list[HandOut]:
    """A worker with `count` runs begun and no slot left."""
    worker.report(slots=count)
    for number in range(count):
        bench.give(run(number, **given))
    hand_outs = [item for item in bench.all(HandOut) if item.incarnation == worker.incarnation]
    worker.report(slots=0, started=hand_outs, held=hand_outs)
    return hand_outs


def test_a_new_incarnation_of_a_name_ends_the_old_one_and_its_runs_are_handed_out_at_once():
    bench = Bench()
    old, new = WorkerSim(bench, "w1", incarnation="old"), WorkerSim(bench, "w1", incarnation="new")
    hand_outs = busy(bench, old, 2)
    bench.at(1)
    facts = new.report(slots=2)

    assert [(fact.run_id, fact.outcome, fact.counted) for fact in of(facts, AttemptFinished)] == [
        ("nightly.0", AttemptOutcome.LOST, False),
        ("nightly.1", AttemptOutcome.LOST, False),
    ]
    assert only(facts, WorkerEnded).ended_by == "new"
    notice = only(facts, LeaseNotice)
    assert (notice.incarnation, notice.incarnation_ended, notice.ended_by) == ("old", True, "new")
    assert notice.ended == tuple(item.lease for item in hand_outs)
    assert [(item.incarnation, item.attempt) for item in of(facts, HandOut)] == [("new", 2), ("new", 2)]


def test_after_an_announced_drain_the_runs_are_interrupted_and_not_lost():
    bench = Bench()
    old, new = WorkerSim(bench, "w1", incarnation="old"), WorkerSim(bench, "w1", incarnation="new")
    hand_outs = busy(bench, old)
    old.report(slots=0, held=hand_outs, draining=True)
    ended = only(new.report(slots=1), AttemptFinished)
    assert (ended.outcome, ended.counted) == (AttemptOutcome.INTERRUPTED, False)


def test_a_draining_worker_is_given_nothing_whatever_slots_it_names():
    bench = Bench()
    worker = WorkerSim(bench)
    worker.report(slots=5, draining=True)
    assert of(bench.give(run(1)), HandOut) == []


def test_an_ended_incarnation_is_told_so_whenever_it_reports_and_gets_nothing():
    bench = Bench()
    old, new = WorkerSim(bench, "w1", incarnation="old"), WorkerSim(bench, "w1", incarnation="new")
    hand_outs = busy(bench, old)
    new.report(slots=0)
    for _ in range(2):
        facts = old.report(slots=3, held=hand_outs)
        notice = only(facts, LeaseNotice)
        assert (notice.incarnation, notice.incarnation_ended, notice.ended_by) == ("old", True, "new")
        assert notice.ended == (hand_outs[0].lease,)
        assert [type(fact) for fact in facts] == [LeaseNotice]
    current = bench.state.workforce.named("w1")
    assert current is not None
    assert current.record.incarnation == "new"


def test_what_an_ended_incarnation_finished_counts_while_nobody_else_has_the_run():
    bench = Bench()
    old, new = WorkerSim(bench, "w1", incarnation="old"), WorkerSim(bench, "w1", incarnation="new")
    first, second = busy(bench, old, 2)
    new.report(slots=1)  # room for one of the two
    facts = old.report(slots=0, finished=[succeeded(first), succeeded(second)])
    assert only(facts, AttemptDuplicate).run_id == "nightly.0"
    finished = only(facts, RunFinished)
    assert (finished.run_id, finished.outcome) == ("nightly.1", Outcome.SUCCEEDED)


def test_workers_of_different_names_leave_each_other_alone():
    bench = Bench()
    busy(bench, WorkerSim(bench, "w1"))
    facts = WorkerSim(bench, "w2").report(slots=1)
    assert of(facts, WorkerEnded) + of(facts, AttemptFinished) == []


def test_nothing_is_handed_to_a_worker_that_has_been_silent_for_its_period():
    bench = Bench()
    WorkerSim(bench).report(slots=1)
    assert bench.at(14.999) == []
    assert only(bench.at(15), WorkerLapsed).incarnation == "w1-a"
    assert of(bench.give(run(1)), HandOut) == []


def test_a_worker_that_holds_a_long_lease_may_be_silent_for_as_long():
    bench = Bench()
    worker = WorkerSim(bench)
    hand_outs = busy(bench, worker, job=job(lease=timedelta(minutes=6)))
    worker.report(slots=1, held=hand_outs)
    bench.at(300)
    assert only(bench.give(run(9)), HandOut).incarnation == "w1-a"


def test_one_that_was_missed_with_a_shorter_lease_is_handed_nothing_until_it_reports():
    bench = Bench()
    worker = WorkerSim(bench)
    worker.report(slots=5)
    (lasting,) = of(bench.give(run(1, job=job(lease=timedelta(hours=1)))), HandOut)
    bench.give(run(2))
    assert only(bench.at(30), AttemptFinished).run_id == "nightly.2"
    assert of([*bench.at(60), *bench.give(run(3))], HandOut) == []
    facts = worker.report(slots=4, held=[lasting])
    assert sorted(item.run.run_id for item in of(facts, HandOut)) == ["nightly.2", "nightly.3"]


def test_a_worker_whose_long_lease_is_over_has_the_usual_period_again():
    bench = Bench()
    worker = WorkerSim(bench)
    busy(bench, worker, job=job(lease=timedelta(minutes=6), timeout=timedelta(minutes=1)))
    assert of(bench.at(59), WorkerLapsed) == []
    facts = bench.at(60)
    assert only(facts, AttemptFinished).outcome is AttemptOutcome.TIMED_OUT
    assert only(facts, WorkerLapsed).incarnation == "w1-a"


def test_a_worker_that_has_finished_its_long_lease_is_missed_as_soon_as_an_idle_one():
    bench = Bench()
    worker = WorkerSim(bench)
    (hand_out,) = busy(bench, worker, job=job(lease=timedelta(minutes=6)))
    older, newer = worker.said(slots=1, finished=[succeeded(hand_out)]), worker.said(slots=0, held=[hand_out])
    bench.give(newer)
    bench.at(5)
    WorkerSim(bench, "w2").report(slots=0)  # who will be looked at before the long lease would have ended
    assert only(bench.give(older), RunFinished).outcome is Outcome.SUCCEEDED
    assert only(bench.at(15), WorkerLapsed).incarnation == "w1-a"


def test_a_slot_that_was_spoken_for_is_free_again_when_the_unread_lease_ends():
    bench = Bench()
    worker = WorkerSim(bench)
    worker.report(slots=1)
    bench.give(run(1))
    for second in (10, 20):
        bench.at(second)
        worker.report(slots=1, read_up_to=-1)
    assert only(bench.at(30), AttemptFinished).outcome is AttemptOutcome.LEASE_EXPIRED
    assert only(bench.at(31), HandOut).attempt == 2


def test_a_lapsed_worker_is_back_with_its_next_report():
    bench = Bench()
    worker = WorkerSim(bench)
    hand_outs = busy(bench, worker)
    assert only(bench.at(30), AttemptFinished).run_id == "nightly.0"
    bench.at(60)
    assert worker.report(slots=1, held=[])
    again = [item for item in bench.all(HandOut) if item not in hand_outs]
    assert [item.incarnation for item in again] == ["w1-a"]


def test_nothing_is_kept_of_a_worker_that_is_gone_and_holds_nothing():
    bench = Bench()
    WorkerSim(bench).report(slots=1)
    bench.save()
    assert b"w/w1-a" in bench.rows.rows
    bench.at(15)
    bench.save()
    assert b"w/w1-a" not in bench.rows.rows
    assert bench.state.workforce.by_incarnation == {}


def test_a_worker_that_is_gone_is_kept_until_its_last_lease_has_ended():
    bench = Bench()
    worker = WorkerSim(bench)
    busy(bench, worker)
    bench.at(29)
    assert list(bench.state.workforce.by_incarnation) == ["w1-a"]
    bench.at(30)
    assert bench.state.workforce.by_incarnation == {}


def test_an_ended_incarnation_is_forgotten_after_a_day():
    bench = Bench()
    WorkerSim(bench, "w1", incarnation="old").report(slots=0)
    WorkerSim(bench, "w1", incarnation="new").report(slots=0)
    assert bench.state.workforce.get("old") is not None
    assert of(bench.at(timedelta(hours=23, minutes=59)), WorkersForgotten) == []
    assert only(bench.at(timedelta(days=1)), WorkersForgotten).incarnations == ("old",)
    assert bench.state.workforce.by_incarnation == {}
    bench.save()
    assert [row for row in bench.rows.rows if row.startswith(b"w/")] == []


def test_a_worker_that_changes_its_tasks_is_given_what_it_can_do_now():
    bench = Bench()
    worker = WorkerSim(bench, tasks=["other"])
    worker.report(slots=1)
    assert of(bench.give(run(1)), HandOut) == []
    worker.tasks = ("reports.nightly",)
    assert only(worker.report(slots=1), HandOut).run.run_id == "nightly.1"


def test_many_workers_are_filled_evenly_and_ties_go_by_name():
    bench = Bench()
    for number in range(100):
        WorkerSim(bench, f"w{number:02}").report(slots=2)
    for number in range(150):
        bench.take(run(number))
    bench.wake()
    names = [item.incarnation for item in bench.all(HandOut)]
    assert names == [f"w{number:02}-a" for number in range(100)] + [f"w{number:02}-a" for number in range(50)]


def test_lanes_share_hand_outs_so_that_none_starves():
    bench = Bench()
    for number in range(160):
        bench.take(run(number, job=job(priority="critical")))
        bench.take(run(1000 + number, job=job(priority="bulk")))
        bench.take(run(2000 + number, job=job(priority="normal")))
    WorkerSim(bench).report(slots=160)
    lanes = [item.run.job.priority for item in bench.all(HandOut)]
    assert {lane: lanes.count(lane) for lane in set(lanes)} == {"critical": 110, "normal": 40, "bulk": 10}
    assert "bulk" in lanes[:16]


def test_b_o22_low_work_starts_while_high_work_keeps_arriving():
    """One slot, a second a run, a critical run every second: of sixteen hand-outs one is bulk's, the fifteenth."""
    bench = Bench()
    worker = WorkerSim(bench)
    worker.report(slots=1)
    facts = bench.give(run(9999, job=job(priority="critical")))
    bench.give(run(5000, job=job(priority="bulk")))
    started_at = {}
    for second in range(600):
        facts += bench.at(second)
        facts += bench.give(run(second, at=bench.now, job=job(priority="critical")))
        done = only(facts, HandOut)
        started_at[done.run.run_id] = second
        bench.at(second + 0.999)
        facts = worker.report(slots=1, started=[done], finished=[succeeded(done)])
    assert started_at["nightly.5000"] == 14
    assert len(started_at) == 600


def test_a_lane_that_has_nothing_leaves_its_turn_to_the_others():
    bench = Bench()
    for number in range(20):
        bench.take(run(number, job=job(priority="bulk")))
    WorkerSim(bench).report(slots=20)
    assert len(bench.all(HandOut)) == 20


def test_workers_with_different_tasks_share_a_queue():
    bench = Bench()
    for number in range(4):
        target = {"type": "task", "name": ("a", "b")[number % 2]}
        bench.take(run(number, job=job(target=target)))
    WorkerSim(bench, "a", tasks=["a"]).report(slots=9)
    WorkerSim(bench, "b", tasks=["b"]).report(slots=9)
    assert [(item.incarnation, item.run.run_id) for item in bench.all(HandOut)] == [
        ("a-a", "nightly.0"),
        ("a-a", "nightly.2"),
        ("b-a", "nightly.1"),
        ("b-a", "nightly.3"),
    ]


def test_a_silent_worker_with_one_lease_left_ends_when_another_takes_its_name():
    """Its last lease ends with it: it must be remembered all the same, so that its process is told when it is back."""
    bench = Bench()
    silent = WorkerSim(bench, "w1", incarnation="old")
    silent.report(slots=2)
    read = only(bench.give(run(1)), HandOut)
    silent.report(slots=1, started=[read], held=[read])
    bench.at(10)
    unread = only(bench.give(run(2)), HandOut)
    assert only(bench.at(30), WorkerLapsed).incarnation == "old"

    facts = WorkerSim(bench, "w1", incarnation="new").report(slots=1)
    assert [(fact.run_id, fact.outcome) for fact in of(facts, AttemptFinished)] == [("nightly.2", AttemptOutcome.LOST)]
    assert (only(facts, WorkerEnded).incarnation, only(facts, WorkerEnded).ended_by) == ("old", "new")
    told = [notice for notice in of(silent.report(slots=2, held=[unread]), LeaseNotice) if notice.incarnation_ended]
    assert [(notice.incarnation, notice.ended_by) for notice in told] == [("old", "new")]
