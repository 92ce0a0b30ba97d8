"""I21: a partition has decided what it says it has decided."""

from datetime import timedelta
from typing import Any

import pytest

from simulation.checkers import marks
from tests.simulation.checkers.given import (
    Given,
    calm,
    created,
    ended,
    event,
    finished,
    handed_out,
    of_schedule,
    started,
    told,
    z,
)  # fmt: skip

RUN = created()


def found(given: Given) -> list[str]:
    return told(marks.check(given.evidence()))


def accepted(given: Given, now: str, effective_at: str) -> None:
    fact = of_schedule("schedule.accepted", version=1, definition={}, effective_at=z(effective_at))
    given.transaction("scheduler", now, [fact])


def held(given: Given) -> None:
    """The run of 12:00:05 is in a worker's hands since then."""
    handout = handed_out(RUN, 0, handed_out_at=z("12:00:05"), start_by="PT10S", timeout="PT30S")
    given.transaction("dispatcher", "12:00:05", [RUN, handout])


def test_a_calm_history_keeps_its_marks():
    assert found(calm()) == []
    assert marks.observed(calm().evidence()) == 6


@pytest.mark.parametrize(
    "late",
    [
        created("12:00:05"),
        of_schedule("occurrence.skipped", nominal_time=z("12:00:05"), reason="overlap"),
        of_schedule("occurrence.skipped", range={"from": z("12:00:05"), "to": z("12:00:15")}, reason="paused"),
        of_schedule("occurrence.deferred", nominal_time=z("12:00:05"), reason="buffered"),
    ],
    ids=lambda fact: fact["type"],
)
def test_a_first_decision_on_what_a_footer_spoke_for_is_found(late):
    given = Given()
    accepted(given, "12:00:00", "12:00:00")
    given.transaction("scheduler", "12:00:06")
    given.transaction("scheduler", "12:00:07", [late])
    assert found(given) == [
        (
            "I21 scheduler-changelog-0@3: acme/s of 2026-03-01T12:00:05Z has no decision yet, "
            "and all was decided until 12:00:06.000000"
        )
    ]


def test_what_was_deferred_has_its_decision_and_a_manual_run_needs_none():
    given = Given()
    accepted(given, "12:00:00", "12:00:00")
    deferred = of_schedule("occurrence.deferred", nominal_time=z("12:00:05"), reason="buffered")
    given.transaction("scheduler", "12:00:05", [deferred])
    given.transaction("scheduler", "12:00:20", [created("12:00:05"), created("12:00:10", cause="manual")])
    assert found(given) == []


def test_with_a_jitter_a_footer_speaks_for_what_is_due_and_not_for_what_has_its_nominal_instant_behind_it():
    def decided(fact: dict[str, Any]) -> list[str]:
        given = Given()
        definition = {"trigger": {"cron": "* * * * *", "jitter": "PT30S"}}
        fact_ = of_schedule("schedule.accepted", version=1, definition=definition, effective_at=z("12:00:00"))
        given.transaction("scheduler", "12:00:00", [fact_])
        given.transaction("scheduler", "12:00:20")
        given.transaction("scheduler", "12:00:35")
        given.transaction("scheduler", "12:00:36", [fact])
        return found(given)

    assert decided(created("12:00:05", due_at=z("12:00:36"))) == []
    assert len(decided(created("12:00:05", due_at=z("12:00:35")))) == 1
    skipped = of_schedule("occurrence.skipped", nominal_time=z("12:00:06"), reason="overlap", version=1)
    assert decided(skipped) == []
    too_late = of_schedule("occurrence.skipped", nominal_time=z("12:00:05"), reason="overlap", version=1)
    assert len(decided(too_late)) == 1


def test_a_change_that_came_late_may_reach_back_to_before_the_mark():
    given = Given()
    given.transaction("scheduler", "12:00:20")
    accepted(given, "12:00:21", "12:00:04")
    given.transaction("scheduler", "12:00:22", [created("12:00:05")])
    assert found(given) == []


def test_an_attempt_that_goes_on_behind_a_footer_beyond_its_timeout_is_found_once():
    given = Given()
    held(given)
    given.transaction("dispatcher", "12:00:07", [started(0, started_at=z("12:00:07"))])
    given.transaction("dispatcher", "12:00:36")
    assert found(given) == []
    given.transaction("dispatcher", "12:00:37")
    given.transaction("dispatcher", "12:00:38")
    assert found(given) == [
        (
            "I21 dispatcher-changelog-0@5: acme: attempt 1 of s.20260301T120005Z goes on beyond 12:00:37.000000, "
            "and all was decided until 12:00:37.000000"
        )
    ]


def test_an_attempt_of_which_no_beginning_was_heard_has_its_time_to_begin_besides():
    given = Given()
    held(given)
    given.transaction("dispatcher", "12:00:44")
    assert found(given) == []
    given.transaction("dispatcher", "12:00:45")
    assert len(found(given)) == 1


def test_an_attempt_that_ends_in_time_or_is_ended_for_its_timeout_is_not_overdue():
    given = Given()
    held(given)
    given.transaction("dispatcher", "12:00:46", [ended(0, "timed_out"), finished("timed_out")])
    assert found(given) == []


def test_a_footer_that_does_not_speak_for_the_timeout_leaves_it_to_the_reports_that_are_unread():
    given = Given()
    held(given)
    given.transaction("dispatcher", "12:01:30", decided_until=z("12:00:30"))
    assert found(given) == []


def test_a_run_that_is_open_behind_a_footer_beyond_its_deadline_is_found():
    given = Given()
    given.transaction("dispatcher", "12:00:05", [created(deadline_at=z("12:10:00"))])
    given.transaction("dispatcher", "12:09:59")
    assert found(given) == []
    given.transaction("dispatcher", "12:10:00")
    assert found(given) == [
        (
            "I21 dispatcher-changelog-0@3: acme: run s.20260301T120005Z has no outcome beyond 12:10:00.000000, "
            "and all was decided until 12:10:00.000000"
        )
    ]


def test_a_run_that_nobody_asks_after_for_ten_minutes_is_found():
    given = Given()
    given.transaction("scheduler", "12:00:05", [RUN])
    given.transaction("scheduler", "12:10:04")
    assert found(given) == []
    given.transaction("scheduler", "12:10:05")
    assert found(given) == [
        (
            "I21 scheduler-changelog-0@3: acme: nobody asks after run s.20260301T120005Z beyond 12:10:05.000000, "
            "and all was decided until 12:10:05.000000"
        )
    ]


@pytest.mark.parametrize(
    "fact",
    [
        of_schedule("run.settled", run_id="s.20260301T120005Z", outcome="succeeded"),
        event("run.inquired", run=RUN["data"]),
    ],
    ids=["settled", "inquired"],
)
def test_a_run_that_is_settled_or_was_asked_after_is_not_left_alone(fact):
    given = Given()
    given.transaction("scheduler", "12:00:05", [RUN])
    given.transaction("scheduler", "12:10:05", [fact])
    assert found(given) == []


@pytest.mark.parametrize(
    ("runs", "left_alone", "asked_after"),
    [
        (15, None, "12:10:05"),
        (16, "12:10:08", "12:10:09"),
        (32, "12:10:12", "12:10:13"),
        (4_000, "12:20:04", "12:20:05"),
    ],
)
def test_of_a_schedule_with_many_open_runs_each_may_wait_longer(runs, left_alone, asked_after):
    """By four seconds for each sixteen, ten minutes at most; runs of others count nothing."""
    given = Given()
    given.transaction("scheduler", "12:00:05", [RUN])
    later = [created(run_id=f"s.m-{number}", cause="manual", created_at=z("12:05:00")) for number in range(runs - 1)]
    others = [created(run_id=f"s.m-{number}", tenant="other", created_at=z("12:05:00")) for number in range(99)]
    given.transaction("scheduler", "12:05:00", later)
    given.transaction("scheduler", "12:05:00", others)
    if left_alone:
        given.transaction("scheduler", left_alone)
        assert [what for what in found(given) if RUN["data"]["run_id"] in what] == []
    given.transaction("scheduler", asked_after)
    assert len([what for what in found(given) if RUN["data"]["run_id"] in what]) == 1


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("PT30S", timedelta(seconds=30)),
        ("PT1M", timedelta(minutes=1)),
        ("P7D", timedelta(days=7)),
        ("P1DT2H3M4.5S", timedelta(days=1, hours=2, minutes=3, seconds=4.5)),
    ],
)
def test_durations_are_read_as_they_stand_in_records(text, value):
    assert marks.duration(text) == value


def test_what_is_no_duration_is_not_guessed_at():
    with pytest.raises(ValueError, match="'30s' is no duration"):
        marks.duration("30s")


# --- runs that have to begin ---


def urgent(given: Given) -> None:
    """The run of 12:00:05 has to begin by 12:00:25."""
    given.transaction("dispatcher", "12:00:05", [created("12:00:05", start_by_at=z("12:00:25"))])


def given_up(at: str) -> dict[str, Any]:
    return finished("expired", finished_at=z(at), reason="start_within")


def test_a_run_that_had_to_begin_and_waits_behind_a_footer_that_spoke_for_that_is_found():
    given = Given()
    urgent(given)
    given.transaction("dispatcher", "12:00:26")
    assert found(given) == [
        (
            "I21 dispatcher-changelog-0@2: acme: run s.20260301T120005Z has not begun beyond 12:00:25.000000, "
            "and all was decided until 12:00:26.000000"
        )
    ]


def test_one_that_is_heard_of_when_its_time_is_over_is_given_up_with_the_next_word_about_time():
    """Its schedule's owner was away: what was decided until then spoke for nothing that nobody had heard of."""
    given = Given()
    given.transaction("dispatcher", "12:00:30")
    urgent_late = [created("12:00:05", start_by_at=z("12:00:25"))]
    given.transaction("dispatcher", "12:00:31", urgent_late, decided_until=z("12:00:30"))
    assert found(given) == []
    given.transaction("dispatcher", "12:00:32", [given_up("12:00:32")])
    assert found(given) == []


def test_one_that_is_heard_of_when_its_time_is_over_and_waits_behind_the_next_word_is_found():
    given = Given()
    given.transaction("dispatcher", "12:00:30")
    urgent_late = [created("12:00:05", start_by_at=z("12:00:25"))]
    given.transaction("dispatcher", "12:00:31", urgent_late, decided_until=z("12:00:30"))
    given.transaction("dispatcher", "12:00:32")
    assert found(given) == [
        (
            "I21 dispatcher-changelog-0@3: acme: run s.20260301T120005Z has not begun beyond 12:00:30.001000, "
            "and all was decided until 12:00:32.000000"
        )
    ]


def test_one_that_is_heard_of_behind_its_deadline_ends_with_the_next_word_about_time():
    given = Given()
    given.transaction("dispatcher", "12:00:30")
    late = [created("12:00:05", deadline_at=z("12:00:25"))]
    given.transaction("dispatcher", "12:00:31", late, decided_until=z("12:00:30"))
    given.transaction("dispatcher", "12:00:32", [finished("expired", finished_at=z("12:00:32"))])
    assert found(given) == []


@pytest.mark.parametrize("in_time", [started(0, started_at=z("12:00:24")), given_up("12:00:25")])
def test_one_that_has_begun_or_was_given_up_is_well(in_time):
    given = Given()
    urgent(given)
    given.transaction("dispatcher", "12:00:25", [in_time])
    given.transaction("dispatcher", "12:00:26")
    assert found(given) == []


@pytest.mark.parametrize("before", [[], [started(0, started_at=z("12:00:10"))]], ids=["had time", "had begun"])
def test_one_that_is_given_up_for_it_without_cause_is_found(before):
    given = Given()
    urgent(given)
    given.transaction("dispatcher", "12:00:20", [*before, given_up("12:00:20")])
    assert found(given) == [
        (
            "I21 dispatcher-changelog-0@2: acme: run s.20260301T120005Z was given up as not begun in time, "
            "and had begun or had time"
        )
    ]
