"""`after` with `mode: interval`: an occurrence waits for all that another schedule was due in a window."""

import pytest

from schemas import codec, topics
from schemas.facts import OccurrenceDeferred, RunCreated
from schemas.linking import WindowAsked, WindowJudged
from tests.scheduler.harness import Shell, at, definition
from tests.scheduler.links.waiting import ALL, WINDOW, details, ended, live, pair, told, until, waiting


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


def test_its_time_to_begin_runs_from_when_it_waits_for_nobody_any_more():
    """Else it would be over before its run is there: nobody could begin it."""
    shell = pair(job={"target": {"type": "task", "name": "t"}, "start_within": "PT5M"})
    live(shell, "10:40")
    ended(shell, 10)
    (run,) = shell.all(RunCreated, "report")
    assert (run.created_at, run.start_by_at) == (at("2024-01-01T10:40:00"), at("2024-01-01T10:45:00"))


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
