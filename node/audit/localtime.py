"""Clocks on the wall: which offset from UTC a zone has when. Read from the tz database by `zoneinfo`, hour by hour."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from importlib.resources import files
from typing import NamedTuple
from zoneinfo import ZoneInfo

HOUR = 3600
DAY = 86_400
DAYS_KEPT = 4096  # of all zones together: two months of seventy zones


class Stretch(NamedTuple):
    """The instants [start, end) in which clocks show `offset` seconds more than UTC."""

    start: int
    end: int
    offset: int


@lru_cache(maxsize=1024)  # there are some 600 zones
def zone(name: str) -> ZoneInfo:
    """A zone of the pinned database, not of the operating system's: two machines must count alike."""
    with files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, key=name)


def stretches(name: str, start: int, end: int) -> list[Stretch]:
    """The stretches of one offset in [start, end), in order, cut at UTC midnights too."""
    pieces = (piece for day in range(start // DAY, (end - 1) // DAY + 1) for piece in _of_day(name, day))
    return [
        Stretch(max(piece.start, start), min(piece.end, end), piece.offset)
        for piece in pieces
        if piece.end > start and piece.start < end
    ]


def offset(name: str, instant: int) -> int:
    """Seconds that clocks show more than UTC at an instant."""
    found = _local(name, instant).utcoffset()
    assert found is not None, "a zone has an offset at every instant"
    return found // timedelta(seconds=1)


def is_second_pass(name: str, instant: int) -> bool:
    """Whether clocks show a reading for the second time."""
    return _local(name, instant).fold == 1


def is_shown_again(name: str, instant: int) -> bool:
    """Whether clocks will show the reading of this instant once more, later."""
    local = _local(name, instant)
    return local.fold == 0 and local.replace(fold=1).utcoffset() != local.utcoffset()


def _local(name: str, instant: int) -> datetime:
    return datetime.fromtimestamp(instant, UTC).astimezone(zone(name))


@lru_cache(maxsize=DAYS_KEPT)
def _of_day(name: str, day: int) -> tuple[Stretch, ...]:
    """A UTC day's stretches. Clocks are looked at every hour: no zone ever moved them twice within one."""
    start, end = day * DAY, (day + 1) * DAY
    hours = [hour for hour in range(start, end, HOUR) if offset(name, hour) != offset(name, hour + HOUR)]
    changes = [start, *(_change(name, hour, hour + HOUR) for hour in hours)]
    changes = [instant for instant in changes if instant < end]  # one at midnight belongs to the next day
    return tuple(
        Stretch(begin, until, offset(name, begin))
        for begin, until in zip(changes, [*changes[1:], end], strict=True)
        if begin < until
    )


def _change(name: str, before: int, after: int) -> int:
    """The first second of the new offset in (before, after]."""
    old = offset(name, before)
    while after - before > 1:
        middle = (before + after) // 2
        before, after = (middle, after) if offset(name, middle) == old else (before, middle)
    return after
