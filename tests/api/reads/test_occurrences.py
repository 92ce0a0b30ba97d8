"""Occurrences explain what was decided, and what will be."""

from dataclasses import replace

import pytest

from scheduler.occurrences import tz_version
from schemas.facts import (
    CatalogEntry,
    DeferReason,
    NominalRange,
    OccurrenceDeferred,
    OccurrenceSkipped,
    Outcome,
    SkipReason,
)
from tests.api.reads.asking import ACME, get
from tests.projections import histories
from tests.projections.histories import (
    at,
    created,
    current,
    version,
)

pytestmark = pytest.mark.anyio


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


async def test_a_run_that_has_to_begin_says_by_when_and_afterwards_why_it_expired(house):
    over, waits = (created("report", second, start_by_at=at(300)) for second in (60, 120))
    expired = replace(histories.finished(over, 300, Outcome.EXPIRED), reason="start_within")
    house.happened(current("report"), over, expired, waits)
    shown = await get(house, f"{ACME}/schedules/report/occurrences?to=2026-03-01T00:04:00Z")
    assert [(each["state"], each.get("start_by_at"), each.get("outcome_reason")) for each in shown["occurrences"]] == [
        ("expired", None, "start_within"),
        ("queued", "2026-03-01T00:05:00Z", None),
    ]


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


@pytest.mark.parametrize(
    "query", ["from=yesterday", "from=2026-03-01T00:00:00", "from=2026-03-02T00:00:00Z&to=2026-03-01T00:00:00Z"]
)
async def test_a_range_that_is_none_is_refused(house, query):
    house.happened(current("report"))
    assert (await house.http.get(f"{ACME}/schedules/report/occurrences?{query}")).status_code == 422
