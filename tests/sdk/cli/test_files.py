"""Definition files: applied, planned, pruned, previewed, and made of crontabs."""

from datetime import datetime

import pytest

from tests.sdk.fake_server import Response


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


def test_who_applies_a_file_and_why_is_said_beside_each_document(tidewheel_, routes, requests):
    routes["PUT", "/v1/tenants/default/jobs/a"] = Response({}, 201)
    routes["PUT", "/v1/tenants/default/schedules/b"] = Response({}, 201)
    routes["PUT", "/v1/queues/q"] = Response({}, 201)
    text = "kind: Job\nname: a\n---\nkind: Schedule\nname: b\n---\nkind: Queue\nname: q\n"
    assert tidewheel_("apply", "-f", "-", "--note", "release 7", stdin=text)[0] == 0
    assert {request.path.partition("?")[2] for request in requests} == {"note=release+7&by=ann"}


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
    routes["DELETE", f"{path}/b?note=tidied&by=ann"] = Response({})
    assert tidewheel_("apply", "-f", "-", "--note", "tidied", "--prune", "--label", "team=finance", stdin=ONE)[:2] == (
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
