"""Each kind of fault that is planted in a log is found and named."""

import orjson

from node.audit import audit
from node.audit.source import LogSource
from runtime.record import Outgoing, TopicPartition
from schemas import topics
from schemas.facts import Cause, Outcome, SkipReason
from tests.audit.judging import found, report
from tests.audit.world import World, at


def test_a_lost_occurrence_is_found(world):
    world.created("12:05")
    world.decided(at("12:05:30"))
    assert found(world) == [("missing", "2026-03-02T12:04:00Z", "due by version 1")]


def test_an_occurrence_that_was_created_twice_is_found(world):
    world.created("12:02", created_at=at("12:02:09"))
    assert [(kind, what) for kind, what, _ in found(world)] == [("duplicated", "2026-03-02T12:02:00Z")]
    assert report(world).created == 3


def test_an_occurrence_that_was_created_and_skipped_is_found(world):
    world.skipped("12:02")
    assert found(world) == [
        ("duplicated", "2026-03-02T12:02:00Z", "run tick.20260302T120200Z, skipped overlap"),
    ]


def test_an_occurrence_that_was_created_and_stands_in_a_skipped_range_is_found(world):
    world.skipped("12:02", SkipReason.PAUSED, until="12:03:01", count=2)
    assert [(kind, what) for kind, what, _ in found(world)] == [
        ("duplicated", "2026-03-02T12:02:00Z"),
        ("duplicated", "2026-03-02T12:03:00Z"),
    ]


def test_an_occurrence_that_was_skipped_twice_is_found(world):
    world.skipped("12:04")
    world.skipped("12:04", SkipReason.CATCH_UP)
    world.decided(at("12:04:30"))
    assert found(world) == [("duplicated", "2026-03-02T12:04:00Z", "skipped overlap, skipped catch_up")]


def test_a_backfill_of_an_occurrence_that_had_a_run_is_found(world):
    world.created("12:02", cause=Cause.BACKFILL)
    assert [(kind, what) for kind, what, _ in found(world)] == [("duplicated", "2026-03-02T12:02:00Z")]


def test_a_run_that_nothing_was_due_for_is_found(world):
    world.created("12:02:30")
    assert found(world) == [
        ("unexpected", "2026-03-02T12:02:30Z", "run tick.20260302T120230Z by version 1"),
    ]


def test_a_range_that_counts_wrong_is_found(world):
    world.skipped("12:04", SkipReason.PAUSED, until="12:09:01", count=5)
    world.decided(at("12:09:30"))
    assert found(world) == [
        (
            "unexpected",
            "2026-03-02T12:04:00Z/2026-03-02T12:09:01Z",
            "skipped paused: says 5 occurrences, of which 6 were due",
        )
    ]


def test_a_decision_by_a_version_that_was_not_in_force_is_found():
    world = World()
    world.version(1, end=at("12:01:30"))
    world.version(2, start=at("12:01:30"), cron="*/2 * * * *")
    world.created("12:01")
    world.created("12:02")
    world.decided(at("12:03:30"))
    assert found(world) == [
        (
            "unexpected",
            "2026-03-02T12:02:00Z",
            "run tick.20260302T120200Z by version 1, due by version 2",
        )
    ]


def test_a_run_with_two_outcomes_is_found(world):
    run = world.created("12:04")
    world.finished(run)
    world.finished(run, Outcome.FAILED)
    world.decided(at("12:04:30"))
    assert found(world) == [("double_outcomes", "tick.20260302T120400Z", "failed, succeeded")]


def test_an_outcome_that_was_written_again_or_repeated_is_one(world):
    run = world.created("12:04")
    world.finished(run)
    world.finished(run)
    first = "an id of which the content is another"
    world.finished(run, repeat=True, known_id=first)
    world.finished(run, repeat=True, known_id=first)
    assert report(world).faults["double_outcomes"] == 1  # a repeat under an id of its own is no repeat
    world.decided(at("12:04:30"))
    assert report(world).open_runs == 3


def test_a_run_that_stands_on_no_topic_that_dispatchers_read_is_found(world):
    world.created("12:04", delivered=False)
    world.decided(at("12:04:30"))
    assert found(world) == [("undelivered", "tick.20260302T120400Z", "")]


def test_a_record_that_is_no_event_is_found(world):
    world.log.append([Outgoing(topics.RUN_EVENTS, 0, b"k", b"\xff"), Outgoing(topics.RUN_EVENTS, 0, b"k", b"[]")])
    assert [kind for kind, _, _ in found(world)] == ["unreadable", "unreadable"]


def test_a_version_that_cannot_be_read_is_no_reason_to_be_clean(world):
    world.version(2, "odd", every="PT1M", anchor="2026-03-02T12:00:00Z")
    partition = TopicPartition(topics.VERSIONS, 0)
    entries = [e for p in (0, 1) for e in LogSource(world.log).entries(topics.VERSIONS, p, 0) if e.key == "acme/odd/2"]
    broken = orjson.dumps(entries[0].value).replace(b'"PT1M"', b'"whenever"')
    world.log.append([Outgoing(*partition, b"acme/odd/2", broken)])
    world.log.append([Outgoing(topics.VERSIONS, 1, b"acme/odd/2", broken)])
    assert {kind for kind, _, _ in found(world)} == {"not_audited"}


def test_only_the_first_offenders_are_named_and_all_are_counted(world):
    world.decided(at("13:00"))
    result = audit(LogSource(world.log), offenders_max=2)
    assert result.faults["missing"] == 57
    assert [each.what for each in result.offenders["missing"]] == ["2026-03-02T12:04:00Z", "2026-03-02T12:05:00Z"]
