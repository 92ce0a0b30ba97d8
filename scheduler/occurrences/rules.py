"""What a time zone database says of each zone from some year on, as short texts: to be kept, and held against another.

    -21600;1680000000:-18000,…;CST6         offset at first, changes to come one by one, and the rule that goes on

Two databases side by side need not both be installed: one may be such texts that were written down when it was in use.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

from scheduler.occurrences import tzif
from scheduler.occurrences.zones import Timeline, Zone, table, timeline_of, tz_version, zone_names

COMPARED_SECONDS = 10 * 366 * 86_400  # rules are made for a few years ahead; beyond that nothing is due by them yet
RULES_CACHED_MAX = 256  # there are some hundred different ones
RULE_CHARACTERS_MAX = 8_192  # the longest has some 180 changes to come, of 18 characters each
SOURCE_LINES = "tzdata.zi"

Rules = Mapping[str, str]  # by name of the zone


class NoDatabase(Exception):
    """A folder holds no time zone database."""


@lru_cache(maxsize=1)
def installed() -> Rules:
    """Return the rules of the database that decides here."""
    return _rules(zone_names(), table, since(tz_version()))


def since(version: str) -> int:
    """Return the instant from which rules of a database version are told: the year before it was published."""
    return int(datetime(int(version[:4]) - 1, 1, 1, tzinfo=UTC).timestamp())


def in_folder(folder: Path) -> tuple[str, Rules]:
    """Read version and rules of a database that lies in a folder: an unpacked tzdata package, or compiled zones."""
    version = _version(folder)
    places = (folder / "tzdata" / "zoneinfo", folder / "zoneinfo", folder)
    root = next((place for place in places if place.is_dir()), folder)
    names = [name for name in zone_names() if (root / name).is_file()]
    if not version or not names:
        raise NoDatabase(f"{folder} holds no time zone database that says its version")
    return version, _rules(names, lambda name: tzif.read((root / name).read_bytes()), since(version))


def zone_of(name: str, version: str, rule: str) -> Zone:
    """Return a zone as a rule tells it. It is right from the year on that the rule begins with."""
    return Zone(name=name, version=version, near=_timeline(rule))


def changed(before: Rules, after: Rules, now: int) -> tuple[str, ...]:
    """Return the zones that both know, and whose clocks will not show the same in the ten years from now on."""
    return tuple(
        name
        for name, rule in sorted(before.items())
        if name in after and rule != after[name] and _coming(rule, now) != _coming(after[name], now)
    )


def _rules(names: Iterable[str], read: Callable[[str], tzif.Table], begins: int) -> dict[str, str]:
    return {name: _rule(read(name), begins) for name in sorted(names)}


def _rule(read: tzif.Table, begins: int) -> str:
    passed = bisect_right([change.at for change in read.changes], begins)
    offset = read.changes[passed - 1].offset if passed else read.first_offset
    coming = ",".join(f"{change.at}:{change.offset}" for change in read.changes[passed:])
    return f"{offset};{coming};{read.posix}"


@lru_cache(maxsize=RULES_CACHED_MAX)
def _timeline(rule: str) -> Timeline:
    offset, coming, posix = rule.split(";", 2)
    pairs = (change.split(":") for change in coming.split(",") if change)
    changes = tuple(tzif.Change(at=int(at), offset=int(offset)) for at, offset in pairs)
    return timeline_of(tzif.Table(first_offset=int(offset), changes=changes, footer=tzif.read_footer(posix)))


def _coming(rule: str, now: int) -> list[tuple[int, int]]:
    """What clocks show now, and each change of it in the years to come."""
    timeline = _timeline(rule)
    first = timeline.holding(now)
    coming = (each for each in timeline.segments[first + 1 :] if each.start <= now + COMPARED_SECONDS)
    return [(now, timeline.segments[first].offset), *((each.start, each.offset) for each in coming)]


def _version(folder: Path) -> str:
    """As a tzdata package or the files of a compiled database say it."""
    for package in (folder, folder / "tzdata"):
        if (package / "__init__.py").is_file():
            lines = (package / "__init__.py").read_text("utf-8").splitlines()
            said = (line.partition("=")[2].strip(" \"'") for line in lines if line.startswith("IANA_VERSION"))
            return next(said, "")
    for file in (folder / "+VERSION", folder / SOURCE_LINES):
        if file.is_file():
            return file.read_text("utf-8").splitlines()[0].removeprefix("# version").strip()
    return ""
