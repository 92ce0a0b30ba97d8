"""What newer time zone data would move, told before they are installed."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from node.doctor import timezones
from node.doctor.timezones import Database, Scheduled
from scheduler.occurrences import rules
from tests.support import timezones as databases

if TYPE_CHECKING:
    from pathlib import Path

NOW = datetime(2026, 11, 2, 10, tzinfo=UTC)
HERE = Database("2026f", rules.installed())


def scheduled(name: str, cron: str, zone: str) -> Scheduled:
    return Scheduled(
        "acme", name, {"trigger": {"cron": cron, "timezone": zone}, "job": {"target": {"type": "task", "name": "t"}}}
    )


SCHEDULES = [
    scheduled("noon", "0 12 * * *", "America/Chihuahua"),
    scheduled("each-minute", "* * * * *", "America/Chihuahua"),
    scheduled("berlin", "0 12 * * *", "Europe/Berlin"),
    Scheduled("acme", "quarters", {"trigger": {"every": "PT15M", "anchor": "2026-01-01T00:00:00Z"}, "job": "x"}),
]


def found(after: Database, before: Database = HERE) -> list[tuple[str, str]]:
    return [(each.verdict.value, each.what) for each in timezones.compared(before, after, SCHEDULES, NOW)]


def with_zones(version: str, **zones: str) -> Database:
    return Database(version, {**HERE.rules, **{name.replace("__", "/"): rule for name, rule in zones.items()}})


def test_a_schedule_whose_year_changes_is_named_with_its_first_occurrence_before_and_after() -> None:
    """Noon moves by an hour for a year; who runs every minute, looks at other clocks, or at none, is not touched."""
    assert found(with_zones("2026g", America__Chihuahua="-25200;;MST7")) == [
        ("note", "time zone data 2026g against 2026f: other clocks in America/Chihuahua"),
        (
            "note",
            "acme/noon (America/Chihuahua): 366 occurrences move, first 2026-11-02T18:00:00Z to 2026-11-02T19:00:00Z",
        ),
        ("ok", "1 of 4 schedules have other occurrences in the next twelve months"),
    ]


def test_summer_time_that_is_given_up_moves_half_a_year() -> None:
    """Berlin stays on winter time: noon is 11:00Z all year, from 28 March to 31 October 2027 an hour later than now."""
    last = found(with_zones("2026g", Europe__Berlin="3600;;CET-1"))[1]
    assert last == (
        "note",
        "acme/berlin (Europe/Berlin): 217 occurrences move, first 2027-03-28T10:00:00Z to 2027-03-28T11:00:00Z",
    )


def test_data_that_say_the_same_in_other_words_move_nothing() -> None:
    renamed = with_zones("2027a", America__Chihuahua="-21600;;<-06>6")
    assert found(renamed) == [
        ("ok", "time zone data 2027a against 2026f: no clock shows anything else in the ten years to come")
    ]


def test_older_data_are_not_an_upgrade() -> None:
    assert found(with_zones("2022e"))[0][0] == "wrong"


def test_data_are_read_from_an_unpacked_package(tmp_path: Path) -> None:
    folder = databases.package(tmp_path, "2026z", America__Chihuahua="MST7")
    database = timezones.given(folder)
    assert database.version == "2026z"
    assert database.rules["America/Chihuahua"] == "-25200;;MST7"
    assert database.rules["Europe/Berlin"] == HERE.rules["Europe/Berlin"]


@pytest.mark.parametrize("made", [lambda _folder: None, lambda folder: (folder / "zoneinfo").mkdir()])
def test_a_folder_without_a_database_is_said_to_have_none(tmp_path: Path, made: Any) -> None:
    made(tmp_path)
    with pytest.raises(rules.NoDatabase, match="holds no time zone database that says its version"):
        timezones.given(tmp_path)
