"""Questions: what the API shows of schedules, runs, occurrences, jobs, previews and the log itself."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest

from runtime.record import Outgoing
from scheduler.occurrences import tz_version
from schemas import topics
from schemas.facts import (
    AttemptOutcome,
    CatalogEntry,
    Cause,
    DeferReason,
    NominalRange,
    OccurrenceDeferred,
    OccurrenceSkipped,
    Outcome,
    RunDeferReason,
    RunDeferred,
    SkipReason,
    Upstream,
)
from tests.api.house import House
from tests.projections import histories
from tests.projections.histories import (
    at,
    created,
    current,
    ended,
    finished,
    record,
    retried,
    started,
    tombstone,
    version,
)

pytestmark = pytest.mark.anyio

ACME = "/v1/tenants/acme"
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
async def house(tmp_path):
    """It is noon on the first of March 2026."""
    async with House(tmp_path, now=lambda: NOON) as house:
        yield house


async def get(house: House, path: str) -> Any:
    response = await house.http.get(path)
    assert response.status_code == 200, response.text
    return response.json()


async def test_a_schedule_is_shown_in_words_with_what_comes_next_and_what_was_last(house):
    house.happened(current("report"), *histories.succeeded("report", 0))
    shown = await get(house, f"{ACME}/schedules/report")
    assert (shown["tenant"], shown["name"], shown["version"], shown["state"]) == ("acme", "report", 1, "active")
    assert shown["words"] == "At 02:00 every day, Europe/London"
    assert shown["next"] == ["2026-03-02T02:00:00Z", "2026-03-03T02:00:00Z", "2026-03-04T02:00:00Z"]
    assert shown["next_run_at"] == "2026-03-02T02:00:00Z"
    assert (shown["last_run"]["run_id"], shown["last_run"]["outcome"]) == ("report.20260301T000000Z", "succeeded")
    assert shown["definition"] == histories.DEFINITION


async def test_a_schedule_carries_its_version_as_etag(house):
    house.happened(current("report", 3))
    assert (await house.http.get(f"{ACME}/schedules/report")).headers["etag"] == '"3"'


async def test_a_paused_schedule_has_no_next_run(house):
    house.happened(current("report", state="paused"))
    shown = await get(house, f"{ACME}/schedules/report")
    assert (shown["state"], shown["next"], "next_run_at" in shown) == ("paused", [], False)


async def test_a_deleted_schedule_is_gone_and_still_listed_as_deleted(house):
    house.happened(current("report"), tombstone(topics.SCHEDULES, "acme/report", sequence=9))
    assert (await house.http.get(f"{ACME}/schedules/report")).status_code == 404
    assert [each["name"] for each in (await get(house, f"{ACME}/schedules?state=deleted"))["schedules"]] == ["report"]


async def test_schedules_are_listed_in_pages(house):
    house.happened(*(current(f"s{number}") for number in range(5)))
    first = await get(house, f"{ACME}/schedules?limit=3")
    second = await get(house, f"{ACME}/schedules?limit=3&cursor={first['cursor']}")
    assert [each["name"] for page in (first, second) for each in page["schedules"]] == ["s0", "s1", "s2", "s3", "s4"]
    assert "cursor" not in second


async def test_schedules_are_found_by_label(house):
    house.happened(current("a", labels={"team": "ops"}), current("b"))
    for query in ("label=team=ops", "label=team:ops"):
        assert [each["name"] for each in (await get(house, f"/v1/schedules?{query}"))["schedules"]] == ["a"]
    assert (await house.http.get("/v1/schedules?label=team")).status_code == 422


async def test_tenants_are_those_that_have_schedules(house):
    house.happened(current("a"), current("b"), current("a", tenant="zoo"))
    assert (await get(house, "/v1/tenants"))["tenants"] == [
        {"name": "acme", "schedules": 2},
        {"name": "zoo", "schedules": 1},
    ]


async def test_versions_are_shown_newest_first(house):
    house.happened(histories.version("report", 1, to=at(9)), histories.version("report", 2))
    shown = (await get(house, f"{ACME}/schedules/report/versions"))["versions"]
    assert [(each["version"], each.get("effective_to")) for each in shown] == [(2, None), (1, "2026-03-01T00:00:09Z")]


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


async def test_nothing_of_another_tenant_is_shown(house):
    house.happened(current("report", tenant="zoo"), *histories.succeeded("report", 0, tenant="zoo"))
    assert await get(house, f"{ACME}/schedules") == {"schedules": []}
    assert await get(house, f"{ACME}/runs") == {"runs": []}
    for path in ("schedules/report", "runs/report.20260301T000000Z", "schedules/report/occurrences"):
        assert (await house.http.get(f"{ACME}/{path}")).status_code == 404


async def test_jobs_are_shown_and_deleted_ones_are_not(house):
    def job(name: str, version: int, definition: Any) -> Outgoing:
        fact = CatalogEntry(
            kind="job", tenant="acme", name=name, version=version, changed_at=at(version), definition=definition
        )
        return record(fact, topic=topics.CATALOG, sequence=version)

    house.happened(job("send", 1, {"queue": "mail"}), job("gone", 1, {"queue": "x"}), job("gone", 2, None))
    assert [each["name"] for each in (await get(house, f"{ACME}/jobs"))["jobs"]] == ["send"]
    assert (await get(house, f"{ACME}/jobs/send"))["definition"] == {"queue": "mail"}
    assert (await house.http.get(f"{ACME}/jobs/gone")).status_code == 404


# --- occurrences and previews ---------------------------------------------------------------------------------------


async def test_occurrences_explain_what_was_decided_and_what_will_be(house):
    paused = OccurrenceSkipped(
        tenant="acme", schedule="report", version=1, reason=SkipReason.PAUSED, decided_at=at(4000), rule="paused",
        tz_version="t", range=NominalRange(from_=at(3600), to=at(7200), count=60),
    )  # fmt: skip
    waits = OccurrenceDeferred(
        tenant="acme", schedule="report", version=1, nominal_time=at(9000), reason=DeferReason.BUFFERED,
        decided_at=at(9001), blocked_by="report.20260301T000000Z",
    )  # fmt: skip
    house.happened(current("report"), *histories.succeeded("report", 0), paused, waits)
    shown = await get(house, f"{ACME}/schedules/report/occurrences?from=2026-03-01T00:00:00Z&to=2026-03-03T12:00:00Z")
    assert [(each["decision"], each.get("reason")) for each in shown["occurrences"]] == [
        ("created", "schedule"), ("skipped", "paused"), ("deferred", "buffered"), ("planned", "schedule"),
        ("planned", "schedule"),
    ]  # fmt: skip
    assert shown["occurrences"][0]["run_id"] == "report.20260301T000000Z"
    assert shown["occurrences"][1]["range"] == {
        "from": "2026-03-01T01:00:00Z", "to": "2026-03-01T02:00:00Z", "count": 60,
    }  # fmt: skip
    assert shown["occurrences"][3]["nominal_time"] == "2026-03-02T02:00:00Z"
    assert shown["occurrences"][3]["local_time"] == "2026-03-02T02:00:00+00:00"


async def test_a_deferral_that_became_a_run_is_not_told_twice(house):
    waits = OccurrenceDeferred(
        tenant="acme", schedule="report", version=1, nominal_time=at(60), reason=DeferReason.BUFFERED, decided_at=at(60)
    )
    house.happened(current("report"), waits, created("report", 60))
    shown = await get(house, f"{ACME}/schedules/report/occurrences?to=2026-03-01T12:00:00Z")
    assert [each["decision"] for each in shown["occurrences"] if each["decision"] != "pending"] == ["created"]


async def test_a_deferral_that_was_skipped_in_the_end_is_not_told_twice(house):
    waits = OccurrenceDeferred(
        tenant="acme", schedule="report", version=1, nominal_time=at(60), reason=DeferReason.BUFFERED, decided_at=at(60)
    )
    skipped = OccurrenceSkipped(
        tenant="acme", schedule="report", version=1, reason=SkipReason.OVERLAP, decided_at=at(75), rule="overlap",
        tz_version="2026a", nominal_time=at(60), blocked_by="report.20260301T000000Z",
    )  # fmt: skip
    house.happened(current("report"), waits, skipped)
    shown = await get(house, f"{ACME}/schedules/report/occurrences?to=2026-03-01T12:00:00Z")
    told = [(each["decision"], each["reason"]) for each in shown["occurrences"] if each["decision"] != "pending"]
    assert told == [("skipped", "overlap")]


async def test_what_was_decided_says_what_the_clocks_of_its_zone_showed(house):
    skipped = OccurrenceSkipped(
        tenant="acme", schedule="report", version=1, reason=SkipReason.OVERLAP, decided_at=at(120), rule="overlap",
        tz_version="2026a", nominal_time=at(120),
    )  # fmt: skip
    trigger = {"cron": "0 2 * * *", "timezone": "Asia/Kolkata"}
    house.happened(current("report", trigger=trigger), created("report", 60), skipped)
    shown = await get(house, f"{ACME}/schedules/report/occurrences?to=2026-03-01T00:03:00Z")
    assert [(each["decision"], each["local_time"]) for each in shown["occurrences"]] == [
        ("created", "2026-03-01T05:31:00+05:30"), ("skipped", "2026-03-01T05:32:00+05:30"),
    ]  # fmt: skip


async def test_each_answer_names_what_the_decision_rests_on(house):
    waits = OccurrenceDeferred(
        tenant="acme", schedule="report", version=1, nominal_time=at(120), reason=DeferReason.BUFFERED,
        decided_at=at(120),
    )  # fmt: skip
    skipped = OccurrenceSkipped(
        tenant="acme", schedule="report", version=1, reason=SkipReason.OVERLAP, decided_at=at(180), rule="overlap",
        tz_version="2026a", nominal_time=at(180),
    )  # fmt: skip
    house.happened(current("report"), created("report", 60, due_at=at(75)), waits, skipped)
    shown = await get(house, f"{ACME}/schedules/report/occurrences?to=2026-03-03T12:00:00Z")
    told = [(each["version"], each["rule"], each["tz_version"]) for each in shown["occurrences"]]
    rule = "cron 0 2 * * * Europe/London"
    assert told == [
        (1, "on_time", "2026a"), (1, rule, "2026a"), (1, "overlap", "2026a"),
        *[(1, rule, tz_version())] * 3,
    ]  # fmt: skip
    assert shown["occurrences"][0]["due_at"] == "2026-03-01T00:01:15Z"


async def test_what_is_due_and_not_decided_is_pending(house):
    house.happened(current("report"), created("report", 60))
    shown = await get(house, f"{ACME}/schedules/report/occurrences?to=2026-03-01T12:00:00Z")
    assert [(each["decision"], each["reason"], each["nominal_time"]) for each in shown["occurrences"]] == [
        ("created", "schedule", "2026-03-01T00:01:00Z"), ("pending", "undecided", "2026-03-01T02:00:00Z"),
    ]  # fmt: skip


async def test_what_waits_for_its_jitter_says_until_when(house):
    trigger = {"cron": "0 12 * * *", "timezone": "UTC", "jitter": "PT10M"}
    house.happened(current("report", trigger=trigger))
    shown = await get(house, f"{ACME}/schedules/report/occurrences?to=2026-03-02T12:00:01Z")
    assert [(each["decision"], each["reason"]) for each in shown["occurrences"]] == [
        ("pending", "jitter"), ("planned", "schedule"),
    ]  # fmt: skip
    for each in shown["occurrences"]:
        assert each["nominal_time"] < each["due_at"] < each["nominal_time"].replace("12:00", "12:10")


async def test_what_rules_will_take_out_is_listed_with_the_rule(house):
    trigger = {"cron": "0 2 * * *", "timezone": "UTC", "exclude": {"dates": ["2026-03-03"]}}
    house.happened(current("report", trigger=trigger))
    path = f"{ACME}/schedules/report/occurrences?from=2026-03-02T00:00:00Z&to=2026-03-05T00:00:00Z"
    shown = (await get(house, path))["occurrences"]
    assert [(each["decision"], each["reason"]) for each in shown] == [
        ("planned", "schedule"), ("will_skip", "excluded"), ("planned", "schedule"),
    ]  # fmt: skip
    assert shown[1]["detail"] == "by dates"
    assert (await get(house, f"{ACME}/schedules/report"))["next"][:2] == [
        "2026-03-02T02:00:00Z",
        "2026-03-04T02:00:00Z",
    ]


async def test_of_what_a_freeze_holds_each_is_said_to_wait_as_long_as_the_first_which_was_looked_at_again(house):
    def held(nominal: int, decided: int, until: int) -> OccurrenceDeferred:
        return OccurrenceDeferred(
            tenant="acme", schedule="report", version=1, nominal_time=at(nominal), reason=DeferReason.FROZEN,
            decided_at=at(decided), until=at(until),
        )  # fmt: skip

    house.happened(current("report"), held(60, 60, 7200), held(120, 120, 7200), held(60, 7200, 90_000))
    path = f"{ACME}/schedules/report/occurrences?from=2026-03-01T00:00:00Z&to=2026-03-01T00:03:00Z"
    shown = (await get(house, path))["occurrences"]
    assert [(each["nominal_time"], each["until"]) for each in shown] == [
        ("2026-03-01T00:01:00Z", "2026-03-02T01:00:00Z"), ("2026-03-01T00:02:00Z", "2026-03-02T01:00:00Z"),
    ]  # fmt: skip


async def test_what_a_freeze_will_hold_is_listed_with_its_end_and_what_it_holds_is_counted(house):
    window = {"from": "2026-03-03T00:00:00Z", "to": "2026-03-03T05:00:00Z", "action": "defer", "note": "move"}
    detail = "by freeze of tenant acme (version 1): move"
    entry = CatalogEntry(
        kind="tenant", tenant="acme", name="_", version=1, definition={"freezes": [window]}, changed_at=at(0)
    )
    held = OccurrenceDeferred(
        tenant="acme", schedule="report", version=1, nominal_time=at(7200), reason=DeferReason.FROZEN,
        decided_at=at(7200), until=at(90_000), detail=detail,
    )  # fmt: skip
    house.happened(current("report"), entry, held)
    path = f"{ACME}/schedules/report/occurrences?from=2026-03-01T00:00:00Z&to=2026-03-05T00:00:00Z"
    shown = (await get(house, path))["occurrences"]
    assert [(each["decision"], each["reason"], each.get("until")) for each in shown] == [
        ("deferred", "frozen", "2026-03-02T01:00:00Z"), ("planned", "schedule", None),
        ("will_defer", "frozen", "2026-03-03T05:00:00Z"), ("planned", "schedule", None),
    ]  # fmt: skip
    assert shown[2]["note"] == f"held until 2026-03-03T05:00:00Z {detail}"
    assert (await get(house, f"{ACME}/schedules/report"))["held"] == {
        "pending": 1, "since": "2026-03-01T02:00:00Z", "until": "2026-03-02T01:00:00Z", "detail": detail,
    }  # fmt: skip
    said = (await house.http.get("/schedules/acme/report")).text
    assert "<dt>Held</dt>" in said
    assert detail in said


async def test_no_more_comes_than_max_runs_allows(house):
    house.happened(current("report", trigger={"cron": "0 2 * * *", "max_runs": 3}), created("report", 7200))
    assert len((await get(house, f"{ACME}/schedules/report"))["next"]) == 2
    path = f"{ACME}/schedules/report/occurrences?from=2026-03-01T12:00:00Z&to=2026-03-09T00:00:00Z"
    assert len((await get(house, path))["occurrences"]) == 2


async def test_a_version_that_has_had_its_runs_has_no_next_one(house):
    house.happened(current("report", trigger={"cron": "0 2 * * *", "max_runs": 3}), version("report", 1, to=at(7200)))
    shown = await get(house, f"{ACME}/schedules/report")
    assert (shown["next"], "next_run_at" in shown) == ([], False)
    path = f"{ACME}/schedules/report/occurrences?to=2026-03-09T00:00:00Z"
    assert (await get(house, path))["occurrences"] == []


async def test_a_range_beyond_what_is_kept_says_so(house):
    house.happened(current("report"))
    path = f"{ACME}/schedules/report/occurrences?to=2026-03-02T00:00:00Z&from="
    beyond = await get(house, f"{path}2026-01-01T00:00:00Z")
    assert (beyond["beyond_history"], beyond["kept_since"]) == (True, "2026-01-30T12:00:00Z")
    assert (await get(house, f"{path}2026-02-01T00:00:00Z"))["beyond_history"] is False


async def test_coming_occurrences_of_a_paused_schedule_will_be_skipped(house):
    house.happened(current("report", state="paused"))
    shown = await get(house, f"{ACME}/schedules/report/occurrences?from=2026-03-01T12:00:00Z&to=2026-03-03T00:00:00Z")
    assert [(each["decision"], each["reason"]) for each in shown["occurrences"]] == [("will_skip", "paused")]


async def test_a_preview_says_when_a_definition_would_be_due(house):
    response = await house.http.post(
        f"{ACME}/preview?from=2026-03-28T00:00:00Z&to=2026-03-31T00:00:00Z",
        json={**histories.DEFINITION, "trigger": {"cron": "30 1 * * *", "timezone": "Europe/London"}},
    )
    shown = response.json()
    assert shown["words"] == "At 01:30 every day, Europe/London"
    assert [each["nominal_time"] for each in shown["occurrences"]] == [
        "2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z",
    ]  # fmt: skip
    assert shown["occurrences"][1]["local_time"] == "2026-03-29T02:00:00+01:00"
    assert [(change["at"][:10], change["kind"]) for change in shown["dst"]] == [
        ("2026-03-29", "gap"), ("2026-10-25", "fold"), ("2027-03-28", "gap"), ("2027-10-31", "fold"),
        ("2028-03-26", "gap"),
    ]  # fmt: skip
    assert shown["dst_until"] == "2028-03-28T00:00:00Z"
    assert shown["change"] == "created"
    assert shown["next"][0] == "2026-03-02T01:30:00Z"
    assert shown["difference"] == {}


async def test_a_preview_of_a_schedule_that_exists_says_what_would_change(house):
    house.happened(current("report"))
    definition = {"name": "report", **histories.DEFINITION, "trigger": {"cron": "0 2,3 * * *", "timezone": "UTC"}}
    response = await house.http.post(
        f"{ACME}/preview?from=2026-03-02T00:00:00Z&to=2026-03-03T00:00:00Z", json=definition
    )
    told = response.json()
    assert (told["change"], told["fields"]) == ("updated", ["/trigger/cron", "/trigger/timezone"])
    assert told["difference"] == {
        "from": "2026-03-02T00:00:00Z", "to": "2026-03-03T00:00:00Z", "added": ["2026-03-02T03:00:00Z"],
        "removed": [], "moved": [], "unchanged": 1,
    }  # fmt: skip


async def test_one_that_only_comes_at_another_time_of_its_day_is_moved(house):
    house.happened(current("report"))
    definition = {"name": "report", **histories.DEFINITION, "trigger": {"cron": "30 4 * * *", "timezone": "UTC"}}
    path = f"{ACME}/preview?from=2026-03-02T00:00:00Z&to=2026-03-03T00:00:00Z"
    told = (await house.http.post(path, json=definition)).json()["difference"]
    assert told["moved"] == [{"from": "2026-03-02T02:00:00Z", "to": "2026-03-02T04:30:00Z"}]
    assert (told["added"], told["removed"]) == (["2026-03-02T04:30:00Z"], ["2026-03-02T02:00:00Z"])


async def test_a_difference_ends_where_an_answer_is_full(house):
    """Ten of a minute's occurrences say nothing about the hour: what one side lacks there is not known."""
    house.happened(current("report", trigger={"cron": "*/30 * * * *"}))
    definition = {"name": "report", **histories.DEFINITION, "trigger": {"cron": "* * * * *"}}
    path = f"{ACME}/preview?from=2026-03-02T00:00:00Z&to=2026-03-03T00:00:00Z&limit=10"
    told = (await house.http.post(path, json=definition)).json()["difference"]
    assert (told["to"], len(told["added"]), told["removed"]) == ("2026-03-02T00:09:01Z", 9, [])


async def test_runs_that_are_counted_already_count_in_a_preview(house):
    trigger = {"cron": "0 2 * * *", "timezone": "UTC", "max_runs": 3}
    house.happened(current("report", trigger=trigger), created("report", 7200))
    definition = {"name": "report", **histories.DEFINITION, "trigger": trigger}
    told = (await house.http.post(f"{ACME}/preview", json=definition)).json()
    assert (told["change"], told["next"]) == ("unchanged", ["2026-03-02T02:00:00Z", "2026-03-03T02:00:00Z"])
    difference = told["difference"]
    assert (difference["added"], difference["removed"], difference["unchanged"]) == ([], [], 2)


async def test_a_job_that_an_apply_would_change_is_told_by_its_fields(house):
    job = {"kind": "Job", "name": "send", "target": {"type": "task", "name": "work"}}
    told = (await house.http.post(f"{ACME}/preview", json=job)).json()
    assert told == {"change": "created"}


async def test_a_preview_refuses_what_an_apply_would_refuse(house):
    broken = {**histories.DEFINITION, "trigger": {"cron": "61 2 * * *"}}
    response = await house.http.post(f"{ACME}/preview", json=broken)
    assert response.status_code == 422
    assert response.json()["faults"][0]["pointer"] == "/trigger/cron"


@pytest.mark.parametrize(
    "query", ["from=yesterday", "from=2026-03-01T00:00:00", "from=2026-03-02T00:00:00Z&to=2026-03-01T00:00:00Z"]
)
async def test_a_range_that_is_none_is_refused(house, query):
    house.happened(current("report"))
    assert (await house.http.get(f"{ACME}/schedules/report/occurrences?{query}")).status_code == 422


# --- freshness ------------------------------------------------------------------------------------------------------


async def test_a_read_that_must_be_fresh_waits_for_the_rows(house):
    house.log.append([record(current("report"))])
    response = await house.http.get(f"{ACME}/schedules/report", headers={"Tidewheel-At-Least": "scheduler-0-1"})
    assert response.status_code == 200
    assert datetime.fromisoformat(response.headers["Tidewheel-As-Of"]) > datetime.now(UTC) - timedelta(minutes=1)


async def test_a_read_waits_two_seconds_at_most_and_then_says_how_old_it_is(house):
    house.happened(current("report"))
    assert house.projector.stop(20)
    house.log.append([record(current("other"))])
    response = await house.http.get(f"{ACME}/schedules", headers={"Tidewheel-At-Least": "scheduler-0-2"})
    assert [each["name"] for each in response.json()["schedules"]] == ["report"]
    assert "Tidewheel-As-Of" in response.headers


# --- the log ----------------------------------------------------------------------------------------------------------


async def test_the_topics_of_the_log_can_be_seen(house):
    shown = await get(house, "/v1/log")
    (changes,) = [each for each in shown["topics"] if each["topic"] == "tidewheel.schedule-changes"]
    assert changes["partitions"] == [
        {"partition": 0, "begin": 0, "end": 0},
        {"partition": 1, "begin": 0, "end": 0},
    ]
    assert shown["cluster_id"] == house.log.cluster_id


async def test_raw_records_are_shown_as_they_stand(house):
    value = b'{"b":1,"a":[1.50]}'
    house.log.append(
        [
            Outgoing(topics.RUNS, 1, b"k", value, (("tw-seq", b"scheduler-0-1"),)),
            Outgoing(topics.RUNS, 1, b"\xff", b"\x00\x01", (("h", b"\xff"),)),
            Outgoing(topics.RUNS, 1, None, None),
        ]
    )
    response = await house.http.get("/v1/log/tidewheel.runs/1")
    assert b'"value":' + value in response.content
    first, second, third = response.json()["records"]
    assert (first["offset"], first["key"], first["value"]) == (0, "k", {"b": 1, "a": [1.5]})
    assert first["headers"] == [{"name": "tw-seq", "value": "scheduler-0-1"}]
    assert (second["key_base64"], second["value_base64"]) == ("/w==", "AAE=")
    assert second["headers"] == [{"name": "h", "value_base64": "/w=="}]
    assert (third["key"], third["value"]) == (None, None)


async def test_the_log_is_read_on_from_where_the_answer_ended(house):
    house.log.append([Outgoing(topics.RUNS, 0, b"k", orjson.dumps(number), ()) for number in range(5)])
    seen, position = [], 0
    while position < (page := await get(house, f"/v1/log/runs/0?from={position}&limit=2"))["end"]:
        seen += [each["value"] for each in page["records"]]
        position = page["next"]
    assert seen == [0, 1, 2, 3, 4]


async def test_reading_past_the_end_is_an_empty_answer(house):
    page = await get(house, "/v1/log/runs/0?from=0")
    assert (page["begin"], page["end"], page["next"], page["records"]) == (0, 0, 0, [])


@pytest.mark.parametrize("path", ["/v1/log/nothing/0", "/v1/log/runs/99"])
async def test_a_partition_that_is_not_there_is_not_found(house, path):
    assert (await house.http.get(path)).status_code == 404


@pytest.mark.anyio
async def test_an_offset_that_no_log_can_have_is_refused(house):
    """A number larger than any offset names its parameter; it does not make us fail."""
    response = await house.http.get("/v1/log/run-events/0", params={"from": "9999999999999999999999999"})
    assert response.status_code == 400
    assert response.json()["faults"][0]["pointer"] == "/from"


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
