"""What the one run of a suspect that is tried says of it: its worker lived through it, was lost with it, or neither."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from schemas.facts import AttemptFinished, AttemptOutcome
from schemas.internal import HandOut
from tests.dispatcher.breaking import handed, told
from tests.dispatcher.harness import Bench, WorkerSim, cancel, ended, of, only, terminate
from tests.dispatcher.losing import Life, lose, of_job


def suspect(bench: Bench, count: int = 5, **given: Any) -> tuple[Life, HandOut]:
    """A job with which two workers were lost, and the run of it that is tried."""
    for number in range(count):
        bench.take(of_job("slow", number, **given))
    life = Life(bench, "w1")
    lose(life, 1, times=2)
    (mine,) = of(life.report(1), HandOut)
    return life, mine


SURVIVED = ("job:slow", "closed", "survived")


def test_one_that_takes_too_long_with_a_worker_that_is_heard_of_again_has_not_taken_it_down():
    bench = Bench()
    life, mine = suspect(bench, timeout=timedelta(seconds=5))
    life.report(0, started=[mine])
    facts = bench.at(5)
    assert only(facts, AttemptFinished).outcome is AttemptOutcome.TIMED_OUT
    assert (told(facts), handed(bench.give(WorkerSim(bench, "w2").said(slots=4)))) == ([], [])
    bench.at(6)
    facts = life.report(4)
    assert told(facts) == [(*SURVIVED, 6.0)]
    assert len(handed(facts)) == 3


def test_one_that_takes_too_long_with_a_worker_that_is_missed_has_taken_it_down():
    bench = Bench()
    life, mine = suspect(bench, timeout=timedelta(seconds=5))
    life.report(0, started=[mine])
    other = WorkerSim(bench, "w2")
    for second in range(5, 31, 5):
        bench.at(second)
        assert handed(other.report(slots=4)) == []
    assert told(bench.facts)[1:] == [("job:slow", "open", "probe_failed", 15.0)]


def test_a_report_that_lists_what_has_been_ended_was_written_before_and_is_no_sign_of_life():
    """A node speaks for a worker that asks no longer, with the last list that it gave."""
    bench = Bench()
    life, mine = suspect(bench, timeout=timedelta(seconds=5))
    life.report(0, started=[mine])
    bench.at(6)
    assert told(life.report(0, held=[mine])) == []
    assert handed(bench.give(WorkerSim(bench, "w2").said(slots=4))) == []
    assert told(bench.at(21)) == [("job:slow", "open", "probe_failed", 21.0)]


def test_one_that_its_worker_stops_when_it_is_cancelled_has_not_taken_it_down():
    bench = Bench()
    life, mine = suspect(bench)
    bench.give(replace(cancel(mine.run.run_id), schedule="slow"))
    facts = life.report(4, started=[mine], finished=[ended(mine, "cancelled")])
    assert told(facts) == [(*SURVIVED, 0.0)]
    assert len(handed(facts)) == 3


@pytest.mark.parametrize("outcome", ["cancelled", "interrupted"])
def test_one_that_is_given_back_unbegun_says_nothing_and_the_next_one_goes(outcome):
    bench = Bench()
    life, mine = suspect(bench)
    facts = life.report(4, finished=[ended(mine, outcome)])
    assert told(facts) == []
    assert len(handed(facts)) == 1


def test_one_that_its_schedule_replaces_says_nothing_before_its_worker_does():
    bench = Bench()
    life, mine = suspect(bench)
    life.report(0, started=[mine])
    facts = bench.give(replace(terminate(mine.run.run_id), schedule="slow"))
    assert only(facts, AttemptFinished).outcome is AttemptOutcome.CANCELLED
    assert handed(bench.give(WorkerSim(bench, "w2").said(slots=4))) == []
    assert told(life.report(0)) == [(*SURVIVED, 0.0)]


def test_one_that_nobody_began_by_its_deadline_says_nothing_and_the_next_one_goes():
    bench = Bench()
    life, _ = suspect(bench, deadline=timedelta(seconds=4))
    bench.take(of_job("slow", 9, deadline=timedelta(seconds=60)))
    assert handed(bench.at(4)) == []
    facts = life.report(1)
    assert (told(facts), handed(facts)) == ([], ["slow.9"])


def test_one_that_takes_too_long_with_a_worker_that_is_missed_already_was_lost_with_it():
    """It is beside a run whose lease ends first, and which had no part in it."""
    bench = Bench()
    life, mine = suspect(bench, timeout=timedelta(seconds=50), lease=timedelta(minutes=5))
    bench.take(of_job("good", 9, lease=timedelta(seconds=10)))
    (other,) = of(life.report(1, held=[mine], started=[mine]), HandOut)
    life.report(0, held=[mine, other], started=[other])
    bench.at(40)
    assert [(each.schedule, each.blame) for each in bench.all(AttemptFinished)[-1:]] == [("good", 0.0)]
    assert told(bench.at(50)) == [("job:slow", "open", "probe_failed", 50.0)]


def test_who_drains_and_is_replaced_leaves_nobody_waiting_for_his_word():
    bench = Bench()
    life, mine = suspect(bench, timeout=timedelta(seconds=5))
    life.report(0, held=[mine], started=[mine], draining=True)
    bench.at(5)
    life.dies()
    facts = life.report(4)
    assert (told(facts), len(handed(facts))) == ([], 1)


def test_what_is_waited_for_outlives_a_takeover():
    bench = Bench()
    life, mine = suspect(bench, timeout=timedelta(seconds=5))
    life.report(0, started=[mine])
    bench.at(5)
    bench.take_over()
    bench.later(1)
    assert handed(bench.give(WorkerSim(bench, "w2").said(slots=4))) == []
    assert told(life.report(4)) == [(*SURVIVED, 6.0)]


def test_suspects_that_were_with_one_worker_share_its_loss_also_where_the_time_of_one_was_up():
    bench = Bench()
    for number in range(12):
        timeout = timedelta(seconds=5 if number % 2 else 3600)
        bench.take(of_job("quick" if number % 2 else "slow", number, timeout=timeout))
    WorkerSim(bench, "w2", tasks=["something.else"]).report(slots=9)
    life = Life(bench, "w1")
    lose(life, 2, times=2)
    mine = of(life.report(2), HandOut)
    life.report(0, held=mine, started=mine)
    bench.at(6)
    life.dies()
    facts = life.report(0)
    assert [(each.schedule, each.blame) for each in of(facts, AttemptFinished)] == [("slow", 0.5)]
    blames = {each.name: each.blame for each in bench.state.breakers.tripped_of("acme")}
    assert blames == {"job:quick": 0.5, "job:slow": 0.5}
    assert len(handed(life.report(2))) == 2
