"""When a command takes effect: when it was published, whenever its owner gets to it, and never for what is decided."""

from typing import Any

import pytest

from schemas import topics
from schemas.facts import (
    CommandRejected,
    OccurrenceSkipped,
    RunCreated,
    ScheduleAccepted,
    ScheduleDeleted,
    SchedulePaused,
    ScheduleResumed,
)
from schemas.internal import ScheduleCurrent, ScheduleVersion
from tests.scheduler.harness import Shell, at, definition

ANY: dict[str, Any] = {"overlap": {"policy": "allow_all"}}
EVERY_MINUTE = definition(**ANY)


def test_a_pause_published_during_an_outage_holds():
    shell = Shell("2024-01-01T10:00:10")
    shell.put(body=definition(**ANY, catch_up={"policy": "all"}, grace="PT1H"))
    shell.until("2024-01-01T10:01:30")
    shell.sleep_until("2024-01-01T10:06:30")
    shell.send("SchedulePause", published="2024-01-01T10:03:30")
    shell.settle()
    assert shell.created() == ["10:01", "10:02@10:06:30", "10:03@10:06:30"]
    assert shell.skipped() == ["10:04..10:06 x3 paused"]


def test_a_new_definition_published_during_an_outage_decides_what_is_behind_it_and_nothing_before():
    shell = Shell("2024-01-01T10:00:10")
    shell.put(body=definition("*/2 * * * *", **ANY, grace="PT1H"))
    shell.until("2024-01-01T10:02:30")
    shell.sleep_until("2024-01-01T10:09:30")
    shell.put(body=definition("*/3 * * * *", **ANY, grace="PT1H"), published="2024-01-01T10:05:00")
    shell.settle()
    assert [(run.due_at.minute, run.version) for run in shell.all(RunCreated)] == [(2, 1), (4, 1), (6, 2), (9, 2)]
    assert shell.all(ScheduleAccepted)[1].effective_at == at("2024-01-01T10:05:00")


def test_a_change_at_the_very_instant_of_an_occurrence_comes_behind_it():
    shell = Shell("2024-01-01T10:00:10")
    shell.put(body=definition(**ANY, grace="PT1H"))
    shell.sleep_until("2024-01-01T10:02:30")
    shell.send("SchedulePause", published="2024-01-01T10:01:00")
    shell.settle()
    assert shell.created() == ["10:01@10:02:30"]
    assert shell.skipped() == ["10:02 paused"]


def test_a_command_never_takes_effect_before_what_is_decided():
    shell = Shell("2024-01-01T10:00:10")
    shell.put(body=EVERY_MINUTE)
    shell.until("2024-01-01T10:05:00")
    shell.send("SchedulePause", published="2024-01-01T10:02:30")  # read late, as a slow partition may deliver it
    assert shell.all(SchedulePaused)[0].effective_at == at("2024-01-01T10:05:00")


def test_a_command_never_takes_effect_before_the_command_before_it():
    shell = Shell("2024-01-01T10:00:10")
    shell.put(body=definition("0 0 1 1 *"))
    shell.sleep_until("2024-01-01T12:00:00")
    shell.send("SchedulePause", published="2024-01-01T11:00:00.700")
    shell.send("ScheduleResume", published="2024-01-01T10:30:00")
    assert shell.all(ScheduleResumed)[0].effective_at == at("2024-01-01T11:00:00.700")


def test_a_command_from_the_future_takes_effect_now():
    shell = Shell("2024-01-01T10:00:10")
    shell.put(body=EVERY_MINUTE)
    shell.send("SchedulePause", published="2024-01-01T10:30:00")
    assert shell.all(SchedulePaused)[0].effective_at == at("2024-01-01T10:00:10")


def test_a_pause_and_a_resume_within_one_batch_leave_a_hole_exactly_between_them():
    shell = Shell("2024-01-01T10:00:10")
    shell.put(body=definition(**ANY, grace="PT1H"))
    shell.sleep_until("2024-01-01T10:09:10")
    shell.send("SchedulePause", published="2024-01-01T10:02:30")
    shell.send("ScheduleResume", published="2024-01-01T10:06:30")
    shell.settle()
    assert [run.due_at.minute for run in shell.all(RunCreated)] == [1, 2, 7, 8, 9]
    assert shell.skipped() == ["10:03..10:06 x4 paused"]


def test_an_edit_while_paused_stays_paused():
    shell = Shell("2024-01-01T10:00:10")
    shell.put(body=EVERY_MINUTE)
    shell.send("SchedulePause")
    shell.put(body=definition("*/2 * * * *", **ANY))
    assert shell.answer().body["state"] == "paused"
    shell.until("2024-01-01T10:04:30")
    assert shell.created() == []
    shell.send("ScheduleResume")
    shell.until("2024-01-01T10:06:30")
    assert shell.created() == ["10:06"]


def test_what_was_paused_does_not_come_back():
    shell = Shell("2024-01-01T10:00:10")
    shell.put(body=EVERY_MINUTE)
    shell.send("SchedulePause", note="maintenance", by="ann")
    shell.until("2024-01-01T10:03:30")
    shell.send("ScheduleResume")
    shell.until("2024-01-01T10:05:30")
    assert shell.skipped() == ["10:01 paused", "10:02 paused", "10:03 paused"]
    assert shell.created() == ["10:04", "10:05"]
    assert (shell.all(SchedulePaused)[0].note, shell.all(SchedulePaused)[0].by) == ("maintenance", "ann")


def test_pausing_what_is_paused_changes_nothing():
    shell = Shell("2024-01-01T10:00:10")
    shell.put(body=EVERY_MINUTE)
    shell.send("SchedulePause")
    shell.until("2024-01-01T10:00:20")
    shell.send("SchedulePause")
    assert len(shell.all(SchedulePaused)) == 1
    assert (shell.answer().status, shell.answer().body["changed"]) == (200, False)
    assert shell.answer().body["effective_at"] == "2024-01-01T10:00:10Z"


def test_a_long_pause_after_an_outage_is_said_a_day_at_a_time():
    shell = Shell("2024-01-01T00:00:10")
    shell.put(body=EVERY_MINUTE)
    shell.send("SchedulePause")
    shell.sleep_until("2024-01-03T12:00:30")
    shell.settle()
    counts = [fact.range.count for fact in shell.all(OccurrenceSkipped) if fact.range]
    assert counts == [1440, 1440, 720]


def test_a_deleted_schedule_has_no_occurrence_behind_its_deletion_and_its_runs_finish():
    shell = Shell("2024-01-01T10:00:10")
    shell.put(body=EVERY_MINUTE)
    shell.until("2024-01-01T10:01:30")
    run = shell.last_run()
    shell.send("ScheduleDelete")
    assert (shell.answer().status, shell.answer().body["open_runs"]) == (200, 1)
    shell.until("2024-01-01T10:05:00")
    assert shell.created() == ["10:01"]
    shell.finish(run)
    assert shell.schedule().open_runs == 0


def test_a_deletion_read_late_leaves_what_was_due_before_it_to_be_decided():
    shell = Shell("2024-01-01T10:00:10")
    shell.put(body=definition(**ANY, grace="PT1H"))
    shell.sleep_until("2024-01-01T10:05:30")
    shell.send("ScheduleDelete", published="2024-01-01T10:02:30")
    shell.settle()
    assert [run.due_at.minute for run in shell.all(RunCreated)] == [1, 2]
    assert shell.schedule().plans == {}, "no definition is kept once its last occurrence is decided"


def test_a_schedule_deleted_and_put_again_in_one_batch_runs_only_behind_each_of_its_beginnings():
    shell = Shell("2024-01-01T10:00:10")
    shell.put(body=definition(**ANY, grace="PT1H"))
    shell.sleep_until("2024-01-01T10:06:30")
    shell.send("ScheduleDelete", published="2024-01-01T10:02:30")
    shell.put(body=definition(**ANY, grace="PT1H"), published="2024-01-01T10:04:30")
    shell.settle()
    assert [(run.due_at.minute, run.version) for run in shell.all(RunCreated)] == [(1, 1), (2, 1), (5, 2), (6, 2)]


@pytest.mark.parametrize("kind", ["SchedulePause", "ScheduleResume", "ScheduleDelete", "ScheduleTrigger"])
def test_what_is_not_there_cannot_be_changed(kind):
    shell = Shell()
    shell.send(kind)
    assert (shell.answer().status, shell.answer().body["reason"]) == (404, "not_found")


def test_changes_between_two_decisions_are_bounded():
    shell = Shell("2024-01-01T10:00:00.500")
    shell.put(body=definition("* * * * * *", **ANY))
    shell.sleep_until("2024-01-01T10:02:00.500")
    for number in range(70):
        kind = "SchedulePause" if number % 2 == 0 else "ScheduleResume"
        shell.send(kind, published=f"2024-01-01T10:{number // 60:02}:{number % 60:02}.700")
    refused = shell.all(CommandRejected)
    assert {fact.reason for fact in refused} == {"too_many_changes"}
    assert len(shell.schedule().phases) == 64
    shell.settle()
    assert len(shell.schedule().phases) == 1


def test_any_number_of_changes_between_which_nothing_is_due_is_fine():
    shell = Shell("2024-01-01T10:00:10")
    shell.put(body=definition("0 0 1 1 *"))
    for number in range(200):
        shell.send("SchedulePause" if number % 2 == 0 else "ScheduleResume")
    assert shell.answer().status == 200
    assert len(shell.schedule().phases) == 1


# --- definitions on their topics ----------------------------------------------------------------------------------


def test_versions_say_from_when_to_when_each_decided():
    shell = Shell("2024-01-01T10:00:00")
    shell.put()
    shell.until("2024-01-01T11:00:00")
    shell.put(body=definition("*/2 * * * *"))
    shell.until("2024-01-01T12:00:00")
    shell.send("ScheduleDelete")
    versions = {output.key: output.fact for output in shell.outputs if output.topic == topics.VERSIONS}
    assert {
        key: (fact.effective_from, fact.effective_to)
        for key, fact in versions.items()
        if isinstance(fact, ScheduleVersion)
    } == {
        "acme/s/1": (at("2024-01-01T10:00:00"), at("2024-01-01T11:00:00")),
        "acme/s/2": (at("2024-01-01T11:00:00"), at("2024-01-01T12:00:00")),
    }


def test_the_current_definition_stands_on_its_topic_until_it_is_deleted():
    shell = Shell()
    shell.put()
    shell.send("SchedulePause")
    shell.send("ScheduleResume")
    shell.send("ScheduleDelete")
    current = [output for output in shell.outputs if output.topic == topics.SCHEDULES]
    states = [output.fact.state for output in current if isinstance(output.fact, ScheduleCurrent)]
    assert states == ["active", "paused", "active"]
    assert {output.key for output in current} == {"acme/s"}
    assert [output.tombstone for output in current] == [False, False, False, True]


def test_everything_that_happens_to_a_schedule_stands_in_its_story():
    shell = Shell()
    shell.put()
    shell.send("SchedulePause")
    shell.send("ScheduleResume")
    shell.send("ScheduleDelete")
    kinds = [type(fact) for fact in shell.to(topics.RUN_EVENTS)][1:]
    assert kinds == [ScheduleAccepted, SchedulePaused, ScheduleResumed, ScheduleDeleted]
