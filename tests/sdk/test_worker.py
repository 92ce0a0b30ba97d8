"""A worker runs what it is given and says what became of it."""

import asyncio
import threading
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.sdk.fake_server import DEADLINE_SECONDS, Response, leases, over_http, run
from tidewheel import DataInterval, Worker

pytestmark = pytest.mark.anyio


async def test_a_worker_announces_its_name_tasks_and_free_slots(queue, start):
    await start(slots=7, b=print, a=print)
    report = await queue.until(lambda: queue.reports and queue.reports[0])
    assert {key: report[key] for key in ("worker", "tasks", "slots", "read_up_to", "held", "draining")} == {
        "worker": "w1",
        "tasks": ["a", "b"],
        "slots": 7,
        "read_up_to": -1,
        "held": [],
        "draining": False,
    }


async def test_a_coroutine_gets_the_payload_as_keywords_and_its_result_is_reported(queue, start):
    async def add(left, right=10):
        return {"sum": left + right}

    await start(add=add)
    [lease] = await queue.hand_out(run("add", {"left": 4}))
    assert await queue.finished(lease) == {"lease": lease, "outcome": "succeeded", "result": {"sum": 14}}


async def test_a_plain_function_runs_in_a_thread_of_its_own(queue, start):
    await start(where=lambda: threading.current_thread().name)
    [lease] = await queue.hand_out(run("where"))
    assert (await queue.finished(lease))["result"] == "tidewheel-task-0"


async def test_a_task_that_returns_nothing_has_succeeded_without_a_result(queue, start):
    await start(nothing=lambda: None)
    [lease] = await queue.hand_out(run("nothing"))
    assert await queue.finished(lease) == {"lease": lease, "outcome": "succeeded"}


async def test_a_task_is_told_which_run_this_is_and_whether_it_may_have_run_before(queue, start):
    seen = asyncio.get_running_loop().create_future()

    async def look(ctx, **payload):
        seen.set_result((ctx, payload))

    await start(look=look)
    again = {"attempt": 2, "may_have_run": True}
    await queue.hand_out(run("look", {"day": "x"}, interval_from="2026-03-07T02:00:00+00:00", handout=again))
    ctx, payload = await asyncio.wait_for(seen, DEADLINE_SECONDS)
    assert payload == {"day": "x"}
    assert (ctx.run_id, ctx.tenant, ctx.schedule) == ("nightly.20260308T020000Z", "acme", "nightly")
    assert (ctx.attempt, ctx.may_have_run) == (2, True)
    assert ctx.nominal_time == datetime(2026, 3, 8, 2, tzinfo=UTC)
    assert ctx.data_interval == DataInterval(datetime(2026, 3, 7, 2, tzinfo=UTC), datetime(2026, 3, 8, 2, tzinfo=UTC))
    assert (ctx.idempotency_key, ctx.fencing_token) == ("nightly.20260308T020000Z", 1)


async def test_a_run_made_by_hand_has_no_nominal_time(queue, start):
    seen = asyncio.get_running_loop().create_future()

    async def look(ctx):
        seen.set_result((ctx.nominal_time, ctx.data_interval))

    await start(look=look)
    await queue.hand_out(run("look", nominal_time=None))
    assert await asyncio.wait_for(seen, DEADLINE_SECONDS) == (None, None)


class Broken(Exception):
    pass


def break_down() -> None:
    raise Broken("the disk is full")


async def break_down_in_the_loop():
    break_down()


def nested(depth: int) -> list[Any]:
    """A list in a list in a list …"""
    return [nested(depth - 1)] if depth > 1 else []


async def leave():
    raise SystemExit("bye")


@pytest.mark.parametrize(
    ("task", "payload", "kind", "message"),
    [
        (break_down, {}, "Broken", "the disk is full"),
        (break_down_in_the_loop, {}, "Broken", "the disk is full"),
        (leave, {}, "SystemExit", "bye"),
        (lambda day: None, {}, "PayloadMisfit", "the payload of task 'it' lacks day; it takes it(day)"),
        (
            lambda day: None,
            {"day": 1, "x": 2},
            "PayloadMisfit",
            "the payload of task 'it' has x, which the task does not take; it takes it(day)",
        ),
        (
            lambda: {1, 2},
            {},
            "ResultNotJson",
            "the task ran, but what it returned is not JSON: Object of type set is not JSON serializable",
        ),
        (
            lambda: float("nan"),
            {},
            "ResultNotJson",
            "the task ran, but what it returned is not JSON: Out of range float values are not JSON compliant",
        ),
        (
            lambda: "x" * 16_383,
            {},
            "ResultTooLarge",
            "the task ran, but its result is 16385 bytes of JSON, over 16384: return a reference",
        ),
        (
            lambda: nested(17),
            {},
            "ResultTooDeep",
            "the task ran, but its result is nested deeper than 16: return it flatter",
        ),
    ],
)
async def test_what_goes_wrong_is_reported_with_its_type_and_message(queue, start, task, payload, kind, message):
    await start(it=task)
    [lease] = await queue.hand_out(run("it", payload))
    error = {"type": kind, "message": message}
    assert await queue.finished(lease) == {"lease": lease, "outcome": "failed", "error": error}


async def test_a_result_of_exactly_16_kib_is_kept(queue, start):
    await start(it=lambda: "x" * 16_382)
    [lease] = await queue.hand_out(run("it"))
    assert (await queue.finished(lease))["outcome"] == "succeeded"


async def test_a_result_that_is_nested_sixteen_deep_is_kept(queue, start):
    await start(it=lambda: nested(16))
    [lease] = await queue.hand_out(run("it"))
    assert (await queue.finished(lease))["outcome"] == "succeeded"


async def test_a_run_of_a_task_that_the_worker_does_not_have_fails_with_the_names_it_has(queue, start):
    await start(this=print)
    [lease] = await queue.hand_out(run("that"))
    assert (await queue.finished(lease))["error"] == {
        "type": "UnknownTask",
        "message": "this worker has no task for the target {'type': 'task', 'name': 'that'}; it has this",
    }


async def test_a_run_under_way_is_reported_started_and_held_and_takes_a_slot(queue, start):
    go_on = asyncio.Event()
    await start(it=go_on.wait, slots=3)
    [lease] = await queue.hand_out(run("it"))
    report = await queue.reported("started", lease)
    assert (report["held"], report["slots"], report["read_up_to"]) == ([lease], 2, 1)
    go_on.set()
    await queue.finished(lease)
    last = queue.reports[-1]
    assert (last["held"], last["slots"]) == ([], 3)


async def test_what_starts_is_said_once_when_it_is_acknowledged(queue, start):
    go_on = asyncio.Event()
    await start(it=go_on.wait)
    [first] = await queue.hand_out(run("it"))
    await queue.reported("started", first)
    [second] = await queue.hand_out(run("it"))
    report = await queue.reported("started", second)
    assert report["started"] == [second]


@over_http
async def test_what_gathers_while_a_report_is_on_its_way_goes_into_the_next_one(queue, start):
    answer, go_on = asyncio.Event(), asyncio.Event()
    queue.before_answer = lambda report: answer.wait() if report["started"] else None
    await start(it=go_on.wait)
    held = await queue.hand_out(*(run("it") for _ in range(5)))
    await queue.reported("started", held[0])
    go_on.set()
    answer.set()
    report = await queue.reported("finished", held[0])
    assert leases(report, "finished") == held


@over_http
async def test_an_outcome_is_repeated_until_it_is_acknowledged(queue, start):
    queue.silence = lambda report: (
        bool(report["finished"]) and sum(bool(each["finished"]) for each in queue.reports) < 3
    )
    await start(it=lambda: 42)
    [lease] = await queue.hand_out(run("it"))
    await queue.until(lambda: sum(lease in leases(report, "finished") for report in queue.reports) == 3)
    said = [entry for report in queue.reports for entry in report["finished"]]
    assert said == [{"lease": lease, "outcome": "succeeded", "result": 42}] * 3


@over_http
async def test_leases_come_with_the_answer_to_a_prompt_report_as_well(queue, start):
    await start(it=lambda: 42)
    by_long_poll = queue.lease_of(run("it"))
    [with_prompt] = await queue.hand_out(run("it"), prompt=True)
    await queue.give(by_long_poll)
    assert (await queue.finished(with_prompt))["outcome"] == "succeeded"


@over_http
async def test_a_lease_that_came_later_than_it_may_start_is_read_and_not_held(queue, start):
    """`start_by` PT0S: any answer is later than that."""
    await start(it=lambda: 42)
    first = queue.lease_of(run("it"))
    [late] = await queue.hand_out(run("it", handout={"start_by": "PT0S"}), prompt=True)
    [in_time] = await queue.give(first)
    await queue.finished(in_time)
    await queue.say()
    await queue.until(lambda: queue.reports[-1]["read_up_to"] == 2)
    assert [
        key for report in queue.reports for key in ("held", "started", "finished") if late in leases(report, key)
    ] == []


@over_http
async def test_a_lease_that_lay_at_the_server_for_longer_than_it_may_start_is_read_and_not_held(queue, start):
    """What the server waited before it came is not the worker's; what it lay there is, also in a long poll."""
    await start(it=lambda: 42)
    await queue.until(lambda: any(report.get("wait") for report in queue.reports))
    first, second = queue.lease_of(run("it")), queue.lease_of(run("it"))
    [late] = await queue.give(first, waited=-10.0)
    await queue.until(lambda: queue.reports[-1]["read_up_to"] == 1)
    [in_time] = await queue.give(second, waited=19.0)
    assert (await queue.finished(in_time))["outcome"] == "succeeded"
    assert [
        key for report in queue.reports for key in ("held", "started", "finished") if late in leases(report, key)
    ] == []


async def test_a_lease_that_is_given_twice_is_run_once(queue, start):
    calls = []

    def it(n):
        calls.append(n)

    await start(it=it)
    twice = queue.lease_of(run("it", {"n": 1}))
    await queue.give(twice, twice)
    await queue.finished(twice["lease"])
    [after] = await queue.hand_out(run("it", {"n": 2}))
    await queue.finished(after)
    assert sorted(calls) == [1, 2]


@over_http
async def test_one_outcome_that_the_server_will_not_have_does_not_hold_up_the_others(queue, start):
    def refuse(report):
        bad = any(entry.get("result") == "bad" for entry in report["finished"])
        return Response({"title": "cannot read that"}, 422) if bad else None

    queue.refuse = refuse
    go_on = asyncio.Event()

    async def it(result):
        await go_on.wait()
        return result

    await start(it=it)
    bad, good = await queue.hand_out(run("it", {"result": "bad"}), run("it", {"result": "good"}))
    await queue.reported("started", good)
    go_on.set()
    error = {"type": "ReportRefused", "message": "cannot read that"}
    replaced = {"lease": bad, "outcome": "failed", "error": error}
    await queue.until(lambda: any(replaced in report["finished"] for report in queue.reports))
    assert (await queue.finished(good))["outcome"] == "succeeded"


async def test_a_worker_without_tasks_does_not_start():
    with pytest.raises(ValueError, match="at least one task"):
        await Worker().start()
