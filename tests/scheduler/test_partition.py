"""What all keys of a partition share: the tz database, the catalog, a recovery."""

from __future__ import annotations

from typing import Any

import pytest

from runtime.machine import PARTITION, Reached
from scheduler import TzVersionTooOld
from scheduler.core import SchedulerCore
from schemas import topics
from schemas.facts import (
    CatalogAdopted,
    CatalogEntry,
    HistoryTrimmed,
    OccurrenceDeferred,
    OccurrenceSkipped,
    RecoveryFinished,
    RecoveryStarted,
    RunCreated,
    TzAdopted,
)
from schemas.scheduling import TzRulesNoted
from tests.scheduler.harness import ONE, TZ, Shell, at, definition

ANY: dict[str, Any] = {"overlap": {"policy": "allow_all"}}
JOB = {"target": {"type": "task", "name": "t"}}


# --- the tz database ----------------------------------------------------------------------------------------------


def test_a_new_partition_says_which_tz_database_it_decides_with():
    shell = Shell("2024-01-01T10:00:00")
    shell.settle()
    adopted, rules = shell.facts
    assert isinstance(rules, TzRulesNoted)
    assert adopted == TzAdopted(
        role="scheduler", partition=0, version="2026f", adopted_at=at("2024-01-01T10:00:00"), previous=None
    )
    shell.settle()
    assert len(shell.facts) == 2


def test_a_newer_database_is_adopted_before_anything_is_decided_with_it():
    shell = Shell("2024-01-01T10:00:10")
    shell.put(body=definition(**ANY))
    shell.until("2024-01-01T10:01:00")
    shell.core = SchedulerCore(ONE, 0, "2027a")
    shell.until("2024-01-01T10:02:00")
    adopted = shell.facts.index(shell.all(TzAdopted)[1])
    assert shell.all(TzAdopted)[1].previous == TZ
    assert [run.tz_version for run in shell.all(RunCreated)] == ["2026f", "2027a"]
    assert adopted < shell.facts.index(shell.last_run())


def test_every_decision_names_version_rule_and_tz_database():
    """A run, an occurrence that waits, and one that is skipped: each by version 2."""
    shell = Shell("2024-01-01T10:00:10")
    shell.put(body=definition())
    shell.put(body=definition("*/1 * * * *", overlap={"policy": "buffer_one"}))
    shell.until("2024-01-01T10:03:00")
    decisions: list[Any] = [*shell.all(RunCreated), *shell.all(OccurrenceDeferred), *shell.all(OccurrenceSkipped)]
    named = [(type(each).__name__, each.version, each.rule, each.tz_version) for each in decisions]
    assert named == [
        ("RunCreated", 2, "cron */1 * * * * UTC", "2026f"),
        ("OccurrenceDeferred", 2, "cron */1 * * * * UTC", "2026f"),
        ("OccurrenceSkipped", 2, "cron */1 * * * * UTC", "2026f"),
    ]


def test_a_process_with_an_older_database_must_not_decide_here():
    shell = Shell()
    shell.settle()
    with pytest.raises(TzVersionTooOld, match="install tzdata 2026f or newer"):
        SchedulerCore(ONE, 0, "2026a").load(PARTITION, shell.rows[PARTITION])


def test_once_a_day_a_partition_says_how_far_back_its_decisions_can_be_read():
    shell = Shell("2024-01-01T00:00:00")
    shell.put(body=definition("0 */6 * * *", **ANY))
    shell.until("2024-02-03T00:00:00")
    assert [fact.until for fact in shell.all(HistoryTrimmed)] == [
        at("2024-01-02T00:00:00"),
        at("2024-01-03T00:00:00"),
        at("2024-01-04T00:00:00"),
    ]


# --- the catalog --------------------------------------------------------------------------------------------------


def test_a_job_goes_to_the_catalog_and_comes_back_as_an_event_of_the_partition():
    shell = Shell()
    shell.send("JobPut", name="j", definition=JOB)
    (entry,) = shell.to(topics.CATALOG)
    assert isinstance(entry, CatalogEntry)
    assert (entry.kind, entry.tenant, entry.name, entry.version) == ("job", "acme", "j", 1)
    shell.catalog()
    (adopted,) = shell.all(CatalogAdopted)
    assert adopted.entries == (entry,)
    assert shell.shared.catalog_offset == adopted.offset


def test_a_catalog_record_that_is_read_again_is_not_adopted_again():
    shell = Shell()
    shell.send("JobPut", name="j", definition=JOB)
    shell.catalog()
    shell.offset -= 1
    shell.send("JobPut", name="j", definition=JOB | {"queue": "q"})
    shell.offset -= 1
    before = len(shell.all(CatalogAdopted))
    shell.catalog()
    assert len(shell.all(CatalogAdopted)) == before


def test_a_job_has_versions_and_the_same_again_is_none():
    shell = Shell()
    shell.send("JobPut", name="j", definition=JOB)
    shell.send("JobPut", name="j", definition=JOB)
    assert (shell.answer().status, shell.answer().body["changed"]) == (200, False)
    shell.send("JobPut", name="j", definition=JOB | {"queue": "q"}, expected_version=1)
    assert (shell.answer().status, shell.answer().body["version"]) == (200, 2)
    shell.send("JobPut", name="j", definition=JOB, expected_version=1)
    assert shell.answer().status == 412
    shell.send("JobDelete", name="j")
    assert (shell.answer().status, shell.answer().body["state"]) == (200, "deleted")
    shell.send("JobDelete", name="j")
    assert shell.answer().status == 404
    shell.send("JobPut", name="j", definition=JOB)
    assert (shell.answer().status, shell.answer().body["version"]) == (201, 4)


def test_a_job_is_refused_with_every_fault():
    shell = Shell()
    shell.send("JobPut", name="j", definition={"queue": "a b", "target": {"type": "task", "name": "t"}})
    assert [fault.pointer for fault in shell.answer().faults] == ["/data/definition/queue"]
    shell.send("JobPut", name="j", definition=JOB | {"payload": {"x": "{{ now }}"}})
    assert [(f.pointer, f.code) for f in shell.answer().faults] == [("/data/definition/payload/x", "unknown_template")]


def test_adopted_jobs_survive_a_restart():
    shell = Shell("2024-01-01T10:00:10")
    shell.send("JobPut", name="j", definition=JOB)
    shell.catalog()
    shell.put(body={"trigger": {"cron": "* * * * *"}, "job": "j"})
    shell.reload()
    shell.until("2024-01-01T10:01:00")
    assert shell.created() == ["10:01"]


# --- a recovery ---------------------------------------------------------------------------------------------------


def two_schedules_and_an_hour_without_power() -> Shell:
    shell = Shell("2024-01-01T10:00:10")
    shell.put("a", body=definition("*/10 * * * *", **ANY, catch_up={"policy": "all"}))
    shell.put("b", body=definition("*/20 * * * *", **ANY, catch_up={"policy": "latest"}))
    shell.until("2024-01-01T10:05:00")
    shell.sleep_until("2024-01-01T11:05:00")
    return shell


def test_a_recovery_is_logged_once_for_all_schedules_of_the_partition():
    shell = two_schedules_and_an_hour_without_power()
    shell.until("2024-01-01T11:05:01")
    assert len(shell.all(RecoveryStarted)) == len(shell.all(RecoveryFinished)) == 1
    assert shell.created("a") == [
        "10:10@11:05", "10:20@11:05:00.100", "10:30@11:05:00.200", "10:40@11:05:00.300", "10:50@11:05:00.400",
        "11:00@11:05:00.500",
    ]  # fmt: skip
    assert shell.created("b") == ["11:00@11:05:00.060"], "the seventh of its tenant, of a hundred a second"
    assert shell.skipped("b") == ["10:20..10:40 x2 catch_up"]


def test_age_is_measured_against_the_end_of_the_recovery_however_long_the_deciding_takes():
    shell = two_schedules_and_an_hour_without_power()
    shell.settle(2)
    shell.now = at("2024-01-01T11:08:00")
    shell.reload()
    shell.settle()
    assert len(shell.all(RecoveryStarted)) == 1
    assert shell.created("b") == ["11:00@11:08"], "not 11:00 as the latest of a later recovery"


def test_a_recovery_is_over_when_the_partition_has_reached_its_end_and_not_before():
    shell = two_schedules_and_an_hour_without_power()
    shell.settle(2)
    shell.decide(PARTITION, Reached(until=at("2024-01-01T11:04:59")))
    assert shell.shared.recovery is not None
    shell.decide(PARTITION, Reached(until=at("2024-01-01T11:05:00")))
    assert shell.shared.recovery is None


def test_what_becomes_due_during_a_recovery_is_on_time():
    shell = two_schedules_and_an_hour_without_power()
    shell.settle(2)
    shell.now = at("2024-01-01T11:12:00")
    shell.settle()
    runs = {run.nominal_time: run.cause for run in shell.all(RunCreated, "a")}
    assert runs[at("2024-01-01T11:10:00")] == "schedule"
    assert runs[at("2024-01-01T11:00:00")] == "catch_up"


def test_late_is_not_missed_and_needs_no_recovery():
    shell = Shell("2024-01-01T10:00:10")
    shell.put(body=definition("*/10 * * * *", grace="PT10M", **ANY))
    shell.until("2024-01-01T10:05:00")
    shell.sleep_until("2024-01-01T10:20:00")
    shell.settle()
    assert shell.all(RecoveryStarted) == []
    assert shell.created() == ["10:10@10:20", "10:20"]


def test_what_is_caught_up_counts_its_deadline_from_its_creation():
    shell = two_schedules_and_an_hour_without_power()
    shell.until("2024-01-01T11:05:01")
    run = shell.last_run("b")
    assert (run.cause, run.due_at, run.deadline_at) == (
        "catch_up",
        at("2024-01-01T11:00:00"),
        at("2024-01-08T11:05:00.060"),
    )


def test_a_schedule_that_was_paused_before_it_could_be_caught_up_starts_nothing():
    shell = two_schedules_and_an_hour_without_power()
    shell.send("SchedulePause", name="a", published="2024-01-01T10:35:00")
    shell.send("ScheduleDelete", name="b", published="2024-01-01T10:45:00")
    shell.settle()
    assert shell.created("a") == shell.created("b") == []
    assert shell.skipped("a") == ["10:10..10:30 x3 paused", "10:40..11:00 x3 paused"]
    assert shell.skipped("b") == ["10:20..10:40 x2 ended"]


def test_the_latest_is_looked_for_across_versions():
    shell = Shell("2024-01-01T10:00:10")
    shell.put(body=definition("*/10 * * * *", **ANY))
    shell.until("2024-01-01T10:05:00")
    shell.sleep_until("2024-01-01T11:05:00")
    shell.put(body=definition("*/15 * * * *", **ANY), published="2024-01-01T10:35:00")
    shell.settle()
    assert shell.created() == ["11:00@11:05"]
    assert [(fact.version, fact.range.count if fact.range else 1) for fact in shell.all(OccurrenceSkipped)] == [
        (1, 3),
        (2, 1),
    ]


def test_what_is_late_is_not_skipped_with_what_is_missed():
    shell = Shell("2024-01-01T10:00:10")
    shell.put(body=definition(grace="PT3M", **ANY))
    shell.sleep_until("2024-01-01T11:00:30")
    shell.settle()
    assert shell.skipped() == ["10:01..10:57 x57 catch_up"]
    assert shell.created() == ["10:58@11:00:30", "10:59@11:00:30", "11:00@11:00:30"]


def test_a_window_is_exact_to_the_millisecond():
    shell = Shell("2024-01-01T10:00:10")
    shell.put(body=definition(catch_up={"policy": "all", "window": "PT5M"}, **ANY))
    shell.sleep_until("2024-01-01T11:00:00.500")
    shell.settle()
    assert shell.skipped() == ["10:01..10:55 x55 catch_up"]


def test_a_week_of_seconds_that_nobody_wants_back_costs_a_record_a_day():
    shell = Shell("2024-01-01T00:00:00")
    shell.put(body=definition("* * * * * *", **ANY, catch_up={"policy": "skip"}))
    shell.sleep_until("2024-01-08T00:00:00")
    shell.settle()
    skipped = shell.all(OccurrenceSkipped)
    assert len(skipped) == 7
    assert sum(fact.range.count for fact in skipped if fact.range) == 7 * 86_400 - 61
    assert len(shell.created()) == 61, "the last minute is late, not missed"
