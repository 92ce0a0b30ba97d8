"""`after_catalog`: a command that names a position of the catalog is judged by what the catalog says there or later."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler import delays
from schemas.facts import CommandRejected, Position, RunCreated, ScheduleAccepted, SchedulePaused, ScheduleResumed
from schemas.scheduling import CatalogAwaited, CommandDelayed
from tests.scheduler.harness import Shell, at, definition

JOB = {"target": {"type": "task", "name": "t"}}
ANY: dict[str, Any] = {"overlap": {"policy": "allow_all"}}
OF_JOB: dict[str, Any] = {"trigger": {"cron": "* * * * *"}, "job": "j", **ANY}


def a_job_is_on_its_way(now: str = "2024-01-01T10:00:10") -> Shell:
    """It stands in the catalog, written by transaction 7 of this owner, and is not read yet."""
    shell = Shell(now)
    shell.settle()
    shell.send("JobPut", name="j", definition=JOB)
    return shell


def test_a_command_whose_record_is_adopted_is_judged_at_once():
    shell = a_job_is_on_its_way()
    shell.catalog("scheduler-0-7")
    shell.put(body=OF_JOB, after_catalog="scheduler-0-7")
    assert (shell.answer().status, shell.answer().body["warnings"]) == (201, [])
    assert shell.all(CommandDelayed) == []


def test_a_later_record_of_the_same_owner_will_do():
    shell = a_job_is_on_its_way()
    shell.catalog("scheduler-0-12")
    shell.put(body=OF_JOB, after_catalog="scheduler-0-9")
    assert shell.answer().status == 201


def test_the_record_of_another_owner_will_not():
    shell = a_job_is_on_its_way()
    shell.catalog("scheduler-1-12")
    shell.put(body=OF_JOB, after_catalog="scheduler-0-9")
    assert len(shell.all(CommandDelayed)) == 1


def test_positions_are_compared_as_numbers():
    shell = a_job_is_on_its_way()
    shell.catalog("scheduler-0-9")
    shell.put(body=OF_JOB, after_catalog="scheduler-0-10")
    assert len(shell.all(CommandDelayed)) == 1


def test_a_command_read_before_its_record_is_judged_when_both_are_read():
    shell = a_job_is_on_its_way()
    assert [type(fact) for fact in shell.put(body=OF_JOB, after_catalog="scheduler-0-7")] == [CommandDelayed]
    shell.catalog("scheduler-0-7")
    shell.settle()
    assert (shell.answer().status, shell.answer().body["warnings"]) == (201, [])
    shell.until("2024-01-01T10:01:00")
    assert shell.created() == ["10:01"]


def test_a_record_that_comes_late_is_noticed_within_a_quarter_of_a_second():
    shell = a_job_is_on_its_way()
    shell.put(body=OF_JOB, after_catalog="scheduler-0-7")
    shell.until("2024-01-01T10:00:12.100")
    assert shell.all(ScheduleAccepted) == []
    shell.catalog("scheduler-0-7")
    shell.until("2024-01-01T10:00:12.350")
    assert shell.answer().status == 201


def test_a_record_that_does_not_come_within_five_seconds_is_a_refusal_that_names_the_field():
    shell = a_job_is_on_its_way()
    shell.put(body=OF_JOB, after_catalog="scheduler-3-99")
    shell.until("2024-01-01T10:00:14.999")
    assert shell.all(CommandRejected) == []
    shell.until("2024-01-01T10:00:15")
    (rejected,) = shell.all(CommandRejected)
    assert (rejected.reason, rejected.position.offset) == ("catalog_not_adopted", 2)
    assert [(fault.pointer, fault.code) for fault in rejected.faults] == [("/data/after_catalog", "not_adopted")]
    assert rejected.faults[0].message == "no record of scheduler-3-99 was read from the catalog within 5 s"
    assert (shell.answer().status, shell.answer().reply_to) == (409, 3)
    assert not shell.schedule().exists


def test_waiting_in_vain_costs_some_twenty_decisions():
    shell = a_job_is_on_its_way()
    shell.put(after_catalog="scheduler-3-99")
    shell.until("2024-01-01T10:01:00")
    assert len(shell.all(CatalogAwaited)) == 20


def test_a_command_that_waited_takes_effect_when_it_was_published():
    shell = a_job_is_on_its_way("2024-01-01T10:00:10")
    shell.put(body=definition(**ANY, grace="PT1H"))
    shell.sleep_until("2024-01-01T10:05:30")
    shell.send("SchedulePause", published="2024-01-01T10:02:30", after_catalog="scheduler-0-7")
    shell.catalog("scheduler-0-7")
    shell.settle()
    assert shell.all(SchedulePaused)[0].effective_at == at("2024-01-01T10:02:30")
    assert shell.created() == ["10:01@10:05:30", "10:02@10:05:30"]
    assert shell.skipped() == ["10:03..10:05 x3 paused"]


def test_occurrences_do_not_wait_for_a_record_that_is_not_there_and_are_not_decided_twice():
    shell = a_job_is_on_its_way()
    shell.put(body=definition(**ANY))
    shell.until("2024-01-01T10:00:58")
    shell.send("SchedulePause", after_catalog="scheduler-0-7")
    shell.until("2024-01-01T10:01:01")
    assert shell.created() == ["10:01"]
    shell.catalog("scheduler-0-7")
    shell.until("2024-01-01T10:02:30")
    assert shell.all(SchedulePaused)[0].effective_at == at("2024-01-01T10:01:00")
    assert shell.created() == ["10:01"]


def test_no_command_overtakes_one_of_its_schedule_that_waits():
    shell = a_job_is_on_its_way()
    shell.put(body=definition())
    shell.send("SchedulePause", after_catalog="scheduler-0-7")
    shell.until("2024-01-01T10:00:11")
    shell.send("ScheduleResume")
    shell.put(body=definition("*/2 * * * *"), after_catalog="scheduler-0-7")
    assert [type(fact) for fact in shell.facts[-2:]] == [CommandDelayed, CommandDelayed]
    shell.catalog("scheduler-0-7")
    shell.until("2024-01-01T10:00:12")
    changes = [fact for fact in shell.facts if isinstance(fact, SchedulePaused | ScheduleResumed | ScheduleAccepted)]
    assert [type(fact) for fact in changes] == [ScheduleAccepted, SchedulePaused, ScheduleResumed, ScheduleAccepted]
    assert [fact.effective_at for fact in changes[1:]] == [
        at("2024-01-01T10:00:10"),
        at("2024-01-01T10:00:11"),
        at("2024-01-01T10:00:11"),
    ]


def test_commands_of_other_schedules_do_not_wait():
    shell = a_job_is_on_its_way()
    shell.put(after_catalog="scheduler-0-7")
    shell.put("other")
    assert shell.answer().status == 201


def test_those_behind_a_command_that_waits_in_vain_are_judged_when_it_is_refused():
    shell = a_job_is_on_its_way()
    shell.put(body=definition())
    shell.send("SchedulePause", after_catalog="scheduler-3-99")
    shell.until("2024-01-01T10:00:12")
    shell.send("ScheduleTrigger")
    shell.send("ScheduleDelete", after_catalog="scheduler-3-99")
    shell.until("2024-01-01T10:00:15")
    assert [fact.reason for fact in shell.all(CommandRejected)] == ["catalog_not_adopted"]
    assert shell.created() == ["manual"]
    shell.until("2024-01-01T10:00:17")
    assert [fact.reason for fact in shell.all(CommandRejected)] == ["catalog_not_adopted"] * 2


def test_a_command_that_waits_survives_a_restart_whole():
    shell = a_job_is_on_its_way()
    shell.put(body=definition())
    shell.send("ScheduleTrigger", id="one", payload={"a": [1, None]}, overlap="skip", after_catalog="scheduler-0-7")
    shell.send("ScheduleResume", reply_to=9)
    shell.reload()
    shell.catalog("scheduler-0-7")
    shell.reload()
    shell.settle()
    run = shell.last_run()
    assert (run.command_id, run.job.payload) == ("one", {"a": [1, None]})
    assert shell.answer().reply_to == 9
    assert [row for row in shell.rows[b"s/acme/s"].data if row.startswith(b"a/")] == []


def test_the_same_command_again_waits_with_the_first_and_is_answered_as_it_is():
    shell = a_job_is_on_its_way()
    shell.put(body=OF_JOB, id="one", after_catalog="scheduler-0-7")
    shell.put(body=OF_JOB, id="one", after_catalog="scheduler-0-7", reply_to=8)
    shell.catalog("scheduler-0-7")
    shell.settle()
    assert len(shell.all(ScheduleAccepted)) == 1
    assert (shell.answer().reply_to, shell.answer().status) == (8, 201)


def test_a_command_that_was_answered_is_answered_again_without_waiting():
    shell = a_job_is_on_its_way()
    shell.put(id="one")
    shell.send("SchedulePause", after_catalog="scheduler-0-7")
    assert shell.put(id="one") == [shell.answer()]


def test_conditions_are_judged_when_the_waiting_is_over():
    shell = a_job_is_on_its_way()
    shell.put(body=definition())
    shell.put(body=definition("*/2 * * * *"), after_catalog="scheduler-0-7")
    shell.put(body=definition("*/3 * * * *"), expected_version=1)
    shell.catalog("scheduler-0-7")
    shell.settle()
    assert (shell.answer().status, shell.answer().body["version"]) == (412, 2)


def test_commands_about_jobs_may_wait_too():
    shell = a_job_is_on_its_way()
    shell.send("JobPut", name="k", definition=JOB, after_catalog="scheduler-0-7")
    shell.send("JobDelete", name="k")
    shell.catalog("scheduler-0-7")
    shell.reload()
    shell.settle()
    assert (shell.answer().status, shell.answer().body["state"]) == (200, "deleted")
    shell.send("JobPut", name="k", definition=JOB, after_catalog="scheduler-3-99")
    shell.until("2024-01-01T10:00:15")
    assert shell.answer().body["reason"] == "catalog_not_adopted"


def test_how_many_may_wait_is_bounded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(delays, "DELAYED_MAX", 3)
    shell = a_job_is_on_its_way()
    shell.put(after_catalog="scheduler-3-99")
    for _ in range(3):
        shell.send("SchedulePause")
    assert (shell.answer().status, shell.answer().body["reason"]) == (429, "too_many_delayed")
    assert shell.schedule().delays.count == 3


@pytest.mark.parametrize(
    "position", ["", "7", "scheduler-0", "scheduler-0-x", "scheduler-00-7", "dispatcher-0-7", "scheduler-0-7 "]
)
def test_what_is_no_position_of_the_catalog_is_refused_at_once(position):
    shell = Shell()
    shell.put(after_catalog=position)
    assert [(f.pointer, f.code) for f in shell.answer().faults] == [("/data/after_catalog", "position")]


def test_a_trigger_waits_for_its_job():
    """The order of the log is not the order of the sender: the job was put first, its record is read last."""
    shell = a_job_is_on_its_way()
    shell.put(body=OF_JOB)
    shell.send("ScheduleTrigger", after_catalog="scheduler-0-7")
    shell.catalog("scheduler-0-7")
    shell.settle()
    assert shell.answer().status == 201
    assert len(shell.all(RunCreated)) == 1


def test_a_refusal_names_where_the_command_stood():
    shell = a_job_is_on_its_way()
    shell.put(after_catalog="scheduler-3-99")
    shell.until("2024-01-01T10:00:15")
    (rejected,) = shell.all(CommandRejected)
    assert rejected.position == Position(topic="tidewheel.schedule-changes", partition=0, offset=2)
