"""The occurrences of a past range get their runs, a few at a time, and nothing else notices."""

from datetime import timedelta

import pytest

from scheduler import keys
from schemas.facts import (
    BackfillFinished,
    BackfillStarted,
    Cause,
    CommandRejected,
    OccurrenceDeferred,
    RunCancelRequested,
    RunCreated,
)
from tests.scheduler.backfilling import DAY, backfilled, finish_live, minutely, paused, run_all, start
from tests.scheduler.harness import Shell, clock, definition, text_of

# --- what it does -------------------------------------------------------------------------------------------------


def test_skipped_occurrences_have_the_very_run_that_they_would_have_had():
    shell = paused()
    status, body = start(shell, by="ada", note="month end")
    assert (status, body["state"], body["occurrences"], body["version"]) == (201, "running", 3, 1)
    run_all(shell)
    assert backfilled(shell) == ["10:01", "10:02", "10:03"]
    run = shell.run("s.20240101T100100Z")
    assert (run.cause, run.backfill, run.version, run.of) == (Cause.BACKFILL, body["backfill"], 1, None)
    assert run.deadline_at - run.created_at == run.job.deadline
    started, finished = shell.all(BackfillStarted)[0], shell.all(BackfillFinished)[0]
    assert (started.by, started.note) == ("ada", "month end")
    assert (finished.outcome, finished.decided, finished.counts.created) == ("completed", 3, 3)
    assert (finished.counts.ended, finished.counts.left_out) == ({"succeeded": 3}, {})


def test_its_runs_go_by_the_bulk_lane_whatever_their_job_says():
    shell = paused()
    start(shell)
    assert shell.run("s.20240101T100400Z").job.priority == "normal"
    shell.settle()
    assert shell.run("s.20240101T100100Z").job.priority == "bulk"


def test_what_has_a_run_is_left_alone():
    shell = paused()
    finish_live(shell)
    start(shell, to=f"{DAY}10:05:30Z")
    run_all(shell)
    assert backfilled(shell) == ["10:01", "10:02", "10:03"]
    assert shell.all(BackfillFinished)[0].counts.left_out == {"succeeded": 2}


def test_a_run_without_an_outcome_is_left_alone_whatever_is_reprocessed():
    shell = paused()
    start(shell, to=f"{DAY}10:05:30Z", reprocess="completed")
    run_all(shell)
    assert backfilled(shell) == ["10:01", "10:02", "10:03"]
    assert shell.all(BackfillFinished)[0].counts.left_out == {"open": 2}


def test_failed_ones_are_run_again_as_new_runs_of_the_old_ones():
    shell = minutely()
    shell.until(f"{DAY}10:04:10")
    finish_live(shell, "succeeded", "10:01")
    finish_live(shell, "failed", "10:02")
    finish_live(shell, "cancelled", "10:03")
    start(shell, reprocess="failed")
    run_all(shell)
    assert backfilled(shell) == ["10:02*", "10:03*"]
    again = shell.all(RunCreated)[-2]
    assert again.run_id == "s.r-70807063cc18dd38"
    assert again.of == "s.20240101T100200Z"
    assert shell.all(BackfillFinished)[0].counts.reprocessed == 2


def test_completed_ones_are_all_run_again():
    shell = minutely()
    shell.until(f"{DAY}10:04:10")
    finish_live(shell, "succeeded", "10:01", "10:03")
    finish_live(shell, "failed", "10:02")
    start(shell, reprocess="completed")
    run_all(shell)
    assert backfilled(shell) == ["10:01*", "10:02*", "10:03*"]


def test_a_second_backfill_sees_what_the_first_one_ran():
    shell = paused()
    start(shell)
    run_all(shell, "failed")
    start(shell)
    run_all(shell)
    assert backfilled(shell) == ["10:01", "10:02", "10:03"]
    assert shell.all(BackfillFinished)[1].counts.left_out == {"failed": 3}
    start(shell, reprocess="failed")
    run_all(shell)
    assert backfilled(shell)[3:] == ["10:01*", "10:02*", "10:03*"]
    start(shell, reprocess="failed")
    run_all(shell)
    assert shell.all(BackfillFinished)[3].counts.left_out == {"succeeded": 3}


def test_occurrences_from_before_the_schedule_was_there_have_runs_and_the_answer_says_what_they_are():
    shell = minutely()
    shell.until(f"{DAY}10:01:30")
    _, body = start(shell, **{"from": f"{DAY}09:58:00Z", "to": f"{DAY}10:00:00Z"})
    known = "/from: nothing was decided before 2024-01-01T10:01:00Z by this schedule"
    assert body["warnings"] == [f"{known}; what is due there by version 1 has its run"]
    run_all(shell)
    assert backfilled(shell) == ["09:58", "09:59"]


def test_a_payload_is_filled_in_for_the_occurrence_and_not_for_the_day_it_is_run():
    job = {
        "target": {"type": "task", "name": "t"},
        "payload": {"day": "{{ nominal_date }}", "since": "{{ interval_from }}"},
    }
    shell = minutely(trigger={"cron": "0 9 * * *"}, job=job)
    start(shell, **{"from": "2023-12-30T00:00:00Z", "to": "2023-12-31T00:00:00Z"})
    shell.settle()
    run = shell.last_run()
    assert run.job.payload == {"day": "2023-12-30", "since": "2023-12-29T09:00:00Z"}
    assert text_of(run.interval_from) == "2023-12-29T09:00:00Z"


def test_the_newest_come_first_when_that_is_asked_for():
    shell = paused()
    start(shell, order="newest")
    run_all(shell)
    assert backfilled(shell) == ["10:03", "10:02", "10:01"]
    assert shell.all(BackfillFinished)[0].decided == 3


def test_what_its_rules_exclude_is_left_out():
    shell = paused(trigger={"cron": "* * * * *", "exclude": {"cron": ["2 * * * *"]}})
    start(shell)
    run_all(shell)
    assert backfilled(shell) == ["10:01", "10:03"]
    assert shell.all(BackfillFinished)[0].counts.left_out == {"excluded": 1}


def test_what_its_calendars_close_is_left_out_and_its_runs_say_which_version_of_them_counted():
    shell = Shell(f"{DAY}10:00:10")
    shell.send("CalendarPut", name="holidays", definition={"dates": ["2023-12-30"]})
    shell.catalog()
    shell.put(body=definition("0 9 * * *", trigger={"cron": "0 9 * * *", "exclude": {"calendars": ["holidays"]}}))
    start(shell, **{"from": "2023-12-29T00:00:00Z", "to": "2024-01-01T00:00:00Z"})
    run_all(shell, until=f"{DAY}10:59:00")
    made = [run for run in shell.all(RunCreated) if run.cause is Cause.BACKFILL]
    assert [run.run_id for run in made] == ["s.20231229T090000Z", "s.20231231T090000Z"]
    assert {*map(str, (run.used for run in made))} == {"{'calendar/acme/holidays': 1}"}
    assert shell.all(BackfillFinished)[0].counts.left_out == {"excluded": 1}


def test_it_goes_by_the_version_of_its_start_or_the_one_that_is_named():
    shell = paused()
    shell.put(body=definition("*/2 * * * *", overlap={"policy": "allow_all"}))
    assert start(shell)[1]["version"] == 2
    run_all(shell)
    assert backfilled(shell) == ["10:02"]
    assert start(shell, as_of=1)[1]["occurrences"] == 3
    shell.put(body=definition("0 0 * * *"))
    run_all(shell)
    assert backfilled(shell) == ["10:02", "10:01", "10:03"]
    assert {run.version for run in shell.all(RunCreated) if run.cause is Cause.BACKFILL} == {1, 2}


def test_of_an_older_version_with_other_occurrences_only_those_in_common_had_runs():
    shell = minutely(trigger={"cron": "*/2 * * * *"})
    shell.until(f"{DAY}10:05:30")
    finish_live(shell)
    shell.put(body=definition("* * * * *", overlap={"policy": "allow_all"}))
    start(shell, to=f"{DAY}10:05:00Z")
    run_all(shell)
    assert backfilled(shell) == ["10:01", "10:03"]
    assert shell.all(BackfillFinished)[0].counts.left_out == {"succeeded": 2}


# --- how fast -----------------------------------------------------------------------------------------------------


def test_no_more_runs_are_open_than_it_may_have():
    shell = paused()
    start(shell, max_active=2)
    shell.until(f"{DAY}10:05:50")
    assert backfilled(shell) == ["10:01", "10:02"]
    shell.finish("s.20240101T100200Z")
    shell.settle()
    assert backfilled(shell) == ["10:01", "10:02", "10:03"]


def test_no_more_are_created_than_its_rate_allows():
    shell = paused()
    start(shell, max_active=10, rate="6/m")
    shell.until(f"{DAY}10:05:45")
    found = [clock(run.created_at) for run in shell.all(RunCreated) if run.cause is Cause.BACKFILL]
    assert found == ["10:05:30", "10:05:40"]


def test_neither_is_it_in_the_way_of_the_schedule_nor_the_schedule_in_its_way():
    shell = paused(overlap={"policy": "skip"})
    start(shell, max_active=3, rate="100/s")
    shell.until(f"{DAY}10:07:30")
    assert backfilled(shell) == ["10:01", "10:02", "10:03"]
    assert shell.created()[-1] != "10:06"  # that of 10:04 runs on, and stands in its way
    assert {fact.blocked_by for fact in shell.all(OccurrenceDeferred)} == {"s.20240101T100400Z"}


def test_those_that_make_room_are_never_runs_of_a_backfill():
    shell = paused(overlap={"policy": "cancel_other"})
    start(shell, max_active=3, rate="100/s")
    shell.until(f"{DAY}10:06:30")
    asked = {fact.run_id for fact in shell.all(RunCancelRequested)}
    assert asked == {"s.20240101T100400Z"}


def test_it_works_while_its_schedule_is_paused():
    shell = paused()
    shell.send("SchedulePause")
    start(shell)
    run_all(shell)
    assert backfilled(shell) == ["10:01", "10:02", "10:03"]
    assert shell.all(BackfillFinished)[0].outcome == "completed"


def test_it_does_not_use_up_the_runs_that_a_schedule_may_have():
    shell = paused(trigger={"cron": "* * * * *", "max_runs": 3})
    start(shell)
    run_all(shell)
    shell.until(f"{DAY}10:07:30")
    live = [clock(run.nominal_time) for run in shell.all(RunCreated) if run.cause is Cause.SCHEDULE]  # type: ignore[arg-type]
    assert live == ["10:04", "10:05", "10:06"]


# --- what went wrong elsewhere ------------------------------------------------------------------------------------


def at_two() -> Shell:
    """B-O15: every minute since 2024-01-01T02:00."""
    shell = Shell(f"{DAY}02:00:00")
    shell.put(body=definition("* * * * *"))
    return shell


def test_case_b_o15_a_range_is_half_open_so_that_its_start_runs_and_its_end_does_not():
    shell = at_two()
    assert start(shell, **{"from": f"{DAY}01:00:00Z", "to": f"{DAY}01:05:00Z"})[1]["occurrences"] == 5
    run_all(shell)
    assert backfilled(shell) == ["01:00", "01:01", "01:02", "01:03", "01:04"]


@pytest.mark.parametrize("end", ["01:00:00", "00:59:00"])
def test_case_b_o15_a_range_that_ends_where_it_begins_or_before_is_refused(end):
    shell = at_two()
    start(shell, **{"from": f"{DAY}01:00:00Z", "to": f"{DAY}{end}Z"})
    rejected = shell.all(CommandRejected)[-1]
    assert [(fault.pointer, fault.code, fault.remedy) for fault in rejected.faults] == [
        ("/data/to", "range", "ranges are [from, to)")
    ]


def test_case_b_o23_a_serial_backfill_of_seven_days_makes_seven_runs_of_seven_nominals():
    shell = Shell("2019-11-23T01:00:00")
    shell.put(body=definition("0 0 * * *"))
    start(shell, **{"from": "2019-11-16T00:00:00Z", "to": "2019-11-23T00:00:00Z", "max_active": 1})
    run_all(shell, until="2019-11-23T23:59:00")
    made = [run.run_id for run in shell.all(RunCreated) if run.cause is Cause.BACKFILL]
    assert made == [f"s.201911{day}T000000Z" for day in range(16, 23)]


def test_a_month_of_minutes_is_a_small_value_and_one_run_in_the_queue():
    shell = Shell("2024-01-31T00:00:00")
    shell.put(body=definition("* * * * *", overlap={"policy": "allow_all"}))
    status, body = start(shell, **{"from": f"{DAY}00:00:30Z", "to": "2024-01-31T00:00:00Z"})
    assert (status, body["occurrences"]) == (201, 43_199)
    for _ in range(3):
        shell.settle()
        run = shell.last_run()
        shell.finish(run)
        shell.now += timedelta(milliseconds=100)
    shell.settle()
    assert backfilled(shell) == ["00:01", "00:02", "00:03", "00:04"]
    row = shell.rows[b"s/acme/s"].data[b"s"]
    assert len(row) < 1_500
    assert len(shell.rows[b"s/acme/s"].data) < 12


def test_what_was_filled_is_forgotten_with_the_history():
    shell = paused()
    start(shell)
    run_all(shell)
    assert [row for row in shell.rows[b"s/acme/s"].data if row.startswith(keys.FILLS)] != []
    shell.put(body=definition("0 0 1 1 *"))
    shell.until("2024-02-02T12:00:00")
    assert [row for row in shell.rows[b"s/acme/s"].data if row.startswith(keys.FILLS)] == []
    assert shell.schedule().filled_from is None
