"""The client: paths, keys, positions, retries, and errors with their faults."""

from datetime import UTC, datetime

import pytest

from tests.sdk.fake_server import Hangup, Response, in_thread
from tidewheel import ALL_TENANTS, Client, Fault, TidewheelError, Unreachable

NIGHTLY = {"trigger": {"cron": "0 2 * * *"}, "job": "send-report"}


@pytest.fixture
def requests():
    return []


@pytest.fixture
def answers():
    """What the server answers, one after another; the last one again and again. An exception hangs up."""
    return [Response({})]


@pytest.fixture
def client(requests, answers):
    def handle(request):
        requests.append(request)
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if answer is Hangup:
            raise Hangup
        return answer

    with in_thread(handle) as url, Client(url, "acme") as client:
        yield client


@pytest.mark.parametrize(
    ("call", "method", "path"),
    [
        (lambda c: c.put_schedule("nightly", NIGHTLY), "PUT", "/v1/tenants/acme/schedules/nightly"),
        (lambda c: c.get_schedule("nightly"), "GET", "/v1/tenants/acme/schedules/nightly"),
        (lambda c: c.get_schedule("nightly", tenant="b"), "GET", "/v1/tenants/b/schedules/nightly"),
        (lambda c: c.list_schedules(), "GET", "/v1/tenants/acme/schedules"),
        (lambda c: c.list_schedules(tenant=ALL_TENANTS, state="paused"), "GET", "/v1/schedules?state=paused"),
        (lambda c: c.versions("nightly"), "GET", "/v1/tenants/acme/schedules/nightly/versions"),
        (lambda c: c.pause_schedule("nightly"), "POST", "/v1/tenants/acme/schedules/nightly:pause"),
        (lambda c: c.resume_schedule("nightly"), "POST", "/v1/tenants/acme/schedules/nightly:resume"),
        (lambda c: c.trigger_schedule("nightly"), "POST", "/v1/tenants/acme/schedules/nightly:trigger"),
        (lambda c: c.delete_schedule("nightly"), "DELETE", "/v1/tenants/acme/schedules/nightly"),
        (
            lambda c: c.delete_schedule("nightly", cancel_runs=True),
            "DELETE",
            "/v1/tenants/acme/schedules/nightly?runs=cancel",
        ),
        (
            lambda c: c.occurrences("nightly", from_=datetime(2026, 3, 8, tzinfo=UTC)),
            "GET",
            "/v1/tenants/acme/schedules/nightly/occurrences?from=2026-03-08T00%3A00%3A00Z",
        ),
        (lambda c: c.preview(NIGHTLY, limit=3), "POST", "/v1/tenants/acme/preview?limit=3"),
        (lambda c: c.put_job("send-report", {}), "PUT", "/v1/tenants/acme/jobs/send-report"),
        (lambda c: c.get_job("send-report"), "GET", "/v1/tenants/acme/jobs/send-report"),
        (lambda c: c.list_jobs(), "GET", "/v1/tenants/acme/jobs"),
        (lambda c: c.delete_job("send-report"), "DELETE", "/v1/tenants/acme/jobs/send-report"),
        (lambda c: c.put_calendar("uk", {}), "PUT", "/v1/tenants/acme/calendars/uk"),
        (lambda c: c.get_calendar("uk", tenant="b"), "GET", "/v1/tenants/b/calendars/uk"),
        (lambda c: c.list_calendars(), "GET", "/v1/tenants/acme/calendars"),
        (lambda c: c.delete_calendar("uk"), "DELETE", "/v1/tenants/acme/calendars/uk"),
        (lambda c: c.put_queue("big", {}), "PUT", "/v1/queues/big"),
        (lambda c: c.get_queue("big"), "GET", "/v1/queues/big"),
        (lambda c: c.list_queues(limit=3), "GET", "/v1/queues?limit=3"),
        (lambda c: c.delete_queue("big"), "DELETE", "/v1/queues/big"),
        (lambda c: c.put_tenant("zoo", {}), "PUT", "/v1/tenants/zoo"),
        (lambda c: c.get_tenant("zoo"), "GET", "/v1/tenants/zoo"),
        (lambda c: c.list_tenants(), "GET", "/v1/tenants"),
        (lambda c: c.delete_tenant("zoo"), "DELETE", "/v1/tenants/zoo"),
        (lambda c: c.list_runs(schedule="nightly"), "GET", "/v1/tenants/acme/runs?schedule=nightly"),
        (lambda c: c.get_run("nightly.m-1"), "GET", "/v1/tenants/acme/runs/nightly.m-1"),
        (lambda c: c.cancel_run("nightly.m-1"), "POST", "/v1/tenants/acme/runs/nightly.m-1:cancel"),
        (lambda c: c.rerun("nightly.m-1"), "POST", "/v1/tenants/acme/runs/nightly.m-1:rerun"),
        (lambda c: c.list_dead_letters(), "GET", "/v1/tenants/acme/dead-letters"),
        (lambda c: c.redrive("nightly.m-1"), "POST", "/v1/tenants/acme/dead-letters/nightly.m-1:redrive"),
        (lambda c: c.redrive_all({}), "POST", "/v1/tenants/acme/dead-letters:redrive"),
    ],
)
def test_each_method_is_one_request(client, requests, call, method, path):
    call(client)
    assert [(request.method, request.path) for request in requests] == [(method, path)]


def test_a_definition_is_sent_as_it_is(client, requests):
    client.put_schedule("nightly", NIGHTLY, expected_version=3, idempotency_key="k1")
    assert requests[0].json == NIGHTLY
    assert (requests[0].headers["if-match"], requests[0].headers["idempotency-key"]) == ("3", "k1")


@pytest.mark.parametrize(
    ("status", "body", "change"),
    [(201, {"version": 1}, "created"), (200, {"version": 2}, "updated"), (200, {"changed": False}, "unchanged")],
)
def test_a_write_says_what_it_changed(client, answers, status, body, change):
    answers[:] = [Response(body, status)]
    assert client.put_schedule("nightly", NIGHTLY).change == change


@pytest.mark.parametrize(
    "first", [Hangup, Response({"title": "starting"}, 503), Response({}, 202, {"Location": "/v1/commands/1"})]
)
def test_a_write_without_an_answer_is_repeated_under_the_same_key(client, requests, answers, first):
    answers[:] = [first, first, Response({"version": 1}, 201)]
    assert client.put_schedule("nightly", NIGHTLY).change == "created"
    keys = {request.headers["idempotency-key"] for request in requests}
    assert (len(requests), len(keys)) == (3, 1)


def test_two_writes_have_two_keys(client, requests):
    client.trigger_schedule("nightly")
    client.trigger_schedule("nightly")
    assert requests[0].headers["idempotency-key"] != requests[1].headers["idempotency-key"]


def test_after_four_attempts_a_server_is_unreachable(client, requests, answers):
    answers[:] = [Response({"title": "Service Unavailable", "detail": "starting"}, 503)]
    with pytest.raises(Unreachable, match="starting") as raised:
        client.get_schedule("nightly")
    assert (raised.value.status, len(requests)) == (503, 4)


def test_without_a_server_the_error_names_its_address():
    with (
        Client("http://127.0.0.1:9") as client,
        pytest.raises(Unreachable, match=r"http://127\.0\.0\.1:9 cannot be reached"),
    ):
        client.list_runs()


def test_a_refusal_carries_every_fault_and_is_not_repeated(client, requests, answers):
    faults = [
        {"pointer": "/trigger/cron", "code": "cron", "message": "minute 61 is out of range", "remedy": "write 0-59"},
        {"pointer": "/job", "code": "missing", "message": "is required"},
    ]
    answers[:] = [Response({"title": "Unprocessable", "detail": "two faults", "faults": faults}, 422)]
    with pytest.raises(TidewheelError, match="two faults") as raised:
        client.put_schedule("nightly", {})
    assert raised.value.status == 422
    assert raised.value.faults == (
        Fault(pointer="/trigger/cron", code="cron", message="minute 61 is out of range", remedy="write 0-59"),
        Fault(pointer="/job", code="missing", message="is required"),
    )
    assert str(raised.value.faults[0]) == "/trigger/cron: minute 61 is out of range (write 0-59)"
    assert len(requests) == 1


def test_a_read_waits_for_what_the_client_wrote_last(client, requests, answers):
    answers[:] = [Response({}, 201, {"Tidewheel-Position": "scheduler-3-17"}), Response({})]
    client.put_schedule("nightly", NIGHTLY)
    client.get_schedule("nightly")
    assert "tidewheel-at-least" not in requests[0].headers
    assert requests[1].headers["tidewheel-at-least"] == "scheduler-3-17"


@pytest.mark.parametrize("key", ["schedules", "items"])
def test_a_list_is_a_page_with_a_cursor_to_the_next(client, answers, key):
    answers[:] = [Response({key: [{"name": "a"}, {"name": "b"}], "cursor": "x"})]
    page = client.list_schedules()
    assert ([schedule["name"] for schedule in page], page.cursor) == (["a", "b"], "x")


def test_what_is_not_json_cannot_be_sent(client, requests):
    with pytest.raises(TidewheelError, match="cannot be sent as JSON"):
        client.put_schedule("nightly", {"payload": {1, 2}})
    assert requests == []


def test_another_kind_of_server_is_told_apart(client, answers):
    answers[:] = [Response(["not", "ours"])]
    with pytest.raises(TidewheelError, match="is it a Tidewheel server"):
        client.get_schedule("nightly")


def test_address_and_tenant_come_from_the_environment_where_they_are_not_given(monkeypatch):
    monkeypatch.setenv("TIDEWHEEL_URL", "http://elsewhere:1/")
    monkeypatch.setenv("TIDEWHEEL_TENANT", "acme")
    with Client() as client:
        assert (client.url, client.tenant) == ("http://elsewhere:1", "acme")


def test_without_an_environment_it_is_this_machine_and_the_default_tenant(monkeypatch):
    monkeypatch.delenv("TIDEWHEEL_URL", raising=False)
    monkeypatch.delenv("TIDEWHEEL_TENANT", raising=False)
    with Client() as client:
        assert (client.url, client.tenant) == ("http://127.0.0.1:8440", "default")
