"""A job whose runs take their workers down is found among all that were aboard, and held; the others go on."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from dispatcher.breakers import DEFAULT
from schemas.facts import (
    AttemptFinished,
    AttemptOutcome,
    BreakerChanged,
    DeadLetter,
    RunFinished,
)
from schemas.internal import HandOut
from tests.dispatcher.breaking import handed, told
from tests.dispatcher.harness import (
    NEVER_HELD,
    T0,
    Bench,
    WorkerSim,
    failed,
    of,
    only,
    succeeded,
)
from tests.dispatcher.losing import KILLER, Life, lose, of_job

# --- suspects -----------------------------------------------------------------------------------------------------


def test_after_two_losses_in_a_row_one_run_of_the_job_goes_at_a_time():
    bench = Bench()
    for number in range(5):
        bench.take(of_job(KILLER, number))
    life = Life(bench, "w1")
    assert told(lose(life, 4)) == []
    assert told(lose(life, 4)) == [("job:bad", "half_open", "losses", 0.0)]
    change = bench.all(BreakerChanged)[-1]
    assert change.error is not None
    assert (change.run_id, change.error.type) == ("bad.0", "lost")
    assert handed(life.report(4)) == ["bad.0"]


def test_a_suspect_that_is_lost_with_its_worker_is_held_for_its_wait_then_twice_as_long():
    bench = Bench()
    for number in range(9):
        bench.take(of_job(KILLER, number))
    life = Life(bench, "w1")
    lose(life, 4, times=2)
    assert told(lose(life, 4)) == [("job:bad", "open", "probe_failed", 0.0)]
    assert handed(life.report(4)) == []
    assert told(bench.at(30)) == [("job:bad", "half_open", "waited", 30.0)]
    assert handed(life.report(4)) == ["bad.0"]
    life.dies()
    assert told(life.report(4)) == [("job:bad", "open", "probe_failed", 30.0)]
    assert bench.all(BreakerChanged)[-1].until == T0 + timedelta(seconds=90)


def test_one_of_whom_nobody_heard_that_it_began_is_quarantined_all_the_same():
    """What takes its worker down in its first instant leaves no report."""
    bench = Bench()
    bench.take(of_job(KILLER, 1))
    life = Life(bench, "w1")
    facts = lose(life, 1, times=2)
    lost = [(each.outcome, each.started_at, each.blame, each.held) for each in bench.all(AttemptFinished)]
    assert lost == [(AttemptOutcome.LOST, None, 1.0, 1)] * 2
    assert only(facts, RunFinished).reason == "quarantined"


def test_a_worker_of_no_fixed_name_that_falls_silent_is_a_loss_too():
    bench = Bench()
    for number in range(9):
        bench.take(of_job(KILLER, number))
    for life in range(2):
        WorkerSim(bench, f"w{life}").report(slots=3)
        bench.later(31)
    assert [(state, reason) for _, state, reason, _ in told(bench.facts)] == [("half_open", "losses")]
    assert {each.held for each in bench.all(AttemptFinished)} == {3}
    assert len(handed(WorkerSim(bench, "w9").report(slots=3))) == 1


def test_a_hand_out_that_a_living_worker_never_read_is_no_loss():
    bench = Bench()
    bench.take(of_job(KILLER, 1))
    worker = WorkerSim(bench, "w1")
    worker.report(slots=1)
    for _ in range(7):
        bench.later(5)
        bench.give(replace(worker.said(slots=0), read_up_to=-1))
    (ended,) = bench.all(AttemptFinished)
    assert (ended.outcome, ended.blame, ended.held) == (AttemptOutcome.LEASE_EXPIRED, 0.0, 0)


def test_a_worker_that_drained_is_no_loss():
    bench = Bench()
    bench.take(of_job(KILLER, 1))
    life = Life(bench, "w1")
    for _ in range(3):
        life.report(1)
        life.report(0, held=life.holds(), draining=True)
        life.dies()
    assert told(life.report(0)) == []


@pytest.mark.parametrize("policy", [NEVER_HELD, DEFAULT, None, replace(DEFAULT, probes=50)])
def test_whatever_it_says_of_failures_and_probes_it_is_tried_one_by_one(policy):
    """A job may say that its failures are its own business; others' workers are not."""
    bench = Bench()
    for number in range(9):
        bench.take(of_job(KILLER, number, breaker=policy))
    life = Life(bench, "w1")
    lose(life, 4, times=2)
    assert handed(life.report(4)) == ["bad.0"]


# --- innocents ----------------------------------------------------------------------------------------------------


def test_a_rack_that_fails_makes_no_suspects_however_many_workers_it_had():
    """Fifty workers with four runs each, of ten jobs: what was handed out before the first loss is of that one."""
    bench = Bench()
    for number in range(200):
        bench.take(of_job(f"job-{number % 10}", number))
    lives = [Life(bench, f"w{number}") for number in range(50)]
    for life in lives:
        life.report(4)
    for life in lives:
        life.dies()
    for life in lives:
        life.report(4)
    assert len(bench.all(AttemptFinished)) == 200
    assert told(bench.facts) == []
    assert len([entry for entry in bench.state.runs.values() if entry.is_leased]) == 200


def test_a_run_that_its_worker_lives_through_clears_the_job_of_the_loss_before():
    bench = Bench()
    for number in range(9):
        bench.take(of_job("good", number))
    life = Life(bench, "w1")
    lose(life, 2)
    life.report(1)
    (mine,) = life.holds()
    life.report(1, started=[mine], finished=[succeeded(mine)])
    life.dies()
    assert told(life.report(2)) == []


def test_one_that_was_handed_out_before_the_loss_clears_nothing():
    bench = Bench()
    for number in range(9):
        bench.take(of_job(KILLER, number))
    old = Life(bench, "old")
    old.report(1)
    (before,) = old.holds()
    life = Life(bench, "w1")
    lose(life, 2)
    old.report(0, started=[before], finished=[succeeded(before)])
    assert told(lose(life, 2)) == [("job:bad", "half_open", "losses", 0.0)]


def test_suspects_go_one_to_a_worker_and_the_next_loss_says_whose_it_was():
    """Two jobs aboard two losses, two workers: the one that is aboard the third is held, the other goes free."""
    bench = Bench()
    for number in range(8):
        bench.take(of_job(KILLER if number % 2 else "good", number))
    one, two = Life(bench, "w1"), Life(bench, "w2")
    lose(one, 2, times=2)
    assert {name for name, state, *_ in told(bench.facts) if state == "half_open"} == {"job:bad", "job:good"}
    one.report(4)
    two.report(3)
    assert handed(bench.facts)[-2:] == ["good.0", "bad.1"]
    (good,), (bad,) = one.holds(), two.holds()
    assert (good.run.run_id, bad.run.run_id) == ("good.0", "bad.1")
    facts = one.report(4, started=[good], finished=[succeeded(good)])
    assert told(facts) == [("job:good", "closed", "survived", 0.0)]
    assert handed(facts) == ["good.2", "good.4", "good.6"]
    two.dies()
    assert told(two.report(3)) == [("job:bad", "open", "probe_failed", 0.0)]


def test_there_are_no_more_suspects_with_workers_than_workers():
    bench = Bench()
    for number in range(30):
        bench.take(of_job(f"job-{number % 3}", number))
    one = Life(bench, "w1")
    lose(one, 3, times=2)
    assert handed(one.report(9)) == ["job-0.0"]
    assert handed(Life(bench, "w2").report(9)) == ["job-1.1"]
    (mine,) = one.holds()
    facts = one.report(9, started=[mine], finished=[succeeded(mine)])
    assert "job-2.2" in handed(facts)
    assert Counter(run_id.partition(".")[0] for run_id in handed(facts))["job-2"] == 1


def test_who_was_beside_a_suspect_is_not_blamed():
    bench = Bench()
    for number in range(3):
        bench.take(of_job(KILLER, number))
    life = Life(bench, "w1")
    lose(life, 3, times=2)
    for number in range(3):
        bench.take(of_job("good", number))
    facts = lose(life, 4)
    blame = {each.run_id: each.blame for each in of(facts, AttemptFinished)}
    assert blame == {"bad.0": 1.0, "good.0": 0.0, "good.1": 0.0, "good.2": 0.0}
    assert [name for name, *_ in told(facts)] == ["job:bad"]


def test_suspects_that_have_one_worker_between_them_share_the_blame_until_it_is_enough():
    """Two workers, and one alone has the task of both: neither may hide behind the other."""
    bench = Bench()
    for number in range(12):
        bench.take(of_job(KILLER if number % 2 else "other", number))
    WorkerSim(bench, "w2", tasks=["something.else"]).report(slots=9)
    life = Life(bench, "w1")
    lose(life, 2, times=2)
    facts = lose(life, 2)
    assert [each.blame for each in of(facts, AttemptFinished)] == [0.5, 0.5]
    assert told(facts) == []
    assert sorted(told(lose(life, 2))) == [
        ("job:bad", "open", "probe_failed", 0.0), ("job:other", "open", "probe_failed", 0.0),
    ]  # fmt: skip


def test_a_suspect_that_fails_has_not_taken_its_worker_down():
    bench = Bench()
    for number in range(3):
        bench.take(of_job("good", number))
    life = Life(bench, "w1")
    lose(life, 3, times=2)
    life.report(1)
    (mine,) = life.holds()
    assert told(life.report(0, started=[mine], finished=[failed(mine)])) == [("job:good", "closed", "survived", 0.0)]


def test_one_whose_runs_take_long_is_cleared_when_one_has_been_with_a_living_worker_for_the_wait():
    bench = Bench()
    for number in range(3):
        bench.take(of_job("slow", number, lease=timedelta(minutes=5)))
    life = Life(bench, "w1")
    lose(life, 3, times=2)
    life.report(3)
    (mine,) = life.holds()
    for second in (1, 10, 20, 30):
        bench.at(second)
        assert told(life.report(2, held=[mine], started=[mine] if second == 1 else [])) == []
    bench.at(31)
    facts = life.report(2, held=[mine])
    assert told(facts) == [("job:slow", "closed", "survived", 31.0)]
    assert handed(facts) == ["slow.1", "slow.2"]


def test_while_it_is_not_known_what_became_of_one_no_other_goes():
    bench = Bench()
    for number in range(3):
        bench.take(of_job("slow", number, lease=timedelta(minutes=5)))
    life = Life(bench, "w1")
    lose(life, 3, times=2)
    assert handed(life.report(3)) == ["slow.0"]
    assert handed(bench.at(200)) == []


def test_the_killer_among_twenty_jobs_is_found_by_a_few_deaths_and_no_other_job_is_held():
    """Two workers of fifty slots, and each of twenty jobs has always work; one takes down whoever begins it."""
    bench = Bench()
    lives = [Life(bench, "w1"), Life(bench, "w2")]
    jobs = [*(f"job-{number}" for number in range(19)), KILLER]
    number = deaths = 0
    done: Counter[str] = Counter()
    for second in range(60):
        bench.at(second)
        for name in jobs:
            for _ in range(6):
                number += 1
                bench.take(of_job(name, number))
        for life in lives:
            for _ in range(3):
                mine = life.holds()
                if any(item.run.schedule == KILLER for item in mine):
                    life.dies()
                    deaths += 1
                    break
                done.update(item.run.schedule for item in mine)
                life.report(50, started=mine, finished=[succeeded(item) for item in mine])
    held = {change.breaker for change in bench.all(BreakerChanged) if change.state == "open"}
    assert held == {"job:bad"}
    assert deaths <= 7  # two of each worker that tell nothing, one that does, and the probes after 30 seconds
    assert min(done[name] for name in jobs[:-1]) >= 0.9 * 60 * 6
    assert {letter.schedule for letter in bench.all(DeadLetter)} == {KILLER}


# --- who ends sooner or later than his worker ----------------------------------------------------------------------

QUICK, LASTING = {"timeout": timedelta(seconds=5)}, {"lease": timedelta(minutes=5)}


def silent(bench: Bench, name: str, slots: int, seconds: float = 31) -> None:
    """A worker of a name that nobody has again takes what there is, and is not heard of any more."""
    WorkerSim(bench, name).report(slots=slots)
    bench.later(seconds)


@pytest.mark.parametrize("given", [QUICK, LASTING], ids=["short timeout", "long lease"])
def test_all_that_a_silent_worker_had_was_aboard_whenever_the_time_of_each_is_up(given):
    """Else others would answer for a job whose attempts are over before, or long after, their worker is missed."""
    bench = Bench()
    for number in range(9):
        bench.take(of_job(KILLER, number, **given))
        bench.take(of_job("good", 10 + number))
    silent(bench, "w1", slots=4)
    assert told(bench.facts) == []
    silent(bench, "w2", slots=4)
    assert sorted(told(bench.facts)) == [
        ("job:bad", "half_open", "losses", 62.0), ("job:good", "half_open", "losses", 62.0),
    ]  # fmt: skip


def test_a_job_of_which_every_attempt_takes_too_long_is_found_when_its_workers_are_missed():
    bench = Bench()
    for number in range(9):
        bench.take(of_job(KILLER, number, **QUICK))
    WorkerSim(bench, "w1").report(slots=1)
    assert only(bench.at(15), AttemptFinished).outcome is AttemptOutcome.TIMED_OUT
    bench.take_over()
    bench.at(31)
    silent(bench, "w2", slots=1)
    assert [each[:3] for each in told(bench.facts)] == [("job:bad", "half_open", "losses")]


def test_one_that_takes_too_long_with_a_worker_that_is_heard_of_again_is_no_loss():
    bench = Bench()
    for number in range(9):
        bench.take(of_job("slow", number, **QUICK))
    for name in ("w1", "w2", "w3"):
        worker = WorkerSim(bench, name)
        (mine,) = of(worker.report(slots=1), HandOut)
        bench.later(10)
        worker.report(slots=0, held=[mine])
        bench.later(5)
        worker.report(slots=0)
        bench.later(15)  # it goes with nothing
    assert {each.outcome for each in bench.all(AttemptFinished)} == {AttemptOutcome.TIMED_OUT}
    assert told(bench.facts) == []


def test_a_loss_of_more_than_an_hour_ago_is_none():
    bench = Bench()
    for number in range(9):
        bench.take(of_job("good", number, lease=timedelta(hours=12), timeout=timedelta(hours=12)))
    life = Life(bench, "w1")
    lose(life, 1)
    bench.at(3601)
    assert told(lose(life, 1)) == []
    assert told(lose(life, 1)) == [("job:good", "half_open", "losses", 3601.0)]


# --- state --------------------------------------------------------------------------------------------------------


def test_suspicion_and_what_is_tried_outlive_a_takeover():
    bench = Bench()
    for number in range(9):
        bench.take(of_job(KILLER, number))
    life = Life(bench, "w1")
    lose(life, 4)
    bench.take_over()
    bench.later(0)
    lose(life, 4)
    bench.take_over()
    bench.later(0)
    assert handed(life.report(4)) == ["bad.0"]
    bench.take_over()
    bench.later(1)
    assert handed(bench.give(Life(bench, "w2").worker.said(slots=4))) == []
    life.dies()
    assert told(life.report(0)) == [("job:bad", "open", "probe_failed", 1.0)]


def test_what_was_lost_once_and_is_well_has_no_row():
    bench = Bench()
    for number in range(3):
        bench.take(of_job("good", number))
    life = Life(bench, "w1")
    lose(life, 3)
    bench.save()
    assert rows(bench) == [b"k/acme/job:good"]
    life.report(1)
    (mine,) = life.holds()
    life.report(0, started=[mine], finished=[succeeded(mine)])
    bench.save()
    assert rows(bench) == []


def rows(bench: Bench) -> Sequence[bytes]:
    return [row for row in bench.rows.rows if row.startswith(b"k/")]
