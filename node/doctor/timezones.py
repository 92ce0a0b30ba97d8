"""Two time zone databases side by side: what a newer one would move, asked before it is installed.

compared(before, after, schedules, now)   pure: a finding for each schedule whose next twelve months differ
of_server(url)                            the database that decides there, and the schedules in force there
given(folder)                             another one: an unpacked tzdata package, or compiled zones
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import httpx

from node.doctor.finding import Finding, note, ok, wrong
from scheduler.adoption import with_zones
from scheduler.instants import DAY_SECONDS, from_seconds, seconds, text
from scheduler.occurrences import Refused, Trigger, Zone, clocks, rules, tz_version
from scheduler.occurrences.triggers import bits
from scheduler.plan import of_schedule
from schemas import definitions
from tidewheel import connection

MONTHS_DAYS = 366
SCHEDULES_MAX = 20_000  # asked of the server: a minute of comparing, at worst
NAMED_MAX = 20  # schedules that are told one by one: enough to see a pattern
ZONES_NAMED_MAX = 10
PAGE = 500
ASK_SECONDS = 30.0


class Database(NamedTuple):
    """A version, and what it says of each zone."""

    version: str
    rules: Mapping[str, str]


class Scheduled(NamedTuple):
    """A definition in force."""

    tenant: str
    name: str
    definition: Mapping[str, object]


class Moved(NamedTuple):
    """How many of the next twelve months' occurrences are at other instants, and the first of each side."""

    number: int
    was: int | None
    becomes: int | None


def here() -> Database:
    """The installed one."""
    return Database(tz_version(), rules.installed())


def given(folder: Path) -> Database:
    """One that lies in a folder; `rules.NoDatabase` where there is none."""
    return Database(*rules.in_folder(folder))


def compared(before: Database, after: Database, schedules: Iterable[Scheduled], now: datetime) -> Iterator[Finding]:
    """What the newer database changes for these schedules, in twelve months from now on."""
    told = f"time zone data {after.version} against {before.version}"
    if after.version < before.version:
        yield wrong(f"{told}: older, and no process that has them may decide any more", "install the newer ones")
        return
    zones = rules.changed(before.rules, after.rules, seconds(now))
    if not zones:
        yield ok(f"{told}: no clock shows anything else in the ten years to come")
        return
    yield note(f"{told}: other clocks in {_named(zones)}", "the schedules that look at them are told below")
    old, new = _clocks(zones, before), _clocks(zones, after)
    looked = moved = 0
    for each in schedules:
        looked += 1
        found = _moved(each, old, new, seconds(now))
        if found is not None and found.number:
            moved += 1
            if moved <= NAMED_MAX:
                yield note(*_told(each, found))
    if moved > NAMED_MAX:
        yield note(f"and {moved - NAMED_MAX} schedules more", "`tz.adopted` will name the first hundred of a partition")
    yield ok(f"{moved} of {looked} schedules have other occurrences in the next twelve months")


def of_server(url: str) -> tuple[Database, list[Scheduled]]:
    """What the server at a URL decides by, and for whom; `httpx.HTTPError` when it does not tell."""
    with httpx.Client(base_url=url, timeout=ASK_SECONDS, trust_env=not connection.is_here(url)) as client:
        told = client.get("/v1/time-zones").raise_for_status().json()
        return Database(told["version"], told["zones"]), list(_schedules(client))


def _schedules(client: httpx.Client) -> Iterator[Scheduled]:
    cursor, left = None, SCHEDULES_MAX
    while left > 0:
        wanted = {"limit": str(PAGE), **({} if cursor is None else {"cursor": cursor})}
        page = client.get("/v1/schedules", params=wanted).raise_for_status().json()
        for each in page["schedules"][:left]:
            yield Scheduled(each["tenant"], each["name"], each["definition"])
        left -= len(page["schedules"])
        cursor = page.get("cursor")
        if cursor is None:
            return


def _clocks(zones: Iterable[str], database: Database) -> Mapping[str, Zone]:
    return {name: rules.zone_of(name, database.version, database.rules[name]) for name in zones}


def _moved(each: Scheduled, old: Mapping[str, Zone], new: Mapping[str, Zone], now: int) -> Moved | None:
    """None for one that looks at none of these clocks, or that we do not understand."""
    trigger = each.definition.get("trigger")
    if not isinstance(trigger, Mapping) or trigger.get("timezone", "UTC") not in old:
        return None
    try:
        plan = of_schedule(definitions.Schedule.model_validate(each.definition), f"{each.tenant}/{each.name}")
    except (Refused, ValueError):
        return None
    if not clocks(plan.trigger):
        return None
    return _difference(with_zones(plan.trigger, old), with_zones(plan.trigger, new), now)


def _difference(before: Trigger, after: Trigger, now: int) -> Moved:
    """A day at a time in sets of bits."""
    count, was, becomes = 0, None, None
    for begins in range(now, now + MONTHS_DAYS * DAY_SECONDS, DAY_SECONDS):
        old, new = (bits(each, begins, begins + DAY_SECONDS) for each in (before, after))
        gone, come = old & ~new, new & ~old
        count += gone.bit_count()
        was = _first(gone, begins) if was is None else was
        becomes = _first(come, begins) if becomes is None else becomes
    return Moved(count, was, becomes)


def _first(found: int, begins: int) -> int | None:
    """The lowest bit: bit n is the instant `begins + 1 + n`."""
    return begins + (found & -found).bit_length() if found else None


def _told(each: Scheduled, moved: Moved) -> tuple[str, str]:
    trigger = each.definition["trigger"]
    zone = trigger.get("timezone", "UTC") if isinstance(trigger, Mapping) else ""
    first = " to ".join("nothing" if at is None else text(from_seconds(at)) for at in (moved.was, moved.becomes))
    return f"{each.tenant}/{each.name} ({zone}): {moved.number} occurrences move, first {first}", ""


def _named(zones: tuple[str, ...]) -> str:
    if len(zones) <= ZONES_NAMED_MAX:
        return ", ".join(zones)
    return f"{', '.join(zones[:ZONES_NAMED_MAX])} and {len(zones) - ZONES_NAMED_MAX} zones more"
