"""Backfills: tried dry, started, watched, listed, cancelled."""

import json

from tests.sdk.fake_server import Response

BACKFILL = {
    "tenant": "acme", "schedule": "nightly", "backfill": "b-1", "state": "completed", "from": "2026-03-01T00:00:00Z",
    "to": "2026-03-08T00:00:00Z", "occurrences": 7, "decided": 7, "done": 1.0,
    "counts": {"created": 4, "reprocessed": 1, "left_out": {"succeeded": 2}, "ended": {"succeeded": 5}, "active": 0},
}  # fmt: skip
BACKFILLS = "/v1/tenants/acme/schedules/nightly/backfills"


def test_a_dry_run_of_a_backfill_is_said_in_words(tidewheel_, routes, requests):
    routes[("POST", BACKFILLS)] = Response(
        {
            **BACKFILL, "runs": 5, "created": {"paused": 4}, "reprocessed": {"timed_out": 1},
            "left_out": {"succeeded": 2}, "looked_at": 7, "complete": True, "shortest": "PT0.4S", "version": 3,
            "warnings": ["/from: nothing was decided before it"],
        }
    )  # fmt: skip
    code, out, _ = tidewheel_(
        "backfills", "start", "acme/nightly", "--from", "2026-03-01", "--to", "2026-03-08", "--reprocess", "failed",
        "--dry-run",
    )  # fmt: skip
    assert code == 0
    assert requests[-1].json == {
        "from": "2026-03-01T00:00:00Z", "to": "2026-03-08T00:00:00Z", "reprocess": "failed", "dry_run": True
    }  # fmt: skip
    for said in ("4 paused", "1 timed out", "2 succeeded", "warning: /from: nothing was decided before it"):
        assert said in out


def test_a_started_backfill_is_watched_to_its_end(tidewheel_, routes):
    started = {"backfill": "b-1", "occurrences": 7, "from": BACKFILL["from"], "to": BACKFILL["to"], "warnings": []}
    routes[("POST", BACKFILLS)] = Response(started, 201)
    routes[("GET", f"{BACKFILLS}/b-1")] = Response(BACKFILL)
    code, out, _ = tidewheel_("backfills", "start", "acme/nightly", "--from", "2026-03-01", "--watch")
    assert code == 0
    assert "b-1 of acme/nightly started: 7 occurrences in [2026-03-01 00:00:00Z, 2026-03-08 00:00:00Z)" in out
    assert "completed acme/nightly b-1; 5 succeeded; left out 2 succeeded" in out


def test_one_that_was_cancelled_ends_the_watch_with_1(tidewheel_, routes):
    routes[("GET", f"{BACKFILLS}/b-1")] = Response({**BACKFILL, "state": "cancelled"})
    assert tidewheel_("backfills", "watch", "acme/nightly", "b-1")[0] == 1


def test_backfills_are_listed_with_how_far_they_are(tidewheel_, routes):
    routes[("GET", "/v1/backfills")] = Response({"backfills": [{**BACKFILL, "done": 0.5}]})
    _, out, _ = tidewheel_("backfills", "list")
    assert out.splitlines()[1].split() == [
        "acme", "nightly", "b-1", "completed", "2026-03-01", "00:00:00Z", "2026-03-08", "00:00:00Z", "50%", "5", "2",
        "succeeded",
    ]  # fmt: skip
    routes[("GET", BACKFILLS)] = Response({"backfills": [BACKFILL]})
    _, out, _ = tidewheel_("backfills", "list", "acme/nightly", "--json")
    assert json.loads(out)["backfills"][0]["backfill"] == "b-1"


def test_a_cancelled_backfill_says_how_many_runs_are_open(tidewheel_, routes):
    note = "those of them that no worker has begun are cancelled, the others run to their end"
    body = {"backfill": "b-1", "state": "cancelling", "open_runs": 2, "note": note}
    routes[("POST", f"{BACKFILLS}/b-1:cancel")] = Response(body)
    code, out, _ = tidewheel_("backfills", "cancel", "acme/nightly", "b-1")
    assert (code, out.strip()) == (0, f"acme/nightly b-1 is cancelling, 2 runs are open: {note}")


def test_a_schedule_is_resumed_with_what_its_pause_has_skipped(tidewheel_, routes, requests):
    routes[("POST", "/v1/tenants/acme/schedules/nightly:resume")] = Response(
        {"version": 3, "backfill": {"backfill": "b-1", "occurrences": 7}}
    )
    _, out, _ = tidewheel_("schedules", "resume", "acme/nightly", "--backfill")
    assert requests[-1].json == {"by": "ann", "backfill": True}
    assert "resumed acme/nightly (version 3), backfill b-1 of 7 started" in out
