"""The web page: what it says, that it escapes what it is given, and that it works in a real browser."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from api import moments
from schemas.facts import DeferReason, OccurrenceDeferred
from tests.api import scenes
from tests.api.browsing import browsing, complaints_of
from tests.api.house import House
from tests.api.test_logs import RUN, begun, wrote
from tests.projections.histories import current

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
async def house(tmp_path):
    """It is noon on the first of March 2026, and the night was bad."""
    async with House(tmp_path, now=lambda: NOON) as house:
        house.happened(*scenes.night(NOON))
        yield house


def text_of(html: str) -> str:
    """What a person reads: without tags, spaces joined."""
    body = re.sub(r"<head>.*?</head>", " ", html, flags=re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", body)).strip()


@pytest.mark.anyio
async def test_the_overview_shows_what_is_open_what_went_wrong_and_what_comes(house):
    response = await house.http.get("/")
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    said = text_of(response.text)
    assert "1 queued 1 running 0 retry wait" in said
    assert "8 succeeded" in said
    assert "1 dead lettered" in said
    assert "ConnectionRefusedError db-1:5432 refused the connection" in said
    assert "2026-03-01 12:00:00 UTC now acme/ hourly-load Every 15 minutes, UTC" in said
    assert "2026-03-02 02:00:00 UTC 02:00:00 GMT in 14 h acme/ nightly-report" in said


@pytest.mark.anyio
async def test_the_overview_says_what_is_not_ready(house):
    house.unready = {"scheduler-0": "restoring"}
    assert "Not ready scheduler-0 : restoring" in text_of((await house.http.get("/")).text)


@pytest.mark.anyio
async def test_schedules_say_in_words_when_they_run_and_in_which_zone(house):
    said = text_of((await house.http.get("/schedules")).text)
    assert "At 15:30 on Monday to Friday, Asia/Tokyo 2026-03-02 06:30:00 UTC 15:30:00 JST in 18 h 30 min" in said
    assert "acme/ invoices paused" in said
    assert "none while paused" in said


@pytest.mark.anyio
async def test_schedules_are_narrowed_by_state(house):
    said = text_of((await house.http.get("/schedules?state=paused")).text)
    assert "invoices" in said
    assert "hourly-load" not in said


@pytest.mark.anyio
async def test_a_schedule_explains_its_occurrences(house):
    said = text_of((await house.http.get("/schedules/acme/hourly-load")).text)
    assert "Every 15 minutes, UTC" in said
    assert "deferred buffered behind hourly-load.20260301T115930Z" in said
    assert "skipped overlap behind nightly-report.20260301T103000Z" in said
    assert "8 occurrences, 2026-03-01 06:26:40 UTC to 2026-03-01 08:26:40 UTC skipped paused" in said


@pytest.mark.anyio
async def test_what_waits_for_another_schedule_says_so_and_the_other_names_it(house):
    after = [{"schedule": "hourly-load", "mode": "interval", "condition": "succeeded"}]
    at = NOON - timedelta(hours=1)
    waits = OccurrenceDeferred(
        tenant="acme", schedule="report", version=1, nominal_time=at, reason=DeferReason.WAITING, decided_at=at,
        since=at, until=NOON, detail="hourly-load: 2026-03-01T10:00:00Z failed",
    )  # fmt: skip
    house.happened(current("report", after=after), waits)
    said = text_of((await house.http.get("/schedules/acme/report")).text)
    assert (
        "deferred waiting since 2026-03-01 11:00:00 UTC until 2026-03-01 12:00:00 UTC:"
        " hourly-load: 2026-03-01T10:00:00Z failed"
    ) in said
    other = text_of((await house.http.get("/schedules/acme/hourly-load")).text)
    assert "Dependants report waits for it" in other


@pytest.mark.anyio
async def test_a_run_shows_its_attempts_its_error_its_payload_and_its_story(house):
    said = text_of((await house.http.get("/runs/acme/nightly-report.20260301T103000Z")).text)
    assert "dead lettered ConnectionRefusedError" in said
    assert "2 failed host-7-ab12 2026-03-01 10:31:05 UTC 10:31:05 GMT 1 h 28 min ago 2.1 s" in said
    assert "&#34;day&#34;: &#34;2026-03-01&#34;" in said
    assert "run retry scheduled" in said
    assert "attempt 2, not before 2026-03-01 10:31:04 UTC" in said


@pytest.mark.anyio
async def test_a_run_that_waits_shows_by_when_it_has_to_begin(house):
    said = text_of((await house.http.get("/runs/acme/tokyo-close.20260301T115940Z")).text)
    assert "Begins by 2026-03-01 12:05:00 UTC" in said


@pytest.mark.anyio
async def test_runs_are_narrowed_by_state_and_schedule(house):
    said = text_of((await house.http.get("/runs?state=open&schedule=hourly-load")).text)
    assert "running" in said
    assert "20260301T115930Z" in said
    assert "20260301T114500Z" not in said


@pytest.mark.anyio
async def test_every_time_that_is_shown_says_its_zone(house):
    for path in (
        "/",
        "/schedules",
        "/schedules/acme/tokyo-close",
        "/runs",
        "/runs/acme/nightly-report.20260301T103000Z",
    ):
        html = (await house.http.get(path)).text
        times = re.findall(r"<time[^>]*>([^<]+)</time>", html)
        assert times
        assert all(each.endswith(" UTC") for each in times)


@pytest.mark.anyio
async def test_b_o30_the_next_run_is_shown_with_its_zone_and_is_the_one_that_fires(tmp_path):
    """`36 11 * * *` in Prague on 14 July: 09:36 UTC in the API, 11:36 CEST beside it on the page."""
    midnight = datetime(2026, 7, 14, tzinfo=UTC)
    async with House(tmp_path, now=lambda: midnight) as house:
        house.happened(*scenes.schedule(midnight, "daily", "36 11 * * *", "Europe/Prague"))
        answer = (await house.http.get("/v1/tenants/acme/schedules/daily")).json()
        page = text_of((await house.http.get("/schedules")).text)
    assert answer["next"][0] == "2026-07-14T09:36:00Z"
    assert "2026-07-14 09:36:00 UTC 11:36:00 CEST" in page


@pytest.mark.anyio
async def test_nothing_that_was_given_to_us_becomes_markup(house):
    for path in ("/", "/runs", "/schedules/acme/nightly-report", "/runs/acme/nightly-report.20260301T103000Z"):
        html = (await house.http.get(path)).text
        assert scenes.SCRIPT not in html
        assert not re.search(r"<script(?! src=\"/static/)", html)
        assert not re.search(r"\s(style|on\w+)=", html)


@pytest.mark.anyio
async def test_what_is_not_there_is_said_on_a_page(house):
    for path, status, words in (
        ("/runs/acme/nothing.1", 404, "There is no run nothing.1 of acme."),
        ("/schedules/acme/nothing", 404, "There is no schedule acme/nothing."),
        ("/runs?state=<script>", 422, "/state"),
        ("/runs?cursor=zzz", 422, "/cursor"),
    ):
        response = await house.http.get(path)
        assert response.status_code == status
        assert words in text_of(response.text)
        assert "<script>" not in response.text


@pytest.mark.anyio
async def test_the_style_and_the_script_are_files_of_our_own(house):
    for path, kind in (("page.css", "text/css"), ("page.js", "text/javascript"), ("icon.svg", "image/svg+xml")):
        response = await house.http.get(f"/static/{path}")
        assert response.status_code == 200
        assert response.headers["content-type"].startswith(kind)
        assert response.headers["x-content-type-options"] == "nosniff"


@pytest.mark.anyio
async def test_an_empty_server_says_how_to_begin(tmp_path):
    async with House(tmp_path, now=lambda: NOON) as house:
        assert "There is no schedule yet. tidewheel apply -f FILE makes one." in text_of(
            (await house.http.get("/")).text
        )


@pytest.mark.parametrize(
    ("zone", "shown"),
    [
        ("Europe/London", "03:00:00 BST"), ("Asia/Tokyo", "11:00:00 JST"),
        ("America/Sao_Paulo", "2026-06-30 23:00:00 -03"),
        ("UTC", ""), (None, ""), ("No/Such", ""), ("../etc/passwd", ""),
    ],
)  # fmt: skip
def test_a_moment_is_shown_in_the_schedules_own_zone_with_its_date_where_that_differs(zone, shown):
    assert moments.local(datetime(2026, 7, 1, 2, tzinfo=UTC), zone) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0.25, "250 ms"), (2.44, "2.4 s"), (59, "59 s"), (3600, "1 h"), (5431, "1 h 30 min"), (90061, "1 d 1 h")],
)
def test_a_length_of_time_is_said_in_its_two_largest_units(seconds, shown):
    assert moments.span(timedelta(seconds=seconds)) == shown


def test_a_distance_says_its_direction():
    assert moments.distance(NOON + timedelta(minutes=3), NOON) == "in 3 min"
    assert moments.distance(NOON - timedelta(hours=2), NOON) == "2 h ago"
    assert moments.distance(NOON, NOON) == "now"


@pytest.mark.slow
def test_a_browser_shows_the_page_follows_what_happens_and_finds_nothing_to_complain_about(tmp_path: Path):
    now = datetime.now(UTC).replace(microsecond=0)
    with browsing(tmp_path) as (house, url, browser):
        house.happened(*scenes.night(now))
        page = browser.new_page()
        complaints = complaints_of(page)
        page.goto(f"{url}/runs?state=open")
        assert page.locator("tbody tr").count() == 2
        page.get_by_role("link", name="dead lettered").click()
        page.get_by_role("row").get_by_role("link").last.click()
        page.wait_for_url(f"{url}/runs/acme/nightly-report*")
        assert "<script>document.title = 'owned'</script>" in page.locator(".alarm pre").inner_text()
        assert page.title().startswith("nightly-report.")

        page.goto(f"{url}/schedules")
        assert page.locator("tbody tr").count() == 4
        house.happened(*scenes.schedule(now, "brand-new", "0 1 * * *", "UTC"))
        page.get_by_role("link", name="brand-new").wait_for(timeout=30_000)  # the page refreshed itself
        assert complaints == []


@pytest.mark.slow
def test_a_page_that_refreshes_itself_leaves_a_keyboard_where_it_was(tmp_path: Path):
    """Whoever went through its links with Tab was thrown back to the top every five seconds."""
    now = datetime.now(UTC).replace(microsecond=0)
    with browsing(tmp_path) as (house, url, browser):
        house.happened(*scenes.night(now))
        page = browser.new_page()
        page.goto(f"{url}/schedules")
        page.get_by_role("link", name="nightly-report").focus()
        house.happened(*scenes.schedule(now, "brand-new", "0 1 * * *", "UTC"))
        page.get_by_role("link", name="brand-new").wait_for(timeout=30_000)  # the page refreshed itself
        assert page.evaluate("document.activeElement.getAttribute('href')") == "/schedules/acme/nightly-report"


@pytest.mark.slow
def test_the_page_of_a_run_goes_on_while_its_log_is_open(tmp_path: Path):
    with browsing(tmp_path) as (house, url, browser):
        house.happened(RUN, begun())

        def write(text: str, first: int) -> None:
            assert httpx.post(f"{url}/v1/leases:log", json=wrote(text, first=first)).is_success
            house.read_logs()

        write("in the beginning", 0)
        page = browser.new_page()
        page.goto(f"{url}/runs/acme/{RUN.run_id}")
        page.get_by_text("in the beginning").wait_for()
        write("a little later", 1)
        page.get_by_text("a little later").wait_for(timeout=30_000)  # the page refreshed itself


@pytest.mark.slow
def test_the_page_works_without_javascript(tmp_path: Path):
    now = datetime.now(UTC).replace(microsecond=0)
    with browsing(tmp_path) as (house, url, browser):
        house.happened(*scenes.night(now))
        page = browser.new_context(java_script_enabled=False).new_page()
        page.goto(url)
        page.get_by_role("link", name="Schedules").click()
        page.get_by_role("link", name="nightly-report").click()
        assert page.locator("h1").inner_text().startswith("acme/nightly-report")
