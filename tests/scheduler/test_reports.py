"""What went wrong in other schedulers, as their users reported it; each with its instants written out."""

from datetime import timedelta
from typing import Any

import pytest

from schemas.facts import OccurrenceSkipped, RecoveryFinished, RecoveryStarted, RunCreated
from tests.scheduler.harness import Shell, at, definition

# --- B-O03: a job inside the missing hour does not run that day and nothing says so --------------------------------

NEW_YORK = {"timezone": "America/New_York"}


def test_b_o03_an_occurrence_in_the_missing_hour_runs_when_the_gap_ends():
    shell = Shell("2024-03-09T00:00:00")
    shell.put(body=definition("30 2 * * *", trigger=NEW_YORK, overlap={"policy": "allow_all"}))
    shell.until("2024-03-12T12:00:00")
    assert [run.nominal_time for run in shell.all(RunCreated)] == [
        at("2024-03-09T07:30:00"),
        at("2024-03-10T07:00:00"),
        at("2024-03-11T06:30:00"),
        at("2024-03-12T06:30:00"),
    ]
    assert shell.skipped() == []


def test_b_o03_an_occurrence_in_the_missing_hour_can_be_left_out_and_the_omission_is_said_when_the_clock_jumps():
    shell = Shell("2024-03-09T00:00:00")
    body = definition("30 2 * * *", trigger=NEW_YORK | {"gap_policy": "skip"}, overlap={"policy": "allow_all"})
    shell.put(body=body)
    shell.until("2024-03-12T12:00:00")
    assert [run.nominal_time for run in shell.all(RunCreated)] == [
        at("2024-03-09T07:30:00"),
        at("2024-03-11T06:30:00"),
        at("2024-03-12T06:30:00"),
    ]
    (omitted,) = shell.all(OccurrenceSkipped)
    assert (omitted.reason, omitted.local_time, omitted.nominal_time) == ("gap", "2024-03-10T02:30:00", None)
    assert omitted.decided_at == at("2024-03-10T07:00:00")


@pytest.mark.parametrize("policy", ["shift", "skip"])
def test_b_o03_what_follows_the_clock_of_every_hour_is_not_moved_by_a_gap(policy):
    shell = Shell("2024-03-10T05:00:00")
    shell.put(body=definition("30 * * * *", trigger=NEW_YORK | {"gap_policy": policy}, overlap={"policy": "allow_all"}))
    shell.until("2024-03-10T09:00:00")
    assert shell.created() == ["05:30", "06:30", "07:30", "08:30"]
    assert shell.skipped() == []


# --- B-O11: after a long stop the job never ran again -------------------------------------------------------------


def stopped_for_two_hours(**policies: Any) -> Shell:
    """`* * * * *`; nothing runs from 00:00:30 to 02:00:30, in which 00:01 to 02:00 are missed: 120 occurrences."""
    shell = Shell("2024-01-01T00:00:10")
    shell.put(body=definition(grace="PT0S", **policies))
    shell.until("2024-01-01T00:00:30")
    shell.sleep_until("2024-01-01T02:00:30")
    shell.settle()
    return shell


def finishing(shell: Shell) -> Shell:
    """Each run ends before the next one is created: ten a second, as nothing else is said."""
    while shell.schedule().open_runs:
        shell.finish(shell.last_run())
        shell.until(shell.now + timedelta(milliseconds=100))
    return shell


def minutes(first: int, last: int) -> list[str]:
    """One each tenth of a second from 02:00:30 on."""
    whole = [f"{30 + tenth // 10}" + (f".{tenth % 10}00" if tenth % 10 else "") for tenth in range(last - first + 1)]
    return [f"{m // 60:02}:{m % 60:02}@02:00:{at}" for m, at in zip(range(first, last + 1), whole, strict=True)]


def test_b_o11_a_long_stop_with_catch_up_skip_leaves_no_late_run():
    shell = stopped_for_two_hours(catch_up={"policy": "skip"})
    assert shell.created() == []
    assert shell.skipped() == ["00:01..02:00 x120 catch_up"]
    shell.until("2024-01-01T02:01:00")
    assert shell.created() == ["02:01"]


def test_b_o11_a_long_stop_with_catch_up_latest_leaves_one_run_of_the_latest_occurrence():
    shell = stopped_for_two_hours(catch_up={"policy": "latest"})
    assert shell.created() == ["02:00@02:00:30"]
    assert shell.skipped() == ["00:01..01:59 x119 catch_up"]
    assert shell.last_run().cause == "catch_up"
    finishing(shell).until("2024-01-01T02:01:00")
    assert shell.created() == ["02:00@02:00:30", "02:01"]


def test_b_o11_a_long_stop_with_catch_up_all_runs_every_occurrence_in_order_and_once():
    shell = finishing(stopped_for_two_hours(catch_up={"policy": "all", "limit": 1000}))
    assert shell.created() == minutes(1, 120)
    assert shell.skipped() == []
    shell.until("2024-01-01T02:01:00")
    assert shell.created()[120:] == ["02:01"]


def test_b_o11_catch_up_all_within_a_window_of_ten_minutes_runs_ten():
    shell = finishing(stopped_for_two_hours(catch_up={"policy": "all", "window": "PT600S"}))
    assert shell.created() == minutes(111, 120)
    assert shell.skipped() == ["00:01..01:50 x110 catch_up"]
    shell.until("2024-01-01T02:01:00")
    assert shell.created()[10:] == ["02:01"]


def test_b_o11_catch_up_all_with_a_limit_of_a_hundred_runs_the_latest_hundred_and_says_which_twenty_it_does_not():
    shell = finishing(stopped_for_two_hours(catch_up={"policy": "all", "limit": 100}))
    assert shell.created() == minutes(21, 120)
    assert shell.skipped() == ["00:01..00:20 x20 catch_up"]
    shell.until("2024-01-01T02:01:00")
    assert shell.created()[100:] == ["02:01"]


def test_b_o11_a_long_stop_with_everything_at_its_default_leaves_one_run_too():
    shell = Shell("2024-01-01T00:00:10")
    shell.put()
    shell.until("2024-01-01T00:00:30")
    shell.sleep_until("2024-01-01T02:00:30")
    shell.settle()
    assert shell.created() == ["02:00@02:00:30"]
    assert shell.skipped() == ["00:01..01:59 x119 catch_up"]
    assert shell.last_run().cause == "schedule"  # half a minute late is within its grace


def test_b_o11_a_recovery_says_from_where_to_where_it_went():
    shell = stopped_for_two_hours()
    (started,), (finished,) = shell.all(RecoveryStarted), shell.all(RecoveryFinished)
    assert (started.from_, started.to) == (at("2024-01-01T00:01:00"), at("2024-01-01T02:00:30"))
    assert (finished.from_, finished.to) == (started.from_, started.to)
    assert shell.shared.recovery is None


# --- B-O12: moving a job earlier made it run at once for a time already past ---------------------------------------


def test_b_o12_a_schedule_that_is_moved_runs_at_its_new_times_and_never_for_the_past():
    shell = Shell("2017-12-25T00:00:00")
    shell.put(body=definition("30 11 * * 5"))
    shell.until("2017-12-29T12:00:00")
    shell.finish(shell.last_run())
    shell.until("2018-01-04T23:49:00")
    shell.put(body=definition("0 11 * * 5"))
    assert len(shell.all(RunCreated)) == 1, "no run at the update"
    shell.until("2018-01-05T11:15:00")
    shell.finish(shell.last_run())
    shell.until("2018-01-12T12:00:00")
    assert [run.nominal_time for run in shell.all(RunCreated)] == [
        at("2017-12-29T11:30:00"),
        at("2018-01-05T11:00:00"),
        at("2018-01-12T11:00:00"),
    ]
    assert shell.skipped() == []


# --- B-O14: with overlap forbidden, a change of owner starts a second copy -----------------------------------------


def an_hour_of_runs_that_last_twelve_minutes(policy: str) -> Shell:
    """`*/5 * * * *`, observed in [00:00, 01:00); the owner changes at 00:03, while run 00:00 is active."""
    shell = Shell("2023-12-31T23:59:00")
    shell.put(body=definition("*/5 * * * *", overlap={"policy": policy}))
    for minute in range(60):
        shell.until(f"2024-01-01T00:{minute:02}:00")
        if minute == 3:
            shell.reload()
        for run in shell.all(RunCreated):
            if (shell.now - run.created_at).total_seconds() == 720:
                shell.finish(run)
        shell.settle()
        assert shell.schedule().active <= 1
    return shell


def test_b_o14_forbidden_overlap_starts_every_third_and_records_the_others_as_skipped():
    shell = an_hour_of_runs_that_last_twelve_minutes("skip")
    assert shell.created() == ["00:00", "00:15", "00:30", "00:45"]
    assert shell.skipped() == [f"00:{m:02} overlap" for m in (5, 10, 20, 25, 35, 40, 50, 55)]
    assert shell.all(OccurrenceSkipped)[0].blocked_by == "s.20240101T000000Z"


def test_b_o14_one_in_the_buffer_starts_when_the_run_before_ends():
    shell = an_hour_of_runs_that_last_twelve_minutes("buffer_one")
    assert shell.created() == ["00:00", "00:05@00:12", "00:15@00:24", "00:25@00:36", "00:40@00:48"]
    assert shell.skipped() == [f"00:{m:02} overlap" for m in (10, 20, 30, 35, 45, 55)]
    assert shell.deferred()[-1] == "00:50 open"  # waits for the run that began at 00:48


# --- B-O28: a weekly job never runs in a service that restarts more often than weekly -------------------------------


@pytest.mark.parametrize(
    ("trigger", "expected"),
    [
        ({"cron": "0 0 * * 1"}, ["2025-03-10T00:00:00", "2025-03-17T00:00:00", "2025-03-24T00:00:00"]),
        ({"every": "PT168H"}, ["2025-03-12T09:30:00", "2025-03-19T09:30:00"]),
    ],
    ids=["cron", "every"],
)
def test_b_o28_a_weekly_schedule_survives_a_restart_every_six_hours(trigger, expected):
    shell = Shell("2025-03-05T09:30:00")
    shell.put(body={"trigger": trigger, "job": {"target": {"type": "task", "name": "t"}}})
    while shell.now < at("2025-03-26T00:00:00"):
        shell.until(min(at("2025-03-26T00:00:00"), shell.now + 6 * (at("2025-01-01T01:00:00") - at("2025-01-01"))))
        shell.reload()
        for run in shell.all(RunCreated):
            shell.finish(run)
    assert [run.nominal_time for run in shell.all(RunCreated)] == [at(instant) for instant in expected]


# --- B-O35: triggering by hand twice within a second silently does it once ------------------------------------------


def test_b_o35_two_triggers_a_tenth_of_a_second_apart_are_two_runs():
    shell = Shell("2024-01-01T00:00:10")
    shell.put()
    shell.send("ScheduleTrigger", id="one")
    shell.until("2024-01-01T00:00:10.100")
    shell.send("ScheduleTrigger", id="two")
    first, second = shell.all(RunCreated)
    assert first.run_id != second.run_id
    assert shell.created() == ["manual", "manual"]


def test_b_o35_the_same_trigger_twice_is_one_run_and_both_calls_return_its_id():
    shell = Shell("2024-01-01T00:00:10")
    shell.put()
    shell.send("ScheduleTrigger", id="one")
    first = shell.answer()
    shell.until("2024-01-01T00:00:10.100")
    shell.send("ScheduleTrigger", id="one")
    assert shell.answer() == first
    assert first.body["run_id"] == shell.last_run().run_id
    assert shell.created() == ["manual"]


# --- B-O36: after an overlong run the occurrence in between is lost though within its deadline ----------------------


def after_a_run_that_lasts_130_seconds(policy: str) -> Shell:
    """`* * * * *`, overlap forbidden, deadline 500 s; run 14:28 ends at 14:30:10, later ones last ten seconds."""
    shell = Shell("2024-01-01T14:27:30")
    shell.put(body=definition(overlap={"policy": "skip"}, catch_up={"policy": policy, "window": "PT500S"}))
    shell.until("2024-01-01T14:30:10")
    shell.finish(shell.last_run())
    shell.settle()
    for second in (20, 30, 40):
        shell.until(f"2024-01-01T14:30:{second}")
        for run in shell.all(RunCreated):
            shell.finish(run)
        shell.settle()
    shell.until("2024-01-01T14:31:00")
    return shell


def test_b_o36_catch_up_all_runs_what_an_overlong_run_blocked_in_order_and_once():
    shell = after_a_run_that_lasts_130_seconds("all")
    assert shell.created() == ["14:28", "14:29@14:30:10", "14:30@14:30:20", "14:31"]
    assert shell.skipped() == []


def test_b_o36_catch_up_latest_runs_the_latest_that_an_overlong_run_blocked_and_records_the_other_as_skipped():
    shell = after_a_run_that_lasts_130_seconds("latest")
    assert shell.created() == ["14:28", "14:30@14:30:10", "14:31"]
    assert shell.skipped() == ["14:29 overlap"]
