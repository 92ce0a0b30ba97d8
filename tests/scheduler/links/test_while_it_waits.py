"""What else can happen to an occurrence while it waits for others."""

import pytest

from schemas.facts import OccurrenceDeferred
from schemas.linking import WindowAsked, WindowHeard, WindowJudged
from tests.scheduler.harness import Shell, at, definition
from tests.scheduler.links.waiting import ALL, details, ended, live, pair, told, until, waiting


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
