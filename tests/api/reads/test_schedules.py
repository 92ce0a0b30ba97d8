"""Schedules, their versions, tenants and jobs as the API shows them, and how fresh that is."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from runtime.record import Outgoing
from schemas import topics
from schemas.facts import (
    CatalogEntry,
)
from tests.api.reads.asking import ACME, get
from tests.projections import histories
from tests.projections.histories import (
    at,
    current,
    record,
    tombstone,
)

pytestmark = pytest.mark.anyio


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
