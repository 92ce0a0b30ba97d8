"""Occurrences that meet runs which are still active."""

from typing import Any

import pytest

from schemas.facts import Cause, OccurrenceDeferred, OccurrenceSkipped, RunCreated
from schemas.scheduling import OutcomeHeld, RunSettled
from tests.scheduler.harness import Shell, at, definition


def minutely(policy: str, **more: Any) -> Shell:
    """Every minute, from 10:00:10; run 10:01 is active at 10:01:30."""
    shell = Shell("2024-01-01T10:00:10")
    overlap = {"policy": policy, "limit": more.pop("limit", 1)}
    shell.put(body=definition(overlap=overlap, **more))
    shell.until("2024-01-01T10:01:30")
    return shell


def test_allow_all_runs_side_by_side():
    shell = minutely("allow_all")
    shell.until("2024-01-01T10:04:00")
    assert shell.created() == ["10:01", "10:02", "10:03", "10:04"]
    assert shell.schedule().active == 4


def test_skip_waits_a_quarter_of_the_interval_and_no_longer_and_names_the_run_in_the_way():
    shell = minutely("skip")
    shell.until("2024-01-01T10:02:00")
    assert shell.deferred() == ["10:02 10:02:15"]
    assert shell.skipped() == []
    shell.until("2024-01-01T10:02:15")
    assert shell.skipped() == ["10:02 overlap"]
    assert shell.all(OccurrenceSkipped)[0].blocked_by == "s.20240101T100100Z"


def test_skip_starts_late_when_the_run_in_the_way_ends_in_that_time():
    shell = minutely("skip")
    shell.until("2024-01-01T10:02:08")
    shell.finish("s.20240101T100100Z")
    shell.settle()
    assert shell.created() == ["10:01", "10:02@10:02:08"]
    assert shell.last_run().cause is Cause.SCHEDULE
    assert shell.last_run().deadline_at == at("2024-01-08T10:02:00")  # from when it was due


def test_skip_waits_at_most_its_grace():
    shell = Shell("2024-01-01T10:00:10")
    shell.put(body=definition("0 * * * *", grace="PT30S"))
    shell.until("2024-01-01T12:00:00")
    assert shell.deferred() == ["12:00 12:00:30"]


def test_an_outcome_that_was_published_in_time_counts_though_it_is_read_late():
    shell = minutely("skip")
    shell.sleep_until("2024-01-01T10:02:40")
    shell.finish("s.20240101T100100Z", published="2024-01-01T10:02:10")
    shell.settle()
    assert shell.created() == ["10:01", "10:02@10:02:40"]


def test_an_outcome_that_was_published_too_late_does_not_count_though_it_is_read_before_the_decision():
    shell = minutely("skip")
    shell.sleep_until("2024-01-01T10:02:40")
    shell.finish("s.20240101T100100Z", published="2024-01-01T10:02:20")
    assert isinstance(shell.facts[-1], OutcomeHeld)
    shell.settle()
    assert shell.created() == ["10:01"]
    assert shell.skipped() == ["10:02 overlap"]
    assert shell.schedule().active == 0


def test_a_limit_allows_so_many():
    shell = minutely("skip", limit=3)
    shell.until("2024-01-01T10:05:30")
    assert shell.created() == ["10:01", "10:02", "10:03"]
    assert shell.skipped() == ["10:04 overlap", "10:05 overlap"]
    shell.finish("s.20240101T100200Z")
    shell.until("2024-01-01T10:06:00")
    assert shell.created()[3:] == ["10:06"]


def test_who_is_in_the_way_is_the_oldest_that_still_runs():
    shell = minutely("skip", limit=2)
    shell.until("2024-01-01T10:02:30")
    shell.finish("s.20240101T100100Z")
    shell.until("2024-01-01T10:03:30")
    shell.send("ScheduleTrigger")
    shell.until("2024-01-01T10:04:30")
    assert shell.all(OccurrenceSkipped)[0].blocked_by == "s.20240101T100200Z"


def test_one_waits_in_the_buffer_and_the_others_are_skipped():
    shell = minutely("buffer_one")
    shell.until("2024-01-01T10:04:30")
    assert shell.deferred() == ["10:02 open"]
    assert shell.skipped() == ["10:03 overlap", "10:04 overlap"]
    shell.finish("s.20240101T100100Z")
    shell.settle()
    assert shell.created() == ["10:01", "10:02@10:04:30"]


def test_what_waits_survives_a_restart():
    shell = minutely("buffer_one")
    shell.until("2024-01-01T10:02:30")
    shell.reload()
    shell.finish("s.20240101T100100Z")
    shell.settle()
    assert shell.created() == ["10:01", "10:02@10:02:30"]


def test_what_waits_keeps_the_definition_it_was_due_under():
    shell = minutely("buffer_one")
    shell.until("2024-01-01T10:02:30")
    shell.put(body=definition("0 0 1 1 *", overlap={"policy": "allow_all"}))
    shell.reload()
    shell.finish("s.20240101T100100Z")
    shell.settle()
    assert [run.version for run in shell.all(RunCreated)] == [1, 1]
    shell.finish(shell.last_run())
    assert set(shell.schedule().plans) == {2}


@pytest.mark.parametrize(("kind", "reason"), [("SchedulePause", "paused"), ("ScheduleDelete", "ended")])
def test_what_waits_is_not_started_any_more_when_its_schedule_is_paused_or_deleted(kind, reason):
    shell = minutely("buffer_one")
    shell.until("2024-01-01T10:02:30")
    shell.send(kind)
    shell.settle()
    assert shell.skipped() == [f"10:02 {reason}"]
    shell.finish("s.20240101T100100Z")
    shell.settle()
    assert shell.created() == ["10:01"]


def test_an_outcome_before_a_pause_starts_what_waits_even_if_both_are_read_together():
    shell = minutely("buffer_one")
    shell.until("2024-01-01T10:02:30")
    shell.sleep_until("2024-01-01T10:02:50")
    shell.send("SchedulePause", published="2024-01-01T10:02:45")
    shell.finish("s.20240101T100100Z", published="2024-01-01T10:02:40")
    shell.settle()
    assert shell.created() == ["10:01", "10:02@10:02:50"]


def test_an_outcome_behind_a_pause_starts_nothing_even_if_it_is_read_first():
    shell = minutely("buffer_one")
    shell.until("2024-01-01T10:02:30")
    shell.sleep_until("2024-01-01T10:02:50")
    shell.finish("s.20240101T100100Z", published="2024-01-01T10:02:45")
    shell.send("SchedulePause", published="2024-01-01T10:02:40")
    shell.settle()
    assert shell.created() == ["10:01"]
    assert shell.skipped() == ["10:02 paused"]


def test_a_pause_that_is_lifted_at_once_still_ends_the_waiting():
    shell = minutely("buffer_one")
    shell.until("2024-01-01T10:02:30")
    shell.send("SchedulePause")
    shell.send("ScheduleResume")
    shell.settle()
    assert shell.skipped() == ["10:02 paused"]


def test_manual_runs_neither_block_nor_are_blocked():
    shell = minutely("skip")
    shell.send("ScheduleTrigger")
    shell.finish("s.20240101T100100Z")
    shell.until("2024-01-01T10:02:00")
    assert shell.created() == ["10:01", "manual", "10:02"]


def test_an_outcome_that_comes_again_or_belongs_to_nobody_changes_nothing():
    shell = minutely("allow_all")
    run = shell.last_run()
    assert [type(fact) for fact in shell.finish(run)] == [RunSettled]
    assert shell.finish(run) == []
    assert shell.finish(run, "failed") == []
    assert shell.schedule().active == 0


def test_what_waits_for_a_job_that_is_gone_by_then_is_skipped():
    shell = Shell("2024-01-01T10:00:10")
    shell.send("JobPut", name="j", definition={"target": {"type": "task", "name": "t"}})
    shell.catalog()
    shell.put(body={"trigger": {"cron": "* * * * *"}, "overlap": {"policy": "buffer_one"}, "job": "j"})
    shell.until("2024-01-01T10:02:30")
    assert isinstance(shell.facts[-1], OccurrenceDeferred)
    shell.send("JobDelete", name="j")
    shell.catalog()
    shell.finish("s.20240101T100100Z")
    shell.settle()
    assert shell.skipped() == ["10:02 no_job"]


# --- with catch_up: all -------------------------------------------------------------------------------------------

ALL = {"policy": "all", "window": "PT5M", "limit": 3}


def test_with_catch_up_all_whatever_is_blocked_waits_in_order():
    shell = minutely("skip", catch_up=ALL)
    shell.until("2024-01-01T10:03:30")
    assert shell.deferred() == ["10:02 10:07", "10:03 10:08"]
    for _ in range(3):
        shell.finish(shell.last_run())
        shell.settle()
    assert shell.created() == ["10:01", "10:02@10:03:30", "10:03@10:03:30"]


def test_with_catch_up_all_no_more_wait_than_its_limit():
    shell = minutely("skip", catch_up=ALL)
    shell.until("2024-01-01T10:05:30")
    assert len(shell.deferred()) == 3
    assert shell.skipped() == ["10:05 overlap"]


def test_with_catch_up_all_nobody_waits_longer_than_its_window():
    shell = minutely("skip", catch_up=ALL)
    shell.until("2024-01-01T10:07:30")
    assert shell.skipped() == ["10:05 overlap", "10:06 overlap", "10:02 overlap"]
    assert shell.deferred() == ["10:02 10:07", "10:03 10:08", "10:04 10:09", "10:07 10:12"]


def test_what_is_caught_up_waits_for_a_run_that_outlived_the_outage():
    shell = Shell("2024-01-01T10:30:00")
    shell.put(body=definition("0 * * * *"))
    shell.until("2024-01-01T11:00:30")
    shell.sleep_until("2024-01-01T14:30:00")
    shell.settle()
    assert shell.skipped() == ["12:00..13:00 x2 catch_up"]
    assert [(fact.cause, fact.until) for fact in shell.all(OccurrenceDeferred)] == [
        (Cause.CATCH_UP, at("2024-01-02T14:00:00"))
    ]
    shell.until("2024-01-01T14:40:00")
    shell.finish("s.20240101T110000Z")
    shell.settle()
    assert shell.created() == ["11:00", "14:00@14:40"]
    assert shell.last_run().cause is Cause.CATCH_UP
    assert shell.last_run().deadline_at == at("2024-01-08T14:40:00")  # from its creation


def test_what_is_caught_up_waits_until_its_window_is_over():
    shell = Shell("2024-01-01T10:30:00")
    shell.put(body=definition("0 12 * * *", catch_up={"policy": "latest", "window": "PT2H"}))
    shell.until("2024-01-01T12:00:30")
    shell.sleep_until("2024-01-02T13:00:00")
    shell.settle()
    shell.until("2024-01-02T15:00:00")
    assert shell.skipped() == ["12:00 catch_up"]
