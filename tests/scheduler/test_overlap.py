"""Occurrences that meet runs which are still active."""

from typing import Any

import pytest

from schemas import topics
from schemas.facts import Cause, OccurrenceDeferred, OccurrenceSkipped, RunCancelRequested, RunCreated
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


# --- buffer_all ---------------------------------------------------------------------------------------------------


def buffering(buffer: int, **more: Any) -> Shell:
    """Every minute; run 10:01 is active at 10:01:30."""
    shell = Shell("2024-01-01T10:00:10")
    shell.put(body=definition(overlap={"policy": "buffer_all", "buffer": buffer}, **more))
    shell.until("2024-01-01T10:01:30")
    return shell


def test_buffer_all_lets_as_many_wait_as_its_buffer_holds_and_runs_them_in_order():
    shell = buffering(3)
    shell.until("2024-01-01T10:06:30")
    assert shell.deferred() == ["10:02 open", "10:03 open", "10:04 open"]
    assert shell.skipped() == ["10:05 overlap", "10:06 overlap"]
    assert {fact.blocked_by for fact in shell.all(OccurrenceSkipped)} == {"s.20240101T100100Z"}
    for _ in range(3):
        shell.finish(shell.last_run())
        shell.settle()
    assert shell.created() == ["10:01", "10:02@10:06:30", "10:03@10:06:30", "10:04@10:06:30"]
    shell.until("2024-01-01T10:07:00")
    assert shell.deferred()[3:] == ["10:07 open"]  # behind 10:04, which runs


def test_ten_may_wait_where_a_definition_does_not_say_how_many():
    shell = minutely("buffer_all")
    shell.until("2024-01-01T10:12:30")
    assert len(shell.deferred()) == 10
    assert shell.skipped() == ["10:12 overlap"]


def test_what_is_buffered_survives_a_restart_in_its_order_and_stands_in_rows_of_its_own():
    shell = buffering(1000)
    shell.until("2024-01-01T10:11:30")
    size = len(shell.rows[b"s/acme/s"].data[b"s"])
    shell.until("2024-01-01T13:11:30")
    assert shell.schedule().waiting_count == 190
    assert len(shell.rows[b"s/acme/s"].data[b"s"]) < size + 2000  # the latest pieces of the ledger, not 180 more
    shell.reload()
    for _ in range(2):
        shell.finish(shell.last_run())
        shell.settle()
    assert shell.created() == ["10:01", "10:02@13:11:30", "10:03@13:11:30"]


@pytest.mark.parametrize(("kind", "reason"), [("SchedulePause", "paused"), ("ScheduleDelete", "ended")])
def test_all_that_is_buffered_is_skipped_when_its_schedule_is_paused_or_deleted(kind, reason):
    shell = buffering(5)
    shell.until("2024-01-01T10:03:30")
    shell.send(kind)
    shell.settle()
    assert shell.skipped() == [f"10:02 {reason}", f"10:03 {reason}"]


def test_a_schedule_that_is_made_anew_waits_for_the_run_of_the_one_before():
    shell = buffering(5)
    shell.until("2024-01-01T10:02:30")
    shell.send("ScheduleDelete")
    shell.put(body=definition(overlap={"policy": "buffer_all", "buffer": 5}))
    shell.until("2024-01-01T10:03:30")
    assert shell.skipped() == ["10:02 ended"]
    assert shell.deferred() == ["10:02 open", "10:03 open"]
    shell.finish("s.20240101T100100Z")
    shell.settle()
    assert shell.created() == ["10:01", "10:03@10:03:30"]


def test_what_is_caught_up_takes_its_place_behind_what_was_buffered_before_the_outage():
    shell = Shell("2024-01-01T10:00:10")
    shell.put(body=definition("1-4 10 * * *", overlap={"policy": "buffer_all", "buffer": 2}))
    shell.until("2024-01-01T10:02:30")
    shell.sleep_until("2024-01-01T10:30:30")
    shell.settle()
    assert shell.skipped() == ["10:03 catch_up"]
    assert shell.deferred() == ["10:02 open", "10:04 10:04"]
    assert [fact.cause for fact in shell.all(OccurrenceDeferred)] == [Cause.SCHEDULE, Cause.CATCH_UP]
    for _ in range(2):
        shell.finish(shell.last_run())
        shell.settle()
    assert shell.created() == ["10:01", "10:02@10:30:30", "10:04@10:30:30"]


# --- cancel_other and terminate_other -----------------------------------------------------------------------------


def asked(shell: Shell) -> list[str]:
    """Who was asked to stop, and how."""
    found = shell.all(RunCancelRequested)
    return [fact.run_id.rpartition("T")[2][:4] + (" terminate" if fact.terminate else "") for fact in found]


def test_cancel_other_asks_the_run_to_stop_and_waits_for_its_outcome():
    shell = minutely("cancel_other")
    shell.until("2024-01-01T10:02:30")
    assert asked(shell) == ["1001"]
    assert shell.deferred() == ["10:02 open"]
    request = shell.all(RunCancelRequested)[0]
    assert (request.by, request.note) == ("tidewheel", "overlap cancel_other: makes room for 2024-01-01T10:02:00Z")
    assert request in shell.to(topics.RUNS)  # behind the run, for its dispatcher
    shell.finish("s.20240101T100100Z", "cancelled")
    shell.settle()
    assert shell.created() == ["10:01", "10:02@10:02:30"]


def test_terminate_other_ends_the_run_without_asking_and_waits_for_its_outcome():
    shell = minutely("terminate_other")
    shell.until("2024-01-01T10:02:00")
    assert asked(shell) == ["1001 terminate"]
    assert shell.deferred() == ["10:02 open"]
    shell.finish("s.20240101T100100Z", "cancelled")
    shell.settle()
    assert shell.created() == ["10:01", "10:02"]


@pytest.mark.parametrize("policy", ["cancel_other", "terminate_other"])
def test_while_one_waits_for_a_run_that_does_not_stop_others_are_skipped_and_nobody_is_asked_again(policy):
    shell = minutely(policy)
    shell.until("2024-01-01T10:04:30")
    shell.reload()
    assert len(asked(shell)) == 1
    assert shell.skipped() == ["10:03 overlap", "10:04 overlap"]


def test_the_one_that_took_the_place_makes_room_in_its_turn():
    shell = minutely("cancel_other")
    shell.until("2024-01-01T10:02:30")
    shell.finish("s.20240101T100100Z", "cancelled")
    shell.until("2024-01-01T10:03:30")
    assert asked(shell) == ["1001", "1002"]
    assert shell.deferred() == ["10:02 open", "10:03 open"]


def test_the_oldest_makes_room_and_runs_by_hand_are_left_alone():
    shell = minutely("cancel_other", limit=2)
    shell.send("ScheduleTrigger")
    shell.until("2024-01-01T10:03:30")
    assert shell.created() == ["10:01", "manual", "10:02"]
    assert asked(shell) == ["1001"]


def test_as_many_make_room_as_a_smaller_limit_asks_for():
    shell = minutely("allow_all")
    shell.until("2024-01-01T10:03:30")
    shell.put(body=definition(overlap={"policy": "cancel_other"}))
    shell.until("2024-01-01T10:04:30")
    assert asked(shell) == ["1001", "1002", "1003"]


def test_for_one_occurrence_no_more_than_sixty_four_are_asked():
    shell = minutely("allow_all")
    shell.until("2024-01-01T11:30:30")
    shell.put(body=definition(overlap={"policy": "cancel_other"}))
    shell.until("2024-01-01T11:31:30")
    assert len(asked(shell)) == 64


def test_a_run_that_has_ended_by_then_is_not_asked():
    shell = minutely("cancel_other")
    shell.sleep_until("2024-01-01T10:02:30")
    shell.finish("s.20240101T100100Z", published="2024-01-01T10:02:20")
    shell.settle()
    assert asked(shell) == []
    assert shell.created() == ["10:01", "10:02@10:02:30"]


def test_what_is_caught_up_makes_room_for_itself_too():
    shell = Shell("2024-01-01T10:00:10")
    shell.put(body=definition("1,2 10 * * *", overlap={"policy": "cancel_other"}))
    shell.until("2024-01-01T10:01:30")
    shell.sleep_until("2024-01-01T10:30:30")
    shell.settle()
    assert asked(shell) == ["1001"]
    assert shell.deferred() == ["10:02 10:02"]


def test_with_catch_up_all_nothing_that_waited_its_turn_is_cut_short_by_those_behind_it():
    shell = minutely("cancel_other", catch_up=ALL)
    shell.until("2024-01-01T10:03:30")
    assert asked(shell) == ["1001"]
    assert shell.deferred() == ["10:02 10:07", "10:03 10:08"]
    shell.finish("s.20240101T100100Z", "cancelled")
    shell.until("2024-01-01T10:04:30")
    assert asked(shell) == ["1001"]
    assert shell.created() == ["10:01", "10:02@10:03:30"]


# --- on_update: cancel --------------------------------------------------------------------------------------------


def test_a_new_version_that_says_cancel_wants_the_runs_of_older_ones_gone_where_nobody_began_them():
    shell = minutely("allow_all")
    shell.send("ScheduleTrigger")
    shell.until("2024-01-01T10:02:30")
    shell.put(body=definition("*/5 * * * *", overlap={"policy": "allow_all"}, on_update="cancel"), source="git")
    shell.until("2024-01-01T10:05:30")
    requests = shell.all(RunCancelRequested)
    assert [fact.run_id for fact in requests[:2]] == ["s.20240101T100100Z", "s.20240101T100200Z"]
    assert len(requests) == 3  # the one by hand is of an older version too
    assert {(fact.unstarted, fact.source, fact.note) for fact in requests} == {(True, "git", "version 2 is in force")}
    shell.put(body=definition("*/10 * * * *", overlap={"policy": "allow_all"}))
    shell.settle()
    assert len(shell.all(RunCancelRequested)) == 3  # it says keep


def test_nobody_is_asked_by_a_version_that_changes_nothing_or_is_the_first_of_a_schedule_made_anew():
    shell = Shell("2024-01-01T10:00:10")
    body = definition(overlap={"policy": "allow_all"}, on_update="cancel")
    shell.put(body=body)
    shell.until("2024-01-01T10:01:30")
    shell.put(body=body)
    shell.send("ScheduleDelete")
    shell.put(body=body)
    shell.settle()
    assert shell.all(RunCancelRequested) == []


def test_the_walk_over_many_runs_goes_on_after_a_restart():
    shell = minutely("allow_all")
    shell.until("2024-01-01T12:00:30")
    shell.put(body=definition("0 0 1 1 *", on_update="cancel"))
    shell.settle(1)
    shell.reload()
    shell.settle()
    assert len(shell.all(RunCancelRequested)) == 120


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
