"""What is made of what storms found."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.storm.results import Result, broken, idle, line_of, read, told

GOOD = Result(
    at="2030-01-01T00:00:00+00:00", seed=7, minutes=10, schedules=100,
    blows={"scheduler killed": 40, "broker killed": 2, "worker frozen": 9, "worker ended by itself": 1},
    due=60_000, created=59_990, skipped=10, missing=0, duplicated=0, double_outcomes=0, open_runs=0,
    calm_rate=100.0, storm_rate=80.0, settled_seconds=3.0,
)  # fmt: skip


def test_what_was_frozen_or_ended_by_itself_is_not_counted_as_killed():
    assert GOOD.kills == 42


def test_a_storm_that_kept_half_of_the_calm_rate_is_a_proof():
    assert idle(replace(GOOD, storm_rate=50.0)) == ""


def test_a_storm_that_kept_less_proves_nothing_and_says_so():
    assert idle(replace(GOOD, storm_rate=49.9)) == (
        "it proves nothing: 49.9 runs a second were created, less than 50% of the 100.0 of the calm before"
    )


def test_a_short_storm_may_be_asked_for_less():
    assert idle(replace(GOOD, storm_rate=49.9), progress=0.1) == ""


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"missing": 2}, "2 missing"),
        ({"duplicated": 1, "double_outcomes": 3}, "1 duplicated, 3 double_outcomes"),
        ({"open_runs": 4}, "4 open_runs"),
        ({"due": 60_005}, "5 undecided"),
        ({}, ""),
    ],
)
def test_whatever_is_not_zero_is_named(changed, said):
    assert broken(replace(GOOD, **changed)) == said


def test_storms_add_up_and_one_that_proves_nothing_is_left_out_and_named():
    other = replace(GOOD, seed=8, blows={"scheduler killed": 60}, created=1000, due=1010)
    still = replace(GOOD, seed=9, storm_rate=1.0)
    assert told([GOOD, other, still]).splitlines() == [
        "2 storms, 20 minutes, 102 kills, 60,990 runs created, 0 missing, 0 duplicated, 0 with two outcomes, 0 open",
        "       2 broker killed",
        "     100 scheduler killed",
        "       1 worker ended by itself",
        "       9 worker frozen",
        f"  of 2030-01-01T00:00:00+00:00, seed 9: {idle(still)}",
    ]


def test_what_is_written_is_read_again():
    assert read(line_of(GOOD) + line_of(replace(GOOD, seed=8))) == [GOOD, replace(GOOD, seed=8)]
