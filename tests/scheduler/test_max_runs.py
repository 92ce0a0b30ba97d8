"""`max_runs`: so many runs of occurrences, and then nothing is due any more."""

from typing import Any

from schemas import topics
from schemas.facts import OccurrenceSkipped
from schemas.internal import ScheduleVersion
from tests.scheduler.harness import Shell, definition


def limited(runs: int = 3, overlap: str = "allow_all", **more: Any) -> dict[str, Any]:
    return definition(trigger={"max_runs": runs}, overlap={"policy": overlap}, **more)


def shell_with(body: dict[str, Any]) -> Shell:
    shell = Shell("2024-01-01T00:00:30")
    shell.put(body=body)
    return shell


def versions(shell: Shell) -> dict[str, str | None]:
    """The newest record of each version: when it ends."""
    records = [output for output in shell.outputs if output.topic == topics.VERSIONS and not output.tombstone]
    return {
        output.key: None if (end := output.fact.effective_to) is None else f"{end:%H:%M:%S}"
        for output in records
        if isinstance(output.fact, ScheduleVersion)
    }


def test_after_so_many_runs_nothing_is_due_and_nothing_is_recorded():
    shell = shell_with(limited())
    shell.until("2024-01-02T00:00:00")
    assert shell.created() == ["00:01", "00:02", "00:03"]
    assert shell.skipped() == []
    assert versions(shell) == {"acme/s/1": "00:03:00"}


def test_what_is_skipped_is_no_run_and_what_is_triggered_by_hand_does_not_count():
    shell = shell_with(limited(2, "skip"))
    shell.until("2024-01-01T00:01:30")
    shell.send("ScheduleTrigger")
    shell.until("2024-01-01T00:02:30")
    shell.finish("s.20240101T000100Z")
    shell.until("2024-01-01T00:10:00")
    assert shell.created() == ["00:01", "manual", "00:03"]
    assert shell.skipped() == ["00:02 overlap"]


def test_while_the_last_ones_wait_others_are_skipped_as_ended():
    shell = shell_with(limited(2, "buffer_one"))
    shell.until("2024-01-01T00:03:30")
    assert shell.created() == ["00:01"]
    assert shell.skipped() == ["00:03 ended"]
    assert shell.all(OccurrenceSkipped)[0].detail == "those that wait are the last that max_runs allows"
    shell.finish("s.20240101T000100Z")
    shell.until("2024-01-01T00:10:00")
    assert shell.created() == ["00:01", "00:02@00:03:30"]
    assert versions(shell) == {"acme/s/1": "00:03:00"}


def test_the_count_survives_restarts_and_new_versions_that_are_limited_too():
    shell = shell_with(limited(3))
    shell.until("2024-01-01T00:02:30")
    shell.reload()
    shell.put(body=limited(4, note="one more"))
    shell.until("2024-01-01T01:00:00")
    assert shell.created() == ["00:01", "00:02", "00:03", "00:04"]


def test_a_larger_limit_lets_it_go_on_and_nothing_is_made_up():
    shell = shell_with(limited(1))
    shell.until("2024-01-01T00:05:30")
    shell.put(body=limited(2))
    shell.until("2024-01-01T01:00:00")
    assert shell.created() == ["00:01", "00:06"]
    assert shell.skipped() == []
    assert versions(shell) == {"acme/s/1": "00:01:00", "acme/s/2": "00:06:00"}


def test_a_version_that_allows_no_more_than_there_were_ends_as_it_begins():
    shell = shell_with(limited(3))
    shell.until("2024-01-01T00:02:30")
    shell.put(body=limited(2))
    shell.until("2024-01-01T01:00:00")
    assert shell.created() == ["00:01", "00:02"]
    assert versions(shell) == {"acme/s/1": "00:02:30", "acme/s/2": "00:02:30"}


def test_a_version_without_a_limit_and_a_schedule_that_is_made_anew_count_from_the_beginning():
    shell = shell_with(limited(1))
    shell.until("2024-01-01T00:02:30")
    shell.put(body=definition(overlap={"policy": "allow_all"}))
    shell.until("2024-01-01T00:03:30")
    shell.put(body=limited(1))
    shell.until("2024-01-01T00:05:30")
    shell.send("ScheduleDelete")
    shell.put(body=limited(1))
    shell.until("2024-01-01T00:10:00")
    assert shell.created() == ["00:01", "00:03", "00:04", "00:06"]


def test_missed_occurrences_are_caught_up_as_far_as_the_limit_goes():
    shell = shell_with(limited(3, catch_up={"policy": "all"}))
    shell.sleep_until("2024-01-01T00:30:00")
    shell.until("2024-01-01T01:00:00")
    assert shell.created() == ["00:01@00:30", "00:02@00:30:00.100", "00:03@00:30:00.200"]
    assert {line.partition(" ")[2] for line in shell.skipped()} == {"ended"}, "while three are on their way"


def test_a_pause_that_ends_after_the_last_run_says_nothing_about_what_is_not_due():
    shell = shell_with(limited(1))
    shell.until("2024-01-01T00:01:30")
    shell.send("SchedulePause")
    shell.until("2024-01-01T00:05:00")
    shell.send("ScheduleResume")
    shell.until("2024-01-01T00:10:00")
    assert shell.created() == ["00:01"]
    assert shell.skipped() == []


def test_the_limit_is_said():
    assert shell_with(limited(3)).answer().body["words"] == "Every minute, UTC, 3 runs at most"
    assert shell_with(limited(1)).answer().body["words"] == "Every minute, UTC, 1 run at most"
