"""`after` with `mode: run`: each finished run of a schedule that meets the condition makes one run of another."""

from typing import Any

import pytest

from schemas.facts import Cause, OccurrenceSkipped, Outcome, RunCancelRequested, RunCreated
from schemas.linking import EdgeAnnounced, EdgeInquired, EdgeLinked, EdgeWithdrawn, TriggerDeferred, UpstreamFinished
from tests.scheduler.harness import Shell, at, definition


def following(*upstreams: str, condition: str = "succeeded", **more: Any) -> dict[str, Any]:
    """A definition of a schedule that only follows others."""
    after = [{"schedule": each, "mode": "run", "condition": condition} for each in upstreams]
    return {"after": after, "job": {"target": {"type": "task", "name": "t"}}, **more}


def pair(**more: Any) -> Shell:
    """`load` runs every hour; `report` follows it, and they know of each other."""
    shell = Shell("2024-01-01T09:30:00")
    shell.put("load", definition("0 * * * *", overlap={"policy": "allow_all"}))
    shell.put("report", following("load", **more))
    shell.deliver()
    return shell


def loaded(shell: Shell, hour: int, outcome: str = "succeeded") -> None:
    """The run of `load` at an hour ends a minute later, and all is told and decided."""
    shell.until(f"2024-01-01T{hour:02}:00:00")
    shell.until(f"2024-01-01T{hour:02}:01:00")
    shell.finish(f"load.20240101T{hour:02}0000Z", outcome)
    told(shell)


def told(shell: Shell) -> None:
    shell.settle()
    shell.deliver()
    shell.settle()


def test_a_run_follows_each_run_that_succeeds():
    shell = pair()
    loaded(shell, 10)
    run = shell.last_run("report")
    assert run.cause is Cause.DEPENDENCY
    assert run.nominal_time is None
    assert run.rule == "after load"
    assert run.chain == ("load",)
    assert run.created_at == at("2024-01-01T10:01:00")
    assert run.deadline_at == at("2024-01-08T10:01:00")
    assert run.upstream is not None
    assert run.upstream.run_id == "load.20240101T100000Z"
    assert run.upstream.nominal_time == at("2024-01-01T10:00:00")
    assert run.upstream.outcome is Outcome.SUCCEEDED
    shell.finish(run)
    loaded(shell, 11)
    assert shell.created("report") == ["after load.20240101T100000Z", "after load.20240101T110000Z"]


def test_the_run_is_named_after_the_run_that_led_to_it():
    """SHA-256 over the length-prefixed acme, report, dependency, load, load.20240101T100000Z, 2024-01-01T10:00:00Z."""
    shell = pair()
    loaded(shell, 10)
    assert shell.last_run("report").run_id == "report.d-066041befd0b5378"


@pytest.mark.parametrize(
    ("condition", "leading"),
    [
        ("succeeded", {"succeeded"}),
        ("failed", {"failed", "timed_out", "dead_lettered", "expired"}),
        ("finished", {"succeeded", "failed", "timed_out", "cancelled", "dead_lettered", "expired"}),
    ],
)
def test_a_condition_says_which_outcomes_lead_to_runs(condition, leading):
    for outcome in Outcome:
        shell = pair(condition=condition)
        loaded(shell, 10, outcome.value)
        assert len(shell.created("report")) == (outcome.value in leading)


def test_of_several_upstreams_any_run_leads_to_one():
    shell = Shell("2024-01-01T09:30:00")
    for name in ("load", "prices"):
        shell.put(name, definition("0 * * * *"))
    shell.put("report", following("load", "prices", overlap={"policy": "allow_all"}))
    shell.deliver()
    shell.until("2024-01-01T10:00:10")
    shell.finish("prices.20240101T100000Z")
    told(shell)
    shell.finish("load.20240101T100000Z")
    told(shell)
    assert shell.created("report") == ["after prices.20240101T100000Z", "after load.20240101T100000Z"]


def test_a_run_that_was_started_by_hand_leads_to_one_too():
    shell = pair()
    shell.send("ScheduleTrigger", name="load")
    by_hand = shell.last_run("load")
    shell.finish(by_hand)
    told(shell)
    assert shell.created("report") == [f"after {by_hand.run_id}"]


def test_what_arrives_twice_leads_to_one_run():
    shell = pair()
    shell.until("2024-01-01T10:00:10")
    shell.finish("load.20240101T100000Z")
    shell.settle()
    reports = [output for output in shell.outputs if isinstance(output.fact, UpstreamFinished)]
    shell.outputs += reports
    told(shell)
    shell.finish(shell.last_run("report"))
    shell.outputs += reports
    told(shell)
    assert shell.created("report") == ["after load.20240101T100000Z"]


def test_a_schedule_that_follows_needs_no_trigger_and_says_what_it_follows():
    shell = pair()
    assert shell.answer().body["words"] == "After each succeeded run of load"
    assert shell.answer().body["next"] == []


def test_it_may_have_instants_of_its_own_besides():
    shell = Shell("2024-01-01T09:30:00")
    shell.put("load", definition("0 * * * *"))
    shell.put("report", following("load") | {"trigger": {"cron": "30 10 * * *"}})
    assert shell.answer().body["words"] == "At 10:30 every day, UTC; also after each succeeded run of load"
    shell.deliver()
    loaded(shell, 10)
    shell.finish(shell.last_run("report"))
    shell.until("2024-01-01T10:30:00")
    assert shell.created("report") == ["after load.20240101T100000Z", "10:30"]


# --- chains -------------------------------------------------------------------------------------------------------


def test_a_run_carries_the_schedules_that_led_to_it():
    shell = pair()
    shell.put("mail", following("report"))
    shell.deliver()
    loaded(shell, 10)
    shell.finish(shell.last_run("report"))
    told(shell)
    assert shell.last_run("mail").chain == ("load", "report")


def test_a_circle_ends_where_it_began():
    shell = Shell("2024-01-01T09:30:00")
    shell.put("a", following("b"))
    shell.put("b", following("a"))
    shell.deliver()
    shell.send("ScheduleTrigger", name="a")
    shell.finish(shell.last_run("a"))
    told(shell)
    shell.finish(shell.last_run("b"))
    told(shell)
    skip = shell.all(OccurrenceSkipped, "a")[0]
    assert shell.skipped("a") == [f"after {shell.last_run('b').run_id} cycle"]
    assert skip.detail == "2 schedules one behind the other: a > b"
    assert skip.nominal_time is None


def test_a_chain_has_32_schedules_at_most():
    shell = Shell("2024-01-01T09:30:00")
    shell.put("s0", following("never"))
    for number in range(1, 34):
        shell.put(f"s{number}", following(f"s{number - 1}"))
    shell.deliver()
    shell.send("ScheduleTrigger", name="s0")
    for number in range(33):
        shell.finish(shell.last_run(f"s{number}"))
        told(shell)
    assert len(shell.last_run("s32").chain) == 32
    assert shell.created("s33") == []
    assert shell.all(OccurrenceSkipped, "s33")[0].reason.value == "cycle"


def test_a_schedule_cannot_follow_itself():
    shell = Shell()
    shell.put("a", following("a"))
    assert [(fault.pointer, fault.code) for fault in shell.answer().faults] == [
        ("/data/definition/after/0/schedule", "cycle")
    ]


# --- overlap ------------------------------------------------------------------------------------------------------


def test_a_run_in_the_way_is_named():
    shell = pair()
    loaded(shell, 10)
    loaded(shell, 11)
    assert shell.skipped("report") == ["after load.20240101T110000Z overlap"]
    assert shell.all(OccurrenceSkipped, "report")[0].blocked_by == shell.last_run("report").run_id


def test_a_policy_that_buffers_lets_it_wait_for_room():
    shell = pair(overlap={"policy": "buffer_all", "buffer": 2})
    for hour in (10, 11, 12, 13):
        loaded(shell, hour)
    assert [fact.upstream.run_id for fact in shell.all(TriggerDeferred, "report")] == [
        "load.20240101T110000Z",
        "load.20240101T120000Z",
    ]
    assert shell.skipped("report") == ["after load.20240101T130000Z overlap"]
    shell.reload()
    for _ in range(3):
        shell.finish(shell.last_run("report"))
        shell.settle()
    assert shell.created("report") == [f"after load.20240101T{hour}0000Z" for hour in (10, 11, 12)]
    assert shell.schedule("report").active == 0


def test_a_policy_that_replaces_asks_the_run_in_the_way_to_end():
    shell = pair(overlap={"policy": "cancel_other"})
    loaded(shell, 10)
    loaded(shell, 11)
    asked = shell.all(RunCancelRequested, "report")
    assert [fact.run_id for fact in asked] == [shell.last_run("report").run_id]
    assert asked[0].note == "overlap cancel_other: makes room for what load.20240101T110000Z leads to"


def test_an_occurrence_and_a_run_that_follows_stand_in_each_others_way():
    shell = Shell("2024-01-01T09:30:00")
    shell.put("load", definition("0 * * * *"))
    shell.put("report", following("load") | {"trigger": {"cron": "30 10 * * *"}})
    shell.deliver()
    loaded(shell, 10)
    shell.until("2024-01-01T10:31:00")
    assert shell.skipped("report") == ["10:30 overlap"]


# --- its own instant ----------------------------------------------------------------------------------------------


def test_a_pause_that_was_published_before_the_report_holds_though_it_is_read_later():
    shell = pair()
    shell.until("2024-01-01T10:00:10")
    shell.finish("load.20240101T100000Z")
    shell.settle()
    shell.sleep_until("2024-01-01T10:05:00")
    shell.deliver()
    shell.send("SchedulePause", name="report", published="2024-01-01T10:04:00")
    shell.settle()
    assert shell.skipped("report") == ["after load.20240101T100000Z paused"]


def test_a_pause_that_was_published_after_the_report_comes_too_late_for_it():
    shell = pair()
    shell.until("2024-01-01T10:00:10")
    shell.finish("load.20240101T100000Z")
    told_at = shell.now
    shell.settle()
    shell.sleep_until("2024-01-01T10:05:00")
    shell.send("SchedulePause", name="report", published="2024-01-01T10:00:30")
    shell.now = told_at
    shell.deliver()
    shell.now = at("2024-01-01T10:05:00")
    shell.settle()
    assert shell.created("report") == ["after load.20240101T100000Z"]
    assert shell.schedule("report").paused


def test_a_pause_of_the_same_second_comes_too_late_too():
    """Found by the law of cuts: 0.101 s counted as decided, for occurrences are whole seconds."""
    shell = Shell("2024-01-01T00:00:00")
    shell.put("report", following("load"))
    shell.deliver()
    shell.put("load", definition("0 * * * *"))
    shell.send("ScheduleTrigger", name="load")
    shell.finish(shell.last_run("load"))
    shell.sleep_until("2024-01-01T00:00:00.344")
    shell.send("SchedulePause", name="report", published="2024-01-01T00:00:00.101")
    shell.now = at("2024-01-01T00:00:00.079")
    shell.deliver()
    shell.now = at("2024-01-01T00:00:00.344")
    shell.settle()
    assert len(shell.created("report")) == 1


def test_what_waits_ends_with_a_pause():
    shell = pair(overlap={"policy": "buffer_one"})
    loaded(shell, 10)
    loaded(shell, 11)
    shell.send("SchedulePause", name="report")
    shell.settle()
    shell.finish(shell.last_run("report"))
    shell.settle()
    assert shell.skipped("report") == ["after load.20240101T110000Z paused"]


def test_many_changes_between_reports_are_no_fault():
    shell = pair()
    for minute in range(200):
        shell.until(at("2024-01-01T09:31:00").replace(minute=minute % 60, hour=11 + minute // 60))
        shell.send("ScheduleResume" if minute % 2 else "SchedulePause", name="report")
    assert shell.answer().status == 200
    assert len(shell.schedule("report").phases) <= 2


# --- edges --------------------------------------------------------------------------------------------------------


def test_an_edge_is_announced_and_linked():
    shell = pair()
    assert [(fact.upstream, fact.sequence, fact.version) for fact in shell.all(EdgeAnnounced, "report")] == [
        ("load", 1, 1)
    ]
    assert [fact.refused for fact in shell.all(EdgeLinked, "report")] == [""]


def test_a_change_of_something_else_leaves_the_edge_alone():
    shell = pair()
    shell.put("report", following("load", note="other"))
    assert len(shell.all(EdgeAnnounced, "report")) == 1


def test_a_change_of_the_condition_is_announced():
    shell = pair()
    shell.put("report", following("load", condition="failed"))
    shell.deliver()
    loaded(shell, 10)
    assert shell.created("report") == []
    loaded(shell, 11, "failed")
    assert shell.created("report") == ["after load.20240101T110000Z"]


def test_what_is_withdrawn_leads_to_nothing():
    shell = pair()
    shell.put("report", {**following("other")})
    shell.deliver()
    loaded(shell, 10)
    assert shell.created("report") == []
    assert [fact.upstream for fact in shell.all(EdgeWithdrawn, "report")] == ["load"]


def test_a_deleted_schedule_follows_nothing_and_one_that_is_put_again_does():
    shell = pair()
    shell.send("ScheduleDelete", name="report")
    shell.deliver()
    loaded(shell, 10)
    shell.put("report", following("load"))
    shell.deliver()
    loaded(shell, 11)
    assert shell.created("report") == ["after load.20240101T110000Z"]
    shell.reload()


def test_a_report_of_an_edge_that_was_withdrawn_and_drawn_again_is_none_of_the_new_one():
    shell = pair()
    shell.until("2024-01-01T10:00:10")
    shell.finish("load.20240101T100000Z")
    shell.settle()
    late = [output for output in shell.outputs if isinstance(output.fact, UpstreamFinished)]
    shell.outputs.clear()
    shell.send("ScheduleDelete", name="report")
    shell.put("report", following("load"))
    shell.deliver()
    shell.outputs += late
    told(shell)
    assert shell.created("report") == []


def test_an_upstream_that_is_deleted_and_put_again_goes_on_being_followed():
    shell = pair()
    shell.send("ScheduleDelete", name="load")
    shell.put("load", definition("0 * * * *"))
    shell.reload()
    loaded(shell, 10)
    assert shell.created("report") == ["after load.20240101T100000Z"]


def test_a_schedule_may_follow_one_that_is_put_later():
    shell = Shell("2024-01-01T09:30:00")
    shell.put("report", following("load"))
    shell.deliver()
    shell.put("load", definition("0 * * * *"))
    loaded(shell, 10)
    assert shell.created("report") == ["after load.20240101T100000Z"]


def test_an_edge_that_is_not_linked_is_asked_after_ever_more_rarely():
    shell = Shell("2024-01-01T09:30:00")
    shell.put("report", following("load"))
    shell.outputs.clear()
    shell.until("2024-01-01T12:00:00")
    asked = [f"{fact.inquired_at:%H:%M}" for fact in shell.all(EdgeInquired, "report")]
    assert asked == ["09:40", "10:00", "10:40", "12:00"]
    shell.deliver()
    shell.until("2024-01-02T12:00:00")
    assert len(shell.all(EdgeInquired, "report")) == 4


def test_a_hundred_upstreams_are_followed():
    shell = Shell("2024-01-01T00:00:00")
    names = [f"u{number}" for number in range(100)]
    for minutes, name in enumerate(names, 1):
        shell.put(
            name, {"trigger": {"every": f"PT{minutes}M", "anchor": "2024-01-01T00:00:00Z"}, "job": following()["job"]}
        )
    shell.put("report", following(*names, overlap={"policy": "allow_all"}))
    shell.deliver()
    shell.until("2024-01-01T00:30:00")
    upstream_runs = [run for run in shell.facts if isinstance(run, RunCreated)]
    for run in upstream_runs:
        shell.finish(run)
    told(shell)
    assert len(shell.created("report")) == len(upstream_runs)


def test_a_freeze_does_not_cut_a_chain_that_has_begun():
    """`load` had its run before the window; what follows it comes in the window."""
    shell = pair()
    window = {"from": "2024-01-01T10:00:30Z", "to": "2024-01-01T13:00:00Z"}
    shell.send("QueuePut", tenant="_", name="default", definition={"freezes": [window]})
    shell.catalog("scheduler-0-9")
    loaded(shell, 10)
    assert shell.created("report") == ["after load.20240101T100000Z"]
