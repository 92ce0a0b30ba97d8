"""The occurrences of a past range get their runs, a few at a time, and nothing else notices."""

from datetime import timedelta
from typing import Any

import pytest

from scheduler import keys
from schemas import topics
from schemas.facts import (
    BackfillFinished,
    BackfillProgressed,
    BackfillStarted,
    Cause,
    CommandRejected,
    OccurrenceDeferred,
    RunCancelRequested,
    RunCreated,
)
from tests.scheduler.harness import Shell, at, clock, definition, text_of

DAY = "2024-01-01T"
NIGHT = {"from": f"{DAY}10:01:00Z", "to": f"{DAY}10:04:00Z"}


def minutely(**more: Any) -> Shell:
    """Every minute, from 10:00:10; what comes goes at once, so that nothing of the schedule is open at 10:05:30."""
    shell = Shell(f"{DAY}10:00:10")
    body = definition(**{"overlap": {"policy": "allow_all"}, **more})
    if "every" in body["trigger"]:
        del body["trigger"]["cron"]
    shell.put(body=body)
    return shell


def paused(**more: Any) -> Shell:
    """The same, but 10:01, 10:02 and 10:03 were skipped, as it was paused; it is 10:05:30."""
    shell = minutely(**more)
    shell.send("SchedulePause")
    shell.until(f"{DAY}10:03:30")
    shell.send("ScheduleResume")
    shell.until(f"{DAY}10:05:30")
    return shell


def start(shell: Shell, **more: Any) -> tuple[int, Any]:
    """Start one; the answer's status and body."""
    shell.send("BackfillStart", **{**NIGHT, **more})
    return shell.answer().status, shell.answer().body


def backfilled(shell: Shell) -> list[str]:
    """The runs of backfills by their nominal times, those of another run with a star."""
    return [
        clock(run.nominal_time) + ("*" if run.of else "")
        for run in shell.all(RunCreated)
        if run.cause is Cause.BACKFILL and run.nominal_time is not None
    ]


def run_all(shell: Shell, outcome: str = "succeeded", *, until: str = f"{DAY}10:59:00") -> None:
    """Let every run of a backfill end at once, until no more come."""
    finished: set[str] = set()
    for _ in range(200):
        shell.settle()
        open_ = [run for run in shell.all(RunCreated) if run.cause is Cause.BACKFILL and run.run_id not in finished]
        for run in open_:
            shell.finish(run, outcome)
            finished.add(run.run_id)
        due = shell.next_wakeup()
        if not shell.schedule().backfills or due is None or due > at(until):
            return
        shell.now = max(shell.now, due)
    raise AssertionError("this would go on for ever")


def finish_live(shell: Shell, outcome: str = "succeeded", *nominals: str) -> None:
    for run in shell.all(RunCreated):
        if run.cause is Cause.SCHEDULE and (not nominals or clock(run.nominal_time) in nominals):  # type: ignore[arg-type]
            shell.finish(run, outcome)


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


# --- pause, resume, cancel ----------------------------------------------------------------------------------------


def test_a_paused_one_creates_nothing_and_goes_on_where_it_stood():
    shell = paused()
    backfill = start(shell)[1]["backfill"]
    shell.settle()
    shell.send("BackfillPause", backfill=backfill, by="ada")
    assert (shell.answer().status, shell.answer().body["state"], shell.answer().body["changed"]) == (
        200,
        "paused",
        True,
    )
    shell.finish("s.20240101T100100Z")
    shell.until(f"{DAY}10:10:30")
    assert backfilled(shell) == ["10:01"]
    shell.reload()
    shell.send("BackfillPause", backfill=backfill)
    assert shell.answer().body["changed"] is False
    shell.send("BackfillResume", backfill=backfill)
    assert shell.answer().body["state"] == "running"
    run_all(shell)
    assert backfilled(shell) == ["10:01", "10:02", "10:03"]
    states = [fact.state for fact in shell.all(BackfillProgressed) if fact.by or fact.command_id]
    assert states == ["paused", "running"]


def test_a_cancelled_one_asks_its_runs_to_go_where_nobody_has_begun_them_and_ends_with_the_last_of_them():
    shell = paused()
    backfill = start(shell, max_active=2)[1]["backfill"]
    shell.until(f"{DAY}10:05:50")
    shell.send("BackfillCancel", backfill=backfill, by="ada")
    body = shell.answer().body
    assert (shell.answer().status, body["state"], body["open_runs"]) == (200, "cancelling", 2)
    assert body["note"] == "those of them that no worker has begun are cancelled, the others run to their end"
    asked = shell.all(RunCancelRequested)
    assert [(fact.run_id, fact.unstarted) for fact in asked] == [
        ("s.20240101T100100Z", True), ("s.20240101T100200Z", True),
    ]  # fmt: skip
    assert shell.to(topics.RUNS)[-2:] == asked
    shell.finish("s.20240101T100100Z", "cancelled")
    shell.until(f"{DAY}10:06:30")
    assert shell.all(BackfillFinished) == []
    shell.finish("s.20240101T100200Z", "succeeded")
    shell.settle()
    finished = shell.all(BackfillFinished)[0]
    assert (finished.outcome, finished.decided, finished.counts.ended) == (
        "cancelled", 2, {"cancelled": 1, "succeeded": 1},
    )  # fmt: skip
    assert backfilled(shell) == ["10:01", "10:02"]
    assert [row for row in shell.rows[b"s/acme/s"].data if row.startswith(keys.BACKFILLED)] == []
    shell.send("BackfillCancel", backfill=backfill)
    assert (shell.answer().status, shell.answer().body["reason"]) == (409, "already_finished")


def test_one_that_nobody_knows_cannot_be_paused():
    shell = paused()
    shell.send("BackfillPause", backfill="b-0000000000000000")
    assert (shell.answer().status, shell.answer().body["reason"]) == (404, "not_found")


def test_it_ends_with_its_schedule():
    shell = paused()
    start(shell)
    shell.settle()
    shell.send("ScheduleDelete")
    shell.finish("s.20240101T100100Z")
    shell.settle()
    finished = shell.all(BackfillFinished)[0]
    assert (finished.outcome, finished.reason, finished.decided) == ("cancelled", "its schedule was deleted", 1)


def test_one_whose_job_is_gone_stands_still_and_says_so():
    shell = Shell(f"{DAY}10:00:10")
    shell.send("JobPut", name="j", definition={"target": {"type": "task", "name": "t"}})
    shell.catalog()
    shell.put(body={"trigger": {"cron": "* * * * *"}, "job": "j", "overlap": {"policy": "allow_all"}})
    shell.until(f"{DAY}10:05:30")
    start(shell, **{"from": f"{DAY}09:00:00Z", "to": f"{DAY}09:03:00Z"})
    shell.settle()
    shell.send("JobDelete", name="j")
    shell.catalog("scheduler-0-2")
    shell.finish("s.20240101T090000Z")
    shell.until(f"{DAY}10:05:31")
    told = shell.all(BackfillProgressed)[-1]
    assert (told.state, told.reason) == ("paused", "no_job: there is no job j")
    start(shell)
    assert (shell.answer().status, shell.answer().body["reason"]) == (409, "no_job")


# --- resuming a schedule ------------------------------------------------------------------------------------------


def test_a_schedule_is_resumed_with_a_backfill_of_what_its_pause_skipped():
    shell = minutely()
    shell.until(f"{DAY}10:01:30")
    shell.send("SchedulePause")
    shell.until(f"{DAY}10:03:30")
    shell.put(body=definition("* * * * *", overlap={"policy": "allow_all"}, note="edited while it was paused"))
    shell.until(f"{DAY}10:04:30")
    shell.send("ScheduleResume", backfill=True)
    body = shell.answer().body
    assert (body["state"], body["backfill"]["from"], body["backfill"]["to"]) == (
        "active", "2024-01-01T10:01:31Z", "2024-01-01T10:04:31Z",
    )  # fmt: skip
    run_all(shell)
    assert backfilled(shell) == ["10:02", "10:03", "10:04"]


def test_a_pause_that_skipped_nothing_leaves_nothing_to_backfill():
    shell = minutely()
    shell.send("SchedulePause")
    shell.send("ScheduleResume", backfill=True)
    assert (shell.answer().status, shell.answer().body["warnings"]) == (
        200,
        ["/backfill: no occurrence of its trigger was skipped"],
    )
    shell.send("ScheduleResume", backfill=True)
    assert shell.answer().body["warnings"] == ["/backfill: it was not paused: nothing was skipped"]


# --- what is refused ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "status", "reason", "pointer", "remedy"),
    [
        ({"from": "2023-11-30T00:00:00Z"}, 422, "beyond_history", "/data/from",
         "begin at 2023-12-02T10:05:31Z or later"),
        ({"to": f"{DAY}11:00:00Z"}, 422, "future", "/data/to", "end it at 2024-01-01T10:05:30Z"),
        ({"from": f"{DAY}10:01:10Z", "to": f"{DAY}10:01:50Z"}, 422, "no_occurrence", "/data",
         "the next one behind it is 2024-01-01T10:02:00Z"),
        ({"as_of": 7}, 404, "no_version", "/data/as_of", "name one of its versions, up to 1, or leave it out"),
        ({"name": "other"}, 404, "not_found", "/data/name", "put it first"),
    ],
)  # fmt: skip
def test_what_cannot_be_backfilled_is_refused_with_a_reason_and_what_to_do_instead(
    more, status, reason, pointer, remedy
):
    shell = paused()
    assert start(shell, **more)[0] == status
    fault = shell.answer().faults[0]
    assert (fault.code, fault.pointer, fault.remedy) == (reason, pointer, remedy)
    assert shell.all(BackfillStarted) == []


def test_an_interval_that_follows_the_ends_of_runs_has_no_past_that_could_be_run():
    shell = minutely(trigger={"every": "PT1M", "from": "finish"})
    shell.until(f"{DAY}10:05:30")
    assert start(shell)[1]["reason"] == "from_finish"


def test_a_backfill_holds_a_hundred_thousand_occurrences():
    shell = Shell(f"{DAY}10:00:10")
    shell.put(body=definition("* * * * * *", overlap={"policy": "allow_all"}))
    span = {"from": "2023-12-31T00:00:00Z", "to": "2024-01-01T03:46:40Z"}
    assert start(shell, **span, dry_run=True)[1]["occurrences"] == 100_000
    assert start(shell, **{**span, "to": "2024-01-01T03:46:41Z"})[1]["reason"] == "too_many_occurrences"


def test_four_backfills_of_a_schedule_are_under_way_at_most():
    shell = paused()
    for _ in range(4):
        assert start(shell)[0] == 201
    assert start(shell)[1]["reason"] == "too_many_backfills"


def test_the_same_command_again_starts_nothing_and_is_answered_alike():
    shell = paused()
    first = start(shell, id="one")
    assert start(shell, id="one") == first
    assert first[1]["backfill"] == "b-82fa0d869c7daf6f"
    assert len(shell.all(BackfillStarted)) == 1


# --- a dry run ----------------------------------------------------------------------------------------------------


def test_a_dry_run_says_what_would_become_of_each_occurrence_and_does_nothing():
    shell = paused()
    finish_live(shell, "failed", "10:04")
    span = {"from": f"{DAY}09:59:00Z", "to": f"{DAY}10:05:30Z"}
    status, body = start(shell, **span, dry_run=True, rate="1/m")
    assert (status, body["dry_run"], body["occurrences"], body["complete"]) == (200, True, 7, True)
    assert (body["runs"], body["created"], body["left_out"]) == (
        5, {"never_due": 2, "paused": 3}, {"failed": 1, "open": 1},
    )  # fmt: skip
    assert body["shortest"] == "PT4M"
    assert start(shell, **span, dry_run=True, reprocess="failed")[1]["reprocessed"] == {"failed": 1}
    assert shell.all(BackfillStarted) == []


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
