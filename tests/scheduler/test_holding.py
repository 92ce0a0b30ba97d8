"""Freezes with `action: defer`: what is due in a window waits for its end, and nothing begins meanwhile."""

from datetime import timedelta
from typing import Any

import pytest

from runtime.clock_watch import NEVER_READ
from scheduler import keys
from schemas.facts import OccurrenceDeferred, OccurrenceSkipped, RunCancelRequested, RunCreated
from schemas.scheduling import HoldQuestioned
from tests.scheduler.freezing import ALL, NIGHT, QUEUE, freeze, hourly
from tests.scheduler.harness import Shell, at, clock


def frozen(*windows: dict[str, Any], until: str = "2026-12-20T03:30:00", **more: Any) -> Shell:
    """Hourly from midnight on; a window from two to five, now in the middle of it."""
    shell = Shell("2026-12-20T00:30:00")
    freeze(shell, *(windows or (NIGHT,)))
    shell.put(body=hourly(**more))
    shell.until(until)
    return shell


def held(shell: Shell, name: str = "s") -> list[str]:
    """Deferrals as `nominal reason until`."""
    return [
        f"{clock(each.nominal_time)} {each.reason} {clock(each.until)}"
        for each in shell.all(OccurrenceDeferred, name)
        if each.until is not None
    ]


def test_of_what_is_due_in_a_window_the_latest_is_held_until_its_end():
    shell = frozen()
    assert held(shell) == ["02:00 frozen 05:00", "03:00 frozen 05:00"]
    shell.reload()
    shell.until("2026-12-20T06:30:00")
    assert shell.created() == ["01:00", "05:00", "04:00@05:00", "06:00"]
    assert shell.skipped() == ["02:00 frozen", "03:00 frozen"]
    shell.reload()


def test_a_deferral_says_whose_freeze_it_is_and_since_when_and_the_run_is_that_of_the_occurrence():
    shell = frozen(until="2026-12-20T02:00:00")
    (fact,) = shell.all(OccurrenceDeferred)
    assert (fact.detail, fact.used) == (
        "by freeze of tenant acme (version 1): database move", {"tenant/acme/_": 1}
    )  # fmt: skip
    assert (fact.since, fact.until, fact.cause) == (
        at("2026-12-20T02:00:00"), at("2026-12-20T05:00:00"), "catch_up"
    )  # fmt: skip
    shell.sleep_until("2026-12-20T05:00:00")
    shell.settle()
    run = shell.run("s.20261220T020000Z")
    assert (run.nominal_time, run.due_at) == (at("2026-12-20T02:00:00"), at("2026-12-20T02:00:00"))
    assert run.deadline_at == at("2026-12-27T05:00:00")  # seven days from its creation


def test_with_catch_up_all_each_is_held_and_they_come_in_their_order_at_the_rate():
    shell = frozen(catch_up=ALL)
    shell.until("2026-12-20T06:00:00")
    assert shell.created() == ["01:00", "05:00", "02:00@05:00", "03:00@05:00:01", "04:00@05:00:02", "06:00"]
    assert held(shell)[3:] == ["03:00 paced 05:00:01", "04:00 paced 05:00:02"]
    assert shell.skipped() == []
    shell.reload()


def test_with_catch_up_skip_nothing_is_held():
    shell = frozen(catch_up={"policy": "skip"})
    assert (held(shell), shell.skipped()) == ([], ["02:00 frozen", "03:00 frozen"])
    assert {fact.detail for fact in shell.all(OccurrenceSkipped)} == {
        "by freeze of tenant acme (version 1): database move; catch_up is skip"
    }


def test_more_than_the_limit_is_not_held_and_says_so():
    shell = frozen(catch_up={**ALL, "limit": 2})
    shell.until("2026-12-20T05:30:00")
    assert shell.created() == ["01:00", "05:00", "03:00@05:00", "04:00@05:00:01"]
    (fact,) = shell.all(OccurrenceSkipped)
    assert (fact.nominal_time, fact.reason, fact.detail) == (
        at("2026-12-20T02:00:00"), "frozen",
        "by freeze of tenant acme (version 1): database move; 2 later ones are held, which is the limit",
    )  # fmt: skip


def test_however_old_what_was_held_comes_as_the_window_of_catch_up_is_for_outages():
    shell = frozen({**NIGHT, "to": "2026-12-29T05:00:00Z"}, trigger={"end_at": "2026-12-20T03:00:00Z"})
    shell.until("2026-12-29T05:00:00")
    assert shell.created() == ["01:00", "02:00@05:00"]


def test_a_window_that_ends_sooner_lets_go_at_once():
    shell = frozen(catch_up=ALL)
    freeze(shell, {**NIGHT, "to": "2026-12-20T03:00:00Z"})
    assert shell.created() == ["01:00", "02:00@03:30"]
    shell.until("2026-12-20T04:00:00")
    assert shell.created() == ["01:00", "02:00@03:30", "03:00@03:30:01", "04:00"]
    shell.reload()


def test_a_window_that_is_lifted_lets_go_at_once_and_one_of_others_does_not():
    shell = frozen(catch_up=ALL)
    freeze(shell, NIGHT, kind="Queue", thing=QUEUE)
    freeze(shell)
    assert shell.created() == ["01:00"]
    assert held(shell)[-1] == "02:00 frozen 05:00"
    freeze(shell, kind="Queue", thing=QUEUE)
    assert shell.created() == ["01:00", "02:00@03:30"]


def test_a_window_that_ends_later_holds_on():
    shell = frozen(catch_up=ALL)
    freeze(shell, {**NIGHT, "to": "2026-12-20T06:30:00Z"})
    shell.until("2026-12-20T06:15:00")
    assert shell.created() == ["01:00"]
    shell.until("2026-12-20T07:00:00")
    late = ["02:00@06:30", "03:00@06:30:01", "04:00@06:30:02", "05:00@06:30:03", "06:00@06:30:04"]
    assert shell.created() == ["01:00", *late, "07:00"]
    shell.reload()


def test_who_has_not_read_yet_how_far_the_log_goes_lets_go_of_nothing_in_a_window():
    """A new owner answers the first records before it has asked where they end."""
    shell = frozen(catch_up=ALL)
    shell.read_until = NEVER_READ
    freeze(shell, {**NIGHT, "to": "2026-12-20T04:30:00Z"})
    assert {each.at for each in shell.all(HoldQuestioned)} == {at("2026-12-20T03:30:00")}
    shell.read_until = None
    shell.until("2026-12-20T04:30:00")
    assert shell.created() == ["01:00", "02:00@04:30"]


def test_a_window_that_moves_away_lets_go_and_holds_what_is_due_in_it_then():
    shell = frozen(catch_up=ALL)
    freeze(shell, {**NIGHT, "from": "2026-12-20T04:00:00Z", "to": "2026-12-20T06:00:00Z"})
    shell.until("2026-12-20T07:00:00")
    assert shell.created() == [
        "01:00", "02:00@03:30", "03:00@03:30:01", "06:00", "04:00@06:00", "05:00@06:00:01", "07:00"
    ]  # fmt: skip


def test_windows_without_a_gap_are_one_and_one_that_skips_takes_out_what_is_due_in_it():
    shell = frozen(
        NIGHT,
        {"from": "2026-12-20T04:00:00Z", "to": "2026-12-20T06:00:00Z", "action": "skip"},
        {"from": "2026-12-20T06:00:00Z", "to": "2026-12-20T06:30:00Z"},
        catch_up=ALL,
    )
    assert held(shell) == ["02:00 frozen 06:30", "03:00 frozen 06:30"]
    shell.until("2026-12-20T07:00:00")
    assert shell.created() == ["01:00", "02:00@06:30", "03:00@06:30:01", "06:00@06:30:02", "07:00"]
    assert shell.skipped() == ["04:00 frozen", "05:00 frozen"]


def test_a_window_that_never_ends_is_looked_at_again_and_holds_what_it_may():
    shell = frozen({"cron": "0 * * * *", "duration": "2h"}, catch_up={**ALL, "limit": 3}, until="2026-12-25T00:30:00")
    assert (shell.created(), shell.schedule().backlog_count) == ([], 3)
    assert len(shell.skipped()) == 120 - 3
    shell.reload()


def test_a_window_that_comes_again_follows_clocks_over_a_change():
    """Sundays from one to four in New York: five hours on the day the clock goes back, from 05:00Z to 09:00Z."""
    shell = Shell("2026-11-01T04:30:00")
    freeze(shell, {"cron": "0 1 * * SUN", "duration": "4h", "timezone": "America/New_York"})
    shell.put(body=hourly(catch_up=ALL))
    shell.until("2026-11-01T09:30:00")
    assert shell.created() == ["09:00", "05:00@09:00", "06:00@09:00:01", "07:00@09:00:02", "08:00@09:00:03"]


def test_a_pause_drops_what_is_held():
    shell = frozen()
    shell.send("SchedulePause")
    shell.settle()
    assert shell.skipped() == ["02:00 frozen", "03:00 paused"]
    shell.send("ScheduleResume")
    shell.until("2026-12-20T05:30:00")
    assert shell.created() == ["01:00", "05:00", "04:00@05:00"]


def test_a_deletion_ends_what_is_held_and_the_schedule_can_be_made_anew():
    shell = frozen(catch_up=ALL)
    shell.send("ScheduleDelete")
    shell.settle()
    assert shell.skipped() == ["02:00 ended", "03:00 ended"]
    shell.put(body=hourly())
    shell.until("2026-12-20T05:00:00")
    assert shell.created() == ["01:00", "05:00", "04:00@05:00"]
    shell.reload()


def test_what_is_held_keeps_the_definition_that_it_was_due_under():
    shell = frozen(catch_up=ALL)
    changed = hourly("30 * * * *", catch_up=ALL, on_update="cancel")
    shell.put(body=changed)
    shell.reload()
    shell.until("2026-12-20T05:00:30")
    assert shell.created() == ["01:00", "02:00@05:00", "03:00@05:00:01", "04:30@05:00:02"]
    assert [run.version for run in shell.all(RunCreated)] == [1, 1, 1, 2]


def test_runs_that_are_held_count_for_max_runs():
    shell = frozen(catch_up=ALL, trigger={"max_runs": 3})
    shell.until("2026-12-20T06:00:00")
    assert shell.created() == ["01:00", "02:00@05:00", "03:00@05:00:01"]
    assert shell.skipped() == ["04:00 ended", "05:00 ended"]


def test_at_the_end_overlap_has_its_say_and_runs_come_one_after_another():
    shell = frozen(overlap={"policy": "skip"}, catch_up=ALL, trigger={"end_at": "2026-12-20T04:30:00Z"})
    shell.finish(shell.last_run())
    shell.until("2026-12-20T05:00:00")
    assert shell.created() == ["01:00", "02:00@05:00"]
    shell.until("2026-12-20T05:10:00")
    shell.finish(shell.last_run())
    shell.settle()
    assert shell.created() == ["01:00", "02:00@05:00", "03:00@05:10"]


def test_who_is_held_first_asks_for_room_and_the_others_do_not():
    shell = frozen(overlap={"policy": "cancel_other"}, catch_up=ALL, trigger={"end_at": "2026-12-20T04:30:00Z"})
    shell.until("2026-12-20T05:00:00")
    (asked,) = shell.all(RunCancelRequested)
    assert (asked.run_id, asked.note) == (
        "s.20261220T010000Z", "overlap cancel_other: makes room for 2026-12-20T02:00:00Z"
    )  # fmt: skip
    shell.finish("s.20261220T010000Z", "cancelled")
    shell.until("2026-12-20T05:01:00")
    assert (shell.created(), len(shell.all(RunCancelRequested))) == (["01:00", "02:00@05:00"], 1)


def test_what_waits_for_a_run_keeps_its_place_and_does_not_begin_in_the_window():
    shell = frozen(overlap={"policy": "buffer_all", "buffer": 3}, until="2026-12-20T01:00:00", cron="*/30 * * * *")
    shell.until("2026-12-20T02:10:00")  # half past one waits for the run of one; two is due in the window
    shell.finish(shell.last_run())
    shell.settle()
    assert (shell.created(), held(shell)) == (["01:00"], ["02:00 frozen 05:00", "01:30 frozen 05:00"])
    shell.reload()
    shell.until("2026-12-20T05:00:00")
    assert shell.created() == ["01:00", "01:30@05:00"]
    shell.finish(shell.last_run())
    shell.until("2026-12-20T05:01:00")
    assert shell.created() == ["01:00", "01:30@05:00", "05:00"]


def test_a_freeze_that_is_lifted_lets_go_of_what_waited_for_a_run():
    shell = frozen(overlap={"policy": "buffer_one"}, until="2026-12-20T01:00:00", cron="*/30 * * * *")
    shell.until("2026-12-20T01:40:00")
    shell.sleep_until("2026-12-20T02:10:00")
    shell.finish(shell.last_run())
    shell.settle()
    freeze(shell)
    assert shell.created() == ["01:00", "01:30@02:10"]


def test_what_jitter_moves_into_the_window_is_held_and_what_it_moves_out_is_not():
    shell = Shell("2026-12-20T01:30:00")
    freeze(shell, {**NIGHT, "from": "2026-12-20T02:00:01Z", "to": "2026-12-20T02:00:02Z"})
    shell.put(body=hourly(trigger={"jitter": "30m"}))
    shell.until("2026-12-20T02:59:00")
    (run,) = shell.all(RunCreated)
    assert (run.created_at, held(shell)) == (run.due_at, [])


def test_the_backlog_of_an_outage_rests_in_a_window_and_goes_on_behind_it():
    shell = Shell("2026-12-20T00:30:00")
    freeze(shell, {**NIGHT, "from": "2026-12-20T05:00:02Z", "to": "2026-12-20T05:30:00Z"})
    shell.put(body=hourly(catch_up=ALL))
    shell.sleep_until("2026-12-20T05:00:00.500")
    shell.settle()
    shell.until("2026-12-20T06:00:00")
    assert shell.created() == [
        "01:00@05:00:00.500", "05:00@05:00:00.500", "02:00@05:00:01.500", "03:00@05:30", "04:00@05:30:01", "06:00"
    ]  # fmt: skip
    shell.reload()


def test_an_outage_in_the_window_leaves_what_catch_up_keeps_for_its_end():
    shell = frozen(until="2026-12-20T02:30:00")
    shell.sleep_until("2026-12-20T04:30:00")
    shell.settle()
    assert shell.created() == ["01:00"]
    shell.until("2026-12-20T05:30:00")
    assert shell.created() == ["01:00", "05:00", "04:00@05:00"]
    assert shell.skipped() == ["03:00 catch_up", "02:00 frozen"]


def test_an_outage_over_the_end_of_a_window_is_an_outage():
    shell = frozen(catch_up=ALL, until="2026-12-20T02:30:00")
    shell.sleep_until("2026-12-20T05:30:00")
    shell.settle()
    shell.until("2026-12-20T05:31:00")
    assert shell.created() == ["01:00", "02:00@05:30", "03:00@05:30:01", "04:00@05:30:02", "05:00@05:30:03"]
    shell.reload()


def test_what_is_held_comes_at_the_rate_also_where_nobody_looked_at_the_end_of_the_window():
    shell = frozen(catch_up=ALL, trigger={"end_at": "2026-12-20T04:30:00Z"}, until="2026-12-20T04:30:00")
    shell.sleep_until("2026-12-20T05:30:00")
    shell.settle()
    shell.until("2026-12-20T05:31:00")
    assert shell.created() == ["01:00", "02:00@05:30", "03:00@05:30:01", "04:00@05:30:02"]


def test_a_short_window_moves_the_turns_of_a_backlog_and_leaves_no_hole_behind_it():
    shell = Shell("2026-12-20T00:30:00")
    freeze(shell, {**NIGHT, "from": "2026-12-20T07:01:30Z", "to": "2026-12-20T07:03:00Z"})
    shell.put(body=hourly(catch_up={"policy": "all", "rate": "1/m"}))
    shell.sleep_until("2026-12-20T07:00:00.500")
    shell.settle()
    shell.until("2026-12-20T07:59:00")
    assert shell.created() == [
        "01:00@07:00:00.500", "07:00@07:00:00.500", "02:00@07:01:00.500", "03:00@07:03", "04:00@07:04", "05:00@07:05",
        "06:00@07:06",
    ]  # fmt: skip
    shell.reload()


def test_a_job_that_moves_to_another_queue_takes_what_is_held_for_the_old_one_along():
    shell = Shell("2026-12-20T00:30:00")
    freeze(shell, NIGHT, kind="Queue", thing=QUEUE)
    target = {"type": "task", "name": "t"}
    for queue in ("default", "other"):
        shell.send("JobPut", name="j", definition={"queue": queue, "target": target})
        shell.catalog(f"scheduler-0-{shell.commands}")
        if queue == "default":
            shell.put(body={**hourly(catch_up=ALL), "job": "j"})
            shell.put("inline", body=hourly(catch_up=ALL))
            shell.until("2026-12-20T02:30:00")
        shell.settle()
    assert shell.created() == ["01:00", "02:00@02:30"]
    assert (shell.created("inline"), held(shell, "inline")[-1]) == (["01:00"], "02:00 frozen 05:00")


def test_a_job_that_was_deleted_and_put_again_for_another_queue_takes_what_is_held_along_too():
    """It was noticed at the end of the window only, though nothing held it any more."""
    shell = Shell("2026-12-20T00:30:00")
    freeze(shell, NIGHT, kind="Queue", thing=QUEUE)
    job = {"target": {"type": "task", "name": "t"}}
    shell.send("JobPut", name="j", definition={"queue": "default", **job})
    shell.catalog("scheduler-0-2")
    shell.put(body={**hourly(catch_up=ALL), "job": "j"})
    shell.until("2026-12-20T02:30:00")
    shell.send("JobDelete", name="j")
    shell.catalog("scheduler-0-3")
    shell.settle()
    assert (shell.created(), held(shell)[-1]) == (["01:00"], "02:00 frozen 05:00")
    shell.send("JobPut", name="j", definition={"queue": "other", **job})
    shell.catalog("scheduler-0-4")
    shell.settle()
    assert shell.created() == ["01:00", "02:00@02:30"]


def test_an_occurrence_that_somebody_asked_to_skip_is_not_held():
    shell = frozen(until="2026-12-20T01:30:00")
    shell.send("ScheduleSkipOccurrence", nominal_time="2026-12-20T03:00:00Z")
    shell.until("2026-12-20T05:00:00")
    assert shell.skipped() == ["03:00 requested", "02:00 frozen"]


def test_runs_by_hand_and_of_backfills_go_on():
    shell = frozen()
    shell.send("ScheduleTrigger")
    shell.send("BackfillStart", backfill="b", **{"from": "2026-12-19T22:00:00Z", "to": "2026-12-20T00:00:00Z"})
    shell.until("2026-12-20T03:31:00")
    assert shell.created()[1] == "manual"
    assert {run.cause for run in shell.all(RunCreated)} == {"schedule", "manual", "backfill"}


def test_a_change_of_freezes_is_told_to_everybody_they_hold_a_page_at_a_time(monkeypatch):
    monkeypatch.setattr("scheduler.holding.TOLD_MAX", 2)
    shell = Shell("2026-12-20T00:30:00")
    freeze(shell, NIGHT)
    names = [f"s{number}" for number in range(5)]
    for name in names:
        shell.put(name, body=hourly())
    shell.until("2026-12-20T02:30:00")
    freeze(shell)
    assert shell.shared.review is not None
    shell.until("2026-12-20T02:31:00")
    assert [shell.created(name)[1] for name in names] == [
        "02:00@02:30", "02:00@02:30:00.010", "02:00@02:30:00.020", "02:00@02:30:00.030", "02:00@02:30:00.040"
    ]  # fmt: skip
    assert len([fact for fact in shell.facts if isinstance(fact, HoldQuestioned)]) == 5
    assert shell.shared.review is None


def test_of_what_was_held_nothing_is_kept_for_ever_also_where_there_is_never_an_outage():
    shell = frozen(trigger={"end_at": "2026-12-20T03:00:00Z"})
    shell.until("2026-12-20T05:00:00")
    assert list(shell.shared.rows.scan(keys.HELD, keys.end_of(keys.HELD))) != []
    for day in range(1, 33):
        shell.until(at("2026-12-20T05:00:01") + timedelta(days=day))
    assert list(shell.shared.rows.scan(keys.HELD, keys.end_of(keys.HELD))) == []


@pytest.mark.parametrize("policy", ["latest", "all"])
def test_an_interval_from_the_end_of_a_run_rests_while_one_is_held(policy):
    shell = Shell("2026-12-20T01:30:00")
    freeze(shell, NIGHT)
    body = hourly(catch_up={"policy": policy})
    body["trigger"] = {"every": "PT1H", "from": "finish", "anchor": "2026-12-20T01:30:00Z"}
    shell.put(body=body)
    shell.until("2026-12-20T05:10:00")
    assert shell.created() == ["02:30@05:00"]
    shell.finish(shell.last_run())
    shell.until("2026-12-20T06:10:00")
    assert shell.created() == ["02:30@05:00", "06:10"]
