"""After an outage: what is due now goes first, and the backlog has its runs one after another, as its plan says."""

from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.facts import DeferReason, OccurrenceDeferred, RecoveryStarted, RunCreated
from tests.scheduler.harness import Shell, at, clock, definition

ANY: dict[str, Any] = {"policy": "allow_all"}
ALL: dict[str, Any] = {"policy": "all"}


def outage(*names: str, cron: str = "* * * * *", to: str = "2024-01-01T10:10:30", **more: Any) -> Shell:
    """Every minute; nothing runs from 10:00:30 to 10:10:30, in which 10:01 to 10:10 are due."""
    shell = Shell("2024-01-01T10:00:10")
    for name in names or ("s",):
        shell.put(name, body=definition(cron, **{"overlap": ANY, "catch_up": ALL, "grace": "PT1S", **more}))
    shell.until("2024-01-01T10:00:30")
    shell.sleep_until(to)
    shell.settle()
    return shell


def plan(shell: Shell, name: str = "s") -> list[str]:
    return [f"{clock(each.nominal_time)} {each.reason} {_until(each)}" for each in shell.all(OccurrenceDeferred, name)]


def _until(each: OccurrenceDeferred) -> str:
    assert each.until is not None
    return clock(each.until)


def test_the_first_one_runs_at_once_and_the_others_are_a_plan_that_everybody_can_read():
    shell = outage()
    assert shell.created() == ["10:01@10:10:30"]
    assert plan(shell) == [f"10:{minute:02} paced 10:10:30.{minute - 1}00" for minute in range(2, 11)]
    assert (shell.schedule().backlog_count, shell.schedule().waiting_count) == (9, 0)
    shell.reload()
    shell.until("2024-01-01T10:10:31")
    late = [f"10:{minute:02}@10:10:30.{minute - 1}00" for minute in range(2, 11)]
    assert shell.created() == ["10:01@10:10:30", *late]
    assert shell.schedule().backlog is None
    assert {run.cause for run in shell.all(RunCreated)} == {"catch_up"}


@pytest.mark.parametrize(
    ("rate", "second", "last"),
    [
        ("2/s", "10:10:30.500", "10:10:34.500"),
        ("20/m", "10:10:33", "10:10:57"),
        ("3/s", "10:10:30.334", "10:10:33.006"),
    ],
)
def test_the_rate_is_the_schedules_own(rate, second, last):
    instants = [line.split()[2] for line in plan(outage(catch_up={"policy": "all", "rate": rate}))]
    assert (instants[0], instants[-1], len(instants)) == (second, last, 9)


def test_a_recovery_says_at_which_rate_each_tenant_is_caught_up():
    shell = outage()
    (started,) = shell.all(RecoveryStarted)
    assert started.tenant_rate == "100/s"


def test_schedules_of_one_tenant_take_turns_and_together_keep_its_rate():
    shell = outage(*(f"s{number}" for number in range(30)), catch_up={"policy": "latest"})
    shell.until("2024-01-01T10:10:31")
    runs = [fact for fact in shell.facts if isinstance(fact, RunCreated) and fact.cause == "catch_up"]
    created = sorted(run.created_at for run in runs)
    begin = at("2024-01-01T10:10:30")
    assert created == [begin + timedelta(milliseconds=10 * turn) for turn in range(30)]


def test_what_is_due_now_goes_first_though_a_backlog_is_there():
    shell = outage(to="2024-01-01T10:10:59.900")
    shell.until("2024-01-01T10:11:01")
    assert shell.created()[:3] == ["10:01@10:10:59.900", "10:11", "10:02@10:11"]


def test_under_a_policy_that_forbids_overlap_what_is_due_now_has_the_next_free_place():
    shell = outage(overlap={"policy": "buffer_one"}, to="2024-01-01T10:10:50")
    assert shell.created() == ["10:01@10:10:50"]
    shell.until("2024-01-01T10:11:20")
    shell.finish(shell.last_run())
    shell.settle()
    shell.until("2024-01-01T10:11:30")
    shell.finish(shell.last_run())
    shell.settle()
    assert shell.created() == ["10:01@10:10:50", "10:11@10:11:20", "10:02@10:11:30"]


def test_a_pause_behind_the_outage_drops_what_its_turn_had_not_come_for():
    shell = outage(catch_up={"policy": "all", "rate": "1/s"})
    shell.until("2024-01-01T10:10:32.500")
    shell.send("SchedulePause")
    shell.until("2024-01-01T10:10:50")
    assert shell.created() == ["10:01@10:10:30", "10:02@10:10:31", "10:03@10:10:32"]
    assert shell.skipped()[:2] == ["10:04 paused", "10:05 paused"]
    assert (len(shell.skipped()), shell.schedule().backlog) == (7, None)


def test_a_pause_that_is_resumed_before_anybody_looks_drops_it_too():
    shell = outage(catch_up={"policy": "all", "rate": "1/s"})
    shell.sleep_until("2024-01-01T10:10:40")
    shell.send("SchedulePause", published="2024-01-01T10:10:32.500")
    shell.send("ScheduleResume", published="2024-01-01T10:10:33.500")
    shell.settle()
    assert shell.created()[1:] == ["10:02@10:10:40", "10:03@10:10:40"]
    assert len(shell.skipped()) == 7


def test_a_deletion_ends_it():
    shell = outage(catch_up={"policy": "all", "rate": "1/s"})
    shell.send("ScheduleDelete")
    shell.settle()
    assert [line.split()[1] for line in shell.skipped()] == ["ended"] * 9


def test_what_cannot_run_before_its_window_is_over_is_skipped_and_its_turn_alone_ends_nothing():
    shell = outage(catch_up={"policy": "all", "rate": "1/m", "window": "PT10M"}, overlap={"policy": "skip"})
    assert shell.created() == ["10:01@10:10:30"]
    shell.until("2024-01-01T10:30:00")
    assert {line.split()[1] for line in shell.skipped() if line < "10:11"} == {"catch_up"}
    shell = outage(catch_up={"policy": "all", "rate": "1/m", "window": "PT10M"})
    shell.until("2024-01-01T10:30:00")
    assert [line for line in shell.skipped() if line < "10:11"] == []
    assert len([run for run in shell.all(RunCreated) if run.cause == "catch_up"]) == 10


def test_a_backlog_that_a_second_outage_meets_goes_on_behind_its_plan():
    shell = outage(catch_up={"policy": "all", "rate": "1/s"})
    shell.sleep_until("2024-01-01T10:15:30")
    shell.settle()
    shell.until("2024-01-01T10:15:40")
    runs = [run for run in shell.all(RunCreated) if run.cause == "catch_up"]
    assert len(runs) == 15
    assert len({run.run_id for run in runs}) == 15


def test_max_runs_counts_the_backlog():
    shell = outage(trigger={"max_runs": 3})
    shell.until("2024-01-01T10:12:30")
    assert shell.created() == ["10:01@10:10:30", "10:02@10:10:30.100", "10:03@10:10:30.200"]


# --- laws ---------------------------------------------------------------------------------------------------------

RATES = st.sampled_from(["1/s", "2/s", "10/s", "100/s", "30/m"])
STEP_MS = {"1/s": 1000, "2/s": 500, "10/s": 100, "100/s": 10, "30/m": 2000}


@settings(max_examples=25)
@given(
    RATES, st.integers(2, 40), st.lists(st.integers(10, 3000), min_size=1, max_size=4), st.sampled_from([None, 1, 3])
)
def test_instants_of_release_follow_from_the_recovery_the_rate_and_the_place_in_it_however_time_is_cut(
    rate, count, cuts, steps
):
    shell = Shell("2024-01-01T10:00:00.500")
    body = definition(catch_up={"policy": "all", "rate": rate, "limit": count}, overlap=ANY, grace="PT1S")
    shell.put(body=body | {"trigger": {"cron": "* * * * * *", "end_at": "2024-01-01T10:01:00Z"}})
    shell.sleep_until("2024-01-01T10:02:00")
    end = shell.now + timedelta(milliseconds=STEP_MS[rate] * count)
    for index in range(10_000):
        done = shell.settle(*(() if steps is None else (steps,)))
        if done and shell.now >= end and shell.schedule().backlog is None:
            break
        shell.now += timedelta(milliseconds=cuts[index % len(cuts)])
    begin = at("2024-01-01T10:02:00")
    promised = [fact.until for fact in shell.all(OccurrenceDeferred) if fact.reason is DeferReason.PACED]
    assert promised == [begin + timedelta(milliseconds=STEP_MS[rate] * place) for place in range(1, count)]
    created = [run for run in shell.all(RunCreated) if run.cause == "catch_up"]
    assert [run.nominal_time for run in created] == [
        at("2024-01-01T10:00:59") - timedelta(seconds=count - 1 - place) for place in range(count)
    ]
    assert all(run.created_at >= until for run, until in zip(created[1:], promised, strict=True) if until)


@settings(max_examples=15)
@given(st.lists(st.tuples(RATES, st.integers(1, 15)), min_size=2, max_size=6))
def test_a_tenant_never_has_more_than_its_rate_and_no_schedule_more_than_its_own(schedules):
    shell = Shell("2024-01-01T10:00:00.500")
    for number, (rate, count) in enumerate(schedules):
        body = definition(catch_up={"policy": "all", "rate": rate, "limit": count}, overlap=ANY, grace="PT1S")
        trigger = {"cron": "* * * * * *", "end_at": "2024-01-01T10:01:00Z"}
        shell.put(f"s{number}", body=body | {"trigger": trigger})
    shell.sleep_until("2024-01-01T10:02:00")
    shell.until("2024-01-01T10:04:00")
    begin, released = at("2024-01-01T10:02:00"), []
    for number, (rate, count) in enumerate(schedules):
        own = [fact.release_at for fact in shell.all(OccurrenceDeferred, f"s{number}")]
        instants = [instant for instant in own if instant is not None]
        assert len(shell.all(RunCreated, f"s{number}")) == count
        step = timedelta(milliseconds=STEP_MS[rate])
        assert all(later - sooner >= step for sooner, later in pairwise(instants))
        released += [begin] * (count - len(instants)) + instants
    assert keeps(sorted(released), begin, timedelta(milliseconds=10))


def keeps(released: list[datetime], begin: datetime, step: timedelta) -> bool:
    """Whether the n-th comes no sooner than its turn."""
    return all(instant >= begin + turn * step for turn, instant in enumerate(released))
