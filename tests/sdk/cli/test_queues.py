"""Queues are paused by their definitions, breakers closed by hand; and who changed what."""

from tests.sdk.fake_server import Response

# --- acting ---


def test_the_backlog_of_a_queue_is_shown_by_shard_with_the_sum(tidewheel_, routes):
    first = {"shard": 0, "waiting": 1200, "running": 8, "oldest_at": "2026-03-08T07:00:00Z"}
    last = {"shard": 2, "waiting": 0, "running": 1, "leaving": True}
    both = {"queue": "big", "waiting": 1200, "running": 9, "oldest_at": first["oldest_at"], "shards": [first, last]}
    routes["GET", "/v1/queues/big/backlog"] = Response(both)
    assert tidewheel_("queues", "backlog", "big")[1] == (
        "SHARD  WAITING  RUNNING  OLDEST\n"
        "0      1200     8        2026-03-08 07:00:00Z\n"
        "2      0        1                              leaving\n"
        "all    1200     9        2026-03-08 07:00:00Z\n"
    )
    routes["GET", "/v1/queues/big/backlog"] = Response({**both, "shards": [first], "at_least": True})
    shown = tidewheel_("queues", "backlog", "big")[1]
    assert "all" not in shown
    assert shown.endswith("There are more: only so many are counted.\n")


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


def test_the_changes_of_a_schedule_say_also_who_paused_it(tidewheel_, routes):
    put = {"what": "put", "version": 2, "changed_at": "2026-03-07T02:00:00Z", "by": "bob", "fields": ["/trigger/cron"]}
    paused = {"what": "paused", "version": 2, "changed_at": "2026-03-08T02:00:00Z", "by": "ann", "note": "month's end"}
    routes["GET", "/v1/tenants/acme/schedules/nightly/changes"] = Response({"changes": [paused, put]})
    assert tidewheel_("schedules", "changes", "acme/nightly")[1].splitlines() == [
        "VERSION  CHANGED               BY   NOTE         FIELDS",
        "2        2026-03-08 02:00:00Z  ann  month's end  paused",
        "2        2026-03-07 02:00:00Z  bob               /trigger/cron",
    ]


def test_changes_of_what_a_tenant_owns_are_asked_for_by_its_name(tidewheel_, routes):
    routes["GET", "/v1/tenants/acme/jobs/report/changes"] = Response({"changes": []})
    routes["GET", "/v1/tenants/acme/changes"] = Response({"changes": []})
    assert tidewheel_("jobs", "changes", "acme/report")[0] == 0
    assert tidewheel_("jobs", "changes", "report", "--tenant", "acme")[0] == 0
    assert tidewheel_("tenants", "changes", "acme")[0] == 0


def test_a_queue_without_a_definition_is_paused_by_its_first_one(tidewheel_, routes, requests):
    routes["GET", "/v1/queues/new"] = Response({"title": "not found"}, 404)
    routes["PUT", "/v1/queues/new"] = Response({"name": "new", "version": 1}, 201)
    assert tidewheel_("queues", "pause", "new") == (0, "paused new, version 1\n", "")
    assert (requests[-1].json, requests[-1].headers["if-match"]) == ({"paused": {"note": ""}}, "0")


# --- once more ---


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
        {"queue": "mail", "breaker": "job:a", "note": "mended", "by": "ann"},
        {"queue": "default", "all": True, "by": "ann"},
    ]  # fmt: skip
    assert tidewheel_("breakers", "reset")[0] == 2
