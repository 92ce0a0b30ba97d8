"""How a run stands, after which events."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import orjson

from projections.event import instant
from schemas.facts import AttemptOutcome, Fact, Outcome, RunCancelRequested, RunDeferReason, RunDeferred
from tests.projections import histories
from tests.projections.histories import at, created, ended, finished, retried, started
from tests.projections.memory import rows_after

RUN = created("report", 60)


def the_run(*facts: Fact) -> dict[str, Any]:
    (row,) = rows_after(facts, "runs")
    return row


def millis(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


def test_a_created_run_is_queued_and_says_why_it_exists():
    row = the_run(RUN)
    assert row["run_id"] == "report.20260301T000100Z"
    assert (row["state"], row["cause"], row["version"], row["queue"]) == ("queued", "schedule", 1, "default")
    assert row["nominal_time"] == row["created_at"] == row["due_at"] == millis(at(60))
    assert row["deadline_at"] == millis(at(60) + timedelta(days=7))
    assert orjson.loads(row["labels"]) == {"team": "finance"}


def test_a_run_that_has_to_begin_says_by_when():
    assert the_run(replace(RUN, start_by_at=at(120)))["start_by_at"] == millis(at(120))
    assert the_run(RUN)["start_by_at"] is None


def test_a_run_that_waits_for_a_worker_says_since_when_and_why():
    deferred = RunDeferred(
        tenant="acme", schedule="report", run_id=RUN.run_id, reason=RunDeferReason.NO_WORKER, since=at(61),
        decided_at=at(62),
    )  # fmt: skip
    row = the_run(RUN, deferred)
    assert (row["state"], row["waiting"], row["waiting_since"]) == ("queued", "no_worker", millis(at(61)))


def test_a_started_attempt_makes_the_run_running():
    row = the_run(RUN, started(RUN, 62))
    assert (row["state"], row["worker"], row["started_at"], row["attempts"]) == ("running", "w-1", millis(at(62)), 1)


def test_a_failed_attempt_with_a_retry_ahead_waits_for_it():
    start = started(RUN, 62)
    row = the_run(RUN, start, ended(start, 63, AttemptOutcome.FAILED, "no connection"), retried(RUN, 63, 2))
    assert (row["state"], row["retry_at"], row["attempts"]) == ("retry_wait", millis(at(68)), 1)
    assert orjson.loads(row["error"]) == {"type": "ValueError", "message": "no connection"}


def test_a_lost_attempt_without_a_scheduled_retry_puts_the_run_back_into_the_queue():
    start = started(RUN, 62)
    row = the_run(RUN, start, ended(start, 63, AttemptOutcome.LOST))
    assert row["state"] == "queued"


def test_the_second_attempt_runs_while_the_first_start_is_remembered():
    first, second = started(RUN, 62), started(RUN, 70, handout=5, attempt=2, worker="w-2")
    row = the_run(RUN, first, ended(first, 63, AttemptOutcome.FAILED), retried(RUN, 63, 2), second)
    assert (row["state"], row["started_at"], row["worker"], row["attempts"]) == ("running", millis(at(62)), "w-2", 2)


def test_a_finished_run_has_its_outcome_for_its_state():
    row = the_run(*histories.succeeded("report", 60))
    assert (row["state"], row["outcome"], row["finished_at"]) == ("succeeded", "succeeded", millis(at(61)))


def test_the_first_outcome_stands():
    row = the_run(RUN, finished(RUN, 70), finished(RUN, 80, Outcome.FAILED))
    assert (row["state"], row["finished_at"]) == ("succeeded", millis(at(70)))


def test_a_report_behind_the_outcome_does_not_bring_the_run_back():
    assert the_run(RUN, finished(RUN, 70), started(RUN, 71, handout=9))["state"] == "succeeded"


def test_an_older_hand_out_changes_nothing_about_a_newer_one():
    first, second = started(RUN, 62, handout=1), started(RUN, 64, handout=2, worker="w-2")
    row = the_run(RUN, first, second, ended(first, 65, AttemptOutcome.LOST))
    assert (row["state"], row["handout"], row["worker"]) == ("running", 2, "w-2")


def test_a_wish_to_cancel_is_remembered_beside_the_state():
    wish = RunCancelRequested(
        tenant="acme", schedule="report", run_id=RUN.run_id, requested_at=at(63), queue="default", shard=0
    )
    row = the_run(RUN, started(RUN, 62), wish)
    assert (row["state"], row["cancel_requested_at"]) == ("running", millis(at(63)))


def test_an_outcome_alone_still_tells_of_a_run_whose_creation_was_trimmed():
    row = the_run(finished(RUN, 70))
    assert (row["state"], row["cause"], row["created_at"]) == ("succeeded", "schedule", millis(at(60)))


def test_each_hand_out_is_an_attempt_of_its_own_with_its_outcome():
    first, second = started(RUN, 62, handout=3), started(RUN, 70, handout=8, attempt=2)
    facts = (RUN, first, ended(first, 63, AttemptOutcome.FAILED, "no"), second, ended(second, 75))
    rows = rows_after(facts, "attempts")
    assert [(row["handout"], row["attempt"], row["state"], row["finished_at"]) for row in rows] == [
        (3, 1, "failed", millis(at(63))),
        (8, 2, "succeeded", millis(at(75))),
    ]


def test_an_attempt_that_ended_before_it_started_is_told_too():
    never_begun = ended(started(RUN, 62), 63, AttemptOutcome.LEASE_EXPIRED)
    (row,) = rows_after((RUN, never_begun), "attempts")
    assert row["state"] == "lease_expired"


def test_the_story_of_a_run_is_its_events_as_they_were_written():
    facts = histories.succeeded("report", 60)
    rows = sorted(rows_after(facts, "story"), key=lambda row: row["offset"])
    assert [orjson.loads(row["event"])["type"] for row in rows] == [
        "tidewheel.run.created.v1",
        "tidewheel.attempt.started.v1",
        "tidewheel.attempt.finished.v1",
        "tidewheel.run.finished.v1",
    ]
    assert {row["run_id"] for row in rows} == {"report.20260301T000100Z"}


def test_instants_are_milliseconds():
    assert instant("1970-01-01T00:00:01.250Z") == 1250
    assert instant(None) is None
