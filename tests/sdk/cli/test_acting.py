"""What a command does to one thing or to several, and what it says of each."""

import pytest

from tests.sdk.fake_server import Response


def test_pausing_all_needs_a_tenant_and_pauses_each_of_its_schedules(tidewheel_, routes, requests):
    listing = "/v1/tenants/acme/schedules?state=active&limit=500"
    routes["GET", listing] = Response({"schedules": [{"name": "a"}, {"name": "b"}], "cursor": None})
    for name in "ab":
        routes["POST", f"/v1/tenants/acme/schedules/{name}:pause"] = Response({"version": 4})
    assert tidewheel_("schedules", "pause", "--tenant", "acme", "--all") == (
        0,
        "paused acme/a (version 4)\npaused acme/b (version 4)\n",
        "",
    )
    assert [request.json for request in requests[1:]] == [{"by": "ann"}, {"by": "ann"}]
    assert tidewheel_("schedules", "pause", "--all")[0] == 2


def test_one_refusal_keeps_no_other_from_being_done(tidewheel_, routes):
    routes["POST", "/v1/tenants/default/schedules/b:resume"] = Response({})
    assert tidewheel_("schedules", "resume", "a", "b") == (
        1,
        "refused default/a: no such thing\nresumed default/b\n",
        "",
    )


def test_a_job_that_is_run_by_itself_says_which_run_it_has(tidewheel_, routes, requests):
    routes["POST", "/v1/tenants/acme/jobs/mail:run"] = Response({"run_id": "_mail.m-12"}, 201)
    assert tidewheel_("jobs", "run", "acme/mail", "--payload", '{"day": "x"}', "--overlap", "skip") == (
        0, "runs acme/mail: _mail.m-12\n", ""
    )  # fmt: skip
    assert requests[0].json == {"payload": {"day": "x"}, "overlap": "skip"}
    assert tidewheel_("jobs", "run", "acme/mail", "--payload", "[1]")[0] == 2


def test_a_trigger_says_which_run_it_made(tidewheel_, routes, requests):
    routes["POST", "/v1/tenants/default/schedules/a:trigger"] = Response({"run_id": "a.m-12"})
    assert tidewheel_("schedules", "trigger", "a", "--payload", '{"day": "x"}') == (
        0,
        "triggered default/a: a.m-12\n",
        "",
    )
    assert requests[0].json == {"payload": {"day": "x"}}


def test_one_occurrence_is_named_by_its_instant(tidewheel_, routes, requests):
    routes["POST", "/v1/tenants/acme/schedules/a:skip"] = Response({"nominal_time": "2026-03-08T02:00:00Z"})
    assert tidewheel_("schedules", "skip", "acme/a", "--at", "2026-03-08T03:00+01:00", "--note", "holiday") == (
        0,
        "acme/a: 2026-03-08 02:00:00Z will have no run\n",
        "",
    )
    assert requests[0].json == {"nominal_time": "2026-03-08T02:00:00Z", "note": "holiday"}
    assert tidewheel_("schedules", "skip", "acme/a")[0] == 2


def test_a_cancel_says_what_was_true(tidewheel_, routes):
    routes["POST", "/v1/tenants/default/runs/a.1:cancel"] = Response({"state": "already_finished"})
    assert tidewheel_("runs", "cancel", "a.1") == (0, "default/a.1: already finished\n", "")


def test_deleting_can_cancel_open_runs(tidewheel_, routes):
    routes["DELETE", "/v1/tenants/default/schedules/a?runs=cancel&by=ann"] = Response({})
    assert tidewheel_("schedules", "delete", "a", "--runs", "cancel") == (0, "deleted default/a\n", "")


@pytest.mark.parametrize(
    ("group", "name", "path", "said"),
    [
        ("jobs", "j", "/v1/tenants/default/jobs/j", "default/j"),
        ("calendars", "acme/uk", "/v1/tenants/acme/calendars/uk", "acme/uk"),
        ("queues", "q", "/v1/queues/q", "q"),
        ("tenants", "acme", "/v1/tenants/acme", "acme"),
    ],
)
def test_who_deletes_and_why_stands_among_the_changes(tidewheel_, routes, group, name, path, said):
    routes["DELETE", f"{path}?note=moved&by=bob"] = Response({})
    assert tidewheel_(group, "delete", name, "--note", "moved", "--by", "bob") == (0, f"deleted {said}\n", "")
