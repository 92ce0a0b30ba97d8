"""What exclusions, calendars, freezes, jitter and `max_runs` make of what is due, judged."""

import pytest

from schemas.facts import DeferReason, SkipReason
from tests.audit.judging import found, report
from tests.audit.world import World, at


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
