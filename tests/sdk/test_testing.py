"""A task runs in a test as it would in a worker, without any server."""

import asyncio
import os
from datetime import UTC, datetime

import pytest

from tests.sdk import isolated_tasks
from tidewheel import RunContext, Worker
from tidewheel.testing import Ended, Run, await_task, run_task

worker = Worker()


@worker.task("facts")
def facts(ctx: RunContext, day: str) -> list[object]:
    ctx.heartbeat(f"at {day}")
    return [ctx.run_id, ctx.tenant, ctx.schedule, ctx.attempt, ctx.may_have_run, ctx.fencing_token, day]


@worker.task("instants")
def instants(ctx: RunContext) -> list[str]:
    assert ctx.nominal_time is not None
    return [str(ctx.nominal_time), str(ctx.data_interval)]


@worker.task("coroutine")
async def coroutine(ctx: RunContext) -> str:
    await asyncio.sleep(0)
    return ctx.idempotency_key


@worker.task("fails")
def fails() -> None:
    raise ValueError("no such day")


@worker.task("large")
def large() -> str:
    return "x" * 20_000


worker.task("isolated", isolate="process")(isolated_tasks.remember)


def test_a_task_is_told_of_the_run_that_the_test_made_up():
    run = Run(run_id="r.1", tenant="acme", schedule="r", attempt=2, may_have_run=True, fencing_token=7)
    assert run_task(worker, "facts", {"day": "monday"}, run) == Ended(
        outcome="succeeded", result=["r.1", "acme", "r", 2, True, 7, "monday"], progress="at monday"
    )


def test_a_run_has_a_nominal_time_and_an_interval_where_one_is_given():
    run = Run(interval_from=datetime(2026, 3, 7, 2, tzinfo=UTC))
    ended = run_task(worker, "instants", run=run)
    assert ended.result is not None
    assert ended.result[0] == "2026-03-08 02:00:00+00:00"
    assert "2026, 3, 7, 2, 0" in ended.result[1]


def test_a_coroutine_runs_in_a_loop_of_its_own_or_in_that_of_the_test():
    expected = Ended(outcome="succeeded", result="test.20260308T020000Z")
    assert run_task(worker, "coroutine") == expected
    assert asyncio.run(await_task(worker, "coroutine")) == expected
    assert asyncio.run(await_task(worker, "facts", {"day": "x"})).outcome == "succeeded"


@pytest.mark.parametrize(
    ("name", "payload", "kind"),
    [
        ("fails", {}, "ValueError"),
        ("large", {}, "ResultTooLarge"),
        ("facts", {}, "PayloadMisfit"),
        ("coroutine", {"x": 1}, "PayloadMisfit"),
    ],
)
def test_what_a_worker_would_report_as_failed_is_failed_here(name, payload, kind):
    for ended in (run_task(worker, name, payload), asyncio.run(await_task(worker, name, payload))):
        assert (ended.outcome, ended.error_type) == ("failed", kind)


def test_a_run_that_was_asked_to_stop_is_cancelled_where_its_task_listens():
    assert run_task(worker, "facts", {"day": "x"}, Run(stopping=True)).outcome == "cancelled"


def test_an_isolated_task_is_isolated_here_too():
    ended = run_task(worker, "isolated", {"day": "x"})
    assert (ended.outcome, ended.progress, ended.result["pid"] == os.getpid()) == ("succeeded", {"done": 1}, False)


def test_a_payload_that_is_no_json_cannot_come_from_a_schedule():
    with pytest.raises(ValueError, match="not JSON serializable"):
        run_task(worker, "facts", {"day": datetime(2026, 3, 8, tzinfo=UTC)})


def test_a_task_that_is_not_registered_is_named_with_those_that_are():
    with pytest.raises(KeyError, match="no task 'nightly'; it has coroutine, facts, fails"):
        run_task(worker, "nightly")
