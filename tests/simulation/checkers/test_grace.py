"""What is only late is not missed: a part of I20."""

from typing import Any

from simulation.checkers import grace
from tests.simulation.checkers.given import Given, calm, created, event, of_schedule, told, z

RECOVERY = event("recovery.started", subject="_/scheduler-0", from_=z("12:00:05"), to=z("12:05:00"))
OVER = event("recovery.finished", subject="_/scheduler-0", from_=z("12:00:05"), to=z("12:05:00"))


def found(*facts: dict[str, Any]) -> list[str]:
    given = Given()
    accepted = of_schedule("schedule.accepted", version=1, definition={"grace": "PT2M"})
    given.transaction("scheduler", "12:05:00", [accepted, *facts])
    return [line.partition(": ")[2] for line in told(grace.check(given.evidence()))]


def skipped(reason: str = "catch_up", **when: Any) -> dict[str, Any]:
    return of_schedule("occurrence.skipped", version=1, reason=reason, **when)


def test_a_calm_history_misses_nothing():
    assert told(grace.check(calm().evidence())) == []


def test_what_is_older_than_its_grace_at_the_end_of_the_recovery_is_missed():
    assert found(RECOVERY, skipped(nominal_time=z("12:02:59"))) == []
    assert found(RECOVERY, skipped(range={"from": z("12:00:05"), "to": z("12:03:00")})) == []
    assert found(RECOVERY, created("12:02:59", cause="catch_up")) == []


def test_what_is_within_its_grace_and_was_taken_for_missed_is_found():
    assert found(RECOVERY, skipped(nominal_time=z("12:03:00"))) == [
        "acme/s of 12:03:00 is skipped as missed of the recovery to 12:05:00.000000, within its grace of 0:02:00"
    ]
    assert len(found(RECOVERY, skipped(range={"from": z("12:00:05"), "to": z("12:03:01")}))) == 1
    assert len(found(RECOVERY, created("12:03:00", cause="catch_up"))) == 1


def test_outside_of_a_recovery_nothing_is_missed():
    assert found(skipped(nominal_time=z("12:00:05"))) == [
        "acme/s of 12:00:05 is skipped as missed outside of any, within its grace of 0:02:00"
    ]
    assert len(found(RECOVERY, OVER, created("12:00:05", cause="catch_up"))) == 1


def test_what_was_missed_and_is_created_as_if_it_were_on_time_is_found():
    assert found(RECOVERY, created("12:02:59")) == [
        "acme/s of 12:02:59 was missed by 12:05:00.000000, and is created as if it were on time"
    ]
    assert found(RECOVERY, created("12:03:00")) == []


def test_what_waited_for_its_turn_was_judged_before_and_other_reasons_are_no_misses():
    deferred = of_schedule("occurrence.deferred", version=1, nominal_time=z("12:00:05"), reason="buffered")
    assert found(RECOVERY, deferred, OVER, created("12:00:05", cause="catch_up")) == []
    assert found(RECOVERY, deferred, OVER, skipped(nominal_time=z("12:00:05"))) == []
    assert found(skipped("overlap", nominal_time=z("12:00:05"))) == []


def test_what_a_jitter_can_have_made_late_is_as_young_as_the_jitter_is_long():
    jittered = of_schedule(
        "schedule.accepted",
        version=1,
        definition={"grace": "PT2M", "trigger": {"cron": "* * * * *", "jitter": "PT30S"}},
    )
    assert found(jittered, RECOVERY, created("12:02:30")) == []
    assert len(found(jittered, RECOVERY, created("12:02:29"))) == 1
