"""A part of a partition is read whole, or it is said that it cannot be."""

from __future__ import annotations

import pytest

from runtime import ranges
from runtime.log import LogError
from runtime.logs.simulated import SimulatedLog
from tests.runtime.logs.words import E0, SPECS, HandClock, texts, to


@pytest.fixture
def log() -> SimulatedLog:
    log = SimulatedLog(1, HandClock())
    log.create(SPECS)
    log.append(to(E0, "a", "b", "c", "d"))
    return log


def test_a_part_begins_at_its_first_offset_and_ends_before_its_last(log: SimulatedLog) -> None:
    begin = log.begin_offset(E0)
    assert [texts(records) for records in ranges.read(log, E0, begin + 1, begin + 3)] == [["b", "c"]]


def test_a_part_of_nothing_is_empty(log: SimulatedLog) -> None:
    assert list(ranges.read(log, E0, 2, 2)) == []


def test_a_part_that_does_not_come_to_its_end_is_waited_for_no_longer_than_its_bound(
    log: SimulatedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As behind a transaction that nobody ends: what is there is handed out, then it is said where nothing comes."""
    monkeypatch.setattr(ranges, "QUIET_MAX", 3)
    end = log.end_offset(E0)
    parts = ranges.read(log, E0, log.begin_offset(E0), end + 1)
    assert texts(next(parts)) == ["a", "b", "c", "d"]
    with pytest.raises(LogError, match=f"^events/0: nothing comes from {end} on$"):
        next(parts)
