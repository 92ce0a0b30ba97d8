"""One occurrence to come that somebody wants to have no run."""

from typing import Any

import pytest

from schemas.facts import OccurrenceSkipped
from schemas.scheduling import SkipRequested
from tests.scheduler.harness import Shell, definition


def minutely(**more: Any) -> Shell:
    """Every minute, from 10:00:10; run 10:01 is there at 10:01:30."""
    shell = Shell("2024-01-01T10:00:10")
    shell.put(body=definition(**{"overlap": {"policy": "allow_all"}, **more}))
    shell.until("2024-01-01T10:01:30")
    return shell


def skip(shell: Shell, clock: str, **more: Any) -> tuple[int, Any]:
    """Ask; the answer's status and body."""
    shell.send("ScheduleSkipOccurrence", nominal_time=f"2024-01-01T{clock}:00Z", **more)
    return shell.answer().status, shell.answer().body


def test_it_has_no_run_and_the_decision_at_its_time_says_who_asked_and_why():
    shell = minutely()
    status, body = skip(shell, "10:03", by="ada", note="the bank is closed")
    assert (status, body["changed"], body["nominal_time"]) == (200, True, "2024-01-01T10:03:00Z")
    shell.until("2024-01-01T10:02:30")
    assert shell.skipped() == []
    shell.reload()
    shell.until("2024-01-01T10:04:30")
    assert shell.created() == ["10:01", "10:02", "10:04"]
    assert shell.skipped() == ["10:03 requested"]
    assert shell.all(OccurrenceSkipped)[0].detail == "by ada: the bank is closed"


def test_nothing_of_a_wish_is_left_when_its_time_is_over():
    shell = minutely()
    skip(shell, "10:03")
    assert shell.schedule().skips == 1
    shell.until("2024-01-01T10:03:30")
    assert shell.schedule().skips == 0
    assert [row for row in shell.rows[b"s/acme/s"].data if row.startswith(b"k/")] == []


def test_asking_twice_changes_nothing_the_second_time():
    shell = minutely()
    first = skip(shell, "10:03", id="one", source="x")
    assert skip(shell, "10:03", id="one", source="x") == first
    assert skip(shell, "10:03")[1]["changed"] is False
    assert len(shell.all(SkipRequested)) == 1


def test_what_has_its_run_is_too_late_and_the_answer_names_the_run():
    status, body = skip(shell := minutely(), "10:01")
    assert (status, body["reason"], body["decision"], body["run_id"]) == (
        409, "too_late", "created", "s.20240101T100100Z",
    )  # fmt: skip
    assert shell.answer().faults[0].remedy == "cancel its run"


def test_what_waits_for_a_run_to_end_is_too_late():
    shell = minutely(overlap={"policy": "buffer_one"})
    shell.until("2024-01-01T10:02:30")
    status, body = skip(shell, "10:02")
    assert (status, body["reason"], body["decision"]) == (409, "too_late", "waiting")


def test_what_was_skipped_is_skipped():
    shell = minutely()
    shell.send("SchedulePause")
    shell.until("2024-01-01T10:02:30")
    status, body = skip(shell, "10:02")
    assert (status, body["changed"], body["reason"]) == (200, False, "paused")


def test_it_counts_when_it_was_published_and_not_when_it_is_read():
    shell = minutely()
    shell.sleep_until("2024-01-01T10:03:30")
    assert skip(shell, "10:02", published="2024-01-01T10:01:50")[0] == 200
    assert skip(shell, "10:03", published="2024-01-01T10:03:10")[1]["reason"] == "too_late"
    shell.settle()
    assert shell.created() == ["10:01", "10:03@10:03:30"]


@pytest.mark.parametrize(
    ("clock", "more"), [("10:07", {}), ("10:10", {"trigger": {"exclude": {"cron": ["10 * * * *"]}}})]
)
def test_an_instant_at_which_nothing_would_run_is_refused_with_the_next_one(clock, more):
    shell = Shell("2024-01-01T10:00:10")
    shell.put(body=definition("*/10 * * * *", **more))
    status, body = skip(shell, clock)
    assert (status, body["reason"]) == (422, "no_occurrence")
    following = "10:10" if clock == "10:07" else "10:20"
    assert shell.answer().faults[0].remedy == f"the one behind it is 2024-01-01T{following}:00Z"


def test_a_schedule_that_is_not_there_has_nothing_to_skip():
    assert skip(Shell("2024-01-01T10:00:10"), "10:03")[0] == 404


def test_the_wish_outlives_an_edit_and_a_pause_and_gives_way_to_the_pause():
    shell = minutely()
    skip(shell, "10:03")
    skip(shell, "10:05")
    shell.put(body=definition("*/1 * * * *", overlap={"policy": "allow_all"}))
    shell.until("2024-01-01T10:03:30")
    shell.send("SchedulePause")
    shell.until("2024-01-01T10:05:30")
    shell.send("ScheduleResume")
    shell.until("2024-01-01T10:06:30")
    assert shell.created() == ["10:01", "10:02", "10:06"]
    assert shell.skipped() == ["10:03 requested", "10:04 paused", "10:05 paused"]


def test_the_wish_goes_with_its_schedule_and_a_new_one_of_that_name_knows_nothing_of_it():
    shell = minutely()
    skip(shell, "10:03")
    shell.send("ScheduleDelete")
    assert shell.schedule().skips == 0
    shell.put(body=definition(overlap={"policy": "allow_all"}))
    shell.until("2024-01-01T10:03:30")
    assert shell.created() == ["10:01", "10:02", "10:03"]


def test_a_deletion_that_comes_behind_the_occurrence_does_not_bring_it_back():
    shell = minutely()
    skip(shell, "10:02")
    shell.sleep_until("2024-01-01T10:02:30")
    shell.send("ScheduleDelete", published="2024-01-01T10:02:20")
    shell.settle()
    assert shell.created() == ["10:01"]
    assert shell.skipped() == ["10:02 requested"]


def test_what_is_caught_up_is_skipped_too_and_a_run_that_max_runs_counts_is_not_used():
    shell = Shell("2024-01-01T10:00:10")
    shell.put(body=definition("0 * * * *", trigger={"max_runs": 1}))
    skip(shell, "11:00")
    shell.sleep_until("2024-01-01T11:30:00")
    shell.settle()
    shell.until("2024-01-01T13:00:30")
    assert shell.skipped() == ["11:00 requested"]
    assert shell.created() == ["12:00"]


def test_a_hundred_may_be_asked_for_and_no_more():
    shell = minutely()
    for number in range(100):
        skip(shell, f"{11 + number // 60}:{number % 60:02}")
    assert shell.schedule().skips == 100
    status, body = skip(shell, "13:00")
    assert (status, body["reason"]) == (429, "too_many_skips")
