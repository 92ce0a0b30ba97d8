"""The records on `versions`: each stays as long as a decision of its version does, and goes with the last one."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from scheduler import ledger, versions
from schemas import topics
from schemas.facts import RunCreated, ScheduleAccepted
from schemas.scheduling import HistoryForgotten
from tests.scheduler.harness import Shell, definition

ANY: dict[str, Any] = {"overlap": {"policy": "allow_all"}}


def removed(shell: Shell) -> list[str]:
    """Tombstones, in their order."""
    return [output.key for output in shell.outputs if output.topic == topics.VERSIONS and output.tombstone]


def standing(shell: Shell) -> list[str]:
    """What is left after compaction."""
    newest = {output.key: output.tombstone for output in shell.outputs if output.topic == topics.VERSIONS}
    return [key for key, tombstone in newest.items() if not tombstone]


def finish_all(shell: Shell) -> None:
    for run in shell.all(RunCreated)[-3000:]:
        shell.finish(run)


def test_a_versions_record_goes_a_day_after_its_last_decision_left_the_history():
    shell = Shell("2024-01-01T00:00:00")
    shell.put(body=definition("0 0 * * *", **ANY))
    shell.until("2024-01-03T12:00:00")
    shell.put(body=definition("0 0 1 1 *", **ANY))
    shell.until("2024-02-03T11:59:59")
    assert removed(shell) == []
    shell.until("2024-02-03T12:00:00")
    assert removed(shell) == ["acme/s/1"]
    assert standing(shell) == ["acme/s/2"]


def test_the_version_in_force_keeps_its_record_however_old_it_is():
    shell = Shell("2024-01-01T00:00:00")
    shell.put(body=definition("0 0 1 1 *", **ANY))
    shell.until("2026-06-01T00:00:00")
    assert removed(shell) == []


def test_a_version_that_decided_nothing_goes_when_its_time_is_out_of_the_history():
    shell = Shell("2024-01-01T00:00:00")
    for number in range(2, 6):
        shell.put(body=definition(f"{number} 0 1 1 *", **ANY))
    shell.until("2024-02-01T00:00:00")
    assert removed(shell) == ["acme/s/1", "acme/s/2", "acme/s/3"]
    assert standing(shell) == ["acme/s/4"]


def test_the_versions_of_a_deleted_schedule_go_too_and_a_recreated_one_counts_on():
    shell = Shell("2024-01-01T00:00:00")
    shell.put(body=definition("0 0 * * *", **ANY))
    shell.until("2024-01-03T12:00:00")
    shell.put(body=definition("0 6 * * *", **ANY))
    shell.until("2024-01-05T12:00:00")
    finish_all(shell)
    shell.send("ScheduleDelete")
    shell.until("2024-03-01T00:00:00")
    assert removed(shell) == ["acme/s/1", "acme/s/2"]
    assert list(shell.rows[b"s/acme/s"].data) == [b"s"]
    shell.put(body=definition("0 0 * * *", **ANY))
    assert standing(shell) == ["acme/s/3"]
    shell.until("2024-06-01T00:00:00")
    assert standing(shell) == ["acme/s/3"]


def test_a_version_stays_while_a_piece_of_the_ledger_names_it():
    """Older pieces of the ledger leave it whole, so an old decision may outlive the history by its neighbours."""
    shell = Shell("2024-01-01T00:00:00.500")
    shell.put(body=definition("0 */4 * * *", **ANY))
    shell.until("2024-01-02T02:00:00")
    shell.put(body=definition("0 1-23/4 * * *", **ANY))
    shell.until("2024-01-06T00:00:00")
    assert shell.schedule().spilled_to is not None
    shell.put(body=definition("0 0 1 1 *", **ANY))
    left: list[tuple[int, list[str]]] = []
    while not removed(shell):
        assert shell.now.month < 3, "it goes"
        before = named(shell)
        shell.until(shell.now + timedelta(hours=1))
        left.append((min(before, default=99), standing(shell)))
    assert left[-2] == (1, ["acme/s/1", "acme/s/2", "acme/s/3"])
    assert min(named(shell), default=99) > 1
    assert "acme/s/1" not in standing(shell)


def named(shell: Shell) -> set[int]:
    """The versions that the ledger names."""
    state = shell.schedule()
    chunks = [ledger._chunk(value) for _, value in state.rows.scan(b"l/", b"l0")]
    return {segment.version for chunk in chunks for segment in chunk.segments} | {s.version for s in state.segments}


def test_a_version_whose_occurrence_still_waits_keeps_its_record():
    shell = Shell("2024-01-01T00:00:00")
    body: dict[str, Any] = definition("0 0 * * *", overlap={"policy": "buffer_one"})
    shell.put(body=body)
    shell.until("2024-01-03T12:00:00")
    assert shell.schedule().waiting is not None
    shell.put(body=definition("0 0 1 1 *", overlap={"policy": "buffer_one"}))
    shell.until("2024-03-01T00:00:00")
    assert removed(shell) == []
    for _ in range(2):
        shell.finish(shell.last_run())
        shell.until(shell.now + timedelta(days=32))
    assert removed(shell) == ["acme/s/1"]


def test_a_restart_knows_which_versions_still_have_a_record():
    shell = Shell("2024-01-01T00:00:00")
    shell.put(body=definition("0 0 1 1 *", **ANY))
    shell.put(body=definition("0 0 2 1 *", **ANY))
    shell.reload()
    shell.until("2024-02-02T00:00:00")
    shell.reload()
    assert removed(shell) == ["acme/s/1"]


def test_records_are_removed_in_steps_of_a_bounded_size(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(versions, "FORGOTTEN_MAX", 3)
    shell = Shell("2024-01-01T00:00:00")
    for number in range(8):
        shell.put(body=definition(f"{number} 0 1 1 *", **ANY))
    shell.until("2024-02-02T00:00:00")
    assert len(shell.all(ScheduleAccepted)) == 8
    assert removed(shell) == [f"acme/s/{number}" for number in range(1, 8)]
    steps = [fact for fact in shell.facts if isinstance(fact, HistoryForgotten) and fact.versions_up_to is not None]
    assert [fact.versions_up_to for fact in steps] == [3, 6, 7]
