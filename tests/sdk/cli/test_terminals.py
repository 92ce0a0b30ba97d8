"""What others wrote does nothing to the terminal of who reads it."""

import json

from tests.sdk.cli.answers import LINES, LOGS, RUN, page_of
from tests.sdk.fake_server import Response

HOSTILE = "\x1b]0;owned\x07\x9b2Jone\ntwo\u202e"
WRITTEN_OUT = "\\x1b]0;owned\\x07\\x9b2Jone\\ntwo\\u202e"


def test_what_others_wrote_does_nothing_to_a_terminal(tidewheel_, routes):
    """The message of an error is whatever a task raised, and who reads it is somebody else."""
    attempt = {"attempt": 1, "state": "failed", "worker": "w", "error": {"type": "E", "message": HOSTILE}}
    routes["GET", "/v1/tenants/acme/runs/nightly.m-1"] = Response(
        RUN | {"error": attempt["error"], "attempts": [attempt], "reason": "x\x1b[31m"}
    )
    _, out, _ = tidewheel_("runs", "show", "acme/nightly.m-1")
    assert f"E: {WRITTEN_OUT}" in out  # in the table: a row is a line
    assert "error     E: \\x1b]0;owned\\x07\\x9b2Jone\n          two\\u202e\n" in out
    assert "x\\x1b[31m" in out
    assert not any(each in out for each in "\x1b\x07\x9b\u202e")


def test_json_escapes_what_does_something_to_a_terminal_and_means_the_same(tidewheel_, routes):
    routes["GET", "/v1/tenants/acme/runs/nightly.m-1"] = Response(RUN | {"reason": HOSTILE})
    _, out, _ = tidewheel_("runs", "show", "acme/nightly.m-1", "--json")
    assert json.loads(out)["reason"] == HOSTILE
    assert not any(each in out for each in "\x1b\x07\x9b\u202e")


def test_a_refusal_does_nothing_to_a_terminal(tidewheel_, routes):
    routes["GET", "/v1/tenants/acme/runs/x"] = Response({"title": "Bad", "detail": HOSTILE}, 400)
    assert tidewheel_("runs", "show", "acme/x") == (
        1, "", "error: \\x1b]0;owned\\x07\\x9b2Jone\ntwo\\u202e\n"
    )  # fmt: skip


def test_logs_and_events_do_nothing_to_a_terminal(tidewheel_, routes):
    routes["GET", LOGS] = page_of([LINES[0] | {"text": HOSTILE}], "a", complete=True)
    _, out, _ = tidewheel_("runs", "logs", "acme/nightly.m-1")
    assert out.endswith(f"  {WRITTEN_OUT}\n")
    body = {"type": "tidewheel.schedule.paused.v1", "subject": "acme/x", "data": {"note": HOSTILE}}
    end = 'event: end\ndata: {"reason": "reached"}\n\n'
    routes["GET", "/v1/events"] = Response(f"id: a\nevent: t\ndata: {json.dumps(body)}\n\n{end}".encode())
    _, out, _ = tidewheel_("events")
    assert out.endswith(f"note {WRITTEN_OUT}\n")
