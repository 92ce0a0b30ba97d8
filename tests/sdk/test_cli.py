"""The command line: what people see, what machines get, and how it ends."""

import json
from datetime import datetime
from importlib.metadata import EntryPoint, EntryPoints
from typing import Any

import click
import pytest
from click.testing import CliRunner

import tidewheel.cli
from tests.sdk.fake_server import Response, in_thread
from tidewheel.cli import main

RUN = {
    "tenant": "acme",
    "run_id": "nightly.20260308T020000Z",
    "schedule": "nightly",
    "state": "succeeded",
    "cause": "schedule",
    "nominal_time": "2026-03-08T02:00:00Z",
    "created_at": "2026-03-08T02:00:00.012Z",
    "started_at": "2026-03-08T02:00:00.100Z",
    "finished_at": "2026-03-08T02:01:15.100Z",
    "attempt_count": 1,
}
SCHEDULE = {
    "tenant": "acme",
    "name": "nightly",
    "state": "active",
    "version": 3,
    "definition": {"trigger": {"cron": "0 2 * * *", "timezone": "Europe/London"}},
    "timezone": "Europe/London",
    "next_run_at": "2026-03-09T02:00:00Z",
    "last_run": {"run_id": "nightly.20260308T020000Z", "outcome": "succeeded"},
}


@pytest.fixture
def requests():
    return []


@pytest.fixture
def routes():
    """(method, path) → answer, or answers one after another; anything else is not found."""
    return {}


@pytest.fixture
def tidewheel_(requests, routes, monkeypatch, tmp_path):
    """Call the command against a server; returns exit code, standard output, standard error."""

    def handle(request):
        requests.append(request)
        missing = Response({"title": "Not Found", "detail": "no such thing"}, 404)
        whole, path = (request.method, request.path), (request.method, request.path.partition("?")[0])
        answer = routes.get(whole) or routes.get(path, missing)
        return answer.pop(0) if isinstance(answer, list) else answer

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("LOGNAME", "ann")
    monkeypatch.delenv("TIDEWHEEL_TENANT", raising=False)
    with in_thread(handle) as url:
        monkeypatch.setenv("TIDEWHEEL_URL", url)

        def call(*arguments, stdin=None):
            result = CliRunner().invoke(main, arguments, input=stdin)
            assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
            return result.exit_code, result.stdout, result.stderr

        yield call


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


# --- acting ---


def test_pausing_all_needs_a_tenant_and_pauses_each_of_its_schedules(tidewheel_, routes):
    listing = "/v1/tenants/acme/schedules?state=active&limit=500"
    routes["GET", listing] = Response({"schedules": [{"name": "a"}, {"name": "b"}], "cursor": None})
    for name in "ab":
        routes["POST", f"/v1/tenants/acme/schedules/{name}:pause"] = Response({"version": 4})
    assert tidewheel_("schedules", "pause", "--tenant", "acme", "--all") == (
        0,
        "paused acme/a (version 4)\npaused acme/b (version 4)\n",
        "",
    )
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
    routes["DELETE", "/v1/tenants/default/schedules/a?runs=cancel"] = Response({})
    routes["DELETE", "/v1/tenants/default/jobs/j"] = Response({})
    routes["DELETE", "/v1/tenants/acme/calendars/uk"] = Response({})
    routes["DELETE", "/v1/queues/q"] = Response({})
    routes["DELETE", "/v1/tenants/acme"] = Response({})
    assert tidewheel_("schedules", "delete", "a", "--runs", "cancel") == (0, "deleted default/a\n", "")
    assert tidewheel_("jobs", "delete", "j") == (0, "deleted default/j\n", "")
    assert tidewheel_("calendars", "delete", "acme/uk") == (0, "deleted acme/uk\n", "")
    assert tidewheel_("queues", "delete", "q") == (0, "deleted q\n", "")
    assert tidewheel_("tenants", "delete", "acme") == (0, "deleted acme\n", "")


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


def test_a_queue_is_paused_and_resumed_by_its_definition_and_the_rest_of_it_stays(tidewheel_, routes, requests):
    big = {"name": "big", "version": 2, "definition": {"shards": 1, "rate": "10/s", "freezes": []}}
    routes["GET", "/v1/queues/big"] = Response(big)
    routes["PUT", "/v1/queues/big"] = Response({"name": "big", "version": 3})
    assert tidewheel_("queues", "pause", "big", "--note", "new disks") == (0, "paused big, version 3\n", "")
    asked = requests[-1]
    assert asked.json == {"shards": 1, "rate": "10/s", "freezes": [], "paused": {"note": "new disks"}}
    assert asked.headers["if-match"] == "2"
    big["definition"] = asked.json
    routes["GET", "/v1/queues/big"] = Response(big)
    assert tidewheel_("queues", "resume", "big") == (0, "resumed big, version 3\n", "")
    assert requests[-1].json == {"shards": 1, "rate": "10/s", "freezes": []}


def test_who_pauses_a_queue_and_why_is_said_beside_its_definition(tidewheel_, routes, requests):
    routes["GET", "/v1/queues/big"] = Response({"name": "big", "version": 2, "definition": {}})
    routes["PUT", "/v1/queues/big"] = Response({"name": "big", "version": 3})
    assert tidewheel_("queues", "pause", "big", "--note", "new disks")[0] == 0
    assert requests[-1].path == "/v1/queues/big?note=new+disks&by=ann"
    assert tidewheel_("queues", "resume", "big", "--by", "bob")[0] == 0
    assert requests[-1].path == "/v1/queues/big?by=bob"


def test_the_changes_of_a_queue_say_who_when_why_and_what(tidewheel_, routes):
    routes["GET", "/v1/queues/big/changes"] = Response(
        {
            "changes": [
                {
                    "version": 3,
                    "changed_at": "2026-03-08T02:00:00Z",
                    "by": "ann",
                    "note": "new disks",
                    "fields": ["/paused"],
                },
                {"version": 2, "changed_at": "2026-03-07T02:00:00Z", "source": "tidewheel/api", "definition": {}},
            ]
        }
    )
    told = tidewheel_("queues", "changes", "big")[1].splitlines()
    assert told == [
        "VERSION  CHANGED               BY             NOTE       FIELDS",
        "3        2026-03-08 02:00:00Z  ann            new disks  /paused",
        "2        2026-03-07 02:00:00Z  tidewheel/api",
    ]


def test_changes_of_what_a_tenant_owns_are_asked_for_by_its_name(tidewheel_, routes):
    routes["GET", "/v1/tenants/acme/jobs/report/changes"] = Response({"changes": []})
    routes["GET", "/v1/tenants/acme/changes"] = Response({"changes": []})
    assert tidewheel_("jobs", "changes", "acme/report")[0] == 0
    assert tidewheel_("tenants", "changes", "acme")[0] == 0


def test_a_queue_without_a_definition_is_paused_by_its_first_one(tidewheel_, routes, requests):
    routes["GET", "/v1/queues/new"] = Response({"title": "not found"}, 404)
    routes["PUT", "/v1/queues/new"] = Response({"name": "new", "version": 1}, 201)
    assert tidewheel_("queues", "pause", "new") == (0, "paused new, version 1\n", "")
    assert (requests[-1].json, requests[-1].headers["if-match"]) == ({"paused": {"note": ""}}, "0")


# --- files ---


class Frozen(datetime):
    """It is the second of March 2026."""

    @classmethod
    def now(cls, tz=None):
        return datetime(2026, 3, 2, tzinfo=tz)


FILE = """\
kind: Schedule
name: nightly
trigger: {cron: "0 2 * * *"}
job: report
---
kind: Job
tenant: acme
name: report
target: {type: task, name: reports.nightly}
---
kind: Schedule
name: broken
trigger: {cron: "61 * * * *"}
---
kind: Tenant
name: acme
"""


def test_apply_reports_on_each_document_and_fails_when_one_was_refused(tidewheel_, routes, requests):
    told = {
        "version": 1,
        "words": "At 02:00, every day.",
        "next": ["2026-03-09T02:00:00Z"],
        "warnings": ["job report is unknown"],
    }
    routes["PUT", "/v1/tenants/default/schedules/nightly"] = Response(told, 201)
    routes["PUT", "/v1/tenants/acme"] = Response({"version": 4}, 201)
    routes["PUT", "/v1/tenants/acme/jobs/report"] = Response({"version": 2, "changed": False})
    faults = [{"pointer": "/trigger/cron", "code": "cron", "message": "61 is no minute", "remedy": "write 0-59"}]
    routes["PUT", "/v1/tenants/default/schedules/broken"] = Response({"detail": "one fault", "faults": faults}, 422)
    assert tidewheel_("apply", "-f", "-", stdin=FILE) == (
        1,
        (
            "created Tenant acme (version 4)\n"
            "unchanged Job acme/report (version 2)\n"
            "created Schedule default/nightly (version 1)  At 02:00, every day.; next 2026-03-09 02:00:00Z\n"
            "  warning: job report is unknown\n"
            "refused Schedule default/broken  -:3 (line 11)\n"
            "  /trigger/cron: 61 is no minute (write 0-59)\n"
            "2 created, 1 refused, 1 unchanged\n"
        ),
        "",
    )
    assert [request.json for request in requests[:2]] == [{}, {"target": {"type": "task", "name": "reports.nightly"}}]


def test_a_second_document_for_the_same_thing_is_refused(tidewheel_, routes):
    routes["PUT", "/v1/tenants/default/jobs/a"] = Response({}, 201)
    code, out, _ = tidewheel_(
        "apply", "-f", "-", stdin="kind: Job\nname: a\n---\nkind: Job\nname: a\ntenant: default\n"
    )
    assert (code, out.splitlines()) == (
        1,
        [
            "created Job default/a",
            "refused Job default/a  -:2 (line 4)",
            "  /: stands at -:1 (line 1) already",
            "1 created, 1 refused",
        ],
    )


def test_what_became_of_many_documents_is_said_in_their_order(tidewheel_, routes):
    names = [f"job-{number:02}" for number in range(30)]
    for name in names:
        routes["PUT", f"/v1/tenants/default/jobs/{name}"] = Response({}, 201)
    text = "---\n".join(f"kind: Job\nname: {name}\n" for name in names)
    out = tidewheel_("apply", "-f", "-", stdin=text)[1]
    assert out.splitlines() == [*(f"created Job default/{name}" for name in names), "30 created"]


def test_apply_reads_folders(tidewheel_, routes, tmp_path):
    (tmp_path / "a.yaml").write_text("kind: Job\nname: a\n")
    routes["PUT", "/v1/tenants/default/jobs/a"] = Response({}, 201)
    assert tidewheel_("apply", "-f", str(tmp_path))[1] == "created Job default/a\n1 created\n"


ONE = "kind: Schedule\nname: a\ntrigger: {}\n"


def test_a_plan_says_what_would_change_and_writes_nothing(tidewheel_, routes, requests, monkeypatch):
    difference = {
        "to": "2026-04-02T00:00:00Z",
        "added": ["2026-03-09T03:00:00Z", "2026-03-11T09:00:00Z"],
        "removed": ["2026-03-09T02:00:00Z", "2026-03-10T02:00:00Z"],
        "moved": [{"from": "2026-03-09T02:00:00Z", "to": "2026-03-09T03:00:00Z"}],
        "unchanged": 20,
    }
    load = {
        "queue": "etl",
        "busiest_before": {"at": "2026-03-03T03:00:00Z", "count": 41},
        "busiest_after": {"at": "2026-03-03T03:00:00Z", "count": 42},
        "crowded": [{"at": "2026-03-03T03:00:00Z", "before": 41, "after": 42}],
    }
    answer = {
        "change": "updated",
        "fields": ["/trigger/cron"],
        "words": "At 03:00",
        "difference": difference,
        "dependants": [
            {"schedule": "report", "mode": "interval", "condition": "succeeded"},
            {"schedule": "alarm", "mode": "run", "condition": "failed"},
        ],
        "load": load,
    }
    monkeypatch.setattr("tidewheel.cli.plan.datetime", Frozen)
    path = "/v1/tenants/default/preview?from=2026-03-02T00%3A00%3A00Z&to=2026-04-02T00%3A00%3A00Z&limit=1000&load=true"
    routes["POST", path] = Response(answer)
    assert tidewheel_("apply", "-f", "-", "--plan", stdin=ONE) == (
        4,
        (
            "updated Schedule default/a  At 03:00\n"
            "  changes /trigger/cron\n"
            "  occurrences: 1 more, 1 fewer, 1 moved, 20 the same, until 2026-04-02 00:00:00Z\n"
            "  > 2026-03-09 02:00:00Z moves to 2026-03-09 03:00:00Z\n"
            "  - 2026-03-10 02:00:00Z\n"
            "  + 2026-03-11 09:00:00Z\n"
            "  touches report, which waits for it\n"
            "  touches alarm, which follows its failed runs\n"
            "  busiest minute of queue etl: 2026-03-03 03:00:00Z, 42 runs, was 41 runs\n"
            "  meets 41 others at 2026-03-03 03:00:00Z\n"
            "1 updated\n"
        ),
        "",
    )
    assert [request.method for request in requests] == ["POST"]
    routes["POST", path] = Response({"change": "unchanged"})
    assert tidewheel_("apply", "-f", "-", "--plan", stdin=ONE)[:2] == (
        0,
        "unchanged Schedule default/a\n1 unchanged\n",
    )
    routes["POST", path] = Response({"detail": "no"}, 422)
    assert tidewheel_("apply", "-f", "-", "--plan", stdin=ONE)[0] == 1


def test_pruning_deletes_what_has_the_label_and_stands_in_no_file(tidewheel_, routes, requests, monkeypatch):
    monkeypatch.setattr("tidewheel.cli.plan.datetime", Frozen)
    path = "/v1/tenants/default/schedules"
    routes["PUT", f"{path}/a"] = Response({"changed": False})
    routes["GET", f"{path}?label=team%3Dfinance&limit=500"] = Response({"schedules": [{"name": "a"}, {"name": "b"}]})
    routes["DELETE", f"{path}/b"] = Response({})
    assert tidewheel_("apply", "-f", "-", "--prune", "--label", "team=finance", stdin=ONE)[:2] == (
        0,
        "unchanged Schedule default/a\ndeleted Schedule default/b\n1 deleted, 1 unchanged\n",
    )
    waits = {"schedule": "report", "mode": "interval", "condition": "succeeded"}
    routes["GET", f"{path}/b"] = Response({"dependants": [waits] * 7})
    asked = "from=2026-03-02T00%3A00%3A00Z&to=2026-04-02T00%3A00%3A00Z&limit=1000&load=true"
    routes["POST", f"/v1/tenants/default/preview?{asked}"] = Response({"change": "unchanged"})
    planned = tidewheel_("apply", "-f", "-", "--plan", "--prune", "--label", "team=finance", stdin=ONE)[1]
    told = planned[planned.index("deleted") :].splitlines()
    assert told[:2] == ["deleted Schedule default/b", "  touches report, which waits for it"]
    assert told[6] == "  touches 2 more"
    routes["PUT", f"{path}/a"] = Response({"detail": "no"}, 422)
    assert "deleted" not in tidewheel_("apply", "-f", "-", "--prune", "--label", "team=finance", stdin=ONE)[1]
    assert [request.method for request in requests].count("DELETE") == 1


@pytest.mark.parametrize("arguments", [("--prune",), ("--label", "team=finance")])
def test_pruning_needs_to_be_told_what_it_may_delete(tidewheel_, arguments):
    assert tidewheel_("apply", "-f", "-", *arguments)[0] == 2


def test_a_preview_shows_instants_and_what_clock_changes_do(tidewheel_, routes, tmp_path):
    (tmp_path / "f.yaml").write_text("kind: Schedule\nname: a\ntrigger: {}\n")
    occurrence = {"nominal_time": "2026-03-29T01:00:00Z", "local_time": "2026-03-29T02:00:00+01:00", "note": "shifted"}
    change = {
        "at": "2026-03-29T01:00:00Z",
        "kind": "gap",
        "from_local": "2026-03-29T01:00:00",
        "to_local": "2026-03-29T02:00:00",
        "effect": "01:30 moved",
    }
    difference = {"added": ["2026-03-29T01:00:00Z"], "removed": [], "unchanged": 2}
    skipped = [
        {"nominal_time": "2026-03-29T02:00:00Z", "reason": "excluded", "detail": "by dates"},
        {"local_time": "2026-03-29T02:30:00", "reason": "gap"},
    ]
    untouched = {**change, "touches": False}
    answer = {"occurrences": [occurrence], "skipped": skipped, "dst": [change, untouched], "difference": difference}
    routes["POST", "/v1/tenants/default/preview?limit=1"] = Response(answer)
    assert tidewheel_("preview", "-f", str(tmp_path / "f.yaml"), "--limit", "1") == (
        0,
        (
            "default/a\n"
            "NOMINAL               LOCAL                      NOTE\n"
            "2026-03-29 01:00:00Z  2026-03-29T02:00:00+01:00  shifted\n"
            "no run at 2026-03-29 02:00:00Z: excluded by dates\n"
            "no run at 2026-03-29T02:30:00 local time: gap\n"
            "gap at 2026-03-29 01:00:00Z, 2026-03-29T01:00:00 to 2026-03-29T02:00:00: 01:30 moved\n"
            "compared with what is in force: 1 more, 0 fewer, 2 the same\n"
        ),
        "",
    )


def test_a_crontab_becomes_a_file_that_apply_takes(tidewheel_, routes, tmp_path):
    (tmp_path / "tab").write_text("@daily a\n@reboot b\n")
    target = tmp_path / "tab.yaml"
    code, out, err = tidewheel_("import", "crontab", str(tmp_path / "tab"), "--tenant", "acme", "-o", str(target))
    assert (code, out, err.splitlines()[-1]) == (0, "", "1 schedules, 1 lines left out")
    routes["PUT", "/v1/tenants/acme/schedules/tab-a"] = Response({}, 201)
    assert tidewheel_("apply", "-f", str(target))[:2] == (0, "created Schedule acme/tab-a\n1 created\n")


def test_a_crontab_that_cron_cannot_read_fails_and_gives_what_is_left(tidewheel_):
    code, out, err = tidewheel_("import", "crontab", "-", stdin="0 0 * * * a\nnonsense\n")
    assert (code, out.count("kind: Schedule")) == (1, 1)
    assert err == "-:2: left out: is neither an entry nor a setting: 'nonsense'\n1 schedules, 1 lines left out\n"


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


def test_workers_are_listed_and_shown_with_what_they_have_in_hand(tidewheel_, routes):
    attempt = {"tenant": "acme", "run_id": "report.1", "attempt": 2, "started_at": "2026-03-01T00:00:02Z"}
    w1 = {
        "worker": "w1", "incarnation": "ab12", "queue": "default", "shard": 0, "state": "present", "draining": False,
        "tasks": ["mail", "reports.nightly"], "slots_total": 8, "slots_used": 2, "slots_free": 5, "stuck": 1,
        "transport": "kafka", "client": "tidewheel/0.1.0", "heard_at": "2026-03-01T00:00:03Z", "attempts": [attempt],
    }  # fmt: skip
    w2 = {
        "worker": "w2", "incarnation": "cd34", "queue": "default", "shard": 0, "state": "draining", "draining": True,
        "tasks": ["mail"], "slots_used": 0, "stuck": 0, "heard_at": "2026-03-01T00:00:03Z", "attempts": [],
    }  # fmt: skip
    routes["GET", "/v1/workers?queue=default"] = Response({"workers": [w1, w2]})
    assert tidewheel_("workers", "list", "--queue", "default")[1] == (
        "QUEUE    WORKER  STATE     AT WORK  SLOTS  STUCK  TASKS  TRANSPORT  HEARD\n"
        "default  w1      present   2        8      1      2      kafka      2026-03-01 00:00:03Z\n"
        "default  w2      draining  0                      1                 2026-03-01 00:00:03Z\n"
    )
    routes["GET", "/v1/workers?worker=w1"] = Response({"workers": [w1]})
    assert tidewheel_("workers", "show", "w1")[1] == (
        "worker       w1\n"
        "incarnation  ab12\n"
        "queue        default\n"
        "state        present\n"
        "client       tidewheel/0.1.0\n"
        "transport    kafka\n"
        "slots        2 at work, 5 free of 8\n"
        "stuck        1\n"
        "tasks        mail, reports.nightly\n"
        "heard of     2026-03-01 00:00:03Z\n"
        "\n"
        "TENANT  RUN       ATTEMPT  STARTED\n"
        "acme    report.1  2        2026-03-01 00:00:02Z\n"
        "and 1 more\n"
    )


def test_a_worker_that_nobody_heard_of_is_named(tidewheel_, routes, requests):
    for path in ("/v1/workers?worker=w9", "/v1/workers?worker=w9&state=gone"):
        routes["GET", path] = Response({"workers": []})
    code, _, err = tidewheel_("workers", "show", "w9")
    assert (code, "no worker w9 was heard of in the last hour" in err) == (1, True)
    assert [request.path for request in requests] == ["/v1/workers?worker=w9", "/v1/workers?worker=w9&state=gone"]


def test_a_worker_without_a_module_says_what_is_wrong_with_its_targets(tidewheel_, tmp_path):
    (tmp_path / "targets.yaml").write_text("commands: {dump: {argv: [pg_dump]}}")
    code, _, err = tidewheel_("worker", "--targets", str(tmp_path / "targets.yaml"))
    assert code == 2
    assert "commands/dump/argv: must begin with the program's whole path, not 'pg_dump'" in err


def test_a_file_of_targets_that_names_none_is_no_work(tidewheel_, tmp_path):
    (tmp_path / "targets.yaml").write_text("commands: {}")
    code, _, err = tidewheel_("worker", "--targets", str(tmp_path / "targets.yaml"))
    assert (code, "it names no commands and has no `http`" in err) == (2, True)


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("no_such_module:worker", "there is no module 'no_such_module'"),
        ("json:worker", "'json' has no Worker called 'worker'; it has none"),
    ],
)
def test_a_worker_that_cannot_be_had_is_wrong_usage(tidewheel_, target, said):
    code, _, err = tidewheel_("worker", target)
    assert (code, said in err) == (2, True)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ("--url http://127.0.0.1:1 --bootstrap 127.0.0.1:1", "--url speaks HTTP and --bootstrap speaks to Kafka"),
        ("--namespace prod.", "name its brokers with --bootstrap"),
        ("--bootstrap kafka:9092", "is not encrypted"),
        ("--bootstrap 127.0.0.1:1 --namespace /", "namespace: at most 64 letters"),
    ],
)
def test_brokers_that_cannot_be_had_are_wrong_usage(tidewheel_, tmp_path, monkeypatch, flags, said):
    (tmp_path / "some_tasks.py").write_text("from tidewheel import Worker\nworker = Worker()\n")
    monkeypatch.syspath_prepend(tmp_path)
    code, _, err = tidewheel_("worker", "some_tasks:worker", *flags.split())
    assert (code, said in err) == (2, True)


@pytest.mark.parametrize(
    "words",
    [
        "admin acls --json",
    ],
)
def test_what_a_later_version_will_do_is_refused_by_name(tidewheel_, words):
    code, _, err = tidewheel_(*words.split())
    assert (code, "not_supported: this version cannot do that yet" in err) == (2, True)


# --- logs ---

LINES = [
    {
        "attempt": 1, "handout": 4, "line": 0, "at": "2026-03-08T02:00:01.250Z", "stream": "log", "level": "INFO",
        "text": "counting",
    },
    {
        "attempt": 1, "handout": 4, "line": 1, "at": "2026-03-08T02:00:02Z", "stream": "stdout", "text": "42",
        "dropped": 3, "cut": 7,
    },
    {"attempt": 2, "handout": 9, "line": 0, "at": "2026-03-08T02:01:00Z", "stream": "stderr", "text": "again"},
]  # fmt: skip
LOGS = "/v1/tenants/acme/runs/nightly.m-1/logs"


def page_of(lines: Any, cursor: str, *, more: bool = False, complete: bool = False) -> Response:
    return Response({"lines": lines, "cursor": cursor, "more": more, "complete": complete})


def test_a_runs_log_is_shown_attempt_by_attempt(tidewheel_, routes):
    routes["GET", LOGS] = page_of(LINES[:2], "a", more=True)
    routes["GET", f"{LOGS}?cursor=a"] = page_of(LINES[2:], "b")
    assert tidewheel_("runs", "logs", "acme/nightly.m-1") == (
        0,
        (
            "attempt 1\n"
            "2026-03-08 02:00:01Z  log    INFO     counting\n"
            "2026-03-08 02:00:02Z  stdout  (3 lines are missing before this one) 42 (and 7 characters)\n"
            "attempt 2\n"
            "2026-03-08 02:01:00Z  stderr  again\n"
        ),
        "",
    )


def test_who_follows_a_log_stays_until_the_run_is_over(tidewheel_, routes):
    routes["GET", LOGS] = page_of(LINES[:1], "a")
    routes["GET", f"{LOGS}?cursor=a&wait=8.0"] = [page_of([], "a"), page_of(LINES[2:], "b", complete=True)]
    code, out, _ = tidewheel_("runs", "logs", "acme/nightly.m-1", "--follow", "--json")
    assert (code, [json.loads(line)["text"] for line in out.splitlines()]) == (0, ["counting", "again"])


def test_a_log_is_narrowed(tidewheel_, routes):
    query = "newest=true&stream=stdout&limit=5&attempt=2&since=2026-03-08T02%3A00%3A00Z"
    routes["GET", f"{LOGS}?{query}"] = page_of(LINES[2:], "b", complete=True)
    words = "--attempt 2 --stream stdout --since 2026-03-08T02:00:00Z --last 5"
    code, out, err = tidewheel_("runs", "logs", "acme/nightly.m-1", *words.split())
    assert (code, err, out.endswith("again\n")) == (0, "", True)


# --- what others wrote, on somebody's terminal ---

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


# --- commands of other distributions ---


@click.command()
def greet():
    """Say hello."""
    click.echo("hello")


def test_a_command_of_another_distribution_works_beside_one_that_is_broken(tidewheel_, monkeypatch):
    plugins = EntryPoints(
        [
            EntryPoint("greet", f"{__name__}:greet", tidewheel.cli.GROUP),
            EntryPoint("broken", "no_such_module:command", tidewheel.cli.GROUP),
        ]
    )
    monkeypatch.setattr(tidewheel.cli, "entry_points", lambda group: plugins)
    assert tidewheel_("greet") == (0, "hello\n", "")
    code, out, err = tidewheel_("--help")
    assert (code, "greet" in out, "broken" in out) == (0, True, False)
    assert err.startswith("warning: command 'broken' of no_such_module:command cannot be loaded")
    assert tidewheel_("broken")[0] == 2


# --- what is to come ---


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
    assert requests[-1].json == {"backfill": True}
    assert "resumed acme/nightly (version 3), backfill b-1 of 7 started" in out


# --- once more ---

LETTERS = "/v1/tenants/acme/dead-letters"


def test_a_run_is_run_again_and_the_new_one_is_named(tidewheel_, routes, requests):
    routes["POST", "/v1/tenants/acme/runs/a.1:rerun"] = Response({"run_id": "a.r-1"}, 201)
    code, out, _ = tidewheel_("runs", "rerun", "acme/a.1", "--definition", "current", "--note", "fixed")
    assert (code, out) == (0, "acme/a.1 runs again as a.r-1\n")
    assert requests[-1].json == {"definition": "current", "note": "fixed"}


def test_dead_letters_are_listed_with_why_and_what_they_were_redriven_as(tidewheel_, routes):
    letter = {
        "tenant": "acme", "run_id": "a.1", "finished_at": "2026-03-01T00:00:09Z", "attempt_count": 3,
        "reason": "quarantined", "error": {"type": "ValueError", "message": "no rows"}, "redriven_as": "a.r-1",
    }  # fmt: skip
    routes["GET", f"{LETTERS}?schedule=a"] = Response({"dead_letters": [letter]})
    _, out, _ = tidewheel_("dead-letters", "list", "--tenant", "acme", "--schedule", "a")
    assert out.splitlines()[1].split() == [
        "acme", "a.1", "2026-03-01", "00:00:09Z", "3", "quarantined", "ValueError:", "no", "rows", "a.r-1",
    ]  # fmt: skip


def test_named_dead_letters_are_redriven_each_for_itself(tidewheel_, routes):
    routes["POST", f"{LETTERS}/a.1:redrive"] = Response({"run_id": "a.r-1"}, 201)
    refusal = {"code": "already_redriven", "title": "Conflict", "detail": "it was redriven as a.r-2"}
    routes["POST", f"{LETTERS}/a.2:redrive"] = Response(refusal, 409)
    code, out, _ = tidewheel_("dead-letters", "redrive", "--tenant", "acme", "a.1", "a.2")
    assert code == 1
    assert "acme/a.1 redriven as a.r-1" in out
    assert "it was redriven as a.r-2" in out


def test_all_of_a_choice_are_redriven_request_by_request(tidewheel_, routes, requests):
    routes["POST", f"{LETTERS}:redrive"] = [
        Response({"redriven": [{"of": "a.1", "run_id": "a.r-1"}], "refused": [], "cursor": "next"}),
        Response({"redriven": [], "refused": [{"of": "a.2", "detail": "its job is not registered"}]}),
    ]
    code, out, _ = tidewheel_(
        "dead-letters", "redrive", "--tenant", "acme", "--all", "--schedule", "a", "--label", "team=ops",
        "--from", "2026-03-01",
    )  # fmt: skip
    assert code == 1
    assert out.splitlines() == [
        "acme/a.1 redriven as a.r-1", "refused acme/a.2: its job is not registered", "1 redriven, 1 not",
    ]  # fmt: skip
    chosen = {"schedule": "a", "labels": {"team": "ops"}, "from": "2026-03-01T00:00:00Z"}
    assert [each.json for each in requests] == [{"selector": chosen}, {"selector": chosen, "cursor": "next"}]


@pytest.mark.parametrize("words", ["", "a.1 --all", "a.1 --schedule a", "--schedule a", "--all --label team"])
def test_a_redrive_names_runs_or_says_all(tidewheel_, words):
    assert tidewheel_("dead-letters", "redrive", *words.split())[0] == 2


OPEN = "/v1/tenants/acme/runs"


def test_open_runs_of_a_choice_are_cancelled_request_by_request_and_counted(tidewheel_, routes, requests):
    routes["POST", f"{OPEN}:cancel"] = [
        Response({
            "runs": [{"tenant": "acme", "run_id": "a.2", "state": "cancelled_before_dispatch"}],
            "counts": {"cancelled_before_dispatch": 1}, "cursor": "next",
        }),
        Response({
            "runs": [{"tenant": "acme", "run_id": "a.1", "state": "cancel_requested"}],
            "counts": {"cancel_requested": 1},
        }),
    ]  # fmt: skip
    code, out, _ = tidewheel_(
        "runs", "cancel", "--tenant", "acme", "--all", "--queue", "mail", "--state", "queued", "--label", "team=ops",
        "--from", "2026-03-01", "--note", "wrong data",
    )  # fmt: skip
    assert (code, out.splitlines()) == (
        0,
        [
            "acme/a.2: cancelled before dispatch", "acme/a.1: cancel requested",
            "1 cancel requested, 1 cancelled before dispatch",
        ],
    )  # fmt: skip
    chosen = {"queue": "mail", "state": "queued", "labels": {"team": "ops"}, "from": "2026-03-01T00:00:00Z"}
    asked = {"selector": chosen, "note": "wrong data"}
    assert [each.json for each in requests] == [asked, {**asked, "cursor": "next"}]


def test_what_was_refused_of_a_cancelled_choice_is_said(tidewheel_, routes):
    refused = {"tenant": "acme", "run_id": "a.1", "reason": "too_many_delayed", "detail": "send it again"}
    routes["POST", "/v1/runs:cancel"] = Response({"runs": [refused], "counts": {"refused": 1}})
    code, out, _ = tidewheel_("runs", "cancel", "--all", "--all-tenants", "--queue", "mail")
    assert (code, out.splitlines()) == (1, ["refused acme/a.1: send it again", "1 refused"])


def test_a_choice_without_open_runs_says_so(tidewheel_, routes):
    routes["POST", f"{OPEN}:cancel"] = Response({"runs": [], "counts": {}})
    assert tidewheel_("runs", "cancel", "--tenant", "acme", "--all") == (0, "no open run\n", "")


@pytest.mark.parametrize(
    "words",
    [
        "", "a.1 --all", "a.1 --queue q", "--queue q", "--all-tenants", "--all --label team",
        "--all --all-tenants --tenant acme",
    ],
)  # fmt: skip
def test_a_cancel_names_runs_or_says_all(tidewheel_, words):
    assert tidewheel_("runs", "cancel", *words.split())[0] == 2


@pytest.mark.parametrize("words", [("runs", "cancel"), ("dead-letters", "redrive")])
def test_an_empty_name_chooses_nothing_and_never_all(tidewheel_, requests, words):
    """As a script has it whose variable is not set."""
    code, _, said = tidewheel_(*words, "--all", "--schedule", "")
    assert (code, said.splitlines()[-1]) == (2, "Error: --schedule is empty: name one, or leave it out")
    assert requests == []


def test_breakers_are_listed_with_since_when_and_why(tidewheel_, routes):
    shown = {
        "tenant": "acme", "queue": "mail", "breaker": "host:x", "state": "open", "since": "2026-03-01T00:00:00Z",
        "until": "2026-03-01T00:00:30Z", "failures": 20, "ended": 25, "error": {"type": "http:503"},
    }  # fmt: skip
    routes["GET", "/v1/tenants/acme/breakers?queue=mail"] = Response({"breakers": [shown]})
    _, out, _ = tidewheel_("breakers", "list", "--tenant", "acme", "--queue", "mail")
    assert out.splitlines()[1].split() == [
        "acme", "mail", "host:x", "open", "2026-03-01", "00:00:00Z", "2026-03-01", "00:00:30Z", "20", "of", "25",
        "http:503:",
    ]  # fmt: skip


def test_a_breaker_is_closed_and_says_what_it_was(tidewheel_, routes, requests):
    routes["POST", "/v1/tenants/acme/breakers:reset"] = [
        Response({"reset": [{"breaker": "job:a", "was": "half_open", "since": "2026-03-01T00:00:00Z"}], "left": 0}),
        Response({"reset": [], "left": 0}),
    ]
    out = tidewheel_("breakers", "reset", "job:a", "--tenant", "acme", "--queue", "mail", "--note", "mended")
    assert out == (0, "acme/job:a closed; it was half open since 2026-03-01 00:00:00Z\n", "")
    assert tidewheel_("breakers", "reset", "--all", "--tenant", "acme") == (0, "nothing was open\n", "")
    assert [each.json for each in requests] == [
        {"queue": "mail", "breaker": "job:a", "note": "mended"}, {"queue": "default"},
    ]  # fmt: skip
    assert tidewheel_("breakers", "reset")[0] == 2
