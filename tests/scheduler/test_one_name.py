"""One name, several lives and versions: what becomes of the runs that are there when a schedule changes or goes."""

from itertools import permutations, product
from typing import Any

import pytest

from schemas.facts import RunCancelRequested, RunCreated
from tests.scheduler.harness import Shell, definition

ANY: dict[str, Any] = {"policy": "allow_all"}


def minutely(**more: Any) -> Shell:
    """Every minute from 10:01 on."""
    shell = Shell("2024-01-01T10:00:10")
    shell.put(body=definition(**{"overlap": ANY, **more}))
    return shell


def asked(shell: Shell) -> list[str]:
    return sorted(fact.run_id[-7:-1] for fact in shell.all(RunCancelRequested))


# --- deleted and created anew -------------------------------------------------------------------------------------


@pytest.mark.parametrize("runs", ["keep", "cancel"])
def test_a_schedule_that_is_deleted_and_created_anew_goes_on_with_versions_and_instants_and_knows_its_old_runs(runs):
    shell = minutely()
    shell.until("2024-01-01T10:02:10")
    shell.send("ScheduleDelete", runs=runs)
    shell.put(body=definition(overlap=ANY))
    shell.until("2024-01-01T10:04:10")
    assert shell.created() == ["10:01", "10:02", "10:03", "10:04"]
    assert [run.version for run in shell.all(RunCreated)] == [1, 1, 2, 2]
    assert asked(shell) == (["100100", "100200"] if runs == "cancel" else [])
    for run in shell.all(RunCreated):
        shell.finish(run)
    shell.settle()
    assert (shell.schedule().open_runs, shell.schedule().active) == (0, 0)
    shell.reload()


def test_a_run_of_the_former_life_is_in_the_way_of_the_next_ones_as_any_run_is():
    shell = minutely(overlap={"policy": "skip"})
    shell.until("2024-01-01T10:01:10")
    old = shell.last_run()
    shell.send("ScheduleDelete")
    shell.put(body=definition(overlap={"policy": "skip"}))
    shell.until("2024-01-01T10:02:30")
    assert (shell.created(), shell.skipped()) == (["10:01"], ["10:02 overlap"])
    shell.finish(old)
    shell.until("2024-01-01T10:03:10")
    assert shell.created() == ["10:01", "10:03"]


def test_what_waits_when_its_schedule_is_deleted_has_no_run_in_its_next_life():
    shell = minutely(overlap={"policy": "buffer_all"})
    shell.until("2024-01-01T10:03:10")
    old = shell.last_run()
    shell.send("ScheduleDelete")
    shell.put(body=definition(overlap={"policy": "buffer_all"}))
    shell.finish(old)
    shell.until("2024-01-01T10:04:10")
    assert shell.created() == ["10:01", "10:04"]
    assert shell.skipped() == ["10:02 ended", "10:03 ended"]


def test_the_same_instant_never_has_two_runs_though_its_schedule_is_made_anew_within_it():
    shell = Shell("2024-01-01T10:00:59.900")
    shell.put(body=definition(overlap=ANY))
    shell.until("2024-01-01T10:01:00.200")
    shell.send("ScheduleDelete")
    shell.put(body=definition(overlap=ANY))
    shell.until("2024-01-01T10:02:10")
    assert [run.run_id for run in shell.all(RunCreated)] == ["s.20240101T100100Z", "s.20240101T100200Z"]


# --- on_update ----------------------------------------------------------------------------------------------------

CHANGES = ("ends", "put")


@pytest.mark.parametrize(("order", "late"), list(product(permutations(CHANGES), [False, True])))
def test_runs_of_an_older_version_are_asked_to_go_in_whatever_order_things_are_read(order, late):
    """10:01 ends at 10:01:20, the new version is published at 10:02:30; `late`: nobody looked in between."""
    shell = minutely()
    shell.until("2024-01-01T10:01:10")
    first = shell.last_run()
    if not late:
        shell.finish(first, published="2024-01-01T10:01:20")
        shell.until("2024-01-01T10:02:30")
    shell.sleep_until("2024-01-01T10:02:40")
    for step in order:
        if step == "put":
            body = definition(overlap=ANY, on_update="cancel", note="new")
            shell.send("SchedulePut", definition=body, published="2024-01-01T10:02:30")
        elif late:
            shell.finish(first, published="2024-01-01T10:01:20")
    shell.until("2024-01-01T10:03:10")
    assert shell.created()[-1] == "10:03"
    assert "100200" in asked(shell), "it was due before the change, whenever it was decided"
    assert set(asked(shell)) <= {"100100", "100200"}, "that of the new version stays"


@pytest.mark.parametrize("order", list(permutations(("cancel", "keep"))))
def test_of_several_versions_each_says_what_becomes_of_those_before_it(order):
    shell = minutely()
    shell.until("2024-01-01T10:01:10")
    for number, on_update in enumerate(order):
        shell.put(body=definition(overlap=ANY, on_update=on_update, note=str(number)))
        shell.until(f"2024-01-01T10:0{number + 2}:10")
    assert asked(shell) == (["100100"] if order[0] == "cancel" else ["100100", "100200"])


def test_what_waits_under_the_old_version_stays_as_it_is():
    shell = minutely(overlap={"policy": "buffer_one"})
    shell.until("2024-01-01T10:02:10")
    shell.put(body=definition(overlap={"policy": "buffer_one"}, on_update="cancel"))
    shell.settle()
    assert asked(shell) == ["100100"]
    shell.finish(shell.all(RunCreated)[0], "cancelled")
    shell.settle()
    assert [run.version for run in shell.all(RunCreated)] == [1, 1]


def test_a_deletion_that_wants_its_runs_gone_means_those_too_that_are_decided_late():
    shell = minutely()
    shell.sleep_until("2024-01-01T10:01:30")
    shell.send("ScheduleDelete", runs="cancel", published="2024-01-01T10:01:20")
    shell.until("2024-01-01T10:03:10")
    assert (shell.created(), asked(shell)) == (["10:01@10:01:30"], ["100100"])
