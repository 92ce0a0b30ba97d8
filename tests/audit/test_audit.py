"""An audit counts every due occurrence once, and says what became of it."""

from datetime import timedelta
from typing import Any

from runtime.record import Outgoing
from schemas import codec, topics
from schemas.facts import Cause, SkipReason, TzAdopted
from tests.audit.judging import found, report
from tests.audit.world import World, at


def test_an_empty_log_is_clean():
    assert report(World()).clean


def test_a_log_in_which_each_occurrence_has_a_run_is_clean(world):
    result = report(world)
    assert result.clean
    assert (result.due, result.created, result.open_runs, result.schedules) == (3, 3, 3, 1)


def test_what_comes_after_the_mark_is_not_due_yet(world):
    world.created("12:04")
    assert (report(world).due, report(world).created) == (3, 3)


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
