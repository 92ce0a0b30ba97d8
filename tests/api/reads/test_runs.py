"""Runs and dead letters as the API shows them."""

from dataclasses import replace

import pytest

from schemas.facts import (
    AttemptOutcome,
    Outcome,
    RunDeferReason,
    RunDeferred,
)
from tests.api.reads.asking import ACME, get
from tests.projections import histories
from tests.projections.histories import (
    at,
    created,
    ended,
    finished,
    retried,
    started,
)

pytestmark = pytest.mark.anyio


async def test_a_run_is_shown_with_its_attempts_and_its_whole_story(house):
    run = created("report", 60)
    first, second = started(run, 62, handout=3), started(run, 70, handout=8, attempt=2, worker="w-2")
    house.happened(
        run, first, ended(first, 63, AttemptOutcome.FAILED, "no connection"), retried(run, 63, 2), second,
        ended(second, 75), finished(run, 75, attempts=2, result={"rows": 3}),
    )  # fmt: skip
    shown = await get(house, f"{ACME}/runs/{run.run_id}")
    assert (shown["state"], shown["attempt_count"], shown["worker"]) == ("succeeded", 2, "w-2")
    assert [(each["attempt"], each["state"]) for each in shown["attempts"]] == [(1, "failed"), (2, "succeeded")]
    assert shown["attempts"][0]["error"] == {"type": "ValueError", "message": "no connection"}
    assert [each["type"].split(".", 1)[1] for each in shown["events"]] == [
        "run.created.v1", "attempt.started.v1", "attempt.finished.v1", "run.retry_scheduled.v1", "attempt.started.v1",
        "attempt.finished.v1", "run.finished.v1",
    ]  # fmt: skip
    assert shown["job"]["payload"] == {"day": "2026-03-01"}
    assert shown["result"] == {"rows": 3}


async def test_a_run_that_waits_says_why_since_when(house):
    run = created("report", 60)
    waits = RunDeferred(
        tenant="acme", schedule="report", run_id=run.run_id, reason=RunDeferReason.NO_WORKER, since=at(61),
        decided_at=at(61),
    )  # fmt: skip
    house.happened(run, waits)
    shown = await get(house, f"{ACME}/runs/{run.run_id}")
    assert shown["waiting"] == {"reason": "no_worker", "since": "2026-03-01T00:01:01Z"}


async def test_a_run_says_by_when_it_has_to_begin_until_it_has_or_is_over(house):
    waits, runs, over = (created("report", second, start_by_at=at(300)) for second in (60, 120, 180))
    expired = replace(finished(over, 300, Outcome.EXPIRED), reason="start_within")
    house.happened(waits, runs, started(runs, 121), over, expired)
    shown = [await get(house, f"{ACME}/runs/{run.run_id}") for run in (waits, runs, over)]
    assert [each.get("start_by_at") for each in shown] == ["2026-03-01T00:05:00Z", None, None]
    assert (shown[2]["state"], shown[2]["reason"]) == ("expired", "start_within")


async def test_runs_are_found_by_state_also_by_groups_of_them(house):
    failed = created("load", 120)
    house.happened(
        *histories.succeeded("report", 0), created("report", 60), failed, finished(failed, 130, Outcome.FAILED)
    )
    names = [each["run_id"] for each in (await get(house, "/v1/runs?state=open"))["runs"]]
    assert names == ["report.20260301T000100Z"]
    assert len((await get(house, "/v1/runs?state=failed,succeeded"))["runs"]) == 2
    assert len((await get(house, "/v1/runs?state=failed&state=queued"))["runs"]) == 2
    response = await house.http.get("/v1/runs?state=succeded")
    assert response.json()["faults"][0]["remedy"] == "did you mean 'succeeded'?"


async def test_a_query_parameter_that_nothing_reads_is_refused(house):
    response = await house.http.get("/v1/runs?stat=failed")
    assert (response.status_code, response.json()["faults"][0]["pointer"]) == (400, "/stat")


async def test_dead_letters_are_the_runs_that_were_given_up(house):
    run = created("report", 0)
    house.happened(run, finished(run, 9, Outcome.DEAD_LETTERED), *histories.succeeded("report", 60))
    shown = await get(house, f"{ACME}/dead-letters")
    assert [each["run_id"] for each in shown["dead_letters"]] == [run.run_id]
