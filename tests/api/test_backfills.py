"""Backfills over HTTP: a start is a command, and how far one has come is a row."""

from typing import Any

import pytest

from schemas.facts import Cause, NominalRange, OccurrenceSkipped, SkipReason
from schemas.faults import Fault
from tests.api.house import answer
from tests.projections.histories import at, created, current
from tests.projections.test_backfills import ended, progressed, started

pytestmark = pytest.mark.anyio

REPORT = "/v1/tenants/acme/schedules/report"
RANGE = {"from": "2026-03-01T00:00:00Z", "to": "2026-03-02T00:00:00Z"}


async def get(house: Any, path: str) -> Any:
    response = await house.http.get(path)
    assert response.status_code == 200, response.text
    return response.json()


async def test_a_start_is_a_command_for_the_schedules_owner(house):
    house.owner = lambda command, record: [answer(record, 201, body={"backfill": "b-1", "state": "running"})]
    response = await house.http.post(f"{REPORT}/backfills", json={**RANGE, "reprocess": "failed", "max_active": 4})
    assert (response.status_code, response.json()["backfill"]) == (201, "b-1")
    (command,) = house.commands()
    assert (command["type"], command["subject"]) == ("tidewheel.backfill.start.v1", "acme/report")
    assert command["data"] == {"tenant": "acme", "name": "report", **RANGE, "reprocess": "failed", "max_active": 4}


async def test_what_no_backfill_can_mean_is_refused_with_its_field_before_anything_is_sent(house):
    response = await house.http.post(f"{REPORT}/backfills", json={"to": RANGE["to"], "rate": "fast"})
    assert (response.status_code, [each["pointer"] for each in response.json()["faults"]]) == (422, ["/from", "/rate"])
    response = await house.http.post(f"{REPORT}/backfills", json={**RANGE, "max_activ": 4})
    assert response.json()["faults"][0]["remedy"] == "did you mean 'max_active'?"
    assert house.commands() == []


async def test_what_the_owner_refuses_points_into_the_body(house):
    fault = Fault(pointer="/data/from", code="beyond_history", message="is not known", remedy="begin later")
    house.owner = lambda command, record: [answer(record, 422, body={"reason": "beyond_history"}, faults=(fault,))]
    response = await house.http.post(f"{REPORT}/backfills", json=RANGE)
    assert (response.status_code, response.json()["code"]) == (422, "beyond_history")
    assert response.json()["faults"][0]["pointer"] == "/from"


@pytest.mark.parametrize("verb", ["pause", "resume", "cancel"])
async def test_a_change_names_the_backfill(house, verb):
    house.owner = lambda command, record: [answer(record, 200, body={"backfill": "b-1"})]
    assert (await house.http.post(f"{REPORT}/backfills/b-1:{verb}", json={"note": "why"})).status_code == 200
    (command,) = house.commands()
    assert command["type"] == f"tidewheel.backfill.{verb}.v1"
    assert command["data"] == {"tenant": "acme", "name": "report", "backfill": "b-1", "note": "why"}


async def test_how_far_one_has_come_is_said_with_what_is_left_out_and_when_it_will_be_through(house):
    house.happened(started(), progressed(5, 2))
    shown = await get(house, f"{REPORT}/backfills/b-1")
    assert (shown["state"], shown["decided"], shown["occurrences"], shown["done"]) == ("running", 2, 5, 0.4)
    assert (shown["from"], shown["to"]) == ("2026-02-28T23:50:00Z", "2026-02-28T23:55:00Z")
    assert (shown["expected_at"], shown["counts"]["created"]) == ("2026-03-01T00:01:00Z", 2)
    house.happened(ended())
    shown = await get(house, f"{REPORT}/backfills/b-1")
    assert (shown["state"], shown["done"], "expected_at" in shown) == ("completed", 1.0, False)
    assert shown["counts"]["left_out"] == {"succeeded": 1}


async def test_they_are_listed_of_a_schedule_and_of_all(house):
    house.happened(started())
    for path in (f"{REPORT}/backfills", "/v1/backfills", "/v1/backfills?state=running"):
        assert [each["backfill"] for each in (await get(house, path))["backfills"]] == ["b-1"]
    assert (await get(house, "/v1/backfills?state=completed"))["backfills"] == []
    assert (await house.http.get("/v1/backfills?state=runing")).status_code == 422
    assert (await house.http.get(f"{REPORT}/backfills/b-2")).status_code == 404


async def test_an_explanation_names_the_skip_and_the_backfill_that_ran_it_after_all(house):
    nominal = NominalRange(from_=at(0), to=at(60), count=2)
    skip = OccurrenceSkipped(
        tenant="acme", schedule="report", version=1, reason=SkipReason.PAUSED, decided_at=at(60), rule="cron",
        tz_version="2026a", range=nominal,
    )  # fmt: skip
    run = created("report", 0, cause=Cause.BACKFILL, backfill="b-1")
    house.happened(current("report"), skip, run)
    span = "from=2026-03-01T00:00:00Z&to=2026-03-01T00:02:00Z"
    told = (await get(house, f"{REPORT}/occurrences?{span}"))["occurrences"]
    found = [(each["decision"], each["reason"], each.get("backfill")) for each in told[:2]]
    assert sorted(found, key=str) == [("created", "backfill", "b-1"), ("skipped", "paused", None)]


async def test_the_page_of_a_schedule_shows_its_backfills(house):
    house.happened(current("report"), started(), progressed(5, 2))
    html = (await house.http.get("/schedules/acme/report")).text
    assert '<progress max="1" value="0.4">' in html
    assert "b-1" in html
