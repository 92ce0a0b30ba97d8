"""What time takes from a worker it takes against the evidence: a part of I22."""

from typing import Any

from simulation.checkers import against, evidence_first
from tests.simulation.checkers.given import Given, calm, created, ended, event, handed_out, started, told, z


def found(given: Given) -> list[str]:
    return told(against.check(given.evidence()))


def held(*facts: dict[str, Any]) -> Given:
    """Hand-out 0 of 12:00:05, whose lease is good for 30 s and whose attempt may take 20 s; and what follows it."""
    given = Given()
    handout = handed_out(created(), 0, handed_out_at=z("12:00:05"), lease_duration="PT30S", timeout="PT20S")
    given.transaction("dispatcher", "12:00:05", [created(), handout, *facts])
    return given


def reported(at: str, *, read_up_to: int = 0) -> dict[str, Any]:
    return event("worker.reported", incarnation="incarnation-1", read_up_to=read_up_to, reported_at=z(at))


def over(given: Given, outcome: str, *, read_until: str, **other: Any) -> list[str]:
    end = ended(0, outcome, incarnation="incarnation-1", finished_at=z("12:01:00"), **other)
    given.transaction("dispatcher", "12:01:00", [end], read_until=read_until)
    return found(given)


def test_a_calm_history_takes_nothing_from_anybody():
    assert found(calm()) == []


def test_a_lease_may_end_when_all_reports_up_to_its_end_are_read():
    assert over(held(), "lease_expired", read_until="12:00:35") == []


def test_a_lease_that_ends_while_reports_from_before_its_end_may_be_unread_is_found():
    given = held()
    said = (
        "I22 dispatcher-changelog-0@2: hand-out 0 is lease_expired: it was good until 12:00:35.000000, and reports are "
        "read up to 12:00:34.000000"
    )
    assert over(given, "lease_expired", read_until="12:00:34") == [said]
    assert said in told(evidence_first.check(given.evidence()))


def test_a_report_renews_what_its_worker_has_read_of():
    assert len(over(held(reported("12:00:20")), "lease_expired", read_until="12:00:49")) == 1
    assert over(held(reported("12:00:20")), "lease_expired", read_until="12:00:50") == []
    assert over(held(reported("12:00:20", read_up_to=-1)), "lease_expired", read_until="12:00:35") == []


def test_an_attempt_that_is_timed_out_before_the_evidence_is_there_is_found():
    begun = started(0, incarnation="incarnation-1", started_at=z("12:00:10"))
    assert len(over(held(begun), "timed_out", read_until="12:00:29")) == 1
    assert over(held(begun), "timed_out", read_until="12:00:30") == []
    assert over(held(begun), "timed_out", read_until="12:00:20", error={"type": "deadline"}) == []


def test_what_a_worker_says_itself_needs_no_evidence():
    assert over(held(), "succeeded", read_until="12:00:06") == []
