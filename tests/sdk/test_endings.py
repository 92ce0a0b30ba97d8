"""How work ends before it is done: cancels, lost leases, drains, fences, and successors."""

import asyncio
import threading

import pytest

from tests.sdk.fake_server import DEADLINE_SECONDS, leases, over_http, run
from tidewheel import WorkerReplaced, session, wire

pytestmark = pytest.mark.anyio


async def for_ever() -> None:
    await asyncio.Event().wait()


class Stubborn:
    """A plain function that goes on until the test lets it, whatever it is asked."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.go_on = threading.Event()
        self.asked = None

    def __call__(self, ctx):
        self.begun.set()
        assert self.go_on.wait(DEADLINE_SECONDS)
        self.asked = ctx.cancelled
        return "done"

    async def has_begun(self):
        assert await asyncio.to_thread(self.begun.wait, DEADLINE_SECONDS)


@pytest.fixture
def stubborn():
    task = Stubborn()
    yield task
    task.go_on.set()


# --- cancels ---


async def test_a_cancelled_coroutine_is_stopped_and_reported_cancelled(queue, start):
    await start(it=for_ever)
    [lease] = await queue.hand_out(run("it"))
    await queue.reported("started", lease)
    await queue.say(cancelled=[lease])
    assert await queue.finished(lease) == {"lease": lease, "outcome": "cancelled"}


async def test_a_coroutine_may_clean_up_when_it_is_cancelled_however_often_that_is_repeated(queue, start):
    cleaned, asked = [], asyncio.Event()

    async def it():
        try:
            await for_ever()
        finally:
            asked.set()
            await queue.until(lambda: not queue.answers)
            cleaned.append(True)

    await start(it=it)
    [lease] = await queue.hand_out(run("it"))
    await queue.reported("started", lease)
    await queue.say(cancelled=[lease])
    await asyncio.wait_for(asked.wait(), DEADLINE_SECONDS)
    await queue.say(cancelled=[lease])
    assert (await queue.finished(lease))["outcome"] == "cancelled"
    assert cleaned == [True]


async def test_a_cancelled_function_sees_it_and_what_it_then_returns_counts(queue, start, stubborn):
    await start(it=stubborn)
    [lease] = await queue.hand_out(run("it"))
    await stubborn.has_begun()
    await queue.say(cancelled=[lease])
    await queue.until(lambda: not queue.answers)
    [after] = await queue.hand_out(run("unknown"))
    await queue.finished(after)
    stubborn.go_on.set()
    assert await queue.finished(lease) == {"lease": lease, "outcome": "succeeded", "result": "done"}
    assert stubborn.asked is True


async def test_a_heartbeat_ends_a_function_that_was_cancelled(queue, start):
    def it(ctx):
        deadline = threading.Event()
        while not deadline.wait(0.001):
            ctx.heartbeat()

    await start(it=it)
    [lease] = await queue.hand_out(run("it"))
    await queue.reported("started", lease)
    await queue.say(cancelled=[lease])
    assert await queue.finished(lease) == {"lease": lease, "outcome": "cancelled"}


async def test_a_coroutine_that_cancels_itself_has_failed(queue, start):
    async def it():
        raise asyncio.CancelledError

    await start(it=it)
    [lease] = await queue.hand_out(run("it"))
    assert (await queue.finished(lease))["error"]["type"] == "CancelledError"


# --- lost leases ---


@pytest.mark.parametrize("word", ["lost", "unknown"])
async def test_a_task_whose_lease_ended_is_stopped_and_its_end_is_told_to_nobody(queue, start, word):
    await start(it=for_ever, slots=2)
    [lease] = await queue.hand_out(run("it"))
    await queue.reported("started", lease)
    await queue.say(**{word: [lease]})
    await queue.until(lambda: queue.reports[-1]["held"] == [] and queue.reports[-1]["slots"] == 2)
    assert all(lease not in leases(report, "finished") for report in queue.reports)


async def test_a_function_whose_lease_ended_keeps_its_slot_until_it_returns(queue, start, stubborn):
    """And what it returned is reported, so that the server can tell that the work was done twice."""
    await start(it=stubborn, slots=2)
    [lease] = await queue.hand_out(run("it"))
    await queue.reported("started", lease)
    await queue.say(lost=[lease])
    report = await queue.until(lambda: queue.reports[-1]["held"] == [] and queue.reports[-1])
    assert report["slots"] == 1
    stubborn.go_on.set()
    assert (await queue.finished(lease))["result"] == "done"
    await queue.until(lambda: queue.reports[-1]["slots"] == 2)


# --- drains ---


async def test_a_drain_takes_nothing_new_and_finishes_what_is_held(queue, start):
    go_on = asyncio.Event()
    worker = await start(it=go_on.wait, grace_seconds=DEADLINE_SECONDS)
    [held] = await queue.hand_out(run("it"))
    await queue.reported("started", held)
    worker.drain()
    report = await queue.until(lambda: queue.reports[-1]["draining"] and queue.reports[-1])
    assert (report["slots"], report["held"]) == (0, [held])
    [late] = await queue.hand_out(run("it"))
    assert await queue.finished(late) == {"lease": late, "outcome": "interrupted"}
    go_on.set()
    await worker.wait()
    assert (await queue.finished(held))["outcome"] == "succeeded"
    last = queue.reports[-1]
    assert (last["draining"], last["slots"], last["held"]) == (True, 0, [])


@pytest.fixture
def hurried(monkeypatch):
    """A worker that gives tasks and servers less time at its end, so that the test need not wait it out."""
    monkeypatch.setattr(session, "STOP_SECONDS", 0.2)
    monkeypatch.setattr(session, "LAST_WORD_SECONDS", 2.0)


async def test_what_outlasts_the_grace_is_interrupted(queue, start, stubborn, hurried):
    worker = await start(coroutine=for_ever, function=stubborn, grace_seconds=0.0)
    given = await queue.hand_out(run("coroutine"), run("function"))
    await queue.reported("started", given[1])
    await worker.stop()
    assert [await queue.finished(lease) for lease in given] == [
        {"lease": given[0], "outcome": "interrupted"},
        {"lease": given[1], "outcome": "interrupted"},
    ]


@over_http
async def test_a_drain_ends_without_a_server(queue, start, hurried):
    worker = await start(it=for_ever)
    [lease] = await queue.hand_out(run("it"))
    await queue.reported("started", lease)
    queue.deaf = lambda report: True
    await asyncio.wait_for(worker.stop(), 2 * DEADLINE_SECONDS)


# --- fences ---


SHORT = {"lease_duration": "PT0.3S"}


@over_http
async def test_without_an_acknowledgement_for_two_thirds_of_a_lease_all_work_stops_and_a_new_incarnation_begins(
    queue, start
):
    stopped = asyncio.Event()

    async def it():
        try:
            await for_ever()
        finally:
            stopped.set()

    await start(it=it)
    [lease] = await queue.hand_out(run("it", handout=SHORT))
    old = (await queue.reported("started", lease))["incarnation"]
    queue.deaf = lambda report: not stopped.is_set()
    fresh = await queue.until(lambda: queue.reports[-1]["incarnation"] != old and queue.reports[-1])
    assert (fresh["worker"], fresh["held"], fresh["read_up_to"], fresh["finished"]) == ("w1", [], -1, [])
    leave = queue.reports[-2]
    assert (leave["incarnation"], leave["slots"], leave["held"], leave["finished"]) == (old, 0, [], [])


@over_http
async def test_an_incarnation_takes_leave_with_all_that_nobody_acknowledged_before_the_next_one_begins(queue, start):
    """What was done counts, as long as the run was given to nobody else: so it is said first."""
    queue.silence = lambda report: bool(report["started"]) and report["slots"] > 0
    await start(it=lambda: 42, wait=for_ever)
    [short] = await queue.hand_out(run("wait", handout=SHORT))
    old = (await queue.reported("started", short))["incarnation"]
    [lease] = await queue.hand_out(run("it"))
    await queue.until(lambda: queue.reports[-1]["incarnation"] != old)
    leave = next(report for report in queue.reports if report["slots"] == 0)
    assert (leave["incarnation"], leave["held"]) == (old, [])
    assert leave["finished"] == [{"lease": lease, "outcome": "succeeded", "result": 42}]
    incarnations = [report["incarnation"] for report in queue.reports]
    assert incarnations == sorted(incarnations, key=lambda incarnation: incarnation != old)


async def test_a_function_that_ends_after_its_incarnation_is_reported_by_that_one(queue, start, stubborn):
    """Only the incarnation that was given a lease can speak of it."""
    await start(it=stubborn)
    [lease] = await queue.hand_out(run("it"))
    old = (await queue.reported("started", lease))["incarnation"]
    await queue.say(incarnation_ended=True, ended_by="")
    await queue.until(lambda: queue.reports[-1]["incarnation"] != old)
    stubborn.go_on.set()
    told = await queue.reported("finished", lease)
    assert (told["incarnation"], told["finished"][0]["result"]) == (old, "done")


async def test_a_lease_is_kept_by_reports_three_times_as_often_as_it_would_end(queue, start):
    await start(it=for_ever)
    [lease] = await queue.hand_out(run("it", handout={"lease_duration": "PT1.5S"}))
    await queue.until(lambda: sum(lease in report["held"] for report in queue.reports) == 5)
    assert {report["incarnation"] for report in queue.reports} == {queue.reports[0]["incarnation"]}


# --- successors ---


async def test_an_incarnation_that_the_server_ended_comes_back_as_a_new_one(queue, start):
    await start(it=for_ever)
    [lease] = await queue.hand_out(run("it"))
    old = (await queue.reported("started", lease))["incarnation"]
    await queue.say(incarnation_ended=True, ended_by="")
    fresh = await queue.until(lambda: queue.reports[-1]["incarnation"] != old and queue.reports[-1])
    assert fresh["held"] == []


async def test_a_worker_whose_name_another_process_took_ends_and_names_it(queue, start):
    worker = await start(it=for_ever)
    await queue.until(lambda: queue.reports)
    await queue.say(incarnation_ended=True, ended_by="abc123")
    with pytest.raises(WorkerReplaced, match=r"worker 'w1' was replaced by .*\(incarnation abc123\)"):
        await asyncio.wait_for(worker.wait(), DEADLINE_SECONDS)
    assert not worker.running


def test_a_lease_stands_in_the_log_without_its_key():
    """Whoever reads the log could report for the worker otherwise."""
    assert wire.keyless("default.0.17.9f86d081884c7d659a2feaa0c55ad015") == "default.0.17"
