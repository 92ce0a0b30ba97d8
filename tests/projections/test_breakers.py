"""How a breaker stands, after which events."""

from typing import Any

import orjson

from schemas.facts import BreakerChanged, BreakerReason, BreakerState, ErrorInfo
from tests.projections.histories import at
from tests.projections.memory import rows_after
from tests.projections.test_schedules import millis, only


def changed(second: float, state: BreakerState, reason: BreakerReason, **more: Any) -> BreakerChanged:
    return BreakerChanged(
        tenant="acme", queue="mail", shard=0, breaker="job:send", state=state, reason=reason, changed_at=at(second),
        since=at(0), **more,
    )  # fmt: skip


OPENED = changed(
    0, BreakerState.OPEN, BreakerReason.FAILURES, until=at(30), failures=20, attempts=25, run_id="a.1",
    error=ErrorInfo(type="http:503"),
)  # fmt: skip
TRIED = changed(30, BreakerState.HALF_OPEN, BreakerReason.WAITED)
RESET = changed(40, BreakerState.CLOSED, BreakerReason.RESET, by="ada", note="mended", command_id="c1", source="api")


def test_an_open_one_says_since_when_until_when_and_after_what():
    row = only(rows_after([OPENED], "breakers"))
    assert (row["tenant"], row["queue"], row["breaker"], row["state"]) == ("acme", "mail", "job:send", "open")
    assert (row["since"], row["until"], row["failures"], row["ended"]) == (millis(at(0)), millis(at(30)), 20, 25)
    assert orjson.loads(row["error"]) == {"type": "http:503"}


def test_the_newest_change_stands_and_an_echo_changes_nothing():
    row = only(rows_after([OPENED, TRIED, OPENED], "breakers"))
    assert (row["state"], row["reason"], row["until"]) == ("half_open", "waited", None)


def test_one_that_somebody_closed_says_who_and_why_and_its_command_is_answered():
    row = only(rows_after([OPENED, TRIED, RESET], "breakers"))
    assert (row["state"], row["by"], row["note"]) == ("closed", "ada", "mended")
    (command,) = rows_after([OPENED, TRIED, RESET], "commands")
    assert (command["command_id"], command["tenant"], command["name"], command["outcome"]) == (
        "c1", "acme", "_", "accepted",
    )  # fmt: skip
