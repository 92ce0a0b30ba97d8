"""B-O05: jobs of one zone never matched because an outdated zone table was an hour off. Each process is a real one."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from scheduler.occurrences import tz_version
from tests.support import timezones

if TYPE_CHECKING:
    from pathlib import Path

CHIHUAHUA = ("0 12 * * *", "America/Chihuahua")
STALE = {"America__Chihuahua": "EST5"}  # noon is 17:00Z, and 18:00Z by the installed database


@pytest.fixture
def older(tmp_path: Path) -> Path:
    """A database by which noon is an hour earlier."""
    return timezones.package(tmp_path / "older", "2022e", **STALE)


def live(folder: Path, *arguments: str, database: Path | None = None) -> Any:
    """One process from start to end; what it told."""
    command = [sys.executable, "-m", "tests.upgrade.living", str(folder / "data"), *arguments]
    environment = None if database is None else timezones.environment(database)
    done = subprocess.run(command, env=environment, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


def test_b_o05_noon_in_chihuahua_is_18_00_and_not_what_stale_data_say(tmp_path: Path) -> None:
    """From 1 to 4 April 2023 one run a day, at 18:00Z; the version that decided stands on each."""
    told = live(tmp_path, "2023-04-01T00:00:00+00:00", "2023-04-04T00:00:00+00:00", *CHIHUAHUA)
    assert [nominal for nominal, _, _ in told["runs"]] == [
        "2023-04-01T18:00:00+00:00",
        "2023-04-02T18:00:00+00:00",
        "2023-04-03T18:00:00+00:00",
    ]
    assert {version for _, _, version in told["runs"]} == {tz_version()}


def test_b_o05_what_was_not_due_yet_follows_the_new_data_after_a_restart(tmp_path: Path, older: Path) -> None:
    """By stale data the next run is 17:00Z; they are replaced at 16:00Z: its run is at 18:00Z, and that is said."""
    before = live(tmp_path, "2023-04-01T00:00:00+00:00", "2023-04-02T16:00:00+00:00", *CHIHUAHUA, database=older)
    assert before["version"] == "2022e"
    assert [run[:1] for run in before["runs"]] == [["2023-04-01T17:00:00+00:00"]]
    after = live(tmp_path, "2023-04-02T16:00:00+00:00", "2023-04-04T00:00:00+00:00")
    assert [(nominal, version) for nominal, _, version in after["runs"]] == [
        ("2023-04-01T17:00:00+00:00", "2022e"),
        ("2023-04-02T18:00:00+00:00", tz_version()),
        ("2023-04-03T18:00:00+00:00", tz_version()),
    ]
    assert sorted(after["adopted"]) == ["2022e", "2022e", tz_version(), tz_version()]  # by each of two partitions
    assert after["moved"] == [["daily", "2023-04-02T17:00:00+00:00", "2023-04-02T18:00:00+00:00"]]


def test_b_o05_a_local_day_has_one_run_where_its_run_had_come_by_the_stale_data(tmp_path: Path, older: Path) -> None:
    """They are replaced at 17:30Z, when noon has been, and will be again at 18:00Z."""
    live(tmp_path, "2023-04-02T00:00:00+00:00", "2023-04-02T17:30:00+00:00", *CHIHUAHUA, database=older)
    after = live(tmp_path, "2023-04-02T17:30:00+00:00", "2023-04-04T00:00:00+00:00")
    assert [nominal for nominal, _, _ in after["runs"]] == ["2023-04-02T17:00:00+00:00", "2023-04-03T18:00:00+00:00"]


def test_b_o05_a_local_day_has_one_run_where_the_stale_data_had_it_to_come(tmp_path: Path) -> None:
    """By them noon is 19:00Z; they are replaced at 18:30Z, when it is over: one run, late, and said to be."""
    behind = timezones.package(tmp_path / "behind", "2022e", America__Chihuahua="MST7")
    live(tmp_path, "2023-04-02T00:00:00+00:00", "2023-04-02T18:30:00+00:00", *CHIHUAHUA, database=behind)
    after = live(tmp_path, "2023-04-02T18:30:00+00:00", "2023-04-04T00:00:00+00:00")
    assert [(nominal, created) for nominal, created, _ in after["runs"]] == [
        ("2023-04-02T18:00:00+00:00", "2023-04-02T18:30:00+00:00"),
        ("2023-04-03T18:00:00+00:00", "2023-04-03T18:00:00+00:00"),
    ]
