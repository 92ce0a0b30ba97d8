"""A schedule pauses itself after so many failed runs in a row, and never otherwise: a part of I20."""

from typing import Any

from schemas import topics
from simulation.checkers import failures
from tests.simulation.checkers.given import Given, calm, created, finished, of_schedule, told, z


def run(second: int) -> str:
    return f"s.20260301T1200{second:02}Z"


def accepted(version: int = 1, most: int | None = 2, at: str = "12:00:00") -> dict[str, Any]:
    definition = {} if most is None else {"pause_on_failure": most}
    return of_schedule("schedule.accepted", version=version, definition=definition, effective_at=z(at))


def ran(second: int, **other: Any) -> dict[str, Any]:
    return created(f"12:00:{second:02}", **other)


def settled(second: int, outcome: str = "failed") -> dict[str, Any]:
    return of_schedule("run.settled", run_id=run(second), outcome=outcome, appended_at=z(f"12:00:{second + 1:02}"))


def paused(*seconds: int, count: int | None = None, version: int = 1) -> dict[str, Any]:
    return of_schedule(
        "schedule.paused", version=version, reason="failures", failures=len(seconds) if count is None else count,
        failed_runs=[run(second) for second in seconds], effective_at=z(f"12:00:{seconds[-1] + 1:02}"),
    )  # fmt: skip


def resumed(at: str) -> dict[str, Any]:
    return of_schedule("schedule.resumed", version=1, effective_at=z(at))


def found(*facts: dict[str, Any], succeeded: tuple[int, ...] = ()) -> list[str]:
    given = Given()
    for second in range(5, 40, 5):
        outcome = "succeeded" if second in succeeded else "failed"
        given.append(topics.RUN_OUTCOMES, finished(outcome, run=run(second)))
    given.transaction("scheduler", "12:00:40", facts)
    return [
        line.removeprefix("I20 scheduler-changelog-0@0: acme/s ") for line in told(failures.check(given.evidence()))
    ]


def test_a_calm_history_has_no_failures():
    assert told(failures.check(calm().evidence())) == []


def test_a_pause_after_as_many_failures_as_may_be_is_right():
    assert found(accepted(), ran(5), settled(5), ran(10), paused(5, 10), settled(10)) == []


def test_a_schedule_that_goes_on_after_so_many_failures_is_found():
    said = ["goes on after 2 failed runs in a row, the last one s.20260301T120010Z"]
    assert found(accepted(), ran(5), settled(5), ran(10), settled(10)) == said
    by_hand = ran(10, cause="manual")
    assert found(accepted(), ran(5), settled(5), by_hand, settled(10)) == []


def test_a_success_a_change_and_a_pause_begin_anew():
    first = accepted(), ran(5), settled(5)
    assert found(*first, ran(10), settled(10, "succeeded"), ran(15), settled(15), succeeded=(10,)) == []
    assert found(*first, accepted(2, at="12:00:08"), ran(10, version=2), settled(10)) == []
    others = of_schedule("schedule.paused", version=1, effective_at=z("12:00:08"))
    assert found(*first, others, ran(10), settled(10)) == []


def test_a_pause_that_comes_too_early_is_found():
    assert found(accepted(), ran(5), paused(5), settled(5)) == ["pauses itself after 1 failures, of 2"]
    assert found(accepted(most=None), ran(5), ran(10), paused(5, 10)) == ["pauses itself after 2 failures, of None"]
    assert found(accepted(), ran(5), settled(5), ran(10), paused(10, count=2)) == [
        "pauses itself and names 1 runs for 2"
    ]


def test_a_pause_over_a_success_is_found():
    facts = accepted(), ran(5), settled(5), ran(10), settled(10, "succeeded"), ran(15), paused(5, 15), settled(15)
    assert found(*facts, succeeded=(10,)) == ["pauses itself for s.20260301T120005Z, and one has succeeded since"]


def test_a_pause_for_a_run_that_has_not_failed_or_is_of_another_version_is_found():
    said = ["pauses itself for s.20260301T120005Z, which is none of version 1 that failed"]
    facts = accepted(), ran(5), settled(5, "cancelled"), ran(10), paused(5, 10), settled(10)
    assert found(*facts, succeeded=(5,)) == said
    assert found(accepted(), ran(5, version=7), ran(10), paused(5, 10)) == said


def test_a_pause_for_what_led_to_one_before_is_found():
    first = accepted(), ran(5), settled(5), ran(10), paused(5, 10), settled(10), resumed("12:00:12")
    assert found(*first, ran(15), paused(10, 15), settled(15)) == [
        "pauses itself for s.20260301T120010Z, as it did before"
    ]


def test_a_failure_that_does_not_count_is_found():
    first = accepted(most=3), ran(5), settled(5), ran(10), settled(10), ran(15), ran(20)
    assert found(*first[:3], ran(20), *first[3:], paused(5, 20, 15)) == [
        "pauses itself and does not count s.20260301T120010Z"
    ]
