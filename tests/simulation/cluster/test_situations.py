"""What situations add to the ordinary hour."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from schemas import definitions
from simulation.cluster import options
from simulation.cluster.agenda import Agenda, agenda
from simulation.cluster.options import SITUATIONS, Options

SCHEDULES_MAX = 20  # of an hour, so that it stays as cheap as it is


def in_situations(*names: str, seed: int = 1) -> Agenda:
    return agenda(Options(seed=seed, situations=dict.fromkeys(names, 1.0)))


def test_seeds_differ_in_their_situations_and_some_have_none() -> None:
    drawn = [options.draw(seed).situations for seed in range(100)]
    assert {name for each in drawn for name in each} == set(SITUATIONS)
    assert {len(each) for each in drawn} == {0, 1, 2, 3, 4, 5}


def test_situations_come_to_no_more_schedules_than_an_hour_bears() -> None:
    most = max(len(agenda(options.draw(seed)).schedules) for seed in range(100))
    assert most <= SCHEDULES_MAX


@pytest.mark.parametrize("name", SITUATIONS)
def test_whatever_a_situation_adds_is_a_definition_without_a_warning(name: str) -> None:
    for seed in range(1, 21):
        added = in_situations(name, seed=seed)
        assert [definitions.read_schedule(each, strict=True)[1] for each in added.schedules.values()] == [()] * len(
            added.schedules
        )
        assert [definitions.read_job(each, strict=True)[1] for each in added.jobs.values()] == [()] * len(added.jobs)


def test_the_ordinary_hour_begins_at_noon_and_one_of_zones_six_minutes_before_a_change() -> None:
    assert in_situations().began_at == datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
    begun = {in_situations("zones", seed=seed).began_at for seed in range(1, 101)}
    assert len(begun) == 8
    assert datetime(2026, 3, 29, 0, 54, tzinfo=UTC) in begun  # Berlin goes from 02:00 to 03:00 at 01:00 UTC
    assert datetime(2011, 12, 30, 9, 54, tzinfo=UTC) in begun  # Apia has no 30th of December


def test_what_is_due_at_a_change_is_due_within_the_hour_by_the_clock_on_the_wall() -> None:
    """Lord Howe goes forward by half an hour, from 02:00 to 02:30 of 4 October, at 15:30 UTC."""
    added = next(
        each for seed in range(1, 101) if (each := in_situations("zones", seed=seed)).began_at.month == 10
        and each.began_at.minute == 24
    )  # fmt: skip
    triggers = {name: each["trigger"] for (_, name), each in added.schedules.items() if "change" in name}
    assert triggers["at-the-change"]["cron"] == "5 2 * * *"  # nobody sees 02:05
    assert triggers["at-the-change"]["timezone"] == "Australia/Lord_Howe"
    assert triggers["behind-the-change"]["cron"] == "33 2 * * *"


def test_situations_can_be_switched_off_alone() -> None:
    drawn = Options(seed=1, faults={"K1": 1.0}, situations={"long": 1.0, "jobs": 4.0})
    assert drawn.without("jobs") == Options(seed=1, faults={"K1": 1.0}, situations={"long": 1.0})


def test_another_edition_of_a_job_takes_another_time() -> None:
    added = in_situations("jobs")
    seconds = [added.job("initech", "changing", edition)["definition"]["payload"]["seconds"] for edition in range(4)]
    assert seconds == [70, 140, 210, 70]
