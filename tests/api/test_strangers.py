"""Whatever a stranger sends, the answer is a refusal or an answer, never our own mistake."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.api import scenes
from tests.api.house import House
from tests.projections.histories import START

WORDS = st.one_of(
    st.text(max_size=12),
    st.sampled_from(
        ["acme", "nightly-report", "hourly-load.20260301T000000Z", "0", "-1", "1e9", "9" * 25, "2026-03-01T00:00:00Z",
         "9999-12-31T23:59:59Z", "0001-01-01T00:00:00+14:00", "open", "team=finance", "..", "%00", "W10", "WzFd"]
    ),
)  # fmt: skip
NUMBERS = st.one_of(st.integers(-(2**70), 2**70), st.floats(allow_nan=False, allow_infinity=False))
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=8,
)
FIELDS = st.sampled_from(
    ["trigger", "job", "worker", "slots", "tasks", "leases", "selector", "payload", "note", "outcome", "result", "wait",
     "incarnation", "finished", "read_up_to", "labels", "name", "grace", "error", "claim_id", "number",
     "dates", "weights", "rate", "quota", "queues", "freezes"]
)  # fmt: skip
BODIES = st.one_of(JSON, st.dictionaries(FIELDS, JSON, max_size=5))
NAMES = st.sampled_from(["from", "to", "limit", "cursor", "state", "schedule", "label", "runs", "tenant", "x"])
QUERIES = st.dictionaries(NAMES, WORDS, max_size=3)
PATHS = """
    GET /v1/schedules
    GET /v1/runs
    GET /v1/jobs
    GET /v1/tenants
    GET /v1/tenants/{}
    GET /v1/queues
    GET /v1/queues/{}
    GET /v1/queues/{}/backlog
    GET /v1/calendars
    GET /v1/tenants/{}/calendars/{}
    GET /v1/tenants/{}/schedules
    GET /v1/tenants/{}/schedules/{}
    GET /v1/tenants/{}/schedules/{}/versions
    GET /v1/tenants/acme/schedules/nightly-report/occurrences
    GET /v1/tenants/{}/runs
    GET /v1/tenants/{}/runs/{}
    GET /v1/tenants/{}/jobs/{}
    GET /v1/commands/{}
    GET /v1/log/{}/{}
    GET /v1/log/run-events/0
    GET /schedules
    GET /schedules/{}/{}
    GET /runs
    GET /runs/{}/{}
    PUT /v1/tenants/{}/schedules/{}
    PUT /v1/tenants/acme/schedules/report
    PUT /v1/tenants/acme/jobs/send
    PUT /v1/tenants/acme/calendars/uk
    PUT /v1/tenants/acme
    PUT /v1/queues/default
    DELETE /v1/tenants/{}/jobs/{}
    POST /v1/tenants/acme/preview
    POST /v1/tenants/acme/schedules/report:trigger
    POST /v1/tenants/acme/schedules:pause
    POST /v1/tenants/{}/runs/{}:cancel
    POST /v1/tenants/acme/runs:cancel
    POST /v1/runs:cancel
    POST /v1/tenants/acme/breakers:reset
    POST /v1/queues/{}/workers:report
    POST /v1/queues/default/leases:claim
    POST /v1/leases:heartbeat
    POST /v1/leases/{}:complete
"""

Asked = tuple[str, str, dict[str, str], Any]


@st.composite
def requests(draw: st.DrawFn) -> Asked:
    method, path = draw(st.sampled_from(PATHS.split("\n")[1:-1])).split()
    words = [quote(draw(WORDS.filter(bool)), safe="") for _ in range(path.count("{}"))]
    return method, path.format(*words), draw(QUERIES), draw(BODIES) if method in {"PUT", "POST"} else None


@settings(max_examples=12)
@given(st.lists(requests(), min_size=20, max_size=40))
def test_no_request_makes_us_fail(asked):
    """`respond-async`: nobody here would answer the commands that are none the worse for wear."""

    async def ask_all() -> list[tuple[int, Asked]]:
        with TemporaryDirectory() as folder:
            async with House(Path(folder)) as house:
                house.happened(*scenes.night(START))
                return [(await ask(house, each), each) for each in asked]

    async def ask(house: House, each: Asked) -> int:
        method, path, query, data = each
        content = None if data is None else json.dumps(data).encode("utf-8", "surrogatepass")
        headers = {"prefer": "respond-async", "content-type": "application/json"}
        response = await house.http.request(method, path, params=query, content=content, headers=headers)
        return response.status_code

    failed = [each for status, each in asyncio.run(ask_all()) if status in {500, 503}]
    assert failed == []
