"""An audit counts every due occurrence once, and finds each kind of fault that is planted in a log."""

from datetime import timedelta
from typing import Any

import httpx
import orjson
import pytest

from api.rawlog import _topics, raw_records
from node.audit import audit
from node.audit.report import Report
from node.audit.source import FolderSource, HttpSource, LogSource
from runtime.logs.embedded import EmbeddedLog
from runtime.record import Outgoing, TopicPartition
from schemas import codec, topics
from schemas.facts import Cause, DeferReason, Outcome, SkipReason, TzAdopted
from tests.audit.world import World, at


@pytest.fixture
def world() -> World:
    """Every minute from noon on; the runs of 12:01 to 12:03 exist, and all up to 12:03:30 is decided."""
    world = World()
    world.version()
    world.created("12:01", "12:02", "12:03")
    world.decided(at("12:03:30"))
    return world


def report(world: World) -> Report:
    return audit(LogSource(world.log))


def found(world: World) -> list[tuple[str, str, str]]:
    offenders = report(world).offenders
    return [(kind, each.what, each.detail) for kind, named in offenders.items() for each in named]


def test_an_empty_log_is_clean():
    assert report(World()).clean


def test_a_log_in_which_each_occurrence_has_a_run_is_clean(world):
    result = report(world)
    assert result.clean
    assert (result.due, result.created, result.open_runs, result.schedules) == (3, 3, 3, 1)


def test_what_comes_after_the_mark_is_not_due_yet(world):
    world.created("12:04")
    assert (report(world).due, report(world).created) == (3, 3)


@pytest.fixture
def world_of_exclusions() -> World:
    """Every minute from noon on, without 12:02 and 12:03; all up to 12:04:30 is decided."""
    world = World()
    world.version(cron="* * * * *", exclude={"cron": ["2-3 * * * *"]})
    world.created("12:01", "12:04")
    world.decided(at("12:04:30"))
    return world


def test_excluded_neighbours_are_pending_for_a_day_until_they_are_skipped_together(world_of_exclusions):
    world = world_of_exclusions
    assert (report(world).clean, report(world).pending) == (True, {"excluded": 2})
    world.skipped("12:02", SkipReason.EXCLUDED, until="12:04", count=2)
    assert (report(world).clean, report(world).pending, report(world).skipped) == (True, {}, {"excluded": 2})


def test_excluded_occurrences_without_a_record_are_missing_after_a_day(world_of_exclusions):
    world_of_exclusions.version(end=at("12:04:30"), cron="* * * * *", exclude={"cron": ["2-3 * * * *"]})
    world_of_exclusions.decided(at("2026-03-03T12:02:30"))
    assert found(world_of_exclusions) == [("missing", "2026-03-02T12:02:00Z", "due by version 1")]


def test_a_run_of_an_excluded_occurrence_and_an_exclusion_that_no_rule_knows_are_accused(world_of_exclusions):
    world = world_of_exclusions
    world.created("12:02")
    world.skipped("12:03", SkipReason.EXCLUDED)
    world.decided(at("12:05"))
    world.skipped("12:05", SkipReason.EXCLUDED)
    assert found(world) == [
        ("unexpected", "2026-03-02T12:02:00Z", "run tick.20260302T120200Z, which is excluded"),
        ("unexpected", "2026-03-02T12:05:00Z", "skipped excluded, which is not excluded"),
    ]


UK = "calendar/acme/uk"


@pytest.fixture
def world_of_calendars() -> World:
    """Daily at noon, without the days of a calendar: the 4th by version 1, the 5th by version 2. Until the 6th."""
    world = World()
    world.version(cron="0 12 * * *", exclude={"calendars": ["uk"]})
    world.adopted("calendar", "uk", 1, {"dates": ["2026-03-04"]})
    world.catalog("calendar", "uk", 2, {"dates": ["2026-03-05"]})
    world.decided(at("2026-03-06T13:00"))
    return world


def test_what_calendars_take_out_is_judged_by_the_versions_that_decisions_name(world_of_calendars):
    world = world_of_calendars
    world.created("2026-03-03T12:00", used={UK: 1})
    world.skipped("2026-03-04T12:00", SkipReason.EXCLUDED, used={UK: 1})
    world.skipped("2026-03-05T12:00", SkipReason.EXCLUDED, used={UK: 2})
    world.created("2026-03-06T12:00", used={UK: 0})
    assert (report(world).clean, report(world).created, report(world).skipped) == (True, 2, {"excluded": 2})


def test_a_decision_that_its_calendar_does_not_bear_out_is_accused(world_of_calendars):
    world = world_of_calendars
    world.created("2026-03-03T12:00")
    world.created("2026-03-04T12:00", used={UK: 1})
    world.skipped("2026-03-05T12:00", SkipReason.EXCLUDED, used={UK: 1})
    world.skipped("2026-03-06T12:00", SkipReason.EXCLUDED, used={UK: 0})
    assert found(world) == [
        (
            "unexpected", "2026-03-03T12:00:00Z",
            "run tick.20260303T120000Z, and does not say which version of calendar/acme/uk was asked",
        ),
        ("unexpected", "2026-03-04T12:00:00Z", "run tick.20260304T120000Z, which is excluded"),
        ("unexpected", "2026-03-05T12:00:00Z", "skipped excluded, which is not excluded"),
        ("unexpected", "2026-03-06T12:00:00Z", "skipped excluded, which is not excluded"),
    ]  # fmt: skip


def test_by_a_version_of_a_calendar_that_is_not_kept_any_more_nothing_is_judged(world_of_calendars):
    world = world_of_calendars
    world.created("2026-03-03T12:00", "2026-03-06T12:00", used={UK: 7})
    world.skipped("2026-03-04T12:00", SkipReason.EXCLUDED, used={UK: 7})
    world.skipped("2026-03-05T12:00", SkipReason.EXCLUDED, used={UK: 7})
    assert report(world).clean


ACME = "tenant/acme/_"


def test_what_is_frozen_is_judged_by_the_versions_that_decisions_name():
    world = World()
    world.version(cron="0 * * * *")
    once = {"from": "2026-03-02T13:00:00Z", "to": "2026-03-02T14:00:00Z", "timezone": "UTC", "action": "skip"}
    again = {"cron": "30 14 * * *", "duration": "PT1H", "timezone": "UTC", "action": "skip"}
    world.adopted("tenant", "_", 1, {"freezes": [once, again]})
    world.skipped("13:00", SkipReason.FROZEN, used={ACME: 1})
    world.created("14:00", used={ACME: 1})
    world.skipped("15:00", SkipReason.FROZEN, used={ACME: 1})
    world.decided(at("15:30"))
    assert (report(world).clean, report(world).skipped) == (True, {"frozen": 2})

    world.skipped("16:00", SkipReason.FROZEN, used={ACME: 1})
    world.created("2026-03-03T15:00", used={ACME: 1})
    world.skipped("2026-03-03T14:00", SkipReason.FROZEN, used={ACME: 7})
    world.decided(at("16:30"))
    assert found(world) == [("unexpected", "2026-03-02T16:00:00Z", "skipped frozen, and no freeze holds then")]


def test_a_run_in_a_freeze_is_accused():
    world = World()
    world.version(cron="0 * * * *")
    once = {"from": "2026-03-02T13:00:00Z", "to": "2026-03-02T14:00:00Z", "timezone": "UTC", "action": "skip"}
    world.catalog("queue", "reports", 2, {"freezes": [once]})
    world.created("13:00", used={"queue/_/reports": 2})
    world.decided(at("13:30"))
    assert found(world) == [
        ("unexpected", "2026-03-02T13:00:00Z", "run tick.20260302T130000Z, and a freeze holds then")
    ]


@pytest.fixture
def world_that_defers() -> World:
    """Hourly; a freeze of the tenant defers from one to three, and all up to 13:30 is decided."""
    world = World()
    world.version(cron="0 * * * *")
    once = {"from": "2026-03-02T13:00:00Z", "to": "2026-03-02T15:00:00Z", "timezone": "UTC", "action": "defer"}
    world.adopted("tenant", "_", 1, {"freezes": [once]})
    world.adopted("tenant", "_", 2, {"freezes": []})
    world.decided(at("13:30"))
    return world


def test_what_a_freeze_holds_is_pending_and_then_a_run_or_frozen(world_that_defers):
    world = world_that_defers
    world.deferred("13:00", DeferReason.FROZEN, since=at("13:00"), used={ACME: 1})
    assert (report(world).clean, report(world).pending) == (True, {"frozen": 1})
    world.deferred("14:00", DeferReason.FROZEN, since=at("14:00"), used={ACME: 1})
    world.skipped("13:00", SkipReason.FROZEN, used={ACME: 2})  # in the place of which the later one is held
    world.created("14:00", created_at=at("14:10"), used={ACME: 2})  # lifted at ten past two
    world.decided(at("14:30"))
    assert (report(world).clean, report(world).skipped, report(world).created) == (True, {"frozen": 1}, 1)


def test_a_run_that_waited_is_not_judged_by_what_was_put_since():
    """At one nothing stood in its way but a run; a freeze and a calendar were put at half past one."""
    world = World()
    world.version(cron="0 * * * *", exclude={"calendars": ["uk"]})
    once = {"from": "2026-03-02T13:00:00Z", "to": "2026-03-02T14:00:00Z", "timezone": "UTC", "action": "skip"}
    world.adopted("tenant", "_", 1, {"freezes": [once]})
    world.adopted("calendar", "uk", 1, {"dates": ["2026-03-02"]})
    world.deferred("13:00", used={UK: 0})
    world.created("13:00", created_at=at("13:40"), used={ACME: 1, UK: 1})
    world.decided(at("13:50"))
    assert found(world) == []


def test_a_run_that_is_made_while_a_freeze_defers_it_is_accused(world_that_defers):
    world_that_defers.created("13:00", created_at=at("13:10"), used={ACME: 1})
    detail = "run tick.20260302T130000Z, made while a freeze defers it"
    assert found(world_that_defers) == [("unexpected", "2026-03-02T13:00:00Z", detail)]


def test_what_is_held_without_a_freeze_is_accused(world_that_defers):
    world_that_defers.deferred("13:00", DeferReason.FROZEN, since=at("13:00"), used={ACME: 2})
    detail = "held at 2026-03-02T13:00:00Z, and no freeze defers then"
    assert found(world_that_defers) == [("unexpected", "2026-03-02T13:00:00Z", detail)]


def test_an_occurrence_that_waits_for_its_jitter_is_pending_and_missing_when_that_is_over():
    world = World()
    world.version(cron="0 * * * *", jitter="PT10M")  # acme/tick at 13:00 is due at 13:07:41
    world.decided(at("13:04"))
    assert (report(world).clean, report(world).pending) == (True, {"jitter": 1})
    world.decided(at("13:11"))
    assert found(world) == [("missing", "2026-03-02T13:00:00Z", "due by version 1")]


def test_more_runs_of_a_version_than_it_may_have_are_accused():
    world = World()
    world.version(cron="* * * * *", max_runs=2, end=at("12:03"))
    world.created("12:01", "12:02", "12:03")
    world.decided(at("12:10"))
    assert found(world) == [("unexpected", "version 1", "3 runs, where max_runs is 2")]


def test_an_occurrence_at_the_mark_itself_is_due(world):
    world.decided(at("12:04"))
    assert found(world) == [("missing", "2026-03-02T12:04:00Z", "due by version 1")]


def test_a_mark_is_that_of_the_newest_footer(world):
    world.decided(at("12:03:59"))
    assert report(world).due == 3


def test_the_footer_is_found_however_many_rows_stand_behind_it(world):
    changelog = topics.changelog_topic("scheduler")
    world.log.append([Outgoing(changelog, partition, b"row", b"\xff") for partition in (0, 1) for _ in range(2500)])
    assert report(world).due == 3


# --- kinds of decisions -------------------------------------------------------------------------------------------


def test_due_is_created_and_skipped_and_pending(world):
    world.skipped("12:04")
    world.skipped("12:05", SkipReason.NO_JOB)
    world.deferred("12:06")
    world.decided(at("12:06:30"))
    result = report(world)
    assert result.clean
    assert (result.due, result.created) == (6, 3)
    assert dict(result.skipped) == {"overlap": 1, "no_job": 1}
    assert dict(result.pending) == {"buffered": 1}


def test_a_deferred_occurrence_that_got_its_run_waits_no_longer(world):
    world.deferred("12:03")
    assert report(world).clean
    assert not report(world).pending


def test_what_waits_for_other_schedules_is_pending_until_its_deadline_and_missing_when_that_is_over(world):
    world.waiting("12:04", until="12:05")
    world.decided(at("12:05"))
    world.created("12:05")
    result = report(world)
    assert result.clean
    assert dict(result.pending) == {"waiting": 1}
    world.decided(at("12:05:30"))
    assert found(world) == [
        ("missing", "2026-03-02T12:04:00Z", "due by version 1; waited until 2026-03-02T12:05:00Z at most")
    ]
    world.skipped("12:04", SkipReason.UPSTREAM)
    assert report(world).clean


def test_a_range_decides_all_that_is_due_in_it(world):
    world.skipped("12:04", SkipReason.PAUSED, until="12:09:01", count=6)
    world.decided(at("12:09:30"))
    result = report(world)
    assert result.clean
    assert (result.due, dict(result.skipped)) == (9, {"paused": 6})


def test_readings_that_a_policy_dropped_are_not_due(world):
    world.skipped("12:00", SkipReason.GAP, nominal_time=None, local_time="2026-03-08T02:30:00")
    result = report(world)
    assert result.clean
    assert (result.due, dict(result.not_due)) == (3, {"gap": 1})


def test_runs_by_hand_and_reruns_and_runs_of_others_are_no_decisions(world):
    world.created("12:01", run_id="tick.m-1", cause=Cause.MANUAL)
    world.created("12:01", run_id="tick.r-1", cause=Cause.RERUN, of="tick.20260302T120100Z")
    result = report(world)
    assert result.clean
    assert (result.due, result.created, result.open_runs) == (3, 3, 5)


def test_a_backfill_may_create_the_run_of_a_skipped_occurrence(world):
    world.skipped("12:04")
    world.created("12:04", cause=Cause.BACKFILL)
    world.decided(at("12:04:30"))
    result = report(world)
    assert result.clean
    assert (result.due, result.created, result.backfilled, dict(result.skipped)) == (4, 3, 1, {"overlap": 1})


def test_an_event_that_was_written_again_counts_once(world):
    run = world.created("12:04")
    world.event(run)
    world.decided(at("12:04:30"))
    result = report(world)
    assert result.clean
    assert (result.created, result.repeated) == (4, 1)


# --- faults -------------------------------------------------------------------------------------------------------


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


# --- what is looked at --------------------------------------------------------------------------------------------


def test_each_version_is_due_in_its_own_time():
    world = World()
    world.version(1, end=at("12:02:30"))
    world.version(2, start=at("12:02:30"), end=at("12:10"), cron="*/5 * * * *")
    world.created("12:01", "12:02")
    world.created("12:05", "12:10", version=2)
    world.decided(at("12:59"))
    result = report(world)
    assert result.clean
    assert (result.due, result.created) == (4, 4)


def test_a_version_that_was_written_again_counts_as_it_stands_now():
    world = World()
    world.version(1)
    world.version(1, end=at("12:02"))
    world.created("12:01", "12:02")
    world.decided(at("12:59"))
    assert report(world).due == 2


def test_what_retention_has_taken_is_left_out_on_both_sides(world):
    world.trimmed(at("12:02"))
    world.decided(at("12:03:30"))
    result = report(world)
    assert result.clean
    assert (result.due, result.created) == (1, 1)


def test_intervals_and_lists_of_instants_are_walked_too():
    world = World()
    world.version(1, "often", every="PT90S", anchor="2026-03-02T12:01:00Z")
    world.version(1, "once", at=["2026-03-02T12:00:00Z", "2026-03-02T12:03:00Z"])
    world.created("12:01", "12:02:30", "12:04", schedule="often")
    world.created("12:03", schedule="once")
    world.decided(at("12:05"))
    result = report(world)
    assert result.clean
    assert (result.due, result.schedules) == (4, 2)


def test_days_on_which_clocks_are_moved_are_walked_as_the_contract_says():
    world = World()
    start = at("2026-03-07T00:00")
    world.version(1, start=start, cron="30 2 * * *", timezone="America/New_York")
    world.created("2026-03-07T07:30", "2026-03-08T07:00", "2026-03-09T06:30")  # shifted to the end of the gap
    world.decided(at("2026-03-09T12:00"))
    assert report(world).clean
    assert report(world).due == 3


# --- where it is read from ----------------------------------------------------------------------------------------


def test_a_stopped_folder_is_read_as_it_is(tmp_path):
    world = World()
    log = EmbeddedLog(tmp_path / "log", world.clock)
    world = World(log)
    world.version()
    world.created("12:01")
    world.decided(at("12:02:30"))
    log.close()
    source = FolderSource(tmp_path)
    result = audit(source)
    source.close()
    assert (result.due, result.created, result.faults["missing"]) == (2, 1, 1)


def test_a_running_server_is_read_over_http(world):
    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/v1/log":
            return httpx.Response(200, content=orjson.dumps({"topics": _topics(world.log)}))
        _, _, _, topic, partition = request.url.path.split("/")
        start = request.url.params.get("from")
        place = TopicPartition(topic, int(partition))
        content = raw_records(world.log, place, None if start is None else int(start), 2)  # small pages
        return httpx.Response(200, content=content)

    world.skipped("12:04")
    world.log.append([Outgoing(topics.changelog_topic("scheduler"), 0, b"row", b"\xff\x00")])
    world.decided(at("12:04:30"))
    source = HttpSource("http://127.0.0.1:1", client=httpx.Client(transport=httpx.MockTransport(answer)))
    result = audit(source)
    assert result.clean
    assert result.as_json() == report(world).as_json()
    assert (result.due, result.created, dict(result.skipped)) == (4, 3, {"overlap": 1})


def test_the_figures_are_those_of_the_contract(world):
    figures = report(world).as_json()
    assert list(figures)[:8] == [
        "due",
        "created",
        "skipped",
        "pending",
        "backfilled",
        "missing",
        "duplicated",
        "double_outcomes",
    ]
    assert figures["open_runs"] == 3
    assert figures["marks"] == {"0": "2026-03-02T12:03:30Z", "1": "2026-03-02T12:03:30Z"}


def test_what_was_decided_by_other_time_zone_data_is_not_judged_by_ours():
    """A schedule whose zone they changed is judged from their adoption on; others are judged whole."""
    world = World()
    for name, zone in (("moved", "America/Chihuahua"), ("tick", "Europe/London")):
        world.version(schedule=name, cron="*/30 * * * *", timezone=zone)
    world.created("12:17", "13:30", schedule="moved")
    world.created("12:30", "13:00", "13:30")
    for partition in range(2):
        zones = ("America/Chihuahua",)
        fact = TzAdopted(
            role="scheduler",
            partition=partition,
            version="2026g",
            adopted_at=at("13:10"),
            previous="2026f",
            zones=zones,
        )
        world.log.append(
            [Outgoing(topics.RUN_EVENTS, partition, b"_", codec.encode(fact, source="s", time=at("13:10"))[1])]
        )
    world.decided(at("13:31"))
    result = report(world)
    assert result.clean
    assert (result.due, result.created, result.since_adoption) == (4, 4, 1)


# --- intervals that count from the end of a run -------------------------------------------------------------------


def chained() -> World:
    """Every five minutes after the end of the run before, from noon on: that of 12:05 ends at 12:07."""
    world = World()
    trigger: dict[str, Any] = {"every": "PT5M", "from": "finish", "anchor": "2026-03-02T12:00:00Z"}
    world.version(**trigger)
    run = world.created("12:05")
    world.finished(run, finished_at=at("12:07") + timedelta(milliseconds=500))
    return world


def test_what_follows_the_end_of_a_run_is_due_an_interval_after_it():
    world = chained()
    world.created("12:12")
    world.decided(at("12:30"))
    assert (report(world).due, report(world).created, found(world)) == (2, 2, [])


def test_what_follows_the_end_of_a_run_and_has_no_decision_is_missing():
    world = chained()
    world.decided(at("12:12"))
    assert found(world) == [("missing", "2026-03-02T12:12:00Z", "due by version 1")]


def test_a_run_by_the_clock_where_the_end_of_the_run_before_decides_is_accused():
    world = chained()
    world.created("12:10")
    world.decided(at("12:11"))
    assert [kind for kind, *_ in found(world)] == ["unexpected"]


def test_of_what_was_trimmed_the_first_decision_that_is_told_is_believed():
    world = chained()
    world.created("12:40")
    world.trimmed(at("12:30"))
    world.decided(at("12:50"))
    assert (report(world).due, found(world)) == (1, [])
