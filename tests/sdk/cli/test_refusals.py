"""How a command ends that could not do what it was asked."""

import pytest

from tests.sdk.fake_server import Response

# --- endings ---


def test_what_the_server_refuses_is_said_with_each_fault(tidewheel_, routes):
    fault = {"pointer": "/limit", "code": "range", "message": "is too large", "remedy": "ask for less"}
    routes["GET", "/v1/jobs"] = Response({"title": "Bad Request", "faults": [fault]}, 400)
    assert tidewheel_("jobs", "list") == (1, "", "error: Bad Request\n  /limit: is too large (ask for less)\n")


def test_without_a_server_the_address_is_named_and_how_to_start_one(tidewheel_):
    code, out, err = tidewheel_("runs", "list", "--url", "http://127.0.0.1:9")
    assert (code, out) == (3, "")
    assert err.startswith("error: http://127.0.0.1:9 cannot be reached: ")
    assert "`tidewheel dev` starts one here" in err


def test_wrong_usage_is_another_thing_than_a_refusal(tidewheel_):
    assert tidewheel_("runs", "list", "--from", "yesterday")[0] == 2
    assert tidewheel_("runs", "list", "--from", "2026-03-08T02:00")[0] == 2
    assert tidewheel_("schedules", "pause")[0] == 2
    assert tidewheel_("frobnicate")[0] == 2


def test_a_command_waits_for_what_the_command_before_wrote(tidewheel_, routes, requests):
    routes["POST", "/v1/tenants/default/schedules/a:pause"] = Response({}, 200, {"Tidewheel-Position": "scheduler-0-7"})
    routes["GET", "/v1/jobs"] = Response({"jobs": []})
    tidewheel_("schedules", "pause", "a")
    tidewheel_("jobs", "list")
    assert requests[1].headers["tidewheel-at-least"] == "scheduler-0-7"


# --- workers ---


@pytest.mark.parametrize(
    "words",
    [
        "admin acls --json",
    ],
)
def test_what_a_later_version_will_do_is_refused_by_name(tidewheel_, words):
    code, _, err = tidewheel_(*words.split())
    assert (code, "not_supported: this version cannot do that yet" in err) == (2, True)
