"""Every zone's occurrences, walked a second time by somebody who knows nothing of the first.

The standard library reads the database, and says what each local time is in UTC; here it is asked, a day at a time, and
the answers are held against the lists that schedules follow. Nothing is shared but the file of the zone.

    fixed times   each day at the times that the zone's own clock changes skip or show twice, and at midnight
    real clock    every half hour of the day before and the day behind each change
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from importlib import resources
from zoneinfo import ZoneInfo

from scheduler.occurrences import CronTrigger, between, parse, zone
from scheduler.occurrences.triggers import FoldPolicy, GapPolicy

HOUR, DAY = 3_600, 86_400
LOOKED_EVERY = 6 * HOUR  # no zone moves its clocks and moves them back within so short a time
TIMES_MAX = 3  # of day, that are tried in a zone: most have two at which their clocks move
POLICIES: tuple[tuple[GapPolicy, FoldPolicy], ...] = (("shift", "first"), ("skip", "second"), ("shift", "both"))


def names() -> list[str]:
    """All zones."""
    listed = resources.files("tzdata").joinpath("zones").read_text("ascii").split()
    return sorted(set(listed) - {"Factory"})


def bytes_of(name: str) -> bytes:
    """The file of a zone."""
    return resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).read_bytes()


def disagreements(name: str, first_year: int, last_year: int) -> Iterator[str]:
    """What the two walks do not agree about, in the years from the first to the last."""
    with resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as file:
        clock = ZoneInfo.from_file(file, key=name)
    begin = int(datetime(first_year, 1, 1, tzinfo=UTC).timestamp())
    end = int(datetime(last_year + 1, 1, 1, tzinfo=UTC).timestamp())
    changes = list(_changes(clock, begin, end))
    for at in _times(clock, changes):
        yield from _of_fixed_time(name, clock, at, begin, end)
    for change in changes:
        yield from _of_real_clock(name, clock, change - DAY, change + DAY)


# --- the other walk -----------------------------------------------------------------------------------------------


def offset(clock: ZoneInfo, instant: int) -> int:
    """What the standard library says that clocks show more than UTC."""
    found = datetime.fromtimestamp(instant, UTC).astimezone(clock).utcoffset()
    assert found is not None
    return found // timedelta(seconds=1)


def _changes(clock: ZoneInfo, begin: int, end: int) -> Iterator[int]:
    """The first instant of each new offset."""
    before = offset(clock, begin)
    for start in range(begin, end, LOOKED_EVERY):
        after = offset(clock, start + LOOKED_EVERY)
        if after != before:
            yield _change(clock, start, start + LOOKED_EVERY)
        before = after


def _change(clock: ZoneInfo, before: int, after: int) -> int:
    old = offset(clock, before)
    while after - before > 1:
        middle = (before + after) // 2
        before, after = (middle, after) if offset(clock, middle) == old else (before, middle)
    return after


def _times(clock: ZoneInfo, changes: list[int]) -> list[time]:
    """In the middle of what clocks skip or show twice, in any year, and midnight."""
    found = {time(0, 0): None}
    for change in changes:
        old, new = offset(clock, change - 1), offset(clock, change)
        middle = datetime.fromtimestamp(change + (old + new) // 2, UTC)
        found[time(middle.hour, middle.minute)] = None
    return list(found)[:TIMES_MAX]


def _of_fixed_time(name: str, clock: ZoneInfo, at: time, begin: int, end: int) -> Iterator[str]:
    days = [_instants(clock, datetime.combine(day, at)) for day in _days(begin, end)]
    text = f"{at.minute} {at.hour} * * *"
    for gap, fold in POLICIES:
        theirs = sorted({each for instants, made_up in days for each in _judged(instants, made_up, gap, fold)})
        theirs = theirs[bisect_right(theirs, begin) : bisect_right(theirs, end)]
        trigger = CronTrigger(parse(text), zone(name), gap, fold)
        yield from _unlike(f"{name} at {at:%H:%M}, {gap}, {fold}", list(between(trigger, begin, end)), theirs)


def _days(begin: int, end: int) -> Iterator[date]:
    """All local days that an instant of the span can belong to."""
    for day in range(begin // DAY - 1, end // DAY + 2):
        yield datetime.fromtimestamp(day * DAY, UTC).date()


def _instants(clock: ZoneInfo, reading: datetime) -> tuple[list[int], int | None]:
    """When clocks show a reading; where they never do, when they jump over it."""
    early, late = (reading.replace(tzinfo=clock, fold=fold).astimezone(UTC) for fold in (0, 1))
    both = (early,) if early == late else (early, late)
    shown = [each for each in both if each.astimezone(clock).replace(tzinfo=None) == reading]
    if shown:
        return [int(each.timestamp()) for each in shown], None
    return [], _change(clock, int(late.timestamp()), int(early.timestamp()))


def _judged(instants: list[int], made_up: int | None, gap: GapPolicy, fold: FoldPolicy) -> list[int]:
    if made_up is not None:
        return [made_up] if gap == "shift" else []
    return {"first": instants[:1], "second": instants[-1:], "both": instants}[fold]


def _of_real_clock(name: str, clock: ZoneInfo, begin: int, end: int) -> Iterator[str]:
    theirs = [at for at in range(begin + 60 - begin % 60, end + 1, 60) if (at + offset(clock, at)) % 1_800 == 0]
    trigger = CronTrigger(parse("*/30 * * * *"), zone(name))
    yield from _unlike(f"{name} every half hour", list(between(trigger, begin, end)), theirs)


def _unlike(what: str, ours: list[int], theirs: list[int]) -> Iterator[str]:
    """The first instant that only one of them has."""
    if ours != theirs:
        first = min(set(ours) ^ set(theirs))
        yield f"{what}: only {'we' if first in set(ours) else 'they'} have {datetime.fromtimestamp(first, UTC)}"
