"""`after` with `mode: interval`: an occurrence waits for all that another schedule was due in a window."""

from typing import Any

import pytest

from scheduler import keys
from schemas import codec, topics
from schemas.facts import OccurrenceDeferred, OccurrenceSkipped, RunCreated
from schemas.linking import WindowAsked, WindowHeard, WindowJudged
from tests.scheduler.harness import Shell, at, definition

WINDOW = "(2024-01-01T09:30:00Z, 2024-01-01T10:30:00Z]"
ALL: dict[str, Any] = {"overlap": {"policy": "allow_all"}}


def waiting(*upstreams: str, cron: str = "30 * * * *", **more: Any) -> dict[str, Any]:
    """A definition of a schedule that waits for others, half past every hour if nothing else is said."""
    of_schedule = {name: more.pop(name) for name in ("overlap", "trigger", "catch_up") if name in more}
    after = [{"schedule": each, "mode": "interval", **more} for each in upstreams]
    of_schedule.setdefault("overlap", ALL["overlap"])
    return definition(cron, after=after, **of_schedule)


def pair(**more: Any) -> Shell:
    """`load` runs at every full hour, `report` at half past and waits for what was due in the hour before."""
    shell = Shell("2024-01-01T09:45:00")
    shell.put("load", definition("0 * * * *", **ALL))
    shell.put("report", waiting("load", **more))
    shell.deliver()
    return shell


def live(shell: Shell, clock: str) -> None:
    """Up to an instant of the day; what owners tell each other is read when it is told."""
    until(shell, f"2024-01-01T{clock}:00")


def until(shell: Shell, instant: str) -> None:
    end = at(instant)
    told(shell)
    while (due := shell.next_wakeup()) is not None and due <= end:
        shell.now = max(shell.now, due)
        told(shell)
    shell.now = end
    told(shell)


def told(shell: Shell) -> None:
    shell.settle()
    while shell.deliver():
        shell.settle()


def ended(shell: Shell, hour: int, outcome: str = "succeeded") -> None:
    shell.finish(f"load.20240101T{hour:02}0000Z", outcome)
    told(shell)


def details(shell: Shell) -> list[str]:
    return [fact.detail for fact in shell.all(OccurrenceSkipped, "report")]


def test_an_occurrence_has_its_run_when_the_window_is_met_already():
    shell = pair()
    live(shell, "10:01")
    ended(shell, 10)
    live(shell, "10:30")
    assert shell.created("report") == ["10:30"]
    assert shell.deferred("report") == ["10:30 10:30"]
    assert shell.schedule("report").waiting_count == 0
    shell.reload()


def test_it_waits_for_a_run_that_has_no_outcome_yet():
    shell = pair()
    live(shell, "10:40")
    assert shell.created("report") == []
    (deferred,) = shell.all(OccurrenceDeferred, "report")
    assert (deferred.reason, deferred.detail, deferred.until) == (
        "waiting", f"waits for load in {WINDOW}", at("2024-01-02T10:30:00")
    )  # fmt: skip
    ended(shell, 10)
    assert shell.created("report") == ["10:30@10:40"]
    shell.reload()


def test_it_waits_for_the_last_of_all_in_its_window_and_for_no_other():
    shell = pair(span="PT2H")
    live(shell, "11:05")
    ended(shell, 11)
    live(shell, "11:40")
    assert shell.created("report") == []
    ended(shell, 10)
    assert shell.created("report") == ["10:30@11:40", "11:30@11:40"]
    live(shell, "12:40")
    ended(shell, 12)
    assert shell.created("report")[2:] == ["12:30@12:40"]


def test_what_lies_at_the_beginning_of_a_window_is_none_of_it_and_at_the_end_it_is():
    shell = Shell("2024-01-01T08:45:00")
    shell.put("load", definition("0 * * * *", **ALL))
    shell.put("report", waiting("load", cron="0 10 * * *", span="PT1H"))
    shell.deliver()
    live(shell, "10:05")
    assert shell.created("report") == []
    ended(shell, 10)
    assert shell.created("report") == ["10:00@10:05"]


@pytest.mark.parametrize(("offset", "hour"), [("-PT1H", 9), ("PT0S", 10), ("PT1H", 11)])
def test_an_offset_moves_the_window(offset, hour):
    shell = Shell("2024-01-01T08:45:00")
    shell.put("load", definition("0 * * * *", **ALL))
    shell.put("report", waiting("load", cron="30 10 * * *", span="PT1H", offset=offset))
    shell.deliver()
    live(shell, "11:40")
    for other in {9, 10, 11} - {hour}:
        ended(shell, other)
    assert shell.created("report") == []
    ended(shell, hour)
    assert shell.created("report") == ["10:30@11:40"]


def test_the_span_is_as_long_as_the_own_interval_where_nothing_is_said():
    shell = Shell("2024-01-04T12:00:00")
    shell.put("load", definition("0 * * * *", **ALL))
    shell.put("report", waiting("load", cron="30 10 * * mon-fri"))
    shell.deliver()
    until(shell, "2024-01-08T10:30:00")
    asked = shell.all(WindowAsked, "report")
    assert {(each.after, each.until) for each in asked} == {
        (at("2024-01-04T10:30:00"), at("2024-01-05T10:30:00")), (at("2024-01-05T10:30:00"), at("2024-01-08T10:30:00"))
    }  # fmt: skip


def test_an_answer_says_in_words_what_is_waited_for():
    shell = pair(deadline="PT6H")
    words = "At minute 30 of every hour, UTC; each waits until load has succeeded since the one before, at most PT6H"
    assert shell.answer().body["words"] == words
    names = ("load", "prices", "rates", "stock", "fees")
    shell.put("report", waiting(*names, span="P1D", condition="finished"))
    assert shell.answer().body["words"].partition("; ")[2] == (
        "each waits until load has finished in the P1D before it and prices has finished in the P1D before it"
        " and rates has finished in the P1D before it and 2 more schedules have, at most P1D"
    )


def test_a_span_of_which_decisions_are_not_kept_is_refused_with_what_to_do():
    shell = Shell("2024-01-01T09:45:00")
    shell.put("report", waiting("load", span="P28D", offset="-P1D"))
    assert shell.answer().status == 201
    shell.put("report", waiting("load", "prices", span="P29D", offset="-P1D"))
    assert shell.answer().status == 422
    assert [(fault.pointer, fault.code) for fault in shell.answer().faults] == [
        ("/data/definition/after/0/span", "range"), ("/data/definition/after/1/span", "range")
    ]  # fmt: skip
    assert shell.answer().faults[0].message == (
        "looks back P31D, of which the deadline is P1D; decisions are kept for P30D"
    )  # fmt: skip
    shell.put("report", waiting("load", cron="0 0 1 1 *"))
    assert shell.answer().status == 422, "it would look back a year"


def test_a_window_without_occurrences_is_met():
    shell = Shell("2024-01-01T08:45:00")
    shell.put("load", definition("0 3 * * *", **ALL))
    shell.put("report", waiting("load"))
    shell.deliver()
    live(shell, "10:00")
    assert shell.created("report") == ["09:30"]


def test_a_window_between_two_failures_that_stand_side_by_side_in_the_ledger_is_met():
    shell = Shell("2023-12-29T12:00:00")
    shell.put("load", definition("0 3 * * *", **ALL))
    for day in ("2023-12-30", "2023-12-31"):
        shell.until(f"{day}T03:10:00")
        shell.finish(shell.last_run("load"), "failed")
    shell.put("report", waiting("load", cron="0 4 31 12 *", span="PT1H", offset="-PT12H"))
    shell.deliver()
    until(shell, "2023-12-31T04:00:00")
    assert shell.created("report") == ["04:00"]


# --- what is unmet ------------------------------------------------------------------------------------------------


def test_unmet_waits_and_says_why_and_is_skipped_at_the_deadline():
    shell = pair(deadline="PT2H")
    live(shell, "10:10")
    ended(shell, 10, "failed")
    live(shell, "10:40")
    assert shell.created("report") == []
    assert [fact.detail for fact in shell.all(OccurrenceDeferred, "report")] == [
        f"waits for load in {WINDOW}", "load: 2024-01-01T10:00:00Z failed"
    ]  # fmt: skip
    live(shell, "12:29")
    assert shell.skipped("report") == []
    live(shell, "12:30")
    assert shell.skipped("report") == ["10:30 upstream"]
    assert details(shell) == ["load: 2024-01-01T10:00:00Z failed, by 2024-01-01T12:30:00Z"]
    shell.reload()


def test_unmet_is_skipped_at_once_or_runs_anyway_where_that_is_wanted():
    for on_unmet, created, skipped in (("skip", [], ["10:30 upstream"]), ("run_anyway", ["10:30"], [])):
        shell = pair(on_unmet=on_unmet)
        live(shell, "10:10")
        ended(shell, 10, "failed")
        live(shell, "10:40")
        assert (shell.created("report"), shell.skipped("report")) == (created, skipped)
        assert details(shell) == ["load: 2024-01-01T10:00:00Z failed"] * len(skipped)
        said = [run.detail for run in shell.all(RunCreated, "report")]
        assert said == ["runs anyway: load: 2024-01-01T10:00:00Z failed"] * len(created)


def test_whoever_skips_what_is_unmet_waits_for_all_of_the_window_first():
    shell = pair(on_unmet="skip", span="PT2H")
    live(shell, "11:05")
    ended(shell, 10, "failed")
    live(shell, "11:40")
    assert shell.skipped("report") == ["10:30 upstream"]
    ended(shell, 11)
    assert shell.skipped("report") == ["10:30 upstream", "11:30 upstream"]


def test_finished_does_not_mind_failures_but_what_was_skipped():
    shell = pair(condition="finished", on_unmet="skip")
    live(shell, "10:10")
    ended(shell, 10, "failed")
    live(shell, "10:40")
    shell.send("SchedulePause", name="load")
    live(shell, "11:40")
    assert shell.created("report") == ["10:30"]
    assert shell.skipped("report") == ["11:30 upstream"]
    assert details(shell) == ["load: 2024-01-01T11:00:00Z was skipped: paused"]


def test_what_rules_take_out_is_no_occurrence():
    shell = Shell("2024-01-01T08:45:00")
    shell.put("load", definition("0 * * * *", trigger={"exclude": {"dates": ["2024-01-01"]}}, **ALL))
    shell.put("report", waiting("load", on_unmet="skip"))
    shell.deliver()
    live(shell, "10:00")
    assert shell.created("report") == ["09:30"]


def test_without_an_answer_run_anyway_runs_at_the_deadline():
    shell = pair(on_unmet="run_anyway", deadline="PT20M")
    live(shell, "10:55")
    assert shell.created("report") == ["10:30@10:50"]
    said = "runs anyway: load: 2024-01-01T10:00:00Z had no outcome, by 2024-01-01T10:50:00Z"
    assert shell.last_run("report").detail == said


def test_what_is_heard_behind_the_deadline_changes_nothing_when_both_are_read_at_once():
    for on_unmet, created in (("skip", []), ("run_anyway", ["10:30@10:55"])):
        shell = pair(deadline="PT20M", on_unmet=on_unmet)
        live(shell, "10:40")
        shell.sleep_until("2024-01-01T10:55:00")
        word = WindowJudged(
            tenant="acme", schedule="load", downstream="report", nominal_time=at("2024-01-01T10:30:00"), version=1,
            fate="met", judged_at=shell.now,
        )  # fmt: skip
        _, value = codec.encode(word, source="x", time=shell.now)
        shell.record(topics.LINKS, codec.parse(value), published="2024-01-01T10:51:00")
        told(shell)
        assert shell.created("report") == created
        said = [*details(shell), *(run.detail for run in shell.all(RunCreated, "report"))]
        missing = "load: 2024-01-01T10:00:00Z had no outcome, by 2024-01-01T10:50:00Z"
        assert [each.removeprefix("runs anyway: ") for each in said] == [missing]


def test_what_is_open_at_the_deadline_is_named():
    shell = pair(deadline="PT20M")
    live(shell, "10:55")
    assert details(shell) == ["load: 2024-01-01T10:00:00Z had no outcome, by 2024-01-01T10:50:00Z"]


# --- what is mended -----------------------------------------------------------------------------------------------


def test_a_backfill_that_mends_a_failure_wakes_what_waits():
    shell = pair()
    live(shell, "10:10")
    ended(shell, 10, "failed")
    live(shell, "10:40")
    shell.send(
        "BackfillStart", name="load", reprocess="failed",
        **{"from": "2024-01-01T10:00:00Z", "to": "2024-01-01T10:20:00Z"},
    )  # fmt: skip
    assert shell.answer().status < 300
    live(shell, "10:41")
    shell.finish(shell.last_run("load"))
    told(shell)
    assert shell.created("report") == ["10:30@10:41"]
    shell.reload()


def test_a_backfill_that_fails_again_wakes_nobody():
    shell = pair()
    live(shell, "10:10")
    ended(shell, 10, "failed")
    live(shell, "10:40")
    shell.send(
        "BackfillStart", name="load", reprocess="failed",
        **{"from": "2024-01-01T10:00:00Z", "to": "2024-01-01T10:20:00Z"},
    )  # fmt: skip
    assert shell.answer().status < 300
    live(shell, "10:41")
    shell.finish(shell.last_run("load"), "failed")
    told(shell)
    assert shell.created("report") == []


def test_a_rerun_that_succeeds_wakes_what_waits():
    shell = pair()
    live(shell, "10:10")
    ended(shell, 10, "failed")
    live(shell, "10:40")
    old = shell.run("load.20240101T100000Z")
    whole = codec.parse(codec.encode(old, source="x", time=shell.now)[1])["data"]
    shell.send("RunRerun", name="load", run_id=old.run_id, run=whole)
    assert shell.answer().status == 201
    live(shell, "10:41")
    assert shell.created("report") == []
    shell.finish(shell.last_run("load"))
    told(shell)
    assert shell.created("report") == ["10:30@10:41"]
    shell.reload()


def test_a_hundred_upstreams_of_unlike_periods_have_all_to_be_met():
    shell = Shell("2024-01-01T09:05:00")
    names = [f"load-{minutes}-{number}" for minutes in (5, 10, 15, 20, 60) for number in range(20)]
    for name in names:
        minutes = int(name.split("-")[1])
        cron = "0 * * * *" if minutes == 60 else f"*/{minutes} * * * *"
        shell.put(name, definition(cron, **ALL))
    shell.put("report", waiting(*names, cron="30 10 * * *", span="PT1H"))
    live(shell, "10:31")
    runs = [fact for fact in shell.facts if isinstance(fact, RunCreated)]
    first, last = at("2024-01-01T09:30"), at("2024-01-01T10:30")
    open_runs = [run for run in runs if run.nominal_time and first < run.nominal_time <= last]
    assert len(open_runs) == 20 * (12 + 6 + 4 + 3 + 1)
    for run in open_runs[1:]:
        shell.finish(run)
    told(shell)
    assert shell.created("report") == []
    shell.finish(open_runs[0])
    told(shell)
    assert shell.created("report") == ["10:30@10:31"]
    shell.reload()


def backfilled(first: str) -> Shell:
    """B-O23: the seven days before were skipped, and a backfill, one run at a time, makes up for them from a day on."""
    shell = Shell("2019-11-15T12:00:00")
    shell.put("a", definition("0 0 * * *"))
    shell.put("b", waiting("a", cron="0 1 * * *", span="P7D", offset="-P1D", deadline="P2D"))
    shell.deliver()
    shell.send("SchedulePause", name="a")
    shell.send("SchedulePause", name="b")
    shell.until("2019-11-22T12:00:00")
    shell.send("ScheduleResume", name="a")
    shell.send("ScheduleResume", name="b")
    shell.send("BackfillStart", name="a", max_active=1, **{"from": f"{first}T00:00:00Z", "to": "2019-11-22T12:00:00Z"})
    assert shell.answer().status < 300
    until(shell, "2019-11-23T01:00:00")
    return shell


def of_a(shell: Shell) -> list[RunCreated]:
    return [run for run in shell.all(RunCreated, "a") if run.backfill]


def test_b_waits_for_the_seventh_run_of_a_serial_backfill_of_seven_days():
    shell = backfilled("2019-11-16")
    for count in range(1, 8):
        assert len(of_a(shell)) == count
        assert shell.created("b") == []
        shell.finish(of_a(shell)[-1])
        until(shell, f"2019-11-23T01:0{count}:00")
    assert [run.nominal_time for run in of_a(shell)] == [at(f"2019-11-{day}T00:00:00") for day in range(16, 23)]
    assert shell.created("b") == ["01:00@01:06"]


def test_b_waits_and_is_not_failed_at_once_when_one_of_the_seven_is_missing():
    shell = backfilled("2019-11-17")
    for count in range(1, 7):
        shell.finish(of_a(shell)[-1])
        until(shell, f"2019-11-23T01:0{count}:00")
    assert len(of_a(shell)) == 6
    until(shell, "2019-11-25T00:59:00")
    assert (shell.created("b"), [skip for skip in shell.skipped("b") if "upstream" in skip]) == ([], [])
    until(shell, "2019-11-25T01:00:00")
    assert [skip for skip in shell.skipped("b") if "upstream" in skip] == ["01:00 upstream"]
    skipped = shell.all(OccurrenceSkipped, "b")[-1]
    assert skipped.detail == "a: 2019-11-16T00:00:00Z was skipped: paused, by 2019-11-25T01:00:00Z"


# --- upstreams that come and go -----------------------------------------------------------------------------------


def test_a_schedule_that_never_was_is_waited_for_and_named():
    shell = Shell("2024-01-01T09:45:00")
    shell.put("report", waiting("load", deadline="PT20M"))
    live(shell, "10:50")
    assert [fact.detail for fact in shell.all(OccurrenceDeferred, "report")] == [
        f"waits for load in {WINDOW}", "load: there is no such schedule"
    ]  # fmt: skip
    assert details(shell) == ["load: there is no such schedule, by 2024-01-01T10:50:00Z"]


def test_one_that_is_put_while_it_is_waited_for_is_asked_then():
    shell = Shell("2024-01-01T09:45:00")
    shell.put("report", waiting("load"))
    live(shell, "10:40")
    shell.put("load", definition("0 * * * *", **ALL))
    told(shell)
    assert shell.created("report") == ["10:30@10:40"]


def test_of_one_that_is_deleted_nothing_is_to_come():
    shell = pair(offset="PT1H")
    live(shell, "10:35")
    shell.send("ScheduleDelete", name="load")
    told(shell)
    assert shell.created("report") == ["10:30@10:35"]


def test_an_upstream_that_is_no_longer_named_is_not_waited_for():
    shell = pair()
    live(shell, "10:40")
    shell.put("report", definition("30 * * * *", **ALL))
    told(shell)
    assert shell.created("report") == ["10:30@10:40"]


def test_a_change_frees_what_waits_when_it_takes_effect_and_not_when_it_is_read():
    shell = pair(deadline="PT20M")
    live(shell, "10:40")
    shell.sleep_until("2024-01-01T10:55:00")
    shell.put("report", definition("30 * * * *", **ALL), published="2024-01-01T10:45:00")
    told(shell)
    assert shell.created("report") == ["10:30@10:55"]


def test_what_is_due_under_a_version_that_was_replaced_meanwhile_asks_nobody_who_is_no_longer_named():
    shell = pair()
    live(shell, "10:20")
    shell.sleep_until("2024-01-01T10:31:00")
    shell.put("report", definition("30 * * * *", **ALL), published="2024-01-01T10:30:30")
    told(shell)
    assert shell.all(WindowAsked, "report") == []
    assert shell.created("report") == ["10:30@10:31"]
    shell.reload()


def test_an_upstream_that_is_followed_instead_is_not_waited_for_and_its_questions_are_dropped():
    shell = pair()
    live(shell, "10:40")
    after = [{"schedule": "load", "mode": "run", "condition": "failed"}]
    shell.put("report", definition("30 * * * *", after=after, **ALL))
    told(shell)
    assert shell.created("report") == ["10:30@10:40"]
    assert [key for key in shell.schedule("load").rows.data if key.startswith(keys.QUESTION)] == []
    ended(shell, 10, "failed")
    assert shell.created("report")[1:] == ["after load.20240101T100000Z"]
    shell.reload()


def test_of_several_upstreams_all_have_to_be_met():
    shell = Shell("2024-01-01T09:45:00")
    for name in ("load", "prices"):
        shell.put(name, definition("0 * * * *", **ALL))
    shell.put("report", waiting("load", "prices"))
    shell.deliver()
    live(shell, "10:40")
    ended(shell, 10)
    assert shell.created("report") == []
    shell.finish("prices.20240101T100000Z")
    told(shell)
    assert shell.created("report") == ["10:30@10:40"]


# --- what else can happen while it waits --------------------------------------------------------------------------


def test_a_pause_or_a_deletion_ends_the_waiting():
    for command, reason in (("SchedulePause", "paused"), ("ScheduleDelete", "ended")):
        shell = pair()
        live(shell, "10:40")
        shell.send(command, name="report")
        told(shell)
        ended(shell, 10)
        assert (shell.created("report"), shell.skipped("report")) == ([], [f"10:30 {reason}"])
        assert details(shell) == ["was waiting for other schedules"]
        shell.reload()


def test_an_occurrence_that_waited_waits_for_a_run_in_its_way_as_any_other():
    shell = pair(overlap={"policy": "buffer_one"})
    live(shell, "10:05")
    ended(shell, 10)
    live(shell, "11:40")
    ended(shell, 11)
    assert shell.created("report") == ["10:30"]
    shell.finish(shell.last_run("report"))
    told(shell)
    assert shell.created("report") == ["10:30", "11:30@11:40"]
    shell.reload()


@pytest.mark.parametrize("overlap", ["skip", "buffer_one"])
def test_how_long_it_may_wait_for_a_run_counts_from_when_the_others_are_done(overlap):
    """Half past eleven waits for a run from twenty to one on, for an hour, which is over at twenty to two."""
    shell = pair(
        overlap={"policy": overlap},
        catch_up={"policy": "all", "window": "1h"},
        trigger={"end_at": "2024-01-01T12:00:00Z"},
    )
    live(shell, "10:05")
    ended(shell, 10)
    live(shell, "12:40")
    ended(shell, 11)
    live(shell, "13:39")
    assert shell.skipped("report") == []
    shell.finish(shell.last_run("report"))
    told(shell)
    assert shell.created("report") == ["10:30", "11:30@13:39"]


def test_what_a_long_freeze_held_may_wait_for_a_run_from_its_end_on():
    window = {"from": "2024-01-01T11:15:00Z", "to": "2024-01-02T13:00:00Z"}
    shell = pair(overlap={"policy": "buffer_one"}, trigger={"end_at": "2024-01-01T12:00:00Z"})
    live(shell, "10:10")
    ended(shell, 10)
    live(shell, "11:10")
    ended(shell, 11)
    shell.send("QueuePut", tenant="_", name="default", definition={"freezes": [window]})
    shell.catalog("scheduler-0-9")
    until(shell, "2024-01-02T13:10:00")
    assert (shell.created("report"), shell.skipped("report")) == (["10:30"], [])
    shell.finish(shell.last_run("report"))
    told(shell)
    assert shell.created("report") == ["10:30", "11:30@13:10"]


def test_no_more_than_a_hundred_wait():
    shell = Shell("2024-01-01T09:59:59")
    shell.put("load", definition("0 10 * * *", **ALL))
    shell.put("report", waiting("load", cron="0/10 * * * * *", span="P1D"))
    shell.deliver()
    live(shell, "10:17")
    assert shell.schedule("report").links.awaits.count == 100
    assert set(shell.skipped("report")) == {"10:16:40 upstream", "10:16:50 upstream", "10:17 upstream"}
    assert set(details(shell)) == {"100 occurrences wait for upstreams already"}
    ended(shell, 10)
    assert len(shell.created("report")) == 100
    assert shell.schedule("report").links.awaits.count == 0
    shell.reload()


def test_what_was_missed_in_an_outage_waits_as_well_and_its_deadline_counts_from_then():
    shell = Shell("2024-01-01T09:45:00")
    shell.put("load", definition("0 * * * *", catch_up={"policy": "all"}, **ALL))
    shell.put("report", waiting("load", deadline="PT1H", catch_up={"policy": "latest"}))
    shell.deliver()
    shell.sleep_until("2024-01-01T15:10:00")
    told(shell)
    shell.now = at("2024-01-01T15:10:10")
    told(shell)
    assert shell.created("report") == []
    ended(shell, 14)
    assert shell.created("report") == ["14:30@15:10:10"]


def test_whoever_is_not_answered_asks_again():
    shell = pair()
    shell.until("2024-01-01T10:30:00")
    shell.outputs = []  # what was asked is lost
    shell.until("2024-01-01T10:39:00")
    assert len(shell.all(WindowAsked, "report")) == 1
    ended(shell, 10)
    live(shell, "10:40")
    assert len(shell.all(WindowAsked, "report")) == 2
    assert shell.created("report") == ["10:30@10:40"]


def test_what_is_asked_and_answered_twice_changes_nothing():
    shell = pair()
    live(shell, "10:40")
    ended(shell, 10)
    asked, judged = shell.all(WindowAsked, "report")[-1], shell.all(WindowJudged, "load")[-1]
    heard = len(shell.all(WindowHeard, "report"))
    for fact in (asked, judged):
        shell.outputs += shell.core.route(shell.schedule("report"), fact)
    told(shell)
    assert shell.created("report") == ["10:30@10:40"]
    assert len(shell.all(WindowHeard, "report")) == heard


def test_a_freeze_that_defers_holds_what_need_not_wait_any_more():
    """Half past ten has its answer at once, in the window from a quarter past ten to one."""
    window = {"from": "2024-01-01T10:15:00Z", "to": "2024-01-01T13:00:00Z", "note": "move"}
    shell = pair()
    shell.send("QueuePut", tenant="_", name="default", definition={"freezes": [window]})
    shell.catalog("scheduler-0-9")
    live(shell, "10:10")
    ended(shell, 10)
    live(shell, "11:40")
    assert shell.created("report") == []
    waits = [each for each in shell.all(OccurrenceDeferred, "report") if each.reason == "frozen"]
    assert [(each.nominal_time, each.until, each.detail) for each in waits] == [
        (at("2024-01-01T10:30:00"), at("2024-01-01T13:00:00"), "by freeze of queue default (version 1): move")
    ]
    shell.reload()
    live(shell, "13:00")
    assert shell.created("report") == ["10:30@13:00"]
    assert shell.last_run("report").cause == "catch_up"


def test_a_freeze_that_is_lifted_lets_go_of_what_waited_for_others():
    shell = pair()
    window = {"from": "2024-01-01T10:15:00Z", "to": "2024-01-01T13:00:00Z"}
    for clock, freezes in (("10:10", [window]), ("11:10", [])):
        live(shell, clock)
        ended(shell, 10)
        shell.send("QueuePut", tenant="_", name="default", definition={"freezes": freezes})
        shell.catalog(f"scheduler-0-{clock[:2]}")
    told(shell)
    assert shell.created("report") == ["10:30@11:10"]
    shell.reload()
