"""Backfills are paused, resumed, cancelled, tried dry and refused; and a schedule is resumed with one."""

import pytest

from scheduler import keys
from schemas import topics
from schemas.facts import (
    BackfillFinished,
    BackfillProgressed,
    BackfillStarted,
    RunCancelRequested,
)
from tests.scheduler.backfilling import DAY, backfilled, finish_live, minutely, paused, run_all, start
from tests.scheduler.harness import Shell, definition

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
