"""`every` with `from: finish`: so long after the end of the run before."""

from typing import Any

import pytest

from schemas.facts import OccurrenceSkipped, RunCreated, ScheduleAccepted
from tests.scheduler.harness import Shell, clock, definition

ANY: dict[str, Any] = {"policy": "allow_all"}


def body(every: str = "PT15M", **more: Any) -> dict[str, Any]:
    trigger = {"every": every, "from": "finish", **more.pop("trigger", {})}
    return {**definition(), "trigger": trigger, "overlap": ANY, **more}


def chain(every: str = "PT15M", **more: Any) -> Shell:
    """Accepted at 10:00:10.400."""
    shell = Shell("2024-01-01T10:00:10.400")
    shell.put(body=body(every, **more))
    return shell


def nominals(shell: Shell) -> list[str]:
    return [clock(run.nominal_time) for run in shell.all(RunCreated) if run.nominal_time is not None]


def finish(shell: Shell, at: str, outcome: str = "succeeded") -> None:
    shell.until(f"2024-01-01T{at}")
    shell.finish(shell.all(RunCreated)[-1], outcome)
    shell.settle()


def test_the_first_one_comes_an_interval_after_the_acceptance_and_each_later_one_after_the_end_of_the_run_before():
    shell = chain()
    shell.until("2024-01-01T10:40:00")
    assert nominals(shell) == ["10:15:10"], "one at a time, however long its run takes"
    finish(shell, "10:40:00.900")
    shell.until("2024-01-01T10:54:59.999")
    assert nominals(shell) == ["10:15:10"]
    shell.until("2024-01-01T11:30:00")
    assert nominals(shell) == ["10:15:10", "10:55"], "counted from the whole second in which it ended"
    assert shell.skipped() == []
    shell.reload()


def test_an_anchor_is_where_the_first_interval_begins():
    shell = chain(trigger={"anchor": "2024-01-01T12:00:00Z"})
    shell.until("2024-01-01T13:00:00")
    assert nominals(shell) == ["12:15"]


@pytest.mark.parametrize("outcome", ["failed", "cancelled", "expired", "dead_lettered"])
def test_whatever_the_outcome(outcome):
    shell = chain()
    finish(shell, "10:20:00", outcome)
    shell.until("2024-01-01T10:36:00")
    assert nominals(shell) == ["10:15:10", "10:35"]


def test_it_says_in_words_what_it_does_and_knows_only_the_next_one():
    shell = chain()
    (accepted,) = shell.all(ScheduleAccepted)
    assert accepted.words == ("PT15M after the end of the run before, the first one PT15M after 2024-01-01T10:00:10Z")
    assert [clock(instant) for instant in accepted.next] == ["10:15:10"]
    shell.until("2024-01-01T10:16:00")
    assert shell.all(RunCreated)[0].rule == "every PT15M from finish"
    shell.put(body=body(note="new"))
    assert shell.all(ScheduleAccepted)[-1].next == (), "nobody knows when its run ends"
    finish(shell, "10:20:00")
    shell.put(body=body(note="newer"))
    assert [clock(instant) for instant in shell.all(ScheduleAccepted)[-1].next] == ["10:35"]


def test_an_edit_keeps_where_it_counts_from():
    shell = chain()
    finish(shell, "10:20:00")
    shell.put(body=body("PT30M"))
    shell.until("2024-01-01T11:00:00")
    assert nominals(shell) == ["10:15:10", "10:50"]


def test_a_paused_one_is_skipped_each_interval_and_goes_on_from_there():
    shell = chain()
    finish(shell, "10:20:00")
    shell.send("SchedulePause")
    shell.until("2024-01-01T11:10:00")
    assert shell.skipped() == ["10:35 paused", "10:50 paused", "11:05 paused"]
    shell.send("ScheduleResume")
    shell.until("2024-01-01T11:30:00")
    assert nominals(shell) == ["10:15:10", "11:20"]


def test_one_that_is_skipped_counts_from_its_own_instant():
    shell = chain()
    shell.send("ScheduleSkipOccurrence", nominal_time="2024-01-01T10:15:10Z")
    assert shell.answer().status == 200
    shell.until("2024-01-01T10:40:00")
    assert (shell.skipped(), nominals(shell)) == (["10:15:10 requested"], ["10:30:10"])


def test_only_the_next_one_can_be_asked_to_be_skipped():
    shell = chain()
    shell.send("ScheduleSkipOccurrence", nominal_time="2024-01-01T10:30:10Z")
    assert shell.answer().status == 422


@pytest.mark.parametrize("policy", ["latest", "all"])
def test_an_outage_leaves_one_run_to_catch_up(policy):
    shell = chain(catch_up={"policy": policy})
    finish(shell, "10:20:00")
    shell.sleep_until("2024-01-01T14:00:00")
    shell.settle()
    assert nominals(shell) == ["10:15:10", "10:35"]
    assert shell.all(RunCreated)[-1].cause == "catch_up"
    assert shell.skipped() == []
    finish(shell, "14:00:30")
    shell.until("2024-01-01T14:20:00")
    assert nominals(shell)[2:] == ["14:15:30"]


def test_an_outage_with_catch_up_skip_goes_on_in_steps_of_the_interval():
    shell = chain(catch_up={"policy": "skip"})
    finish(shell, "10:20:00")
    shell.sleep_until("2024-01-01T11:30:00")
    shell.settle()
    assert shell.skipped() == ["10:35..11:20 x4 catch_up"]
    shell.until("2024-01-01T11:40:00")
    assert nominals(shell) == ["10:15:10", "11:35"]


def test_what_ended_during_an_outage_counts_from_when_it_ended():
    shell = chain()
    shell.until("2024-01-01T10:16:00")
    run = shell.last_run()
    shell.sleep_until("2024-01-01T10:40:00")
    shell.finish(run, published="2024-01-01T10:20:00")
    shell.settle()
    assert nominals(shell) == ["10:15:10", "10:35"]


def test_a_run_by_hand_changes_nothing():
    shell = chain()
    shell.send("ScheduleTrigger")
    shell.finish(shell.all(RunCreated)[0])
    shell.until("2024-01-01T10:16:00")
    assert nominals(shell) == ["10:15:10"]


def test_a_schedule_that_was_a_cron_one_counts_from_its_edit():
    shell = Shell("2024-01-01T10:00:10")
    shell.put(body=definition(overlap=ANY))
    shell.until("2024-01-01T10:02:20")
    shell.put(body=body())
    shell.until("2024-01-01T10:20:00")
    assert nominals(shell)[2:] == ["10:17:20"]


def test_it_ends_with_its_window_and_with_the_last_run_it_may_have():
    shell = chain(trigger={"end_at": "2024-01-01T10:30:00Z", "max_runs": 5})
    finish(shell, "10:16:00")
    shell.until("2024-01-01T12:00:00")
    assert nominals(shell) == ["10:15:10"]
    shell = chain(trigger={"max_runs": 2})
    finish(shell, "10:16:00")
    finish(shell, "10:40:00")
    shell.until("2024-01-01T12:00:00")
    assert nominals(shell) == ["10:15:10", "10:31"]


def test_no_job_is_a_skip_as_any_other():
    shell = chain(job="unknown")
    shell.until("2024-01-01T10:50:00")
    assert shell.skipped() == ["10:15:10 no_job", "10:30:10 no_job", "10:45:10 no_job"]
    assert {fact.rule for fact in shell.all(OccurrenceSkipped)} == {"every PT15M from finish"}


@pytest.mark.parametrize("ends", ["10:30", "10:45"])
def test_a_run_that_ends_while_its_schedule_is_deleted_or_due_by_the_clock_is_counted_from_when_it_comes_back(ends):
    """Put anew at 10:40, or changed back then: the next one is counted from there, or from the end behind it."""
    for between in ("delete", "edit"):
        shell = chain()
        shell.until("2024-01-01T10:20:00")
        if between == "delete":
            shell.send("ScheduleDelete")
        else:
            shell.put(body={**definition("0 0 * * *"), "overlap": ANY})
        if ends == "10:30":
            finish(shell, "10:30:00")
        shell.until("2024-01-01T10:40:00")
        shell.put(body=body())
        if ends == "10:45":
            finish(shell, "10:45:00")
        shell.until("2024-01-01T11:30:00")
        assert nominals(shell) == ["10:15:10", "10:55" if ends == "10:30" else "11:00"]
        shell.reload()
