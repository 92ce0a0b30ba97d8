"""`rrule`: what is stored, what a rule counts from, and what is said when it is over."""

from datetime import UTC, datetime
from typing import Any

from scheduler import checks
from scheduler.instants import from_seconds, text

NOW = datetime(2026, 3, 3, 14, 3, 27, tzinfo=UTC)


def checked(**trigger: Any) -> checks.Checked:
    document = {"trigger": trigger, "job": {"target": {"type": "task", "name": "t"}}}
    return checks.schedule(document, hash_key="acme/s", now=NOW, strict=True)


def following(found: checks.Checked, after: datetime) -> list[str]:
    begins = int(after.timestamp())
    return [text(from_seconds(due)) for due in found.plan.between(begins, begins + 3 * 86_400)]


def test_without_an_anchor_a_rule_counts_from_the_midnight_before_its_first_acceptance():
    found = checked(rrule="FREQ=DAILY;BYHOUR=9", timezone="America/New_York")
    assert found.definition["trigger"]["anchor"] == "2026-03-03T05:00:00Z"
    assert following(found, NOW) == ["2026-03-04T14:00:00Z", "2026-03-05T14:00:00Z", "2026-03-06T14:00:00Z"]
    assert found.plan.rule == "rrule FREQ=DAILY;BYHOUR=9 America/New_York"


def test_an_anchor_is_its_beginning_and_an_until_still_counts():
    found = checked(rrule="FREQ=DAILY;UNTIL=20260306T103000Z", anchor="2026-03-05T10:30:00Z")
    assert following(found, NOW) == ["2026-03-05T10:30:00Z", "2026-03-06T10:30:00Z"]
    assert found.warnings == ()


def test_a_rule_that_is_over_is_accepted_with_a_warning():
    found = checked(rrule="FREQ=DAILY;COUNT=2", anchor="2026-02-05T10:30:00Z")
    assert found.warnings == ("/trigger/rrule: is over, so nothing is due any more",)
