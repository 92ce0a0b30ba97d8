"""Who changed what, when and why: what the API tells of a schedule, and the pages that show it to people."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page

from api.page import VALUE_CHARACTERS
from runtime.record import Outgoing
from schemas import topics
from schemas.facts import CatalogEntry, ScheduleAccepted, ScheduleDeleted, SchedulePaused, ScheduleResumed
from tests.api.browsing import browsing, complaints_of
from tests.api.house import House
from tests.api.test_page import text_of
from tests.projections.histories import DEFINITION, at, current, record, version

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
PATH = "/v1/tenants/acme/schedules/report/changes"
SCRIPT = "<script>document.title = 'owned'</script>"
WORDS: dict[str, Any] = {"words": "", "next": (), "tz_version": "2026a"}


@pytest.fixture
async def house(tmp_path: Path):
    async with House(tmp_path, now=lambda: NOON) as house:
        yield house


def put(number: int, cron: str, *, created: bool = False, **said: Any) -> ScheduleAccepted:
    definition = {**DEFINITION, "trigger": {"cron": cron, "timezone": "Europe/London"}, "job": "send"}
    return ScheduleAccepted(
        tenant="acme", schedule="report", version=number, definition=definition, effective_at=at(number),
        accepted_at=at(number), created=created, **WORDS, **said,
    )  # fmt: skip


def done(kind: Any, second: int, **said: Any) -> Any:
    return kind(
        tenant="acme", schedule="report", version=2, effective_at=at(second), accepted_at=at(second), **said
    )  # fmt: skip


def entry(kind: str, tenant: str, name: str, number: int, definition: Any, **said: Any) -> Outgoing:
    fact = CatalogEntry(
        kind=kind, tenant=tenant, name=name, version=number, changed_at=at(number), definition=definition, **said
    )
    return record(fact, topic=topics.CATALOG, sequence=number)


STORY = (
    current("report", 2), version("report", 1, to=at(2)),
    put(1, "0 2 * * *", created=True, source="tidewheel/api"),
    put(2, "0 3 * * *", by="ann", note=f"the summer {SCRIPT}", warnings=("/job: job send is unknown",)),
    done(SchedulePaused, 3, by="bob", note="month's end"), done(ScheduleResumed, 4, by="bob"),
    done(SchedulePaused, 5, by="tidewheel", reason="failures", failures=3, failed_runs=("report.1", "report.2")),
)  # fmt: skip
JOBS = (
    entry("job", "acme", "send", 1, {"queue": "mail", "target": {"type": "task", "name": "send"}}, by="ann"),
    entry("job", "acme", "send", 2, {"queue": "mail", "target": {"type": "task", "name": "post"}, "timeout": "PT5M"}),
    entry("queue", "_", "mail", 1, {"rate": "5/s"}, by="ann"),
    entry("queue", "_", "mail", 2, {"rate": "9/s"}, by="bob", note="more"),
)


@pytest.mark.anyio
async def test_the_changes_of_a_schedule_are_told_newest_first_with_who_why_and_which_fields(house):
    house.happened(*STORY)
    told = (await house.http.get(PATH)).json()["changes"]
    assert [(each["what"], each["version"], each.get("by"), each.get("note")) for each in told] == [
        ("paused", 2, "tidewheel", None), ("resumed", 2, "bob", None), ("paused", 2, "bob", "month's end"),
        ("put", 2, "ann", f"the summer {SCRIPT}"), ("put", 1, None, None),
    ]  # fmt: skip
    assert (told[0]["reason"], told[0]["failed_runs"]) == ("failures", ["report.1", "report.2"])
    assert (told[3]["fields"], told[3]["definition"]["trigger"]["cron"]) == (["/job", "/trigger/cron"], "0 3 * * *")
    assert (told[4]["source"], "fields" in told[4]) == ("tidewheel/api", False)
    assert told[4]["changed_at"] == "2026-03-01T00:00:01Z"


@pytest.mark.anyio
async def test_they_come_in_pages_and_end_with_a_deletion(house):
    house.happened(*STORY, done(ScheduleDeleted, 6, by="ann", note="no more"))
    first = (await house.http.get(f"{PATH}?limit=4")).json()
    assert [each["what"] for each in first["changes"]] == ["deleted", "paused", "resumed", "paused"]
    assert (first["changes"][0]["deleted"], first["changes"][0]["note"]) == (True, "no more")
    rest = (await house.http.get(f"{PATH}?cursor={first['cursor']}")).json()
    assert [each["what"] for each in rest["changes"]] == ["put", "put"]
    assert "cursor" not in rest


@pytest.mark.anyio
async def test_what_there_never_was_has_none_and_a_wrong_cursor_is_refused(house):
    assert (await house.http.get("/v1/tenants/acme/schedules/nobody/changes")).status_code == 404
    assert (await house.http.get(f"{PATH}?cursor=zzz")).json()["faults"][0]["pointer"] == "/cursor"


@pytest.mark.anyio
async def test_a_page_says_who_changed_which_field_from_what_to_what(house):
    house.happened(*STORY, *JOBS)
    html = (await house.http.get("/schedules/acme/report/changes")).text
    said = text_of(html)
    assert "put version 2 2026-03-01 00:00:02 UTC 11 h 59 min ago by ann: the summer" in said
    assert "/trigger/cron &#34;0 2 * * *&#34; &#34;0 3 * * *&#34;" in said
    assert "by tidewheel, failures report.1 report.2" in said
    assert "/job: job send is unknown" in said
    assert SCRIPT not in html
    assert not re.search(r"\s(style|on\w+)=", html)
    job = text_of((await house.http.get("/jobs/acme/send/changes")).text)
    assert "/timeout nothing &#34;PT5M&#34;" in job
    assert "by nobody who said so" in job
    assert "by bob: more" in text_of((await house.http.get("/queues/mail/changes")).text)


@pytest.mark.anyio
async def test_the_page_of_a_schedule_leads_to_its_changes_and_to_those_of_what_it_refers_to(house):
    house.happened(*STORY, *JOBS)
    html = (await house.http.get("/schedules/acme/report")).text
    links = set(re.findall(r'href="([^"]+/changes)"', html))
    assert links == {"/schedules/acme/report/changes", "/tenants/acme/changes", "/queues/default/changes"}
    named = current("report", 3, job="send", trigger={"cron": "0 2 * * *", "exclude": {"calendars": ["uk"]}})
    house.happened(named)
    html = (await house.http.get("/schedules/acme/report")).text
    links = set(re.findall(r'href="([^"]+/changes)"', html))
    assert {"/jobs/acme/send/changes", "/queues/mail/changes", "/calendars/acme/uk/changes"} <= links


@pytest.mark.anyio
async def test_what_nobody_declared_says_so_and_what_is_not_there_is_not_found(house):
    for path in ("/tenants/acme/changes", "/queues/mail/changes"):
        response = await house.http.get(path)
        assert (response.status_code, "Nobody has declared it" in response.text) == (200, True)
    for path in ("/jobs/acme/x/changes", "/calendars/acme/x/changes", "/schedules/acme/x/changes"):
        assert (await house.http.get(path)).status_code == 404
    assert (await house.http.get("/queues/mail/changes?cursor=zzz")).status_code == 422
    assert (await house.http.get("/queues/%20/changes")).status_code == 404


@pytest.mark.anyio
async def test_a_long_value_is_cut_and_the_whole_definition_is_there(house):
    long = "x" * 2_000
    house.happened(entry("queue", "_", "mail", 1, {"note": "a"}), entry("queue", "_", "mail", 2, {"note": long}))
    html = (await house.http.get("/queues/mail/changes")).text
    assert f"<code>&#34;{'x' * (VALUE_CHARACTERS - 1)}…</code>" in html
    assert long in html


@pytest.mark.anyio
async def test_large_definitions_end_a_page_sooner(house):
    """A calendar may have ten thousand days, and may be put every day."""
    months = [f"{year}-{month:02}" for year in range(2000, 2015) for month in range(1, 13)]
    days = [f"{month}-{day:02}" for month in months for day in range(1, 29)]
    house.happened(*(entry("calendar", "acme", "uk", number, {"dates": days[number:]}) for number in range(1, 21)))
    path, seen = "/v1/tenants/acme/calendars/uk/changes?limit=500", []
    body: dict[str, Any] = {"cursor": ""}
    while "cursor" in body:
        response = await house.http.get(f"{path}&cursor={body['cursor']}" if body["cursor"] else path)
        assert len(response.content) < 600_000
        body = response.json()
        seen += [each["version"] for each in body["changes"]]
    assert seen == [*range(20, 0, -1)]


def shown(page: Page, url: str, width: int) -> tuple[int, bool]:
    """How many changes are seen, and whether the page itself stays within the window."""
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(url)
    fits = page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    return page.locator(".story > li").count(), fits


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_browser_shows_changes_wide_and_narrow_and_a_keyboard_gets_everywhere(tmp_path: Path, scheme: Any):
    with browsing(tmp_path) as (house, url, browser):
        house.happened(*STORY, *JOBS)
        page = browser.new_context(color_scheme=scheme).new_page()
        complaints = complaints_of(page)
        here = f"{url}/schedules/acme/report/changes"
        assert [shown(page, here, width) for width in (1400, 360)] == [(5, True), (5, True)]
        ground = page.evaluate("getComputedStyle(document.body.parentElement).backgroundColor")
        assert ground == {"light": "rgb(246, 247, 249)", "dark": "rgb(17, 22, 28)"}[scheme]
        assert page.title() == "Changes of schedule acme/report · Tidewheel"

        page.goto(f"{url}/schedules/acme/report")
        page.get_by_role("link", name="of the schedule").focus()
        page.keyboard.press("Enter")
        page.wait_for_url(here)
        summary = page.get_by_text("the whole definition").first
        for _ in range(20):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.tagName") == "SUMMARY":
                break
        page.keyboard.press("Enter")
        assert summary.locator("..").get_attribute("open") is not None
        assert complaints == []
