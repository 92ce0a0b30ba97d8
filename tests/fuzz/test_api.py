"""The API of a real server: requests made from its own OpenAPI document, and bodies that nearly fit.

No request is answered with our own mistake. What is answered is as the document says; what is refused is problem+json,
and where the body was at fault every fault points at the field.
"""

from __future__ import annotations

import json
from typing import Any

import httpx
import orjson
import pytest
import schemathesis
from hypothesis import given
from hypothesis import strategies as st
from schemathesis.config import SchemathesisConfig
from schemathesis.specs.openapi.checks import response_schema_conformance

from api.app import openapi_document
from tests.fuzz.budget import EXAMPLES, examples
from tests.fuzz.mutation import HOSTILE, mutated, with_wrong_values
from tests.support.server import Server

DOCUMENT = openapi_document()
# Every boundary of every schema, hundreds of requests an operation, is for the deeper run.
CONFIG = SchemathesisConfig.from_dict(
    {
        "checks": {
            # What a definition means is judged beyond its shape, and so are cursors and instants.
            "positive_data_acceptance": {"enabled": False},
            "not_a_server_error": {"enabled": False},  # ours knows what is not supported yet
            "negative_data_rejection": {"expected-statuses": ["400", "404", "405", "413", "415", "422", "501"]},
        },
        "phases": {"coverage": {"enabled": EXAMPLES > 0}},
    }
)
SCHEMA = schemathesis.openapi.from_dict(DOCUMENT, config=CONFIG)
LINE_MAX = 65_535  # of a request's first line: a longer one the HTTP server refuses, in words of its own
STREAMS = {"/v1/events", "/v1/tenants/{tenant}/events"}  # where one that is followed has no end
YES = ("true", "1", "t", "y", "yes", "on")
NAMELESS = {"if_match", "idempotency_key", "unsupported_media_type", "too_large", "bad_request"}  # no field of a body


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("server"))
    server.start()
    yield server
    assert server.is_ready()
    server.close()


@pytest.fixture(scope="module")
def http(server):
    with httpx.Client(base_url=server.url, timeout=60) as http:
        yield http


def check(response: Any, body: Any = None) -> None:
    """An answer, or a problem that names what is wrong."""
    status, headers = response.status_code, response.headers
    kind = (
        (headers.get("content-type") or [""])[0] if not isinstance(headers, httpx.Headers) else headers["content-type"]
    )
    if status < 400 or (status == 503 and kind == "application/json"):
        return
    assert kind == "application/problem+json", (status, kind)
    problem = response.json()
    assert problem["status"] == status
    assert status < 500, problem
    if status in {400, 422} and problem["code"] not in NAMELESS and "reason" not in problem:
        assert problem["faults"], problem
    for fault in problem.get("faults", ()):
        assert fault["message"]
        assert fault["code"]
        if body is not None:
            assert stands(body, fault["pointer"]), (fault, body)


def stands(body: Any, pointer: str) -> bool:
    """Whether a pointer leads to something in the body, or to what is missing in something."""
    *outer, last = [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")]
    for part in outer[1:] if outer else ():
        if isinstance(body, list) and part.isdecimal() and int(part) < len(body):
            body = body[int(part)]
        elif isinstance(body, dict) and part in body:
            body = body[part]
        else:
            return False
    return (
        not outer or isinstance(body, dict) or (isinstance(body, list) and last.isdecimal() and int(last) < len(body))
    )


@SCHEMA.parametrize()
@examples(3)
def test_every_operation_is_as_its_document_says(case, server):
    if isinstance(case.body, dict) and type(case.body.get("wait")) in {int, float} and 0 <= case.body["wait"] <= 30:
        case.body["wait"] = 0  # nothing will come
    is_stream = case.path in STREAMS
    if is_stream and str((case.query or {}).get("follow", True)).lower() in YES:
        case.query = {**(case.query or {}), "follow": False}
    response = case.call(base_url=server.url, timeout=60)
    if len(str(response.request.url)) > LINE_MAX:
        assert response.status_code == 400
        return
    # The document calls a stream a string, as OpenAPI 3.1 can say no more; the check wants a schema of its events.
    case.validate_response(response, excluded_checks=[response_schema_conformance] if is_stream else [])
    check(response)


# --- bodies that nearly fit -------------------------------------------------------------------------------------------

JOB: dict[str, Any] = {
    "queue": "default",
    "target": {"type": "task", "name": "reports.nightly"},
    "payload": {"day": "{{ nominal_date }}", "rows": [1, 2.5, None]},
    "priority": "normal",
    "timeout": "PT1H",
    "deadline": "P7D",
    "lease": "PT30S",
    "retry": {"max_attempts": 3, "initial": "PT1S", "factor": 2, "max": "PT5M", "jitter": "full", "never_on": ["E"]},
}
SCHEDULE: dict[str, Any] = {
    "labels": {"team": "finance"},
    "note": "why",
    "trigger": {
        "cron": "0 2 * * *", "dialect": "unix", "day_rule": "vixie", "timezone": "Europe/London", "gap_policy": "shift",
        "fold_policy": "first",
    },
    "grace": "PT1M",
    "catch_up": {"policy": "latest", "window": "PT24H", "limit": 100},
    "overlap": {"policy": "skip", "limit": 1},
    "on_update": "keep",
    "job": JOB,
}  # fmt: skip
EVERY = {"trigger": {"every": "PT15M", "anchor": "2026-03-08T00:00:00Z"}, "job": "send-report"}
AT = {"trigger": {"at": ["2030-03-08T00:00:00Z", "2031-03-08T00:00:00Z"]}, "job": JOB}
LEASE = "default.0.7.9c1185a5c5e9fc54612808977ee8f548"
FINISHED = [
    {"lease": LEASE, "outcome": "succeeded", "result": {"rows": [1, 2]}},
    {"lease": LEASE, "outcome": "failed", "error": {"type": "E", "message": "m"}},
]
REPORT = {
    "worker": "w", "incarnation": "inc-1", "number": 1, "read_up_to": -1, "held": [LEASE], "started": [LEASE],
    "finished": FINISHED, "slots": 0, "tasks": ["t"], "draining": False, "wait": 0, "claim_id": "c",
}  # fmt: skip
CALENDAR = {"note": "England and Wales", "dates": ["2026-12-25", "2026-12-28"]}
QUEUE: dict[str, Any] = {"note": "the big machines", "shards": 1, "weights": {}, "freezes": []}
TENANT: dict[str, Any] = {"note": "a customer", "quota": {"schedules": 100, "queues": {"default": {}}}, "freezes": []}
BODIES: tuple[tuple[str, str, Any], ...] = (
    ("PUT", "/v1/tenants/acme/schedules/nightly", SCHEDULE),
    ("PUT", "/v1/tenants/acme/schedules/often", EVERY),
    ("PUT", "/v1/tenants/acme/schedules/once", AT),
    ("PUT", "/v1/tenants/acme/jobs/send-report", JOB),
    ("PUT", "/v1/tenants/acme/calendars/uk", CALENDAR),
    ("PUT", "/v1/tenants/acme", TENANT),
    ("PUT", "/v1/queues/default", QUEUE),
    ("POST", "/v1/tenants/acme/preview", {**SCHEDULE, "name": "nightly"}),
    ("POST", "/v1/tenants/acme/schedules/nightly:trigger", {"payload": {"a": [1]}, "overlap": "skip", "note": "n"}),
    ("POST", "/v1/tenants/acme/schedules/nightly:pause", {"note": "n", "by": "me"}),
    ("POST", "/v1/tenants/acme/schedules/nightly:resume", {"note": "n", "by": "me", "backfill": False}),
    ("POST", "/v1/tenants/acme/schedules:pause", {"selector": {"labels": {"team": "none"}}, "note": "n"}),
    ("POST", "/v1/tenants/acme/runs/nightly.20260308T020000Z:cancel", {"note": "n"}),
    ("POST", "/v1/queues/default/workers:report", REPORT),
    (
        "POST",
        "/v1/queues/default/leases:claim",
        {"worker": "v", "slots": 1, "tasks": ["t"], "wait": 0, "claim_id": "c"},
    ),
    ("POST", "/v1/leases:heartbeat", {"worker": "v", "leases": [LEASE]}),
    ("POST", f"/v1/leases/{LEASE}:complete", {"worker": "v", **FINISHED[0]} | {"logs": ""}),
)
HEADERS = {"content-type": "application/json"}


@st.composite
def near_bodies(draw: st.DrawFn) -> tuple[str, str, Any]:
    method, path, body = draw(st.sampled_from(BODIES))
    changed = draw(with_wrong_values(body))
    if isinstance(changed, dict) and type(changed.get("wait")) in {int, float}:
        changed["wait"] = 0
    return method, path, changed


@given(near_bodies())
@examples(60)
def test_a_body_with_wrong_values_is_answered_or_refused_with_pointers_into_it(http, request_):
    method, path, body = request_
    check(http.request(method, path, content=orjson.dumps(body), headers=HEADERS), body)


PIECES = st.sampled_from(
    [
        '"',
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\\",
        "\\ud800",
        "\\u0000",
        "null",
        "NaN",
        "1e999",
        "-",
        "\ufeff",
        *HOSTILE[5:16],
    ]
)


@st.composite
def near_json(draw: st.DrawFn) -> tuple[str, str, bytes]:
    method, path, body = draw(st.sampled_from(BODIES))
    text = draw(mutated(st.just(json.dumps(body)), PIECES))
    raw = text.encode("utf-8", "surrogatepass")
    return method, path, draw(st.sampled_from([raw, raw, raw, raw + b"\xff", b"\xef\xbb\xbf" + raw, raw[:-1]]))


@given(near_json())
@examples(40)
def test_a_body_of_broken_json_is_answered_or_refused(http, request_):
    method, path, raw = request_
    if b'"wait": 0' not in raw and path.endswith(("report", "claim")):
        return
    check(http.request(method, path, content=raw, headers=HEADERS))


QUERIES = ("from", "to", "limit", "cursor", "state", "label", "schedule", "runs")
LISTS = (
    "/v1/schedules", "/v1/runs", "/v1/jobs", "/v1/tenants/acme/schedules", "/v1/tenants/acme/runs",
    "/v1/tenants/acme/dead-letters", "/v1/tenants/acme/jobs", "/v1/tenants/acme/schedules/nightly/occurrences",
    "/v1/log/run-events/0", "/schedules", "/runs",
)  # fmt: skip
INSTANTS = ("2026-03-01T00:00:00Z", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00+14:00", "1970-01-01T00:00:00Z")
WORDS = ("open", "active", "team=finance", "W10", "WzFd", "WyJhIiwiYiJd", "WzEsImEiLCJiIl0")
SHORT = tuple(text for text in HOSTILE if len(text) < 10_000)
values = st.text(max_size=10) | st.sampled_from(INSTANTS + WORDS + SHORT)


@given(st.sampled_from(LISTS), st.dictionaries(st.sampled_from(QUERIES), values, max_size=4))
@examples(40)
def test_a_question_with_strange_parameters_is_answered_or_refused(http, path, query):
    raw = {name: value.encode("utf-8", "surrogatepass") for name, value in query.items()}
    response = http.get(path, params=raw)
    if path.startswith("/v1/"):
        check(response)
    else:
        assert response.status_code < 500
