"""What people see of lists and things, and what machines get."""

import json

from tests.sdk.cli.answers import RUN, SCHEDULE
from tests.sdk.fake_server import Response

# --- lists and things ---


def test_a_list_without_a_tenant_shows_all_tenants(tidewheel_, routes, monkeypatch):
    monkeypatch.setenv("TIDEWHEEL_TENANT", "acme")
    routes["GET", "/v1/schedules"] = Response({"schedules": [SCHEDULE], "cursor": None})
    assert tidewheel_("schedules", "list") == (
        0,
        (
            "TENANT  NAME     STATE   TRIGGER    ZONE           NEXT                  LAST\n"
            "acme    nightly  active  0 2 * * *  Europe/London  2026-03-09 02:00:00Z  succeeded\n"
        ),
        "",
    )


def test_a_list_goes_on_at_its_cursor(tidewheel_, routes):
    routes["GET", "/v1/tenants/acme/runs?cursor=a&limit=1"] = Response({"runs": [RUN], "cursor": "b"})
    assert tidewheel_("runs", "list", "--tenant", "acme", "--cursor", "a", "--limit", "1") == (
        0,
        (
            "TENANT  RUN                       STATE      CAUSE     TIME                  TOOK   ATTEMPTS\n"
            "acme    nightly.20260308T020000Z  succeeded  schedule  2026-03-08 02:00:00Z  1m15s  1\n"
        ),
        "There is more: --cursor b\n",
    )


def test_json_is_the_apis_own(tidewheel_, routes):
    body = {"runs": [RUN], "cursor": "b", "as_of": "2026-03-08T02:05:00Z"}
    routes["GET", "/v1/runs"] = Response(body)
    code, out, err = tidewheel_("runs", "list", "--json")
    assert (code, json.loads(out), err) == (0, body, "")


def test_a_schedule_is_shown_with_its_definition(tidewheel_, routes):
    routes["GET", "/v1/tenants/default/schedules/nightly"] = Response({**SCHEDULE, "next": ["2026-03-09T02:00:00Z"]})
    assert tidewheel_("schedules", "show", "nightly") == (
        0,
        (
            "schedule      acme/nightly\n"
            "state         active\n"
            "version       3\n"
            "next          2026-03-09 02:00:00Z\n"
            "last run      nightly.20260308T020000Z\n"
            "last outcome  succeeded\n"
            "---\n"
            "trigger:\n"
            "  cron: 0 2 * * *\n"
            "  timezone: Europe/London\n"
        ),
        "",
    )


def test_what_a_freeze_holds_of_a_schedule_is_shown(tidewheel_, routes):
    held = {"pending": 2, "since": "2026-03-08T02:00:00Z", "until": "2026-03-08T05:00:00Z", "detail": "by freeze of q"}
    routes["GET", "/v1/tenants/default/schedules/nightly"] = Response({**SCHEDULE, "held": held})
    assert (
        "held          2 until 2026-03-08 05:00:00Z, by freeze of q\n" in tidewheel_("schedules", "show", "nightly")[1]
    )


def test_a_name_may_bring_its_tenant(tidewheel_, routes, requests):
    routes["GET", "/v1/tenants/acme/runs/nightly.m-1"] = Response(
        {**RUN, "error": {"type": "ValueError", "message": "no"}}
    )
    code, out, _ = tidewheel_("runs", "show", "acme/nightly.m-1")
    assert code == 0
    assert "error     ValueError: no\n" in out


def test_what_was_decided_is_explained_occurrence_by_occurrence(tidewheel_, routes):
    path = "/v1/tenants/default/schedules/nightly/occurrences?from=2026-03-08T00%3A00%3A00Z&limit=2"
    range_ = {"from": "2026-03-09T02:00:00Z", "to": "2026-03-12T02:00:00Z", "count": 3}
    created = {
        "nominal_time": "2026-03-08T02:00:00Z",
        "decision": "created",
        "reason": "schedule",
        "run_id": "nightly.1",
        "due_at": "2026-03-08T02:00:07Z",
        "version": 2,
        "rule": "cron 0 2 * * * UTC",
        "tz_version": "2026a",
    }
    skipped = {"decision": "skipped", "reason": "paused", "range": range_}
    kept = {"beyond_history": True, "kept_since": "2026-02-08T00:00:00Z"}
    routes["GET", path] = Response({"occurrences": [created, skipped], **kept})
    assert tidewheel_("schedules", "explain", "nightly", "--from", "2026-03-08", "--limit", "2")[1] == (
        "NOMINAL               LOCAL  DUE                   VERSION  DECISION  REASON    DETAIL\n"
        "2026-03-08 02:00:00Z         2026-03-08 02:00:07Z  2        created   schedule  nightly.1\n"
        "2026-03-09 02:00:00Z                                        skipped   paused    3 until 2026-03-12 02:00:00Z\n"
        "version 2: cron 0 2 * * * UTC, tz 2026a\n"
        "what was decided before 2026-02-08 00:00:00Z is not kept\n"
    )


def test_what_waits_for_other_schedules_says_for_what_since_when_and_until_when(tidewheel_, routes):
    path = "/v1/tenants/default/schedules/nightly/occurrences?from=2026-03-08T00%3A00%3A00Z&limit=2"
    waits = {
        "nominal_time": "2026-03-08T02:00:00Z", "decision": "deferred", "reason": "waiting", "version": 2,
        "since": "2026-03-08T02:00:00Z", "until": "2026-03-09T02:00:00Z", "detail": "load: 2026-03-08T01:00:00Z failed",
    }  # fmt: skip
    anyway = {
        "nominal_time": "2026-03-09T02:00:00Z", "decision": "created", "reason": "schedule", "version": 2,
        "run_id": "nightly.2", "detail": "runs anyway: load: 2026-03-09T01:00:00Z failed",
    }  # fmt: skip
    routes["GET", path] = Response({"occurrences": [waits, anyway]})
    told = tidewheel_("schedules", "explain", "nightly", "--from", "2026-03-08", "--limit", "2")[1]
    first, second = told.splitlines()[1:3]
    assert first.endswith(
        "deferred  waiting   load: 2026-03-08T01:00:00Z failed since 2026-03-08 02:00:00Z, until 2026-03-09 02:00:00Z"
        " at the latest"
    )
    assert second.endswith("created   schedule  nightly.2 runs anyway: load: 2026-03-09T01:00:00Z failed")


def test_a_run_that_has_to_begin_says_by_when_and_one_that_is_over_for_a_reason_says_for_which(tidewheel_, routes):
    path = "/v1/tenants/default/schedules/nightly/occurrences?from=2026-03-08T00%3A00%3A00Z&limit=2"
    over = {"decision": "created", "reason": "schedule", "run_id": "nightly.1", "state": "expired"}
    waits = {"decision": "created", "reason": "schedule", "run_id": "nightly.2", "state": "queued"}
    found = [over | {"outcome_reason": "start_within"}, waits | {"start_by_at": "2026-03-09T02:05:00Z"}]
    routes["GET", path] = Response({"occurrences": found})
    told = tidewheel_("schedules", "explain", "nightly", "--from", "2026-03-08", "--limit", "2")[1]
    assert [line.rstrip().partition("nightly.")[2] for line in told.splitlines()[1:3]] == [
        "1 expired: start_within", "2 begins by 2026-03-09 02:05:00Z, or expires",
    ]  # fmt: skip


# --- acting ---


def test_calendars_queues_and_tenants_are_listed_and_shown(tidewheel_, routes):
    changed = {"version": 2, "changed_at": "2026-03-08T07:00:00Z"}
    uk = {"tenant": "acme", "name": "uk", "definition": {"dates": ["2026-12-25", "2026-12-28"]}, **changed}
    big = {"name": "big", "definition": {"shards": 1, "rate": "10/s"}, **changed}
    routes["GET", "/v1/calendars"] = Response({"calendars": [uk]})
    routes["GET", "/v1/queues"] = Response({"queues": [big]})
    routes["GET", "/v1/tenants"] = Response({"tenants": [{"name": "acme", "schedules": 3, "version": 2}]})
    routes["GET", "/v1/queues/big"] = Response(big)
    assert tidewheel_("calendars", "list")[1] == (
        "TENANT  NAME  VERSION  DAYS  FIRST       LAST        CHANGED\n"
        "acme    uk    2        2     2026-12-25  2026-12-28  2026-03-08 07:00:00Z\n"
    )
    assert tidewheel_("queues", "list")[1] == (
        "NAME  VERSION  SHARDS  RATE  STATE   CHANGED\nbig   2        1       10/s  active  2026-03-08 07:00:00Z\n"
    )
    assert tidewheel_("tenants", "list")[1] == "NAME  SCHEDULES  VERSION\nacme  3          2\n"
    assert tidewheel_("queues", "show", "big")[1] == (
        "queue    big\nversion  2\nchanged  2026-03-08 07:00:00Z\n---\nshards: 1\nrate: 10/s\n"
    )


# --- what is to come ---


def test_one_run_of_one_schedule_is_said_so(tidewheel_, routes):
    span = {"from": "2026-03-01T12:00:00Z", "to": "2026-03-03T12:00:00Z"}
    routes["GET", "/v1/forecast?days=2"] = Response({**span, "schedules": 1, "occurrences": 1})
    said = tidewheel_("forecast", "--days", "2")[1].splitlines()[0]
    assert said == "1 run of 1 schedule, 2026-03-01 12:00:00Z to 2026-03-03 12:00:00Z"


def test_a_forecast_is_shown_with_its_crowded_minutes_queues_and_days(tidewheel_, routes):
    busiest = {"at": "2026-03-02T02:00:00Z", "count": 41}
    routes["GET", "/v1/forecast?days=2&queue=etl"] = Response(
        {
            "from": "2026-03-01T12:00:00Z",
            "to": "2026-03-03T12:00:00Z",
            "schedules": 42,
            "paused": 1,
            "occurrences": 84,
            "crowded": [{**busiest, "of": [{"queue": "etl", "tenant": "acme", "count": 41}]}],
            "queues": [{"queue": "etl", "tenant": "acme", "schedules": 42, "occurrences": 84, "busiest": busiest}],
            "hours": [
                {"at": "2026-03-02T02:00:00Z", "count": 42, "busiest": 41},
                {"at": "2026-03-03T02:00:00Z", "count": 42, "busiest": 40},
            ],
            "not_counted_whole": {"schedules": 1, "first": ["acme/seconds"]},
        }
    )
    assert tidewheel_("forecast", "--days", "2", "--queue", "etl") == (
        0,
        (
            "84 runs of 42 schedules, 2026-03-01 12:00:00Z to 2026-03-03 12:00:00Z, 1 more are paused\n"
            "CROWDED               RUNS  OF\n"
            "2026-03-02 02:00:00Z  41    41 etl (acme)\n"
            "QUEUE  TENANT  SCHEDULES  RUNS  BUSIEST               RUNS\n"
            "etl    acme    42         84    2026-03-02 02:00:00Z  41\n"
            "DAY         RUNS  BUSIEST MINUTE\n"
            "2026-03-02  42    41              ########################################\n"
            "2026-03-03  42    40              ########################################\n"
            "1 schedules are not counted to the end, first acme/seconds\n"
        ),
        "",
    )
