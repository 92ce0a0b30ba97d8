"""A schedule may be known further than its partition has answered, and a recovery may reach further than a schedule.

Then nothing that was missed is decided: a pause that is not read yet may be in force at the end of the recovery.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from runtime.machine import Moment, Woken
from schemas.facts import Fact, OccurrenceSkipped, RecoveryStarted, RunCreated
from tests.scheduler.harness import Shell, at, definition

A, B = b"s/acme/a", b"s/acme/b"
NOON = "2024-01-01T12:00:00"


def shell() -> Shell:
    """Two schedules of every minute, at noon, and then an hour in which nobody decides."""
    shell = Shell(NOON)
    shell.put("a", definition(catch_up={"policy": "latest"}))
    shell.put("b", definition(catch_up={"policy": "latest"}))
    shell.settle()
    shell.sleep_until("2024-01-01T13:00:00")
    return shell


def wake(shell: Shell, key: bytes, read_until: str, known_until: str | None = None) -> list[Fact]:
    """One step of a key, at one o'clock."""
    known = None if known_until is None else at(known_until)
    moment = Moment(now=shell.now, read_until=at(read_until), known_until=known)
    facts = list(shell.core.decide(shell.state(key), Woken(), moment, shell.shared))
    for fact in facts:
        shell.apply(fact)
    return facts


def nominal(facts: list[Fact]) -> list[datetime | None]:
    return [fact.nominal_time for fact in facts if isinstance(fact, RunCreated)]


def test_what_is_due_behind_what_the_partition_has_read_is_decided_where_it_is_known() -> None:
    """The log was read up to noon; of this schedule it is known that nobody has said anything up to 12:01:30."""
    facts = wake(shell(), A, NOON, "2024-01-01T12:01:30")
    assert nominal(facts) == [at("2024-01-01T12:01:00")]


def test_a_recovery_reaches_as_far_as_the_schedule_is_known_that_began_it() -> None:
    """So its age, and what it has missed, is measured against that."""
    (fact,) = wake(shell(), A, "2024-01-01T12:10:00", "2024-01-01T12:30:00")
    assert isinstance(fact, RecoveryStarted)
    assert (fact.from_, fact.to) == (at("2024-01-01T12:01:00"), at("2024-01-01T12:30:00"))


def test_what_was_missed_waits_until_the_schedule_is_known_up_to_the_end_of_the_recovery() -> None:
    """`b` has a record that is not answered, published between 12:10 and 12:30: it could be a pause."""
    shell_ = shell()
    wake(shell_, A, "2024-01-01T12:10:00", "2024-01-01T12:30:00")
    assert wake(shell_, B, "2024-01-01T12:10:00") == []
    shell_.send("SchedulePause", name="b", published="2024-01-01T12:15:00")
    facts = wake(shell_, B, "2024-01-01T12:10:00", "2024-01-01T12:30:00")
    skips = [fact for fact in facts if isinstance(fact, OccurrenceSkipped)]
    assert [(skip.reason.value, skip.range.count if skip.range else 1) for skip in skips] == [("paused", 15)]


def test_what_is_not_missed_is_decided_before_the_end_of_a_recovery_is_known() -> None:
    """Late by less than its grace at the end of the recovery: it has its run, whatever is said later."""
    shell_ = Shell("2024-01-01T12:29:30")
    shell_.put("a", definition())
    shell_.put("b", definition())
    shell_.settle()
    shell_.sleep_until("2024-01-01T13:00:00")
    shell_.apply(
        RecoveryStarted(
            role="scheduler", partition=0, from_=at(NOON), to=at("2024-01-01T12:30:45"), tenant_rate="100/s"
        )
    )
    facts = wake(shell_, B, "2024-01-01T12:30:00")
    assert nominal(facts) == [at("2024-01-01T12:30:00")]
    assert shell_.now - at("2024-01-01T12:30:45") > timedelta(minutes=1)
