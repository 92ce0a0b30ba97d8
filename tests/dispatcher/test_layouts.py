"""A shard of a queue with several tells the workers when it wants some; the only shard of a queue says nothing."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from dispatcher import calling
from dispatcher.calling import Told
from schemas.facts import Concurrency, Fact
from schemas.internal import HandOut, LimitsAdopted, QueueLayout, QueueLimits
from tests.dispatcher.harness import T0, Bench, WorkerSim, failed, job, of, only, run, succeeded


def after(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def spread(shards: int = 3) -> Bench:
    """A shard that knows that there are several, and has said so."""
    bench = Bench()
    resized(bench, shards)
    bench.wake()
    bench.at(10)
    return bench


def resized(bench: Bench, shards: int, **more: object) -> None:
    limits = replace(QueueLimits(shards=shards), **more)  # type: ignore[arg-type]
    bench.happened(LimitsAdopted(queue=bench.queue, shard=0, offset=0, adopted_at=bench.now, limits=limits))


def told(facts: list[Fact]) -> list[tuple[int, int, int]]:
    """Who wants what: queued, running, free."""
    return [(fact.queued, fact.running, fact.free) for fact in of(facts, QueueLayout)]


def test_the_only_shard_of_a_queue_tells_nothing_and_keeps_nothing_of_it():
    bench = Bench()
    bench.give(run(1))
    WorkerSim(bench).report(slots=0)
    bench.give(run(2))
    bench.at(60)
    assert bench.all(QueueLayout) == []
    bench.save()
    assert b"told" not in bench.rows.rows[b"h"]


def test_every_inbox_hears_that_there_are_several_shards_now():
    bench = Bench()
    resized(bench, 3)
    layout = only(bench.wake(), QueueLayout)
    assert layout == QueueLayout(queue="mail", shard=0, shards=3, queued=0, running=0, free=0, workers=0, told_at=T0)
    sent = [output for output in bench.outputs if output.fact is layout]
    assert {output.topic for output in sent} == {"tidewheel.dispatch.mail"}
    assert [output.partition for output in sent] == [0, 1, 2, 3, 4, 5, 6, 7]
    assert {output.key for output in sent} == {"mail/0"}


def test_a_number_that_did_not_change_is_not_told_again():
    bench = spread()
    resized(bench, 3, rate="10/s")
    assert told(bench.at(30)) == []


def test_runs_that_nobody_takes_are_told_at_once_and_every_five_seconds():
    bench = spread()
    assert told(bench.give(run(1, at=bench.now))) == [(1, 0, 0)]
    bench.give(run(2, at=bench.now))
    assert told(bench.at(14.9)) == []
    assert told(bench.at(15)) == [(2, 0, 0)]
    assert told(bench.at(20)) == [(2, 0, 0)]


def test_that_nothing_is_wanted_any_more_is_told_once():
    bench = spread()
    bench.give(run(1, at=bench.now))
    bench.at(12)
    assert told(WorkerSim(bench).report(slots=4)) == [(1, 0, 0), (0, 1, 3)]
    assert told(bench.at(60)) == []


def test_a_shard_whose_slots_are_just_enough_tells_no_more_than_every_two_seconds():
    bench = spread()
    worker = WorkerSim(bench)
    worker.report(slots=1)
    bench.give(run(1, at=bench.now))
    assert told(bench.give(run(2, at=bench.now))) == [(1, 1, 0)]
    bench.at(10.5)
    first = worker.inbox_records()[-1]
    assert told(worker.report(slots=1, finished=[succeeded(first)])) == []
    assert told(bench.give(run(3, at=bench.now))) == []
    assert told(bench.at(12)) == []
    assert told(bench.at(15)) == [(1, 1, 0)]


def test_a_worker_that_comes_hears_what_was_told_last_and_it_alone():
    bench = spread()
    bench.give(run(1, at=bench.now))
    resized(bench, 3, paused_at=bench.now)
    layout = only(WorkerSim(bench).report(slots=1), QueueLayout)
    assert layout == QueueLayout(
        queue="mail", shard=0, shards=3, queued=1, running=0, free=0, workers=0, told_at=after(10), inbox=3
    )
    (output,) = [output for output in bench.outputs if output.fact is layout]
    assert (output.topic, output.partition) == ("tidewheel.dispatch.mail", 3)
    assert of(WorkerSim(bench).report(number=2), QueueLayout) == []


def test_a_paused_queue_wants_nobody():
    bench = spread()
    bench.give(run(1, at=bench.now))
    resized(bench, 3, paused_at=bench.now)
    assert told(bench.at(12)) == [(0, 0, 0)]
    assert told(bench.at(60)) == []
    resized(bench, 3)
    assert told(bench.at(61)) == [(1, 0, 0)]


def test_what_is_to_be_tried_again_later_wants_nobody_yet():
    bench = spread()
    later = run(1, at=bench.now)
    bench.take(later)
    worker = WorkerSim(bench)
    worker.report(slots=1)
    handout = only(bench.facts, HandOut)
    bench.at(20)
    worker.report(slots=0, finished=[failed(handout)])
    assert told(bench.at(20.9)) == []
    assert told(bench.at(21)) == [(1, 0, 0)]


def test_of_a_concurrency_key_one_run_is_counted_and_none_while_it_is_full():
    bench = spread()
    keyed = job(concurrency=Concurrency(key="db", limit=1))
    for number in range(3):
        bench.take(run(number, at=bench.now, job=keyed))
    assert told(bench.wake()) == [(1, 0, 0)]
    bench.at(13)
    assert told(WorkerSim(bench).report(slots=2)) == [(1, 0, 0), (0, 1, 1)]


def test_workers_that_have_no_task_of_what_waits_do_not_serve_it():
    """Else a shard would count as served whose runs nobody there can take, and no slot that works would come."""
    bench = spread()
    other = WorkerSim(bench, "w2", tasks=["other"])
    other.report(slots=3)
    layout = only(bench.give(run(1, at=bench.now)), QueueLayout)
    assert (layout.queued, layout.running, layout.free, layout.workers) == (1, 0, 0, 0)
    able = WorkerSim(bench, "w1").report(slots=1)
    assert told(able) == [(1, 0, 0)]
    assert told(bench.at(12)) == [(0, 1, 3)]


def test_when_there_is_one_shard_again_that_is_told_and_nothing_more_while_nothing_waits():
    bench = spread()
    resized(bench, 1)
    layout = only(bench.at(12), QueueLayout)
    assert (layout.shards, layout.queued) == (1, 0)
    assert told(bench.at(60)) == []


def test_the_shard_that_is_alone_again_calls_for_workers_may_be_where_the_others_were():
    bench = spread()
    bench.give(run(1, at=bench.now))
    resized(bench, 1)
    layout = only(bench.at(12), QueueLayout)
    assert (layout.shards, layout.queued, layout.running, layout.free) == (1, 1, 0, 0)
    assert told(bench.at(17)) == [(1, 0, 0)]
    assert bench.reloaded().is_one_of_several


def test_who_takes_a_shard_over_knows_what_was_told():
    bench = spread()
    bench.give(run(1, at=bench.now))
    assert bench.reloaded().told == Told(shards=3, queued=1, at=after(10))
    bench.take_over()
    assert bench.state.wakeup().at == after(15)
    bench.save()
    assert bench.refolded().rows == bench.rows.rows


@pytest.mark.parametrize(
    ("told", "wanting_at", "due"),
    [
        (Told(), None, None),
        (Told(), after(9), after(9)),
        (Told(resized_at=after(1)), after(9), after(1)),
        (Told(at=T0, resized_at=after(1)), None, after(2)),
        (Told(at=T0), after(1), after(2)),
        (Told(at=T0), after(7), after(7)),
        (Told(at=T0, queued=1), None, after(2)),
        (Told(at=T0, queued=1), after(1), after(5)),
        (Told(at=T0, queued=1), after(3), after(2)),
    ],
)
def test_when_a_shard_speaks(told: Told, wanting_at: datetime | None, due: datetime | None):
    assert calling.due(told, wanting_at) == due
