"""Who works is listed and shown; and a worker that cannot be started says why."""

import pytest

from tests.sdk.fake_server import Response


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
