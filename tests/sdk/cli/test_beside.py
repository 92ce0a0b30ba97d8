"""What stands beside a schedule in its files goes along when it is previewed or planned."""

from tests.sdk.fake_server import Response

FILES = """\
kind: Schedule
tenant: acme
name: nightly
trigger: {cron: "0 2 * * *", exclude: {calendars: [uk, de, [x]]}}
job: send
---
kind: Calendar
tenant: acme
name: uk
dates: [2026-12-25]
---
kind: Calendar
name: de
dates: [2026-10-03]
---
kind: Calendar
tenant: acme
name: fr
dates: [2026-07-14]
---
kind: Job
tenant: acme
name: send
queue: mail
---
kind: Tenant
name: acme
---
kind: Queue
name: mail
freezes: [{cron: "0 1 * * 6", duration: PT6H}]
---
kind: Queue
name: other
rate: 5/s
"""
WITH_IT = [
    {"dates": ["2026-12-25"], "kind": "Calendar", "name": "uk"},
    {"queue": "mail", "kind": "Job", "name": "send"},
    {"kind": "Tenant", "name": "acme"},
    {"freezes": [{"cron": "0 1 * * 6", "duration": "PT6H"}], "kind": "Queue", "name": "mail"},
]
WARNING = "/trigger/exclude/calendars: there is no calendar 'de' yet; until there is, it excludes nothing"


def test_a_preview_takes_the_calendars_of_its_files_along_and_tells_its_warnings(tidewheel_, routes, requests):
    """`de` is the calendar of another tenant: of the one that the command line names."""
    routes["POST", "/v1/tenants/acme/preview"] = Response({"warnings": [WARNING]})
    code, out, _ = tidewheel_("preview", "-f", "-", stdin=FILES)
    assert (code, out.splitlines()[:2]) == (0, ["acme/nightly", f"warning: {WARNING}"])
    assert requests[0].json["beside"] == WITH_IT


def test_a_plan_says_what_a_calendar_changes_for_a_schedule_that_stays(tidewheel_, routes):
    difference = {"added": [], "removed": ["2026-12-25T02:00:00Z"], "moved": [], "unchanged": 30}
    routes["POST", "/v1/tenants/default/preview"] = Response({"change": "unchanged", "difference": difference})
    out = tidewheel_("apply", "-f", "-", "--plan", stdin="kind: Schedule\nname: a\n")[1].splitlines()
    assert out[:3] == [
        "unchanged Schedule default/a",
        "  occurrences: 0 more, 1 fewer, 30 the same",
        "  - 2026-12-25 02:00:00Z",
    ]


def test_a_plan_takes_them_along_and_tells_warnings_as_an_apply_does(tidewheel_, routes, requests):
    routes["POST", "/v1/tenants/acme/preview"] = Response({"change": "created", "warnings": [WARNING]})
    routes["POST", "/v1/tenants/default/preview"] = Response({"change": "unchanged"})
    out = tidewheel_("apply", "-f", "-", "--plan", stdin=FILES)[1].splitlines()
    line = out.index("created Schedule acme/nightly")
    assert out[line + 1] == f"  warning: {WARNING}"
    (asked,) = [request.json for request in requests if request.json["kind"] == "Schedule"]
    assert asked["beside"] == WITH_IT
    assert all("beside" not in request.json for request in requests if request.json["kind"] != "Schedule")
