"""`pause_on_failure`: so many failed runs in a row, and the schedule pauses itself."""

from itertools import permutations
from typing import Any

import pytest

from schemas import topics
from schemas.facts import RunCreated, SchedulePaused, ScheduleResumed
from schemas.internal import ScheduleCurrent
from tests.scheduler.harness import Shell, at, clock, definition

ANY: dict[str, Any] = {"policy": "allow_all"}


def minutely(count: int, **more: Any) -> Shell:
    """Every minute from 10:01 on, paused by so many failures in a row."""
    shell = Shell("2024-01-01T10:00:10")
    shell.put(body=definition(pause_on_failure=count, **{"overlap": ANY, **more}))
    return shell


def ends(shell: Shell, *outcomes: str) -> None:
    """A minute passes for each, whose run ends at its second 30."""
    for outcome in outcomes:
        minute = shell.now.replace(second=0).timestamp() + 60
        shell.until(at("2024-01-01T00:00:00").fromtimestamp(minute + 30, tz=shell.now.tzinfo))
        shell.finish(shell.last_run(), outcome)
        shell.settle()


def pauses(shell: Shell) -> list[str]:
    return [clock(fact.effective_at) for fact in shell.all(SchedulePaused)]


def test_the_schedule_pauses_itself_and_says_why_which_runs_and_who():
    shell = minutely(3)
    ends(shell, "failed", "timed_out", "dead_lettered")
    (paused,) = shell.all(SchedulePaused)
    assert (paused.reason, paused.failures, paused.by, paused.command_id) == ("failures", 3, "tidewheel", "")
    assert paused.failed_runs == ("s.20240101T100100Z", "s.20240101T100200Z", "s.20240101T100300Z")
    assert paused.note == "3 runs in a row failed, the last one s.20240101T100300Z: dead_lettered"
    assert paused.effective_at == at("2024-01-01T10:03:30")
    shell.until("2024-01-01T10:05:30")
    assert shell.created() == ["10:01", "10:02", "10:03"]
    assert shell.skipped() == ["10:04 paused", "10:05 paused"]


def test_the_schedule_as_it_stands_says_that_it_is_paused_since_when_and_why():
    shell = minutely(1)
    ends(shell, "expired")
    (current,) = [fact for fact in shell.to(topics.SCHEDULES) if isinstance(fact, ScheduleCurrent)][-1:]
    assert (current.state, current.pause) == (
        "paused",
        {
            "since": "2024-01-01T10:01:30Z",
            "by": "tidewheel",
            "note": "a run failed, the last one s.20240101T100100Z: expired",
            "reason": "failures",
            "failed_runs": ["s.20240101T100100Z"],
        },
    )


@pytest.mark.parametrize(
    ("outcomes", "paused"),
    [
        (["failed", "failed"], ["10:02:30"]),
        (["failed", "succeeded", "failed"], []),
        (["failed", "cancelled", "failed"], ["10:03:30"]),
        (["expired", "timed_out"], ["10:02:30"]),
        (["cancelled", "cancelled"], []),
    ],
)
def test_failures_count_a_success_begins_anew_and_a_cancelled_run_says_nothing(outcomes, paused):
    shell = minutely(2)
    ends(shell, *outcomes)
    assert pauses(shell) == paused


def test_manual_runs_are_not_counted():
    shell = minutely(1)
    shell.send("ScheduleTrigger")
    shell.finish(shell.last_run(), "failed")
    shell.settle()
    assert pauses(shell) == []


def test_a_run_that_was_caught_up_is_counted():
    shell = minutely(1)
    shell.sleep_until("2024-01-01T12:00:00")
    shell.settle()
    assert shell.last_run().cause == "catch_up" or shell.created()
    shell.finish(shell.last_run(), "failed")
    shell.settle()
    assert pauses(shell) == ["12:00"]


def test_a_person_resumes_it_and_the_count_begins_anew():
    shell = minutely(2)
    ends(shell, "failed", "failed")
    shell.send("ScheduleResume", by="ann")
    assert shell.answer().body["changed"] is True
    ends(shell, "failed")
    assert pauses(shell) == ["10:02:30"]
    ends(shell, "failed")
    assert pauses(shell) == ["10:02:30", "10:04:30"]


def test_a_new_version_begins_anew_and_runs_of_the_old_one_are_not_counted_any_more():
    shell = minutely(2)
    ends(shell, "failed")
    shell.until("2024-01-01T10:02:10")
    old = shell.last_run()
    shell.put(body=definition(pause_on_failure=2, overlap=ANY, note="mended"))
    shell.finish(old, "failed")
    ends(shell, "failed")
    assert pauses(shell) == []
    ends(shell, "failed")
    assert pauses(shell) == ["10:04:30"]


def test_what_ends_while_it_is_paused_is_not_counted():
    shell = minutely(1)
    shell.until("2024-01-01T10:03:10")
    first, second, third = shell.all(RunCreated)
    shell.finish(first, "failed")
    shell.settle()
    shell.finish(second, "failed")
    shell.settle()
    shell.send("ScheduleResume")
    assert pauses(shell) == ["10:03:10"]
    shell.until("2024-01-01T10:03:20")
    shell.finish(third, "failed")
    shell.settle()
    assert pauses(shell) == ["10:03:10", "10:03:20"]


def test_an_occurrence_that_waits_is_dropped_and_not_released_by_the_outcome_that_pauses():
    shell = minutely(1, overlap={"policy": "buffer_all"})
    shell.until("2024-01-01T10:03:10")
    assert shell.deferred() == ["10:02 open", "10:03 open"]
    shell.finish(shell.last_run(), "failed")
    shell.settle()
    assert shell.created() == ["10:01"]
    assert shell.skipped() == ["10:02 paused", "10:03 paused"]
    assert (shell.schedule().active, shell.schedule().waiting) == (0, None)


def test_one_that_is_not_the_last_of_them_releases_what_waits():
    shell = minutely(2, overlap={"policy": "buffer_all"})
    shell.until("2024-01-01T10:02:10")
    shell.finish(shell.last_run(), "failed")
    shell.settle()
    assert shell.created() == ["10:01", "10:02@10:02:10"]


def story(order: tuple[str, ...], kind: str) -> Shell:
    """A run fails at 10:01:20, a person says something at 10:01:40; both are read together, in either order."""
    shell = minutely(1)
    shell.until("2024-01-01T10:01:10")
    run = shell.last_run()
    shell.sleep_until("2024-01-01T10:01:50")
    for step in order:
        if step == "fails":
            shell.finish(run, "failed", published="2024-01-01T10:01:20")
        elif kind == "SchedulePut":
            body = definition(pause_on_failure=1, overlap=ANY, note="new")
            shell.send(kind, definition=body, published="2024-01-01T10:01:40")
        else:
            shell.send(kind, published="2024-01-01T10:01:40")
    shell.until("2024-01-01T10:03:30")
    return shell


@pytest.mark.parametrize("order", list(permutations(["fails", "said"])), ids="-".join)
@pytest.mark.parametrize(
    ("kind", "created", "state"),
    [
        ("ScheduleResume", ["10:01", "10:02", "10:03"], "active"),
        ("SchedulePause", ["10:01"], "paused"),
        ("SchedulePut", ["10:01"], "paused"),
    ],
)
def test_it_pauses_at_the_instant_of_the_outcome_whatever_was_read_first(order, kind, created, state):
    shell = story(order, kind)
    assert shell.created() == created
    assert pauses(shell)[-1 if kind == "SchedulePut" else 0] in {"10:01:20", "10:01:40"}
    (current,) = [fact for fact in shell.to(topics.SCHEDULES) if isinstance(fact, ScheduleCurrent)][-1:]
    assert (current.state, shell.schedule().paused) == (state, state == "paused")
    assert current.version == shell.schedule().version


def test_a_resumption_that_was_published_behind_the_outcome_resumes_it_though_it_was_read_before():
    shell = story(("said", "fails"), "ScheduleResume")
    assert [clock(fact.effective_at) for fact in shell.all(ScheduleResumed)] == ["10:01:40"]
    assert pauses(shell) == ["10:01:20"]
    assert shell.schedule().paused is False


def test_a_schedule_that_was_deleted_does_not_pause_and_its_successor_is_not_paused():
    shell = minutely(1)
    shell.until("2024-01-01T10:01:10")
    run = shell.last_run()
    shell.send("ScheduleDelete")
    shell.put(body=definition(pause_on_failure=1, overlap=ANY))
    shell.finish(run, "failed")
    shell.until("2024-01-01T10:02:30")
    assert pauses(shell) == []
    assert shell.created() == ["10:01", "10:02"]


def test_changes_between_two_occurrences_do_not_pile_up():
    shell = Shell("2024-01-01T10:00:10")
    shell.put(body=definition("0 0 1 * *", pause_on_failure=3, overlap=ANY))
    shell.until("2024-02-01T00:00:10")
    for number in range(70):
        shell.put(body=definition("0 0 1 * *", pause_on_failure=3, overlap=ANY, note=str(number)))
        shell.settle()
    assert shell.answer().status == 200
    assert len(shell.schedule().phases) == 1
    shell.reload()
