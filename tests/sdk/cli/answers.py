"""What a server answers: a run, a schedule, lines of a log."""

from typing import Any

from tests.sdk.fake_server import Response

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
