"""Runs and dead letters as the API shows them."""

import re
from dataclasses import replace
from typing import Any

import pytest

from projections.store import history
from projections.store.reader import Scope
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


def tried(times: int) -> list[Any]:
    """A run of which each attempt failed at once, and which succeeded in the end."""
    run = created("report", 60)
    facts: list[Any] = [run]
    for number in range(1, times + 1):
        begun = started(run, 60 + number, handout=number, attempt=number)
        facts += [begun, ended(begun, 60 + number, AttemptOutcome.FAILED, f"no connection {number}")]
    return [*facts, finished(run, 5000, attempts=times, result={"rows": 3})]


async def test_of_a_run_with_very_many_attempts_the_first_are_shown_and_cursors_lead_to_the_others(house):
    house.happened(*tried(150))
    path = f"{ACME}/runs/report.20260301T000100Z"
    shown = await get(house, path)
    assert ([each["attempt"] for each in shown["attempts"]], len(shown["events"])) == ([*range(1, 101)], 100)
    assert (shown["attempt_count"], shown["job"]["payload"], shown["result"]) == (
        150,
        {"day": "2026-03-01"},
        {"rows": 3},
    )
    rest = await get(house, f"{path}/attempts?cursor={shown['attempts_cursor']}")
    assert ([each["attempt"] for each in rest["attempts"]], "cursor" in rest) == ([*range(101, 151)], False)
    events, cursor = shown["events"], shown["events_cursor"]
    while cursor:
        page = await get(house, f"{path}/events?limit=150&cursor={cursor}")
        events, cursor = [*events, *page["events"]], page.get("cursor")
    assert (len(events), len({each["id"] for each in events}), events[-1]["type"]) == (
        302, 302, "tidewheel.run.finished.v1",
    )  # fmt: skip
    last = await get(house, f"{path}/attempts?newest=true&limit=2")
    assert [each["attempt"] for each in last["attempts"]] == [150, 149]


async def test_what_a_run_carries_is_not_taken_for_what_happened_to_it(house):
    """A payload and a result may look like facts. Of the second run the beginning is not kept any more."""
    of_type = "tidewheel.run.{}.v1".format
    first, second = created("report", 60), created("report", 120)
    first = replace(first, job=replace(first.job, payload={"type": of_type("finished"), "result": "made up"}))
    house.happened(
        first, finished(first, 70, result={"rows": 3}), finished(second, 130, result={"type": of_type("created")})
    )
    shown = await get(house, f"{ACME}/runs/report.20260301T000100Z")
    assert (shown["result"], shown["job"]["payload"]["result"]) == ({"rows": 3}, "made up")
    told = history.told(house.services.reader, Scope(tenant="acme"), "report", second.run_id, of_type("created"))
    assert told is None


async def test_large_events_end_a_page_sooner(house):
    run = created("report", 60)
    facts: list[Any] = [run]
    for number in range(1, 60):
        begun = started(run, 60 + number, handout=number, attempt=number)
        facts += [begun, ended(begun, 60 + number, AttemptOutcome.FAILED, "x" * 16_000)]
    house.happened(*facts)
    path = f"{ACME}/runs/report.20260301T000100Z"
    response = await house.http.get(f"{path}/events?limit=500")
    assert 400_000 < len(response.content) < 600_000
    rest = await get(house, f"{path}/events?limit=500&cursor={response.json()['cursor']}")
    assert len(response.json()["events"]) + len(rest["events"]) == 119


async def test_a_run_that_there_is_not_has_no_attempts_and_a_run_that_nobody_began_has_none_yet(house):
    house.happened(created("report", 60))
    assert await get(house, f"{ACME}/runs/report.20260301T000100Z/attempts") == {"attempts": []}
    for part in ("attempts", "events"):
        assert (await house.http.get(f"{ACME}/runs/report.1/{part}")).status_code == 404
        assert (await house.http.get(f"/v1/tenants/zoo/runs/report.20260301T000100Z/{part}")).status_code == 404
    wrong = await house.http.get(f"{ACME}/runs/report.20260301T000100Z/events?cursor=zzz")
    assert wrong.json()["faults"][0]["pointer"] == "/cursor"


async def test_the_page_of_a_run_shows_the_newest_of_very_many_and_leads_to_the_earlier(house):
    house.happened(*tried(120))
    html = (await house.http.get("/runs/acme/report.20260301T000100Z")).text
    assert ("no connection 120" in html, "no connection 71" in html, "no connection 70" in html) == (True, True, False)
    (earlier,) = re.findall(r'href="([^"]*)">Earlier attempts', html)
    assert earlier.endswith("#attempts")
    assert '<section id="attempts">' in html
    older = (await house.http.get(f"/runs/acme/report.20260301T000100Z{earlier}")).text
    assert "no connection 21<" in older.replace("</td>", "<")
    assert 'href="?">Newest' in older
