"""Each occurrence is decided by what was in force at its instant: a part of I20."""

from typing import Any

from simulation.checkers import in_force
from tests.simulation.checkers.given import Given, calm, created, event, of_schedule, told, z


def accepted(version: int, at: str, **other: Any) -> dict[str, Any]:
    said: dict[str, Any] = {"version": version, "definition": {}, "effective_at": z(at)}
    return of_schedule("schedule.accepted", **said | other)


def change(verb: str, at: str, **other: Any) -> dict[str, Any]:
    return of_schedule(f"schedule.{verb}", version=1, effective_at=z(at), **other)


def skipped(first: str, behind: str = "", reason: str = "paused", version: int = 1) -> dict[str, Any]:
    span = {"range": {"from": z(first), "to": z(behind), "count": 2}} if behind else {"nominal_time": z(first)}
    return of_schedule("occurrence.skipped", version=version, reason=reason, **span)


def recovery(to: str) -> dict[str, Any]:
    return event("recovery.started", role="scheduler", partition=0, from_=z("12:00:00"), to=z(to))


FIRST = accepted(1, "12:00:00", created=True)


def found(*facts: dict[str, Any]) -> list[str]:
    given = Given()
    given.transaction("scheduler", "12:01:00", [FIRST, *facts])
    return [
        line.removeprefix("I20 scheduler-changelog-0@0: acme/s ") for line in told(in_force.check(given.evidence()))
    ]


def test_a_calm_history_has_no_failures():
    assert told(in_force.check(calm().evidence())) == []


def test_the_version_before_decides_up_to_the_instant_of_the_next_one():
    second = accepted(2, "12:00:10")
    assert found(created("12:00:05"), second, created("12:00:10"), created("12:00:15", version=2)) == []
    assert found(second, created("12:00:10", version=2)) == ["of 12:00:10 is decided by version 2, not by 1"]
    assert found(second, created("12:00:15")) == ["of 12:00:15 is decided by version 1, not by 2"]


def test_a_range_that_reaches_into_the_time_of_the_next_version_is_found():
    second = accepted(2, "12:00:10")
    assert found(second, skipped("12:00:05", "12:00:11", "catch_up")) == []
    assert found(second, skipped("12:00:05", "12:00:16", "catch_up")) == [
        "of 12:00:15 is decided by version 1, not by 2"
    ]


def test_what_is_skipped_for_a_pause_is_due_in_one():
    pause, resumption = change("paused", "12:00:07"), change("resumed", "12:00:12")
    assert found(pause, resumption, skipped("12:00:10")) == []
    assert found(pause, skipped("12:00:05")) == ["of 12:00:05 is skipped for a pause, and there was none"]
    assert found(pause, resumption, skipped("12:00:15")) == ["of 12:00:15 is skipped for a pause, and there was none"]
    assert found(pause, resumption, skipped("12:00:10", "12:00:16")) == [
        "of 12:00:15 is skipped for a pause, and there was none"
    ]


def test_what_was_missed_by_the_end_of_a_recovery_in_a_pause_is_skipped_for_it():
    pause = change("paused", "12:00:07")
    assert found(pause, recovery("12:00:20"), skipped("12:00:05")) == []
    assert found(pause, recovery("12:00:06"), skipped("12:00:05")) != []


def test_a_pause_may_come_while_an_occurrence_waits_for_its_jitter():
    jittered = accepted(2, "12:00:01", definition={"trigger": {"jitter": "PT5S"}})
    pause = change("paused", "12:00:07")
    assert found(jittered, pause, skipped("12:00:05", version=2)) == []


def test_a_pause_of_its_own_may_lie_before_a_resumption_that_is_known():
    resumption, own = change("resumed", "12:00:12"), change("paused", "12:00:07", reason="failures")
    assert found(resumption, own, skipped("12:00:10"), created("12:00:15")) == []
    assert found(resumption, own, skipped("12:00:15")) != []


def test_a_pause_of_the_instant_of_a_resumption_that_came_before_it_is_in_force():
    resumption, pause = change("resumed", "12:00:07"), change("paused", "12:00:07")
    assert found(resumption, pause, skipped("12:00:10")) == []


def test_a_change_that_reaches_back_behind_a_decision_is_found():
    ran = created("12:00:10")
    assert found(ran, change("paused", "12:00:10")) == []
    assert found(ran, change("paused", "12:00:09")) == [
        "schedule.paused takes effect at 12:00:09.000000, and 12:00:10 was decided before it"
    ]
    waits = of_schedule("occurrence.deferred", version=1, nominal_time=z("12:00:10"), reason="overlap")
    assert len(found(waits, change("resumed", "12:00:09"))) == 1
    by_hand = created("12:00:10", cause="manual")
    assert found(by_hand, change("paused", "12:00:09")) == []


def test_what_waits_was_decided_when_it_began_to():
    waits = of_schedule("occurrence.deferred", version=1, nominal_time=z("12:00:05"), reason="overlap")
    assert found(waits, accepted(2, "12:00:06"), skipped("12:00:05")) == []
