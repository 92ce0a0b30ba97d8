"""What the demonstration says of what happens to runs."""

from __future__ import annotations

import pytest

from node.console import describe
from schemas.facts import RunDeferReason, RunDeferred
from tests.scheduler.harness import at


@pytest.mark.parametrize(
    ("until", "line"),
    [
        ("2026-03-08T07:10:00Z", "[bold]r1[/] [yellow]waits: retry_budget until 07:10:00[/]"),
        (None, "[bold]r1[/] [yellow]waits: retry_budget[/]"),
    ],
)
def test_a_run_that_waits_says_for_what_and_until_when(until: str | None, line: str) -> None:
    now = at("2026-03-08T07:02:03Z")
    deferred = RunDeferred(
        tenant="acme", schedule="nightly", run_id="r1", reason=RunDeferReason.RETRY_BUDGET, since=now, decided_at=now,
        until=at(until) if until else None,
    )  # fmt: skip
    assert describe(deferred) == line
