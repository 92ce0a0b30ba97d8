"""Time zones as offset segments, from the pinned `tzdata` package and from nowhere else.

The operating system's database is not consulted: two machines that decide the same occurrence must know the same rules,
and the version that a decision was made with is logged (`tz_version`).

    UTC      ───────────── start ════════════════════ end ─────────────
    local                  start+offset ══ end+offset                    a segment: one offset, one stretch of readings
                           next offset larger: readings [end+offset, end+next) are skipped, a gap
                           next offset smaller: readings [end+next, end+offset) are shown twice, a fold
"""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from difflib import get_close_matches
from functools import lru_cache
from importlib import import_module, resources
from typing import NamedTuple

from scheduler.occurrences import tzif
from scheduler.occurrences.errors import ZoneError, shown

FIRST_INSTANT = -62_135_424_000  # 0001-01-03: two days inside what a `date` can hold, for any offset
BEGINNING = 2 * FIRST_INSTANT  # where a zone's first segment starts: before any instant that is asked about
LAST_INSTANT = 253_402_128_000  # 9999-12-30
CENTURY_YEARS = 100
NEAR_END_YEAR = 2150  # tables are made up to here at once: what is asked about in practice, with its 40-year horizon
NEAR_END = int(datetime(NEAR_END_YEAR, 1, 1, tzinfo=UTC).timestamp())
NAME_CHARACTERS_MAX = 64  # the longest name in the database has 32
ZONES_CACHED_MAX = 600  # all there are: some 20 kB each
FAR_TIMELINES_CACHED_MAX = 8  # far futures are looked at by people, one zone at a time


class Segment(NamedTuple):
    """A stretch of time with one offset, and the offsets on both sides of it."""

    start: int
    end: int
    offset: int
    before: int
    then: int


class Timeline(NamedTuple):
    """Segments from the beginning of time to `until`; the last one is cut off there or goes on for ever."""

    starts: tuple[int, ...]
    segments: tuple[Segment, ...]

    def holding(self, instant: int) -> int:
        """Return the index of the segment that holds an instant."""
        return bisect_right(self.starts, instant) - 1


@dataclass(frozen=True, slots=True)
class Zone:
    """A time zone of one database version."""

    name: str
    version: str
    near: Timeline = field(compare=False, repr=False)

    def timeline(self, until: int) -> Timeline:
        """Return segments that are right at least up to `until`."""
        if until < NEAR_END:
            return self.near
        year = datetime.fromtimestamp(min(until, LAST_INSTANT), UTC).year
        return _timeline(self.name, min(9999, (year // CENTURY_YEARS + 1) * CENTURY_YEARS))

    def segments(self, after: int, until: int) -> Iterator[Segment]:
        """Yield the segments that hold an instant of [after, until], in order."""
        timeline = self.timeline(until)
        for index in range(timeline.holding(after), len(timeline.segments)):
            segment = timeline.segments[index]
            if segment.start > until:
                return
            yield segment

    def offset(self, instant: int) -> int:
        """Return what clocks show minus UTC, in seconds."""
        timeline = self.timeline(instant)
        return timeline.segments[timeline.holding(instant)].offset

    def instants(self, reading: int) -> tuple[int, ...]:
        """Return the instants at which clocks show a reading: none in a gap, two in a fold, else one."""
        around = self.segments(reading - 2 * tzif.DAY, reading + 2 * tzif.DAY)
        return tuple(reading - s.offset for s in around if s.start <= reading - s.offset < s.end)


@lru_cache(maxsize=ZONES_CACHED_MAX)
def zone(name: str) -> Zone:
    """Return a zone by its IANA name, or raise `ZoneError`."""
    if name not in zone_names():
        raise _unknown(name)
    return Zone(name=name, version=tz_version(), near=timeline_of(table(name)))


@lru_cache(maxsize=1)
def tz_version() -> str:
    """Return the version of the time zone database in use, such as `2026f`."""
    return str(import_module("tzdata").IANA_VERSION)


@lru_cache(maxsize=1)
def zone_names() -> frozenset[str]:
    """Return all names of the database. `Factory` is its placeholder for "not configured", which is no zone."""
    return frozenset(resources.files("tzdata").joinpath("zones").read_text("ascii").split()) - {"Factory"}


def timeline_of(table: tzif.Table, end_year: int = NEAR_END_YEAR) -> Timeline:
    """Return the segments that a table names, up to the end of a year."""
    starts, offsets = [BEGINNING], [table.first_offset]
    for change in _changes(table, end_year):
        if change.at > starts[-1] and change.offset != offsets[-1]:  # a new name for the same offset moves no clock
            starts.append(change.at)
            offsets.append(change.offset)
    return _linked(starts, offsets)


@lru_cache(maxsize=FAR_TIMELINES_CACHED_MAX)
def _timeline(name: str, end_year: int) -> Timeline:
    return timeline_of(table(name), end_year)


def _linked(starts: list[int], offsets: list[int]) -> Timeline:
    ends = [*starts[1:], 2 * LAST_INSTANT]
    befores = [offsets[0], *offsets[:-1]]
    thens = [*offsets[1:], offsets[-1]]
    return Timeline(tuple(starts), tuple(map(Segment, starts, ends, offsets, befores, thens)))


def _changes(table: tzif.Table, end_year: int) -> Iterator[tzif.Change]:
    yield from table.changes
    last = table.changes[-1].at if table.changes else FIRST_INSTANT
    first_year = max(1970, datetime.fromtimestamp(max(last, 0), UTC).year)
    yield from (change for change in tzif.yearly(table.footer, first_year, end_year) if change.at > last)


def table(name: str) -> tzif.Table:
    """Return what the database says of one of its own names, which cannot lead out of the folder."""
    file = resources.files("tzdata").joinpath("zoneinfo", *name.split("/"))
    return tzif.read(file.read_bytes())


def _unknown(name: str) -> ZoneError:
    if not name:
        return ZoneError(
            "timezone", "The time zone is empty.", "Name one, such as Europe/London, or leave it out for UTC."
        )
    problem = f"{shown(name)} is not a time zone of database {tz_version()}."
    by_lower_case = {known.lower(): known for known in sorted(zone_names())}
    near = get_close_matches(name[:NAME_CHARACTERS_MAX].lower(), by_lower_case, n=1)
    if near:
        return ZoneError("timezone", problem, f"Did you mean {by_lower_case[near[0]]}?")
    return ZoneError("timezone", problem, "Use an IANA name, such as Europe/London or UTC.")
