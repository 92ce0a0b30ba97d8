"""What is remembered, for how long, and that it has a bound."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from scheduler import ledger, memory
from scheduler.state import Segment
from schemas.facts import CommandRejected, RunCreated, ScheduleAccepted
from schemas.scheduling import CommandRemembered, HistoryForgotten
from tests.scheduler.harness import Shell, definition

ANY: dict[str, Any] = {"overlap": {"policy": "allow_all"}}


def rows(shell: Shell, prefix: bytes, key: bytes = b"s/acme/s") -> list[bytes]:
    return sorted(row for row in shell.rows[key].data if row.startswith(prefix))


# --- commands -----------------------------------------------------------------------------------------------------


def test_the_same_command_again_changes_nothing_and_is_answered_as_the_first_time():
    shell = Shell()
    shell.put(id="one")
    first = shell.answer()
    shell.put(id="two", body=definition("*/2 * * * *"))
    facts = shell.put(id="one", reply_to=7)
    assert facts == [shell.answer()]
    assert (shell.answer().reply_to, shell.answer().status, shell.answer().body) == (7, first.status, first.body)
    assert shell.schedule().version == 2


def test_a_refused_command_is_refused_again_even_if_it_would_hold_by_now():
    shell = Shell()
    shell.put(id="one", expected_version=1)
    shell.put(id="two")
    shell.put(id="one", expected_version=1)
    assert shell.answer().status == 412
    assert len(shell.all(CommandRejected)) == 1


def test_commands_of_two_sources_may_have_the_same_id():
    shell = Shell()
    shell.put(id="one", source="a")
    shell.put(id="one", source="b", body=definition("*/2 * * * *"))
    assert shell.answer().body["version"] == 2


def test_a_command_is_remembered_for_seven_days_and_forgotten_a_day_later():
    shell = Shell("2024-01-01T00:00:00")
    shell.put(id="one", body=definition("0 0 1 1 *"))
    shell.until("2024-01-08T00:00:00")
    assert shell.put(id="one", body=definition("0 0 2 1 *")) == [shell.answer()]
    shell.until("2024-01-08T00:00:01")
    shell.put(id="one", body=definition("0 0 2 1 *"))
    assert shell.answer().body["version"] == 2
    shell.until("2024-01-17T00:00:00")
    assert (rows(shell, b"c/"), rows(shell, b"d/"), shell.schedule().memory.count) == ([], [], 0)


def test_a_restart_remembers_commands():
    shell = Shell()
    shell.put(id="one")
    shell.reload()
    assert shell.put(id="one") == [shell.answer()]


def test_commands_are_forgotten_in_steps_of_a_bounded_size():
    shell = Shell("2024-01-01T00:00:00")
    shell.put(body=definition("0 0 1 1 *"))
    for _ in range(600):
        shell.now += timedelta(milliseconds=1)
        shell.send("SchedulePause")
    shell.until("2024-01-10T00:00:00")
    steps = [fact for fact in shell.facts if isinstance(fact, HistoryForgotten)]
    assert 3 <= len(steps) <= 5
    assert shell.schedule().memory.count == 0


def test_the_oldest_commands_make_room_for_newer_ones(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(memory, "COMMANDS_MAX", 3)
    shell = Shell("2024-01-01T00:00:00")
    for number in range(5):
        shell.until(f"2024-01-01T00:00:0{number}")
        shell.put(id=f"{number}")
    assert shell.schedule().memory.count == 3
    assert len(rows(shell, b"c/")) == 3
    assert len(shell.put(id="4")) == 1  # remembered
    assert len(shell.put(id="0")) > 1


def test_jobs_remember_their_commands_too():
    shell = Shell("2024-01-01T00:00:00")
    body = {"target": {"type": "task", "name": "t"}}
    shell.send("JobPut", name="j", id="one", definition=body)
    first = shell.answer()
    assert (first.status, first.body["version"], first.body["changed"]) == (201, 1, True)
    assert shell.send("JobPut", name="j", id="one", definition=body) == [shell.answer()]
    assert shell.answer() == first
    shell.until("2024-01-10T00:00:00")
    assert rows(shell, b"c/", b"j/acme/j") == []
    shell.send("JobPut", name="j", id="one", definition=body)
    assert shell.answer().body["changed"] is False


# --- the ledger ---------------------------------------------------------------------------------------------------


def segments(shell: Shell) -> list[str]:
    return [
        f"{s.decision}{'/' + (s.reason or s.outcome) if s.reason or s.outcome else ''} x{s.count}"
        for s in everything(shell)
    ]


def everything(shell: Shell) -> list[Segment]:
    state = shell.schedule()
    chunks = [ledger._chunk(value) for _, value in state.rows.scan(b"l/", b"l0")]
    return [segment for chunk in chunks for segment in chunk.segments] + list(state.segments)


def test_occurrences_that_fared_alike_share_a_segment():
    shell = Shell("2024-01-01T10:00:10")
    shell.put(body=definition(**ANY))
    for minute in range(1, 6):
        shell.until(f"2024-01-01T10:0{minute}:00")
        shell.finish(shell.last_run(), "failed" if minute == 3 else "succeeded")
    shell.send("SchedulePause")
    shell.until("2024-01-01T10:08:00")
    assert segments(shell) == ["created/succeeded x2", "created/failed x1", "created/succeeded x2", "skipped/paused x3"]


def test_an_outcome_finds_its_occurrence_in_whatever_order_outcomes_come():
    shell = Shell("2024-01-01T10:00:10")
    shell.put(body=definition(**ANY))
    shell.until("2024-01-01T10:05:00")
    one, two, three, four, five = shell.all(RunCreated)
    for run in (three, one, five, two, four):
        shell.finish(run)
    assert segments(shell) == ["created/succeeded x5"]


def test_old_segments_leave_the_state_and_are_still_found():
    shell = Shell("2024-01-01T10:00:00.500")
    shell.put(body=definition("* * * * * *", **ANY))
    shell.until("2024-01-01T10:01:40")
    runs = shell.all(RunCreated)
    assert len(shell.schedule().segments) <= ledger.INLINE_MAX
    shell.finish(runs[0], "failed")
    shell.finish(runs[2], "failed")
    shell.finish(runs[1], "failed")
    assert segments(shell)[:2] == ["created/failed x3", "created x1"]
    assert sum(segment.count for segment in everything(shell)) == 100
    found = ledger.look_up(shell.schedule(), round(runs[1].due_at.timestamp()))
    assert found is not None
    assert found.outcome == "failed"


def test_the_ledger_is_kept_for_thirty_days_and_forgotten_a_day_later():
    shell = Shell("2024-01-01T00:00:00")
    shell.put(body=definition("0 * * * *", **ANY))
    shell.until("2024-01-04T00:00:00")
    shell.send("SchedulePause")
    shell.until("2024-01-30T00:00:00")
    assert segments(shell)[0] == "created x1"
    for run in shell.all(RunCreated)[::2]:
        shell.finish(run)
    shell.until("2024-02-08T00:00:00")
    assert rows(shell, b"l/") == []
    assert segments(shell)[-1].startswith("skipped/paused x")


def test_of_a_deleted_schedule_only_its_name_its_marks_and_its_versions_stay():
    shell = Shell("2024-01-01T00:00:00")
    shell.put(body=definition("0 * * * *", **ANY), source_version=4)
    shell.until("2024-01-02T00:00:30")
    for run in shell.all(RunCreated):
        shell.finish(run)
    shell.send("ScheduleDelete", source_version=5)
    shell.until("2024-03-01T00:00:00")
    data = shell.rows[b"s/acme/s"].data
    assert list(data) == [b"s"]
    assert len(data[b"s"]) <= 200
    assert shell.next_wakeup() is None


def test_the_state_of_a_schedule_is_small_however_many_runs_it_has():
    shell = Shell("2024-01-01T10:00:00.500")
    shell.put(body=definition("* * * * * *", **ANY))
    shell.until("2024-01-01T10:05:00")
    assert shell.schedule().active == 300
    assert len(shell.rows[b"s/acme/s"].data[b"s"]) < 2000


def test_what_a_command_made_true_and_its_memory_are_one_decision():
    shell = Shell()
    facts = shell.put()
    assert [type(fact) for fact in facts][2:4] == [ScheduleAccepted, CommandRemembered]
