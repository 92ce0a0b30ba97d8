"""The occurrence lists of all zones, 2000 to 2040, equal those of an independent walk.

A run of all tests takes a sample; `make zones` takes them all.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from scheduler.occurrences import zone
from tests.zones import walk

FIRST, LAST = int(os.environ.get("ZONES_FIRST") or 2000), int(os.environ.get("ZONES_LAST") or 2040)
EVERY = int(os.environ.get("ZONES_EVERY") or 150)  # of the zones that differ, one in so many
# Beside those: half an hour of summer time, a quarter of an hour of offset, a day that is not, months of fasting.
ODD = ("Australia/Lord_Howe", "Pacific/Chatham", "Pacific/Apia", "Africa/Casablanca", "Asia/Gaza", "Antarctica/Troll")


def differing() -> Iterator[str]:
    """One name for each of the files that are not alike."""
    first: dict[bytes, str] = {}
    for name in walk.names():
        first.setdefault(walk.bytes_of(name), name)
    return iter(first.values())


@pytest.mark.parametrize("name", [name for n, name in enumerate(differing()) if name in ODD or n % EVERY == 0])
def test_the_occurrences_of_a_zone_are_those_of_another_walk(name: str) -> None:
    assert list(walk.disagreements(name, FIRST, LAST)) == []


def test_names_of_one_zone_have_the_same_clocks() -> None:
    """So that one of them stands for all."""
    names: dict[bytes, str] = {}
    for name in walk.names():
        other = names.setdefault(walk.bytes_of(name), name)
        assert zone(name).near == zone(other).near
