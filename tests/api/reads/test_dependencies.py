"""Schedules that follow others or wait for them: what the API explains of it."""

from dataclasses import replace
from typing import Any

import pytest

from schemas.facts import (
    Cause,
    DeferReason,
    OccurrenceDeferred,
    OccurrenceSkipped,
    Outcome,
    SkipReason,
    Upstream,
)
from tests.api.reads.asking import ACME, get
from tests.projections import histories
from tests.projections.histories import (
    at,
    created,
    current,
)

pytestmark = pytest.mark.anyio


# --- the log ----------------------------------------------------------------------------------------------------------


async def test_runs_that_follow_and_what_led_to_none_stand_where_they_were_decided(house):
    led = Upstream(
        schedule="load", run_id="load.20260301T010000Z", outcome=Outcome.SUCCEEDED, finished_at=at(3660),
        nominal_time=at(3600),
    )  # fmt: skip
    later = replace(led, run_id="load.20260301T020000Z", nominal_time=at(7200))
    run = replace(
        created("report", 3661), run_id="report.d-0123456789abcdef", cause=Cause.DEPENDENCY, nominal_time=None,
        rule="after load", upstream=led, chain=("load",),
    )  # fmt: skip
    skips = [
        OccurrenceSkipped(
            tenant="acme", schedule="report", version=1, reason=SkipReason.OVERLAP, decided_at=at(7261), rule="at",
            tz_version="t", blocked_by=run.run_id, upstream=each,
        )
        for each in (led, later)
    ]  # fmt: skip
    house.happened(current("report"), run, *skips)
    shown = await get(house, f"{ACME}/schedules/report/occurrences?from=2026-03-01T00:00:00Z&to=2026-03-01T12:00:00Z")
    told = [each for each in shown["occurrences"] if each["decision"] != "pending"]
    assert [(each["decision"], each["reason"], each["decided_at"]) for each in told] == [
        ("created", "dependency", "2026-03-01T01:01:01Z"),
        ("skipped", "overlap", "2026-03-01T02:01:01Z"),
        ("skipped", "overlap", "2026-03-01T02:01:01Z"),
    ]
    assert {each.get("nominal_time") for each in told} == {None}
    assert {each["detail"] for each in told[1:]} == {
        "after load.20260301T010000Z, which succeeded", "after load.20260301T020000Z, which succeeded",
    }  # fmt: skip
    whole = await get(house, f"{ACME}/runs/report.d-0123456789abcdef")
    assert (whole["upstream"]["run_id"], whole["chain"], whole["cause"]) == (
        "load.20260301T010000Z", ["load"], "dependency"
    )  # fmt: skip


def waiting(second: float, **more: Any) -> OccurrenceDeferred:
    return OccurrenceDeferred(
        tenant="acme", schedule="report", version=1, nominal_time=at(second), reason=DeferReason.WAITING,
        decided_at=at(second + 5), since=at(second), until=at(second + 86_400), detail="load: failed", **more,
    )  # fmt: skip


async def test_what_waits_for_other_schedules_says_for_what_since_when_and_until_when(house):
    house.happened(current("report"), waiting(3600))
    shown = await get(house, f"{ACME}/schedules/report/occurrences?from=2026-03-01T00:00:00Z&to=2026-03-01T02:00:00Z")
    (deferred,) = [each for each in shown["occurrences"] if each["decision"] == "deferred"]
    assert {name: deferred[name] for name in ("reason", "since", "until", "detail", "nominal_time")} == {
        "reason": "waiting", "since": "2026-03-01T01:00:00Z", "until": "2026-03-02T01:00:00Z",
        "detail": "load: failed", "nominal_time": "2026-03-01T01:00:00Z",
    }  # fmt: skip


async def test_what_has_waited_is_told_once_and_a_run_says_what_it_went_on_without(house):
    skipped = OccurrenceSkipped(
        tenant="acme", schedule="report", version=1, reason=SkipReason.UPSTREAM, decided_at=at(3700), rule="at",
        tz_version="t", nominal_time=at(3600), detail="load: failed",
    )  # fmt: skip
    run = created("report", 7200, detail="runs anyway: load: failed")
    house.happened(current("report"), waiting(3600), skipped, waiting(7200), run)
    shown = await get(house, f"{ACME}/schedules/report/occurrences?from=2026-03-01T00:30:00Z&to=2026-03-01T03:00:00Z")
    told = [each for each in shown["occurrences"] if each["decision"] != "pending"]
    assert [(each["decision"], each["detail"]) for each in told] == [
        ("skipped", "load: failed"), ("created", "runs anyway: load: failed")
    ]  # fmt: skip


AFTER_LOAD = [{"schedule": "load", "mode": "interval", "condition": "succeeded"}]


async def test_a_schedule_and_a_preview_of_it_name_those_that_depend_on_it(house):
    followed, others = [{**AFTER_LOAD[0], "mode": "run"}], [{**AFTER_LOAD[0], "schedule": "loads"}]
    house.happened(current("load"), current("report", after=AFTER_LOAD), current("other", after=followed))
    house.happened(current("loader", after=others), current("report", tenant="zoo", after=AFTER_LOAD))
    dependants = [
        {"schedule": "other", "mode": "run", "condition": "succeeded"},
        {"schedule": "report", "mode": "interval", "condition": "succeeded"},
    ]
    assert (await get(house, f"{ACME}/schedules/load"))["dependants"] == dependants
    assert "dependants" not in await get(house, f"{ACME}/schedules/report")
    response = await house.http.post(f"{ACME}/preview", json={"name": "load", **histories.DEFINITION})
    assert response.json()["dependants"] == dependants


async def test_a_preview_says_what_each_occurrence_waits_for_and_refuses_what_nobody_would_know(house):
    after = [{"schedule": "load", "mode": "interval", "span": "PT12H", "offset": "-PT1H"}]
    definition = {"name": "x", **histories.DEFINITION, "after": after}
    where = f"{ACME}/preview?from=2026-03-02T00:00:00Z&to=2026-03-03T00:00:00Z"
    told = (await house.http.post(where, json=definition)).json()
    assert told["words"].endswith(
        "; each waits until load has succeeded in the PT12H before it, moved PT1H back, at most P1D"
    )
    assert told["occurrences"][0]["note"] == "waits for load in (2026-03-01T13:00:00Z, 2026-03-02T01:00:00Z]"
    after[0]["span"] = "P40D"
    faults = (await house.http.post(where, json=definition)).json()["faults"]
    assert [(fault["pointer"], fault["code"]) for fault in faults] == [("/after/0/span", "range")]
