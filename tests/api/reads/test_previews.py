"""Previews: when a definition would be due, and what an apply would change."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.api.house import House
from tests.api.reads.asking import ACME
from tests.api.test_references import entry
from tests.projections import histories
from tests.projections.histories import (
    created,
    current,
)

pytestmark = pytest.mark.anyio


# --- occurrences and previews ---------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("name", [7, "", "a b", "a\0", "x" * 129])
async def test_a_preview_refuses_a_name_that_cannot_be(house, name):
    """On PostgreSQL a NUL was answered with 500; the others were previewed, and refused when they were applied."""
    for document in (histories.DEFINITION, {"kind": "Job", "target": {"type": "task", "name": "work"}}):
        response = await house.http.post(f"{ACME}/preview", json={**document, "name": name})
        assert (response.status_code, response.json()["faults"][0]["pointer"]) == (422, "/name")


async def test_a_preview_refuses_what_an_apply_would_refuse(house):
    broken = {**histories.DEFINITION, "trigger": {"cron": "61 2 * * *"}}
    response = await house.http.post(f"{ACME}/preview", json=broken)
    assert response.status_code == 422
    assert response.json()["faults"][0]["pointer"] == "/trigger/cron"


# --- what it names --------------------------------------------------------------------------------------------------

FIRST_DAYS = f"{ACME}/preview?from=2026-03-02T00:00:00Z&to=2026-03-05T00:00:00Z"
HOLIDAYS = {"kind": "Calendar", "name": "uk", "dates": ["2026-03-03"]}
CLOSED: dict[str, Any] = {
    "trigger": {"cron": "0 2 * * *", "timezone": "UTC", "exclude": {"calendars": ["uk"]}},
    "job": {"target": {"type": "task", "name": "work"}},
}
NO_CALENDAR = "/trigger/exclude/calendars: there is no calendar 'uk' yet; until there is, it excludes nothing"
NO_JOB = "/job: there is no job 'send' yet; until there is, occurrences are skipped"


async def previewed(house: House, document: Mapping[str, Any], **more: Any) -> Any:
    response = await house.http.post(FIRST_DAYS, json={**document, **more})
    assert response.status_code == 200, response.text
    return response.json()


async def test_a_preview_warns_of_what_is_not_there_as_an_apply_does(house):
    told = await previewed(house, {**CLOSED, "job": "send"})
    assert told["warnings"] == [NO_JOB, NO_CALENDAR]
    assert (len(told["occurrences"]), told["skipped"]) == (3, [])


async def test_a_calendar_that_would_be_applied_with_it_takes_part_in_a_preview(house):
    told = await previewed(house, CLOSED, beside=[HOLIDAYS])
    assert told["warnings"] == []
    assert [each["nominal_time"] for each in told["occurrences"]] == ["2026-03-02T02:00:00Z", "2026-03-04T02:00:00Z"]
    assert [(each["nominal_time"], each["detail"]) for each in told["skipped"]] == [
        ("2026-03-03T02:00:00Z", "by calendar uk (version 1)")
    ]


async def test_a_calendar_that_would_change_is_told_by_its_next_version(house):
    """As it stands it is the version that it has; and what is in force goes by what is in force."""
    house.happened(entry("calendar", "acme", "uk", {"note": "", "dates": ["2026-03-03"]}, version=4))
    house.happened(current("report", **CLOSED))
    same = await previewed(house, CLOSED, beside=[HOLIDAYS])
    assert [each["detail"] for each in same["skipped"]] == ["by calendar uk (version 4)"]
    moved = await previewed(house, CLOSED, name="report", beside=[{**HOLIDAYS, "dates": ["2026-03-04"]}])
    assert [each["detail"] for each in moved["skipped"]] == ["by calendar uk (version 5)"]
    assert (moved["difference"]["added"], moved["difference"]["removed"]) == (
        ["2026-03-03T02:00:00Z"], ["2026-03-04T02:00:00Z"]
    )  # fmt: skip


async def test_a_job_and_the_freezes_of_its_queue_take_part_too(house):
    job = {"kind": "Job", "name": "send", "queue": "mail", "target": {"type": "task", "name": "work"}}
    freeze = {"from": "2026-03-03T00:00:00Z", "to": "2026-03-04T00:00:00Z", "action": "skip", "note": "moving"}
    queue = {"kind": "Queue", "name": "mail", "freezes": [freeze]}
    told = await previewed(house, {"trigger": {"cron": "0 2 * * *"}, "job": "send"}, beside=[job, queue])
    assert told["warnings"] == []
    assert [(each["nominal_time"], each["reason"]) for each in told["skipped"]] == [("2026-03-03T02:00:00Z", "frozen")]


async def test_the_load_of_a_queue_counts_what_stands_beside_too(house):
    """Of a job that stands in the same file the queue is known; the third of March is taken out."""
    job = {"kind": "Job", "name": "send", "queue": "mail", "target": {"type": "task", "name": "work"}}
    response = await house.http.post(
        f"{FIRST_DAYS}&load=true",
        json={**CLOSED, "job": "send", "beside": [job, {**HOLIDAYS, "dates": ["2026-03-02"]}]},
    )
    load = response.json()["load"]
    assert (load["queue"], load["occurrences"], load["busiest_after"]) == (
        "mail", 6, {"at": "2026-03-03T02:00:00Z", "count": 1}
    )  # fmt: skip


async def test_what_an_apply_would_refuse_is_not_there_for_a_preview(house):
    told = await previewed(house, CLOSED, beside=[{**HOLIDAYS, "dates": ["soon"]}])
    assert told["warnings"] == [NO_CALENDAR]


@pytest.mark.parametrize(
    ("beside", "pointer"),
    [
        (7, "/beside"),
        ([{}] * 101, "/beside"),
        ([{"kind": "Schedule", "name": "a"}], "/beside/0"),
        ([HOLIDAYS, {"kind": "Calendar"}], "/beside/1"),
        ([3], "/beside/0"),
    ],
)
async def test_what_is_beside_has_to_be_documents_of_the_catalog(house, beside, pointer):
    response = await house.http.post(FIRST_DAYS, json={**CLOSED, "beside": beside})
    assert (response.status_code, response.json()["faults"][0]["pointer"]) == (422, pointer)
