"""How schedules, versions, activity, occurrences without runs, commands and jobs stand, after which events."""

from datetime import datetime
from typing import Any

import orjson

from runtime.record import Outgoing
from schemas import topics
from schemas.facts import (
    CatalogEntry,
    CommandRejected,
    DeferReason,
    NominalRange,
    OccurrenceDeferred,
    OccurrenceSkipped,
    Outcome,
    Position,
    ScheduleAccepted,
    SchedulePaused,
    SkipReason,
)
from schemas.faults import Fault
from tests.projections import histories
from tests.projections.histories import at, created, current, finished, record, tombstone, version
from tests.projections.memory import rows_after


def millis(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


def only(rows: list[Any]) -> Any:
    (row,) = rows
    return row


def test_the_current_definition_stands_with_its_state():
    row = only(
        rows_after([current("report"), current("report", 2, state="paused", labels={"team": "ops"})], "schedules")
    )
    assert (row["tenant"], row["name"], row["version"], row["state"]) == ("acme", "report", 2, "paused")
    assert orjson.loads(row["labels"]) == {"team": "ops"}
    assert orjson.loads(row["definition"])["trigger"] == {"cron": "0 2 * * *", "timezone": "Europe/London"}


def test_a_deleted_schedule_is_remembered_as_deleted():
    row = only(rows_after([current("report"), tombstone(topics.SCHEDULES, "acme/report", sequence=9)], "schedules"))
    assert (row["state"], row["deleted_at"]) == ("deleted", millis(at(1)))


def test_a_schedule_that_was_deleted_and_made_again_is_there():
    facts = [
        record(current("report"), sequence=1), tombstone(topics.SCHEDULES, "acme/report", sequence=2),
        record(current("report", 2), sequence=3),
    ]  # fmt: skip
    row = only(rows_after(facts, "schedules"))
    assert (row["version"], row["state"], row["deleted_at"]) == (2, "active", None)


def test_the_echo_of_a_deletion_does_not_delete_the_schedule_that_came_after_it():
    gone = tombstone(topics.SCHEDULES, "acme/report", sequence=2)
    facts = [record(current("report"), sequence=1), gone, record(current("report", 2), sequence=3), gone]
    assert only(rows_after(facts, "schedules"))["state"] == "active"


def test_deleting_what_was_never_seen_leaves_no_row():
    assert rows_after([tombstone(topics.SCHEDULES, "acme/ghost")], "schedules") == []


def test_versions_say_what_they_decide_and_go_with_their_last_decision():
    facts = [version("report", 1), version("report", 1, to=at(100)), version("report", 2)]
    rows = rows_after(facts, "versions")
    assert [(row["version"], row["effective_from"], row["effective_to"]) for row in rows] == [
        (1, millis(at(1)), millis(at(100))),
        (2, millis(at(2)), None),
    ]
    gone = tombstone(topics.VERSIONS, "acme/report/1", sequence=9)
    kept = rows_after([*facts, gone, record(version("report", 1), sequence=1)], "versions")
    assert [row["version"] for row in kept if row["removed_at"] is None] == [2]


def test_activity_names_the_newest_run_and_the_newest_outcome():
    first, second = created("report", 60), created("report", 120)
    row = only(rows_after([first, second, finished(first, 130, Outcome.FAILED)], "activity"))
    assert (row["created_run_id"], row["created_nominal_time"]) == ("report.20260301T000200Z", millis(at(120)))
    assert (row["finished_run_id"], row["outcome"]) == ("report.20260301T000100Z", "failed")


def skipped(**fields: Any) -> OccurrenceSkipped:
    values: dict[str, Any] = {
        "tenant": "acme", "schedule": "report", "version": 1, "reason": SkipReason.OVERLAP, "decided_at": at(61),
        "rule": "overlap.skip", "tz_version": "2026a", **fields,
    }  # fmt: skip
    return OccurrenceSkipped(**values)


def test_a_skipped_occurrence_says_why_and_what_was_in_its_way():
    row = only(rows_after([skipped(nominal_time=at(60), blocked_by="report.20260301T000000Z")], "occurrences"))
    assert (row["nominal_from"], row["decision"], row["reason"]) == (millis(at(60)), "skipped", "overlap")
    assert (row["blocked_by"], row["rule"], row["count"]) == ("report.20260301T000000Z", "overlap.skip", 1)


def test_a_range_of_skipped_occurrences_is_one_row():
    pause = skipped(reason=SkipReason.PAUSED, range=NominalRange(from_=at(0), to=at(3600), count=60))
    row = only(rows_after([pause], "occurrences"))
    assert (row["nominal_from"], row["nominal_to"], row["count"]) == (millis(at(0)), millis(at(3600)), 60)


def test_a_reading_that_a_clock_change_dropped_is_not_counted_as_due():
    gap = skipped(reason=SkipReason.GAP, local_time="2026-03-29T01:30:00")
    row = only(rows_after([gap], "occurrences"))
    assert (row["local_time"], row["count"], row["reason"]) == ("2026-03-29T01:30:00", 0, "gap")


def test_a_deferred_occurrence_says_what_it_waits_for():
    waiting = OccurrenceDeferred(
        tenant="acme", schedule="report", version=1, nominal_time=at(60), reason=DeferReason.BUFFERED,
        decided_at=at(61), blocked_by="report.20260301T000000Z",
    )  # fmt: skip
    row = only(rows_after([waiting], "occurrences"))
    assert (row["decision"], row["reason"], row["blocked_by"]) == ("deferred", "buffered", "report.20260301T000000Z")


def accepted(number: int, command_id: str) -> ScheduleAccepted:
    return ScheduleAccepted(
        tenant="acme", schedule="report", version=number, definition=histories.DEFINITION, effective_at=at(number),
        accepted_at=at(number), created=number == 1, words="At 02:00", next=(), tz_version="2026a",
        command_id=command_id, source="tidewheel/api",
    )  # fmt: skip


def test_a_command_is_known_by_what_its_owner_made_of_it():
    row = only(rows_after([accepted(1, "put-1")], "commands"))
    assert (row["command_id"], row["source"], row["outcome"]) == ("put-1", "tidewheel/api", "accepted")
    assert orjson.loads(row["told"]) == {"version": 1, "created": True, "words": "At 02:00", "next": []}


def test_a_refused_command_keeps_its_faults():
    refusal = CommandRejected(
        tenant="acme", name="report", reason="invalid", position=Position(topic="t", partition=0, offset=7),
        faults=(Fault(pointer="/data/definition/trigger/cron", code="cron", message="has 4 fields"),),
        rejected_at=at(5), command_id="put-2", source="tidewheel/api",
    )  # fmt: skip
    row = only(rows_after([record(refusal, topic=topics.REJECTIONS)], "commands"))
    told = orjson.loads(row["told"])
    assert (row["outcome"], told["reason"], told["faults"][0]["message"]) == ("rejected", "invalid", "has 4 fields")


def test_the_first_answer_to_a_command_stands():
    assert only(rows_after([accepted(1, "put-1"), accepted(2, "put-1")], "commands"))["answered_at"] == millis(at(1))


def test_a_fact_without_a_command_answers_none():
    assert rows_after([created("report", 60)], "commands") == []


def test_the_story_of_a_schedule_is_told_without_its_runs():
    paused = SchedulePaused(
        tenant="acme", schedule="report", version=1, effective_at=at(5), accepted_at=at(5), by="ann"
    )
    rows = rows_after([accepted(1, "put-1"), paused, created("report", 60)], "story")
    told = sorted((row["offset"], orjson.loads(row["event"])["type"]) for row in rows if row["run_id"] == "")
    assert told == [(0, "tidewheel.schedule.accepted.v1"), (1, "tidewheel.schedule.paused.v1")]


def entry(number: int, definition: Any) -> CatalogEntry:
    return CatalogEntry(
        kind="job", tenant="acme", name="send", version=number, changed_at=at(number), definition=definition
    )


def job(number: int, definition: Any) -> Outgoing:
    return record(entry(number, definition), sequence=number, topic=topics.CATALOG)


def test_a_job_stands_in_its_newest_version():
    row = only(rows_after([job(1, {"queue": "a"}), job(2, {"queue": "b"})], "catalog"))
    assert (row["version"], orjson.loads(row["definition"])) == (2, {"queue": "b"})


def test_a_deleted_job_has_no_definition_and_an_echo_does_not_bring_it_back():
    row = only(rows_after([job(1, {"queue": "a"}), job(2, None), job(1, {"queue": "a"})], "catalog"))
    assert (row["version"], row["definition"]) == (2, None)


def test_each_version_of_a_definition_is_kept_with_who_made_it_and_why():
    paused = CatalogEntry(
        kind="queue", tenant="_", name="reports", version=2, changed_at=at(2), definition={"paused": {}},
        by="ann", note="the database moves", source="tidewheel/api", command_id="c-2",
    )  # fmt: skip
    first = CatalogEntry(kind="queue", tenant="_", name="reports", version=1, changed_at=at(1), definition={})
    sent = [record(fact, sequence=fact.version, topic=topics.CATALOG) for fact in (first, paused, first)]
    rows = sorted(rows_after(sent, "changes"), key=lambda row: row["version"])
    assert [(row["version"], row["by"], row["note"]) for row in rows] == [(1, "", ""), (2, "ann", "the database moves")]
    assert (rows[1]["source"], rows[1]["command_id"], rows[1]["changed_at"]) == ("tidewheel/api", "c-2", millis(at(2)))
